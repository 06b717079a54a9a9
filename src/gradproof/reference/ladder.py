"""The ladder of steps: look once near the best step; where that does not resolve the slope, climb or descend.

Every rung is a stencil with its own error bar; `lepski` says which of them to believe.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from gradproof.program import Array
from gradproof.reference.complexstep import sharpened
from gradproof.reference.estimate import Estimate, Goal, Kind
from gradproof.reference.field import Field
from gradproof.reference.grid import held_against
from gradproof.reference.kinks import classify
from gradproof.reference.lepski import lepski
from gradproof.reference.stencil import FLOOR_FACTOR, NOISE_FACTOR, PER_STEP, Slopes, first_slopes, slopes

# log2 of the rungs' steps, relative to the first look. Four octaves apart; a stencil itself spans two.
CLIMB = (4, 8, 12)
DESCENT = (-4, -8, -12)
FAR_DESCENT = (-16, -20, -24, -28)
NEIGHBOURS = (4, -4, -8)
FEW_ROUNDINGS = 64.0
# A residual of several terms, each rounded, in units of the floor.
ROUNDED = 16.0
# Stairs this high, in units of what `Field.coarse` says, do not come from a computation in float32.
QUANTISED = 2.0


@dataclass(frozen=True, slots=True)
class Rung:
    """A stencil at 2**exponent times the first displacement, expressed in units of the first displacement; `sigma` of
    the slopes stays in units of the function. `floor` is the part of the noise bar that every stencil has."""

    exponent: int
    slopes: Slopes
    floor: Array

    @property
    def unchanged(self) -> NDArray[np.bool_]:
        """Where no sample differed from the value at the point, but for the rounding of what is left over."""
        still: NDArray[np.bool_] = (self.slopes.central == 0) & (self.slopes.bar <= ROUNDED * self.floor)
        return still

    def of_rows(self, rows: NDArray[np.intp]) -> Rung:
        taken = {field.name: getattr(self.slopes, field.name)[rows] for field in fields(Slopes)}
        return Rung(self.exponent, Slopes(**taken), self.floor[rows])


def first_look(field: Field, displacements: Array) -> Rung:
    """Four evaluations a direction, at the step where truncation and rounding are expected to balance."""
    return Rung(0, first_slopes(field, displacements), _floor(field, len(displacements)))


def _floor(field: Field, count: int) -> Array:
    return np.broadcast_to((PER_STEP * FLOOR_FACTOR) * field.floor, (count, field.value.size))


def estimate(field: Field, displacements: Array, relative: float = 1e-6) -> Estimate:
    """Derivatives along each displacement, to `relative` of the row's largest where the function allows it."""
    goal = Goal.as_known((len(displacements), field.value.size), relative)
    return refine(field, displacements, first_look(field, displacements), goal)


def refine(field: Field, displacements: Array, look: Rung, goal: Goal) -> Estimate:
    """Improve the rows that miss their goal; those that were good enough at the first look cost nothing more."""
    parts = look.slopes
    bar = parts.bar
    result = Estimate.smooth(parts.central.copy(), np.where(np.isfinite(bar), bar, np.inf))
    missed = _sharpened(field, displacements, goal, result)
    rows = np.flatnonzero(missed.any(axis=1))
    if rows.size:
        # A kink at the point fills the noise bar too, so a climb that does not help is followed by a descent. And a
        # descent alone might end on a single tread of a function that moves in stairs, so it goes with a climb.
        with np.errstate(invalid="ignore"):
            noisy = np.where(missed & (parts.noise >= parts.truncation), bar, 0.0)[rows].max(axis=1)
            curved = np.where(missed & ~(parts.noise >= parts.truncation), bar, 0.0)[rows].max(axis=1)
            climbing = noisy > curved
        question = Question(field, displacements, goal)
        _walk(question, look, rows[climbing], (CLIMB, field.between, DESCENT, FAR_DESCENT), result)
        _walk(question, look, rows[~climbing], (DESCENT + CLIMB, field.between, FAR_DESCENT), result)
    return result


