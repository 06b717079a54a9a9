"""A function along one line, at steps over many decades: what a plot against the step shows, and where it meets kinks.

`ladder` takes as few steps as a verdict needs; this takes them all, from far beyond the scale of the point down to
where rounding is everything.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gradproof.precision import Precision
from gradproof.program import Array, Mask
from gradproof.reference.field import Field
from gradproof.reference.stencil import FLOOR_FACTOR, TRUNCATION_FACTOR, sample

# log2 of the largest step over the scale, and how many steps are taken.
LARGEST, COUNT = 2, 17
# The smallest step is at least so many bits above the last one of the format. A factor of four from step to step is
# enough for a plot.
SPARE, SPACING = 8, 2

# A kink shows when left and right slopes differ by so many times what noise could do, and by this share of the slope.
CLEAR = 4.0
LEAST = 1e-3
# Only near the point, in units of its scale: further out, a smooth function may do anything between two steps.
NEAR = 1.0


def exponents(precision: Precision) -> tuple[int, ...]:
    """log2 of the steps over the scale, largest first."""
    lowest = SPARE - precision.bits
    spacing = min(max(1, (LARGEST - lowest) // (COUNT - 1)), SPACING)
    return tuple(range(LARGEST, lowest - 1, -spacing))[:COUNT]


@dataclass(frozen=True, slots=True)
class Decades:
    """Along one displacement, the largest step first: slopes from both sides and from each alone with the error bar of
    the first, `rise` = f(x + h) - f(x) and `fall` = f(x) - f(x - h). `rounding` is the noise of a value."""

    steps: Array
    central: Array
    bar: Array
    right: Array
    left: Array
    rise: Array
    fall: Array
    rounding: float


@np.errstate(invalid="ignore", over="ignore")
def decades(field: Field, unit: Array, powers: tuple[int, ...]) -> Decades:
    """Two evaluations a step; `field` has a single number."""
    steps = np.exp2(np.array(powers, float))
    samples = sample(field, unit[None], tuple(steps.tolist()))[:, 0, 0]
    rise, fall = samples[0::2] - field.value[0], field.value[0] - samples[1::2]
    central = 0.5 * (rise + fall) / steps
    rounding = _rounding(field, np.abs(rise - fall), central)
    bar = TRUNCATION_FACTOR * _truncation(central, steps) + FLOOR_FACTOR * rounding / steps
    return Decades(steps, central, bar, rise / steps, fall / steps, rise, fall, rounding)


def _truncation(central: Array, steps: Array) -> Array:
    """A step r times as small takes r^2 off the error: what the next larger step changed tells what is left. The
    largest step, and one whose larger neighbour left the domain, is judged by what the next smaller one changes."""
    if len(steps) == 1:
        return np.abs(central)
    changes = np.abs(np.diff(central))
    below = np.concatenate([changes, changes[-1:]])
    above = np.concatenate([changes[:1], changes / ((steps[0] / steps[1]) ** 2 - 1.0)])
    return np.where(np.isfinite(above), above, below)


def _rounding(field: Field, bends: Array, central: Array) -> float:
    """The noise of a value: as the bends over the four smallest steps show it, and not below that of its format. The
    input is rounded too, which moves the value by the slope times the last bit of the input (one unit is one scale)."""
    few = bends[-4:]
    # What grows with the step is no noise but a kink, or curvature.
    steady = few.size == 4 and few[:2].sum() <= 4.0 * few[2:].sum()
    measured = float(np.median(few)) / np.sqrt(6.0) if steady else 0.0
    slopes = np.abs(central[np.isfinite(central)])
    typical = float(np.median(slopes)) if slopes.size else 0.0
    return float(max(measured, field.floor[0], 2.0**-53 * typical))


@np.errstate(invalid="ignore", divide="ignore", over="ignore")
def kinks(seen: Decades) -> tuple[float, ...]:
    """How far away kinks are, as far as the steps show: 0 for one at the point itself.

    The gap between the slopes from right and left shrinks with the step where the function is smooth. At a kink it
    stays; beyond one at distance d it is G (1 - d / h), which two steps beyond it suffice to solve for d.
    """
    steps, gap = seen.steps[::-1], np.abs(seen.right - seen.left)[::-1]
    noise = FLOOR_FACTOR * seen.rounding / steps
    clear = gap > np.maximum(CLEAR * noise, LEAST * np.abs(seen.central[::-1]))
    found = [0.0] if _persistent(gap, clear) else []
    ratio = steps[1] / steps[0] if len(steps) > 1 else 2.0
    for k in range(len(steps) - 2):
        jumped = clear[k + 1] and steps[k + 1] <= NEAR and gap[k + 1] > 4.0 * ratio * max(gap[k], noise[k])
        beyond = gap[k + 1 : k + 4]
        if jumped and (beyond[1:] < 0.5 * ratio * beyond[:-1]).any():
            slope = (gap[k + 2] * steps[k + 2] - gap[k + 1] * steps[k + 1]) / (steps[k + 2] - steps[k + 1])
            distance = steps[k + 1] * (1.0 - gap[k + 1] / slope)
            found.append(float(np.clip(distance, steps[k], steps[k + 1])))
    return tuple(found)


def _persistent(gap: Array, clear: Mask) -> bool:
    """The same gap at the four smallest steps that resolve one."""
    first = gap[clear][:4]
    return bool(first.size == 4 and np.ptp(first) <= 0.25 * first[0])
