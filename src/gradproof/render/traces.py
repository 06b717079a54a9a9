"""What a trace shows, in words: the text beside a plot, and instead of it."""

from __future__ import annotations

import math

import numpy as np

from gradproof.picture import Trace
from gradproof.render.numbers import two_digits

# The remainder tells something where it is so many times the rounding, and the step well below the largest.
ABOVE_ROUNDING, BELOW_LARGEST = 30.0, 64.0


def ladder_sentence(trace: Trace) -> str:
    """How close the numeric slopes come to the analytic one."""
    if not math.isfinite(trace.analytic):
        return f"The analytic derivative is {trace.analytic}; the slopes settle at {trace.numeric:.6g}." + _kinks(trace)
    known = [(abs(slope - trace.analytic), bar) for slope, bar in zip(trace.slopes, trace.bars, strict=True)]
    known = [(error, bar) for error, bar in known if math.isfinite(error) and math.isfinite(bar)]
    if not known:
        return "The function is not finite around this point."
    error, bar = min(known, key=lambda one: one[1])
    steps = f"At steps from {two_digits(trace.steps[0])} to {two_digits(trace.steps[-1])}"
    allowed = trace.tolerance + trace.spread
    if trace.spread > 0 and error <= allowed + bar:
        low, high = trace.numeric - trace.spread, trace.numeric + trace.spread
        told = f"from either side are {low:.6g} and {high:.6g}, and the analytic one, {trace.analytic:.6g}, is allowed"
    elif error > allowed + bar:
        told = f"stay {two_digits(error)} away from the analytic one, {_times(error, trace.tolerance)}"
    elif bar > allowed:
        told = f"are known to ±{two_digits(bar)} at best, and the tolerance is {two_digits(trace.tolerance)}"
    else:
        told = (
            f"come within {two_digits(max(error, bar))} of the analytic one (tolerance {two_digits(trace.tolerance)})"
        )
    return f"{steps} the numeric slopes {told}." + _kinks(trace)


def taylor_sentence(trace: Trace) -> str:
    """At what order the remainder vanishes: 2 for a right derivative, 1 for a wrong one."""
    slope = remainder_order(trace)
    if math.isnan(slope):
        return "The remainder is rounding at every step that matters: the function is as good as linear here."
    meaning = ""
    if abs(slope - 2.0) < 0.25 or slope > 2.0:
        meaning = ", as for a right derivative"
    elif abs(slope - 1.0) < 0.25:
        meaning = ", as at a kink" if 0.0 in trace.kinks else ", as for a wrong derivative"
    return f"The remainder falls with the power {slope:.1f} of the step{meaning}."


def has_ladder(trace: Trace) -> bool:
    """Whether there is anything to draw: not where the function is not finite."""
    return any(math.isfinite(slope) for slope in trace.slopes)


def has_remainder(trace: Trace) -> bool:
    """Whether there is a remainder to draw: a derivative that is no number leaves none, an exactly linear function
    one of zero."""
    return any(0 < one < math.inf for one in trace.remainders)


def remainder_order(trace: Trace) -> float:
    """The typical slope of the remainder in a log-log plot, where it is clear of rounding; NaN where it never is."""
    steps, left_over = np.array(trace.steps), np.array(trace.remainders)
    clear = np.isfinite(left_over) & (left_over > ABOVE_ROUNDING * trace.rounding) & (left_over > 0)
    clear &= steps * BELOW_LARGEST <= steps[-1] if len(steps) else clear
    for distance in trace.kinks:
        if distance > 0:
            clear &= steps < distance
    if np.count_nonzero(clear) < 2:
        return math.nan
    return float(np.median(np.diff(np.log(left_over[clear])) / np.diff(np.log(steps[clear]))))


def _times(error: float, tolerance: float) -> str:
    return (
        f"{error / tolerance:,.0f} tolerances"
        if tolerance > 0 and error / tolerance < 1e6
        else "far beyond the tolerance"
    )


def _kinks(trace: Trace) -> str:
    near = [f"{two_digits(distance)} away" for distance in trace.kinks if distance > 0]
    places = (["at the point itself"] if 0.0 in trace.kinks else []) + near
    return f" A kink lies {' and '.join(places)}." if places else ""