def _sharpened(field: Field, displacements: Array, goal: Goal, result: Estimate) -> NDArray[np.bool_]:
    """What misses its goal, after the complex step has been asked about the rows that do."""
    missed = ~goal.met(result.value, result.bar)
    rows = np.flatnonzero(missed.any(axis=1))
    exact = field.exact(displacements[rows]) if rows.size and field.exact is not None else None
    if exact is not None:
        result.put(rows, sharpened(exact, result.of_rows(rows)))
        missed = ~goal.met(result.value, result.bar)
    return missed


def second_opinion(field: Field, displacements: Array, look: Rung, goal: Goal) -> Estimate:
    """Rungs on both sides of the first look for every row, and the rest of the ladder where they do not agree: what
    must be asked before an entry is called wrong."""
    shape = look.slopes.central.shape
    result = Estimate.smooth(np.zeros(shape), np.full(shape, np.inf))
    stretches = (NEIGHBOURS + CLIMB[1:], field.between, DESCENT[2:], FAR_DESCENT)
    question = Question(field, displacements, goal)
    _walk(question, look, np.arange(shape[0]), stretches, result)
    _sharpened(field, displacements, goal, result)
    return held_against(field, displacements, result)


def fresh_opinion(field: Field, displacements: Array, relative: float) -> Estimate:
    """The same with a first look of its own, to `relative` of each derivative."""
    goal = Goal.as_known((len(displacements), field.value.size), relative)
    return second_opinion(field, displacements, first_look(field, displacements), goal)


@dataclass(frozen=True, slots=True)
class Question:
    """Which derivatives are wanted, and how well."""

    field: Field
    displacements: Array
    goal: Goal


def _walk(
    question: Question, look: Rung, rows: NDArray[np.intp], stretches: Sequence[Sequence[int]], result: Estimate
) -> None:
    """Evaluate further rungs for some rows, stretch by stretch, and write the better estimates into `result`. Rows that
    may go higher than others go by themselves."""
    limits = question.field.limits(question.displacements[rows]) & ~1  # no rung is odd
    for limit in np.unique(limits):
        within = [[one for one in stretch if one <= limit] for stretch in stretches if stretch]
        _walk_alike(question, look, rows[limits == limit], within, result)


def _walk_alike(
    question: Question, look: Rung, rows: NDArray[np.intp], stretches: Sequence[Sequence[int]], result: Estimate
) -> None:
    rungs = [look.of_rows(rows)]
    for stretch in stretches:
        if not rows.size:
            return
        goal = question.goal.of_rows(rows)
        rungs += [_rung(question.field, question.displacements[rows], exponent) for exponent in stretch]
        chosen = _choose(rungs, goal, question.field.coarse)
        result.put(rows, chosen)
        # A kink is only believed when it stays one down to the smallest step.
        settled = goal.met(chosen.value, chosen.bar) & ((chosen.kind == Kind.SMOOTH) | (chosen.kind == Kind.NEAR))
        settled |= np.logical_and.reduce([rung.unchanged for rung in rungs])
        resolved = settled.all(axis=1)
        rungs = [rung.of_rows(np.flatnonzero(~resolved)) for rung in rungs]
        rows = rows[~resolved]


def _rung(field: Field, displacements: Array, exponent: int) -> Rung:
    length = 2.0**exponent
    found = slopes(field, displacements * length)
    scaled = {one.name: getattr(found, one.name) / length for one in fields(Slopes) if one.name != "sigma"}
    return Rung(exponent, Slopes(**scaled, sigma=found.sigma), _floor(field, len(displacements)) / length)


