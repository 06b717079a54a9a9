"""The ladder of steps: look once near the best step; where that does not resolve the slope, climb or descend.

Every rung is a stencil with its own error bar; `lepski` says which of them to believe.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradproof.program import Array
from gradproof.reference.estimate import Estimate, Kind
from gradproof.reference.field import Field
from gradproof.reference.kinks import classify
from gradproof.reference.lepski import lepski
from gradproof.reference.stencil import FLOOR_FACTOR, Slopes, central, slopes

# log2 of the rungs' steps, relative to the first look. Four octaves apart; a stencil itself spans two.
CLIMB = (4, 8, 12)
DESCENT = (-4, -8, -12)
FAR_DESCENT = (-16, -20, -24, -28)
NEIGHBOURS = (4, -4, -8)


@dataclass(frozen=True, slots=True)
class Rung:
    """A stencil at 2**exponent times the first displacement, expressed in units of the first displacement."""

    exponent: int
    slopes: Slopes
    sigma: Array  # noise of the function values that this rung saw
    floor: Array  # the part of the noise bar that every rung has, in these units

    @property
    def unchanged(self) -> NDArray[np.bool_]:
        """Where no sample differed from the value at the point."""
        still: NDArray[np.bool_] = (self.slopes.central == 0) & (self.slopes.bar <= self.floor)
        return still


def first_look(field: Field, displacements: Array) -> Rung:
    """Four evaluations a direction, at the step where truncation and rounding are expected to balance."""
    value, truncation, noise = central(field, displacements)
    floor = np.broadcast_to((2 * FLOOR_FACTOR) * field.floor, value.shape)
    missing = np.full_like(value, np.nan)
    return Rung(0, Slopes(value, truncation, noise, missing, missing, missing, missing), noise / 12.0, floor)


def estimate(field: Field, displacements: Array, relative: float = 1e-6) -> Estimate:
    """Derivatives along each displacement, to `relative` of the row's largest where the function allows it."""
    look = first_look(field, displacements)
    return refine(field, displacements, look, Goal(np.zeros_like(look.slopes.central), relative))


@dataclass(frozen=True, slots=True)
class Goal:
    """The bar that is narrow enough: `absolute` (an array for every entry), or `relative` to the derivative itself."""

    absolute: Array
    relative: float

    def met(self, value: Array, bar: Array) -> NDArray[np.bool_]:
        return np.asarray(bar <= np.maximum(self.absolute, self.relative * np.abs(value)))

    def of_rows(self, rows: NDArray[np.intp]) -> Goal:
        return Goal(self.absolute[rows], self.relative)


def refine(field: Field, displacements: Array, look: Rung, goal: Goal) -> Estimate:
    """Improve the rows that miss their goal; those that were good enough at the first look cost nothing more."""
    parts = look.slopes
    bar = parts.bar
    result = Estimate.smooth(parts.central.copy(), np.where(np.isfinite(bar), bar, np.inf))
    missed = ~goal.met(parts.central, bar)
    rows = np.flatnonzero(missed.any(axis=1))
    if rows.size:
        # A kink at the point fills the noise bar too, so a climb that does not help is followed by a descent.
        with np.errstate(invalid="ignore"):
            noisy = np.where(missed & (parts.noise >= parts.truncation), bar, 0.0)[rows].max(axis=1)
            curved = np.where(missed & ~(parts.noise >= parts.truncation), bar, 0.0)[rows].max(axis=1)
            climbing = noisy > curved
        question = Question(field, displacements, goal)
        _walk(question, look, rows[climbing], (CLIMB, DESCENT, FAR_DESCENT), result)
        _walk(question, look, rows[~climbing], (DESCENT, CLIMB, FAR_DESCENT), result)
    return result


def second_opinion(field: Field, displacements: Array, relative: float) -> Estimate:
    """Rungs on both sides of the first look for every row, and the rest of the ladder where they do not agree: what
    must be asked before an entry is called wrong."""
    look = first_look(field, displacements)
    shape = look.slopes.central.shape
    result = Estimate.smooth(np.zeros(shape), np.full(shape, np.inf))
    stretches = (NEIGHBOURS, CLIMB[1:] + DESCENT[2:], FAR_DESCENT)
    question = Question(field, displacements, Goal(np.zeros(shape), relative))
    _walk(question, look, np.arange(shape[0]), stretches, result)
    return result


@dataclass(frozen=True, slots=True)
class Question:
    """Which derivatives are wanted, and how well."""

    field: Field
    displacements: Array
    goal: Goal


