"""The ladder of steps: look once near the best step; where that does not resolve the slope, climb or descend.

Every rung is a stencil with its own error bar; `lepski` says which of them to believe.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from gradproof.program import Array, Indices, Mask
from gradproof.reference.blur import blurred, shortest
from gradproof.reference.complexstep import sharpened
from gradproof.reference.estimate import Estimate, Goal, Kind
from gradproof.reference.field import Field
from gradproof.reference.grid import held_against
from gradproof.reference.kinks import classify
from gradproof.reference.leaps import leaping
from gradproof.reference.lepski import DOUBT, lepski
from gradproof.reference.noise import Noise, Rung, noise_level
from gradproof.reference.stencil import FLOOR_FACTOR, NOISE_FACTOR, PER_STEP, SHORT, Slopes, first_slopes, slopes

# log2 of the rungs' steps, relative to the first look. Four octaves apart; a stencil itself spans two.
CLIMB = (4, 8, 12)
DESCENT = (-4, -8, -12)
FAR_DESCENT = (-16, -20, -24, -28)
NEIGHBOURS = (4, -4, -8)
# Only for first steps that are tiny: see `Field.limits`.
FURTHER = tuple(range(16, 1024, 4))
# What moves by less than so many times its rounding may need them.
FAINT = 2.0**16
# Stairs this high, in units of what `Field.coarse` says, do not come from a computation in float32.
QUANTISED = 2.0
# That nothing moved is sure where the slope is so many times what rounding may hide.
SURE = 4.0


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
        # Nor is what looks like noise believed to be some, before a short step has seen it too.
        up = (CLIMB + DESCENT[2:] + FURTHER, field.between, DESCENT[:2], FAR_DESCENT)
        _walk(question, look, rows[climbing], up, result)
        _walk(question, look, rows[~climbing], (DESCENT + CLIMB + FURTHER, field.between, FAR_DESCENT), result)
        if field.smoothed:
            _smooth_out(field, displacements, goal, result)
    return result


def _sharpened(field: Field, displacements: Array, goal: Goal, result: Estimate) -> Mask:
    """What misses its goal, after the complex step has been asked about the rows that do."""
    missed = ~goal.met(result.value, result.bar)
    rows = np.flatnonzero(missed.any(axis=1))
    exact = field.exact(displacements[rows]) if rows.size and field.exact is not None else None
    if exact is not None:
        result.put(rows, sharpened(exact, result.of_rows(rows)))
        missed = ~goal.met(result.value, result.bar)
    return missed


def _smooth_out(field: Field, displacements: Array, goal: Goal, result: Estimate) -> None:
    """Ask about what is still not known well enough over stairs made smooth; believed where it agrees with what is
    known. See `blur`."""
    missed = ~goal.met(result.value, result.bar) & ((result.kind == Kind.SMOOTH) | (result.kind == Kind.ROUGH))
    rows = np.flatnonzero(missed.any(axis=1))
    if field.treads is None or not rows.size:
        return
    smooth = blurred(field, field.treads)
    limits = field.limits(displacements[rows])
    for limit in np.unique(limits):
        some = rows[limits == limit]
        moves = displacements[some]
        rungs = [_blurred_rung(smooth, moves, one) for one in range(shortest(field.treads, moves), limit + 1, 2)]
        if len(rungs) > 1:
            plain, found = result.of_rows(some), _choose(rungs, goal.of_rows(some), smooth.coarse)
            taken = missed[some] & (found.bar < plain.bar) & (np.abs(found.value - plain.value) <= plain.bar)
            taken &= found.spread == 0
            result.put(some, plain.with_others(taken, found))


def _blurred_rung(field: Field, displacements: Array, exponent: int) -> Rung:
    """What the mean makes of a slope that changes is a small part of what the stencil saw of that."""
    (rung,) = _rungs(field, displacements, (exponent,))
    smeared = rung.slopes.noise + rung.slopes.sigma * 2.0**-exponent
    return replace(rung, slopes=replace(rung.slopes, noise=smeared))


def second_opinion(field: Field, displacements: Array, look: Rung, goal: Goal) -> Estimate:
    """Rungs on both sides of the first look for every row, and the rest of the ladder where they do not agree: what
    must be asked before an entry is called wrong."""
    shape = look.slopes.central.shape
    result = Estimate.smooth(np.zeros(shape), np.full(shape, np.inf))
    stretches = (NEIGHBOURS + CLIMB[1:] + FURTHER, field.between, DESCENT[2:], FAR_DESCENT)
    question = Question(field, displacements, goal, DESCENT[2])
    _walk(question, look, np.arange(shape[0]), stretches, result)
    _sharpened(field, displacements, goal, result)
    _smooth_out(field, displacements, goal, result)
    return held_against(field, displacements, result)


def fresh_opinion(field: Field, displacements: Array, relative: float) -> Estimate:
    """The same with a first look of its own, to `relative` of each derivative."""
    goal = Goal.as_known((len(displacements), field.value.size), relative)
    return second_opinion(field, displacements, first_look(field, displacements), goal)


@dataclass(frozen=True, slots=True)
class Question:
    """Which derivatives are wanted, and how well; and down to which step a function is followed that moves by more than
    rounding wherever it is looked at, as on stairs."""

    field: Field
    displacements: Array
    goal: Goal
    deepest: int = 0


def _walk(question: Question, look: Rung, rows: Indices, stretches: Sequence[Sequence[int]], result: Estimate) -> None:
    """Evaluate further rungs for some rows, stretch by stretch, and write the better estimates into `result`. Rows that
    may go higher than others go by themselves."""
    limits = question.field.limits(question.displacements[rows]) & ~1  # no rung is odd
    for limit in np.unique(limits):
        within = [[one for one in stretch if one <= limit] for stretch in stretches if stretch]
        _walk_alike(question, look, rows[limits == limit], within, result)


def _walk_alike(
    question: Question, look: Rung, rows: Indices, stretches: Sequence[Sequence[int]], result: Estimate
) -> None:
    rungs = [look.of_rows(rows)]
    for stretch in stretches:
        if not rows.size:
            return
        goal = question.goal.of_rows(rows)
        rungs += _rungs(question.field, question.displacements[rows], stretch)
        chosen = _chosen(rungs, goal, question.field.coarse)
        heights = _leaps(question, rows, rungs, chosen)
        leaps = heights > 0
        if leaps.any():
            chosen = _on_stairs(chosen, _believed(_usual(rungs), heights, leaps), leaps)
        result.put(rows, chosen)
        # A kink is only believed when it stays one down to the smallest step.
        settled = goal.met(chosen.value, chosen.bar) & ((chosen.kind == Kind.SMOOTH) | (chosen.kind == Kind.NEAR))
        if min(rung.exponent for rung in rungs) > question.deepest:
            settled &= ~_restless(rungs, question.field.coarse)
        settled &= ~_contradicted(rungs, chosen)
        settled |= leaps | np.logical_and.reduce([rung.unchanged for rung in rungs])
        resolved = settled.all(axis=1)
        rungs = [rung.of_rows(np.flatnonzero(~resolved)) for rung in rungs]
        rows = rows[~resolved]


def _chosen(rungs: Sequence[Rung], goal: Goal, coarse: Array) -> Estimate:
    """Steps beyond the scale of what moves are believed only where hardly anything moved over shorter ones, and they
    agree with what little that was: there, an oscillation looks like anything."""
    usual = _usual(rungs)
    chosen = _choose(usual, goal, coarse)
    if len(usual) == len(rungs):
        return chosen
    still = np.logical_and.reduce([rung.moved <= FAINT * rung.floor for rung in usual])
    further = _choose(rungs, goal, coarse)
    return chosen.with_others(still & (np.abs(further.value - chosen.value) <= chosen.bar), further)


def _usual(rungs: Sequence[Rung]) -> list[Rung]:
    return sorted((rung for rung in rungs if rung.exponent < FURTHER[0]), key=lambda rung: rung.exponent)


def _leaps(question: Question, rows: Indices, rungs: Sequence[Rung], found: Estimate) -> Array:
    """Asked before an entry is called wrong."""
    if not question.deepest:
        return np.zeros(found.value.shape)
    return leaping(question.field, question.displacements[rows], _usual(rungs), found)


@np.errstate(invalid="ignore", divide="ignore")
def _restless(rungs: Sequence[Rung], coarse: Array) -> Mask:
    noise = noise_level(sorted(rungs, key=lambda rung: rung.exponent), coarse)
    return noise.steady & (noise.level > QUANTISED * coarse)


def _contradicted(rungs: Sequence[Rung], chosen: Estimate) -> Mask:
    """Where the shortest step sees another slope than the one that was chosen, and sees it clearly: what longer ones
    take for noise may be an oscillation, which is none over steps that are short enough."""
    shortest = min(rungs, key=lambda rung: rung.exponent)
    apart = np.abs(shortest.slopes.central - chosen.value)
    return np.asarray((apart > DOUBT * (shortest.slopes.bar + chosen.bar)) & ~shortest.unchanged)


def _rungs(field: Field, displacements: Array, exponents: Sequence[int]) -> list[Rung]:
    """Short rows go into one batch, all rungs together."""
    count, size = displacements.shape
    if not exponents or len(exponents) * count * (size + field.value.size) > SHORT:
        return [_rung(field, displacements, one, slopes(field, displacements * 2.0**one)) for one in exponents]
    lengths = np.exp2(np.array(exponents, dtype=float))
    found = slopes(field, (lengths[:, None, None] * displacements).reshape(-1, size))
    parts = [np.arange(first, first + count) for first in range(0, len(exponents) * count, count)]
    return [_rung(field, displacements, *one) for one in zip(exponents, map(found.of_rows, parts), strict=True)]


def _rung(field: Field, displacements: Array, exponent: int, found: Slopes) -> Rung:
    length = 2.0**exponent
    scaled = {one.name: getattr(found, one.name) / length for one in fields(Slopes) if one.name != "sigma"}
    return Rung(exponent, Slopes(**scaled, sigma=found.sigma), _floor(field, len(displacements)) / length)


@np.errstate(invalid="ignore", over="ignore", divide="ignore")
def _choose(rungs: Sequence[Rung], goal: Goal, coarse: Array) -> Estimate:
    ordered = sorted(rungs, key=lambda rung: rung.exponent)
    noise = noise_level(ordered, coarse)
    value, bar = _believed(ordered, noise.level, noise.steady)
    pairs = [(rung.exponent, rung.slopes) for rung in ordered]
    plain = classify(Estimate.smooth(value, bar), ~goal.met(value, bar), pairs, coarse)
    if noise.beside.any():
        plain = plain.with_others(noise.beside, _beside(ordered))
    if not noise.stairs.any():
        return _on_flat_stairs(plain, noise, ordered, coarse)
    across = _believed(ordered, noise.height, noise.stairs)
    return _on_flat_stairs(_on_stairs(plain, across, noise.stairs), noise, ordered, coarse)


def _believed(ordered: Sequence[Rung], level: Array, steady: Mask) -> tuple[Array, Array]:
    """The rung to believe if the function values have at least this noise, at all steps where it is steady."""
    bars = []
    for rung in ordered:
        # What the rung saw itself may be small by luck; and where it saw no change at all, stairs may be the reason.
        missing = np.where(rung.unchanged, np.where(steady, level, 0.0), np.maximum(level - rung.slopes.sigma, 0.0))
        bars.append(rung.slopes.bar + NOISE_FACTOR * PER_STEP * missing * 2.0**-rung.exponent)
    return lepski([rung.slopes.central for rung in ordered], bars)


def _beside(ordered: Sequence[Rung]) -> Estimate:
    """On the side where nothing changes at any step, no kink limits them: it tells a slope of zero by the longest."""
    bars = [np.where(rung.level, 2.0 * rung.floor, np.inf) for rung in ordered]
    bar = np.minimum.reduce(bars)
    return replace(Estimate.smooth(np.zeros_like(bar), bar), kind=np.full(bar.shape, np.uint8(Kind.NEAR)))


def _on_stairs(tread: Estimate, across: tuple[Array, Array], stairs: Mask) -> Estimate:
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


def _on_flat_stairs(found: Estimate, noise: Noise, ordered: Sequence[Rung], coarse: Array) -> Estimate:
    """Treads that are flat and higher than any rounding make a quantiser, of which zero is a valid slope as well: over
    small steps nothing moves, or over one that the slope says it should have moved."""
    size = np.abs(found.value)
    high = noise.stairs & (noise.height > QUANTISED * coarse)
    still = np.zeros(size.shape, dtype=bool)
    for rung in ordered:
        missed = np.maximum(QUANTISED * coarse * 2.0**-rung.exponent, SURE * rung.floor)
        still |= (rung.unchanged & high & (rung.exponent <= -8)) | (rung.level & (size > missed))
    flat = still & (size > found.bar) & np.isfinite(found.bar) & (found.kind != Kind.STAIRS) & (found.spread == 0)
    if not flat.any():
        return found
    return Estimate(
        np.where(flat, 0.5 * found.value, found.value),
        found.bar,
        np.where(flat, 0.5 * size, found.spread),
        np.where(flat, np.uint8(Kind.STAIRS), found.kind),
    )