@np.errstate(invalid="ignore", over="ignore", divide="ignore")
def _choose(rungs: Sequence[Rung], goal: Goal, coarse: Array) -> Estimate:
    ordered = sorted(rungs, key=lambda rung: rung.exponent)
    noise = noise_level(ordered, coarse)
    value, bar = _believed(ordered, noise.level, noise.steady)
    pairs = [(rung.exponent, rung.slopes) for rung in ordered]
    plain = classify(Estimate.smooth(value, bar), ~goal.met(value, bar), pairs)
    if not noise.stairs.any():
        return plain
    across = _believed(ordered, noise.height, noise.stairs)
    return _on_flat_stairs(_on_stairs(plain, across, noise.stairs), across[0], noise, ordered, coarse)


def _believed(ordered: Sequence[Rung], level: Array, steady: NDArray[np.bool_]) -> tuple[Array, Array]:
    """The rung to believe if the function values have at least this noise, at all steps where it is steady."""
    bars = []
    for rung in ordered:
        # What the rung saw itself may be small by luck; and where it saw no change at all, stairs may be the reason.
        missing = np.where(rung.unchanged, np.where(steady, level, 0.0), np.maximum(level - rung.slopes.sigma, 0.0))
        bars.append(rung.slopes.bar + NOISE_FACTOR * PER_STEP * missing * 2.0**-rung.exponent)
    return lepski([rung.slopes.central for rung in ordered], bars)


def _on_stairs(tread: Estimate, across: tuple[Array, Array], stairs: NDArray[np.bool_]) -> Estimate:
    """A quantiser is right to say zero, and a solver's author to give the slope across the stairs that its tolerance
    makes: where the two slopes differ, the interval between them is what is known."""
    slope, slope_bar = across
    both = stairs & (np.abs(tread.value - slope) > tread.bar + slope_bar) & (tread.spread == 0)
    both &= np.isfinite(tread.bar) & np.isfinite(slope_bar)
    return Estimate(
        np.where(both, 0.5 * (tread.value + slope), np.where(stairs, slope, tread.value)),
        np.where(both, np.maximum(tread.bar, slope_bar), np.where(stairs, slope_bar, tread.bar)),
        np.where(both, 0.5 * np.abs(tread.value - slope), tread.spread),
        np.where(both, np.uint8(Kind.STAIRS), tread.kind),
    )


def _on_flat_stairs(found: Estimate, slope: Array, noise: Noise, ordered: Sequence[Rung], coarse: Array) -> Estimate:
    """Treads that are flat and higher than any rounding make a quantiser, of which zero is a valid slope as well."""
    still = np.logical_or.reduce([rung.unchanged for rung in ordered if rung.exponent <= -8])
    flat = noise.stairs & still & (noise.height > QUANTISED * coarse) & (found.kind != Kind.STAIRS)
    flat &= np.isfinite(found.bar) & (np.abs(slope) > found.bar) & (found.spread == 0)
    if not flat.any():
        return found
    return Estimate(
        np.where(flat, 0.5 * slope, found.value),
        found.bar,
        np.where(flat, 0.5 * np.abs(slope), found.spread),
        np.where(flat, np.uint8(Kind.STAIRS), found.kind),
    )


@dataclass(frozen=True, slots=True)
class Noise:
    """Of the function values: its level, whether it is the same at all steps; the height of stairs, and where."""

    level: Array
    steady: NDArray[np.bool_]
    height: Array
    stairs: NDArray[np.bool_]


