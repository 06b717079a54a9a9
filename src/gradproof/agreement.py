"""Analytic against numeric: tolerances, and the verdict on every entry.

Two numbers are never merged: the tolerance says how much deviation the user accepts, the error bar how well the
numeric side is known. Beyond both: WRONG. Within the tolerance, or within a bar that is itself within the tolerance:
right. A bar wider than the tolerance, and no clear excess: UNDECIDED.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gradproof import precision
from gradproof.program import Array, Program
from gradproof.program import Mask as Mask  # noqa: PLC0414  `exhaustive` and `together` take it from here
from gradproof.reference.estimate import Estimate
from gradproof.settings import Settings, Tolerance

# Default relative tolerance: 1e-5 in double; below that a multiple of the format's own rounding error, which grows
# with the logarithm of the number of terms that a gradient entry may sum.
DOUBLE_TOLERANCE = 1e-5
# An entry that is off by so much of its own row and column is wrong, however large others of its block are.
GROSS = 0.1
# Where the function itself runs in nothing wider than float32, its differences resolve no more than about the root of
# that rounding error: this many times it at an entry, and at one that is small beside its block, many of whose entries
# may be zero, so many of the block's rms. (In half precision they resolve nothing that could be called right.)
DIFFERENCES, OF_BLOCK = 4.0, 32.0

# One bar in some hundred is too narrow by chance. Where the bar is within the tolerance, the tolerance makes up for it;
# where it is not, an excess is clear only beyond this many bars.
CLEAR = 4.0
# A derivative with a bar of so many tolerances is not known well, but that it is finite is.
SURELY_FINITE = 1e3
# The smallest number with all its digits. Below, a function may give zero and its derivative not yet.
UNDERFLOW = float(np.finfo(np.float64).tiny)


def tolerance_for(rule: Tolerance, settings: Settings, program: Program, reference: Program) -> Tolerance:
    """For derivatives of the program against differences of the reference; `rule` is what `tolerance_of_rule` says."""
    coarsest = precision.form_of(program)
    if settings.tolerance is None and coarsest is precision.SINGLE is precision.form_of(reference):
        root = float(np.sqrt(coarsest.roundoff))
        relative = max(rule.relative, DIFFERENCES * root)
        return Tolerance(relative=relative, absolute=rule.absolute, block=OF_BLOCK * root)
    return rule


def tolerance_of_rule(settings: Settings, program: Program) -> Tolerance:
    """For derivatives of the program against others that no differences are needed for."""
    if settings.tolerance is not None:
        return settings.tolerance
    coarsest = precision.form_of(program)
    # What differs from run to run cannot be judged more closely than that.
    absolute = settings.nondet_tol
    if coarsest is precision.DOUBLE:
        return Tolerance(relative=DOUBLE_TOLERANCE, absolute=absolute, gross=GROSS)
    absolute += 2.0 * coarsest.smallest  # what is too small for the format is zero there, or nearly so
    terms = max(program.point.size, program.value.size, 2)
    relative = coarsest.roundings * coarsest.roundoff * (1.0 + np.log2(terms) / 8.0)
    return Tolerance(relative=relative, absolute=absolute)


def entry_tolerance(numeric: Array, scale: float | Array, tolerance: Tolerance) -> Array:
    """What the tolerance grants to each entry of a block whose rms is `scale`."""
    result: Array = np.abs(numeric)
    result *= tolerance.relative
    np.maximum(result, np.minimum(tolerance.of_block * scale, tolerance.ceiling), out=result)
    if tolerance.absolute:
        result += tolerance.absolute
    return result


def tolerance_of_zero(scale: Array, tolerance: Tolerance) -> Array:
    """The same for entries that are zero in blocks of these scales."""
    return np.asarray(np.minimum(tolerance.of_block * scale, tolerance.ceiling) + tolerance.absolute)


def tolerance_of_one(numeric: float, scale: float, tolerance: Tolerance) -> float:
    """The same for a single entry."""
    of_block = min(tolerance.of_block * scale, tolerance.ceiling)
    return max(abs(numeric) * tolerance.relative, of_block) + tolerance.absolute


@dataclass(frozen=True, slots=True)
class Judgement:
    """The entries of a block that are wrong, and those that cannot be told."""

    wrong: Mask
    undecided: Mask


def judge(analytic: Array, numeric: Estimate, tolerance: Array) -> Judgement:
    """Judge entry by entry. An analytic number that is not finite is wrong wherever the numeric side surely is."""
    with np.errstate(invalid="ignore"):
        deviation, bar = numeric.distance(analytic), numeric.bar
        known = bar <= tolerance
        if known.all() and (deviation <= tolerance).all():  # nearly always, and then nothing more is to be computed
            return Judgement(np.zeros_like(known), np.zeros_like(known))
        slack = np.maximum(tolerance + np.where(known, bar, CLEAR * bar), UNDERFLOW)
        finite = np.isfinite(deviation) | (bar <= SURELY_FINITE * tolerance)
        wrong = ~(deviation <= slack) & finite & np.isfinite(bar)
    return Judgement(wrong, ~(known | wrong))