def _walk(
    question: Question, look: Rung, rows: NDArray[np.intp], stretches: Sequence[Sequence[int]], result: Estimate
) -> None:
    """Evaluate further rungs for some rows, stretch by stretch, and write the better estimates into `result`."""
    rungs = [_rows_of(look, rows)]
    for stretch in stretches:
        if not rows.size:
            return
        goal = question.goal.of_rows(rows)
        rungs += [_rung(question.field, question.displacements[rows], exponent) for exponent in stretch]
        chosen = _choose(rungs, goal)
        result.put(rows, chosen)
        # A kink is only believed when it stays one down to the smallest step.
        settled = goal.met(chosen.value, chosen.bar) & (chosen.kind == Kind.SMOOTH)
        settled |= np.logical_and.reduce([rung.unchanged for rung in rungs])
        resolved = settled.all(axis=1)
        rungs = [_rows_of(rung, np.flatnonzero(~resolved)) for rung in rungs]
        rows = rows[~resolved]


def _rows_of(rung: Rung, rows: NDArray[np.intp]) -> Rung:
    parts = rung.slopes
    taken = Slopes(
        parts.central[rows],
        parts.truncation[rows],
        parts.noise[rows],
        parts.right[rows],
        parts.right_bar[rows],
        parts.left[rows],
        parts.left_bar[rows],
    )
    return Rung(rung.exponent, taken, rung.sigma[rows], rung.floor[rows])


def _rung(field: Field, displacements: Array, exponent: int) -> Rung:
    length = 2.0**exponent
    found = slopes(field, displacements * length)
    floor = np.broadcast_to(4 * FLOOR_FACTOR * field.floor, found.central.shape)
    sigma = (found.noise - floor) / 16.0
    scaled = Slopes(
        found.central / length,
        found.truncation / length,
        found.noise / length,
        found.right / length,
        found.right_bar / length,
        found.left / length,
        found.left_bar / length,
    )
    return Rung(exponent, scaled, sigma, floor / length)


@np.errstate(invalid="ignore", over="ignore", divide="ignore")
def _choose(rungs: Sequence[Rung], goal: Goal) -> Estimate:
    ordered = sorted(rungs, key=lambda rung: rung.exponent)
    level, steady = noise_level(ordered)
    bars = []
    for rung in ordered:
        # What the rung saw itself may be small by luck; and where it saw no change at all, stairs may be the reason.
        missing = np.where(rung.unchanged, np.where(steady, level, 0.0), np.maximum(level - rung.sigma, 0.0))
        bars.append(rung.slopes.bar + 16.0 * missing * 2.0**-rung.exponent)
    value, bar = lepski([rung.slopes.central for rung in ordered], bars)
    return classify(Estimate.smooth(value, bar), ~goal.met(value, bar), [(r.exponent, r.slopes) for r in ordered])


def noise_level(ordered: Sequence[Rung]) -> tuple[Array, NDArray[np.bool_]]:
    """The noise of the function values, as the rungs saw it, and whether it is the same at all steps.

    Rounding inside the function (1 + x - 1) makes stairs: over small steps nothing changes, and that must not count as
    a slope of zero. The height of stairs does not depend on the step, and no more does other noise: then the median of
    all rungs tells it. If what was seen grows with the step instead, it is curvature or a kink that the larger rungs
    cross; the smaller ones are right, and the median of the three smallest is the noise.
    """
    exponents = np.array([rung.exponent for rung in ordered], float)[:, None, None]
    seen = np.stack([np.where(rung.unchanged, np.nan, rung.sigma) for rung in ordered])
    valid = np.isfinite(seen)
    count = np.cumsum(valid, axis=0)
    total = count[-1]
    first, last = valid & (count == 1), valid & (count == total)
    rise = np.log2(np.where(last, seen, 0.0).sum(axis=0) / np.where(first, seen, 0.0).sum(axis=0))
    run = np.where(last, exponents, 0.0).sum(axis=0) - np.where(first, exponents, 0.0).sum(axis=0)
    steady = (total > 0) & ~(rise > 0.5 * run)
    taken = np.where(steady, total, np.minimum(total, 3))
    small = np.sort(np.where(valid & (count <= taken), seen, np.nan), axis=0)
    middle = np.take_along_axis(small, np.maximum((taken - 1) // 2, 0)[None], axis=0)[0]
    return np.nan_to_num(middle), steady