def noise_level(ordered: Sequence[Rung], coarse: Array) -> Noise:
    """The noise of the function values, as the rungs saw it.

    Rounding inside the function (1 + x - 1) makes stairs: over small steps nothing changes, and that must not count as
    a slope of zero. The height of stairs does not depend on the step, and no more does other noise: then the median of
    all rungs tells it. If what was seen grows with the step instead, it is curvature or a kink that the larger rungs
    cross; the smaller ones are right, and the median of the three smallest is the noise.
    """
    exponents = np.array([rung.exponent for rung in ordered], float)[:, None, None]
    seen = np.stack([np.where(rung.unchanged, np.nan, rung.slopes.sigma) for rung in ordered])
    valid = np.isfinite(seen)
    count = np.cumsum(valid, axis=0)
    total = count[-1]
    # A single rung may see little by luck, so the largest of the three smallest stands for the lower end.
    early, last = valid & (count <= 3), valid & (count == total)
    rise = np.log2(np.where(last, seen, 0.0).sum(axis=0) / np.where(early, seen, 0.0).max(axis=0))
    run = np.where(last, exponents, -np.inf).max(axis=0) - np.where(early, exponents, -np.inf).max(axis=0)
    # Stairs so wide that even the first look stays on one of them are taken for what they are: flat.
    near = (valid & (exponents <= 0)).any(axis=0)
    still = ordered[0].unchanged & ordered[min(1, len(ordered) - 1)].unchanged
    idle = still & (~_growing(seen, exponents) | _below_float32(ordered, last, coarse))
    steady = near & (~(rise > 0.5 * run) | idle)
    taken = np.where(steady, total, np.minimum(total, 3))
    small = np.sort(np.where(valid & (count <= taken), seen, np.nan), axis=0)
    middle = np.take_along_axis(small, np.maximum((taken - 1) // 2, 0)[None], axis=0)[0]
    return Noise(np.nan_to_num(middle), steady, *_stairs(seen, exponents, ~near & idle))


def _below_float32(ordered: Sequence[Rung], last: NDArray[np.bool_], coarse: Array) -> NDArray[np.bool_]:
    """Where even the largest step that changes anything changes it by some roundings of float32 alone, which is the
    format that functions round to inside: a plateau that ends there is none."""
    # A change that is the same up and down makes no slope.
    both = [(np.abs(rung.slopes.central) * 2.0**rung.exponent, rung.slopes.sigma) for rung in ordered]
    changes = np.stack([np.fmax(*one) for one in both])
    return np.asarray(np.where(last, changes, 0.0).max(axis=0) <= FEW_ROUNDINGS * coarse)


def _growing(seen: Array, exponents: Array) -> NDArray[np.bool_]:
    """Where noise grows from each rung that saw any to the next, as it does beyond a plateau. Where it does not, and
    nothing changes over small steps, the function is rounded inside. Single rungs see little or nothing by luck."""
    growing = np.ones(seen.shape[1:], dtype=bool)
    before, reach = np.full(seen.shape[1:], np.nan), np.full(seen.shape[1:], np.nan)
    logs = np.log2(seen)
    for height, exponent in zip(logs, exponents[:, 0, 0], strict=True):
        growing &= ~(height - before <= 0.5 * (exponent - reach))
        known = ~np.isnan(height)
        before, reach = np.where(known, height, before), np.where(known, exponent, reach)
    return growing


def _stairs(seen: Array, exponents: Array, wide: NDArray[np.bool_]) -> tuple[Array, NDArray[np.bool_]]:
    """The height of stairs, and where there are any: around the first look the same height at three rungs or more,
    further down nothing or rounding alone, and no rung in between. Their treads may slope (a solver that stops at a
    tolerance, started from its argument), so a slope seen on one of them is not the function's. An oscillation that
    the large steps alias would fade out gradually instead, and a kink does so as well. `wide`: a tread is known to be
    wider than the first look."""
    around = np.where((exponents >= -8) & (exponents <= 12), seen, np.nan)
    known = np.isfinite(around)
    ordered = np.sort(around, axis=0)
    middle = np.maximum((known.sum(axis=0) - np.where(wide, 0, 1)) // 2, 0)
    height = np.take_along_axis(ordered, middle[None], axis=0)[0]
    level = wide | ((known & (around <= 8 * height) & (around >= height / 8)).sum(axis=0) >= 3)
    below = np.where(exponents < -8, np.nan_to_num(seen), np.nan)
    fading = ((below < height / 64) & (below > 64 * np.fmin.reduce(below, axis=0) + 1e-3 * height / 64)).any(axis=0)
    quiet = (below < height / 64).any(axis=0)
    return np.nan_to_num(height), (height > 0) & level & quiet & ~fading
