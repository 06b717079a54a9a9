"""Both sides of signed probes, number by number. Where the function is not smooth along one, it is taken apart."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from gradproof import precision
from gradproof.evidence.columns import Look, Sizes, look_at
from gradproof.evidence.folds import NEARER, Fold, find_fold, nearer_fold, with_loudest
from gradproof.evidence.gathered import Task
from gradproof.evidence.nans import tainted
from gradproof.evidence.scales import granted, unimportant_change
from gradproof.evidence.sums import Probe, Sums, part, sums_of
from gradproof.norms import all_finite, dot, pieces, rms
from gradproof.precision import form_of
from gradproof.program import Array, Leaf, Mask
from gradproof.reference.estimate import Estimate, Goal, Kind
from gradproof.reference.field import by_leaf
from gradproof.reference.glance import CLOSER, PROBE, Glance, closer_glance, floor_of_sums, glance_sums
from gradproof.reference.ladder import first_look, refine
from gradproof.reference.stencil import SHORT
from gradproof.reference.steps import random_direction, signed
from gradproof.sizes import unit_of
from gradproof.verdict import Verdict

# Rounding errors on the analytic side add up like a random walk; this many standard deviations are granted.
ROUNDING_FACTOR = 8.0
# Kinks mostly sit at round numbers: of so many outputs at most, each may be a sum in which one does not show.
FEW_OUTPUTS = 32
# With fewer inputs than this to an output, it hardly bends. One that bends by this share of its slope leaves no doubt.
FEW_INPUTS, STRAIGHT = 16, 0.125 * PROBE.bend
# The last 40 bits of a round number are zero.
ROUND = np.int64(2**40 - 1)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Both sides of one probe, of which `share` was followed, as arrays (input leaf, output leaf); `rounding` is what
    the analytic side may be off by."""

    probe: Probe
    numeric: Estimate
    analytic: dict[str, Sums]
    size: Array
    rounding: Array
    share: float = 1.0

    @property
    def smooth(self) -> bool:
        """Or at least as smooth as the way allows to see."""
        kinds = (Kind.SMOOTH, Kind.NEAR) if self.probe.way == "both" else (Kind.SMOOTH, Kind.NEAR, Kind.EDGE)
        if self.numeric.kind.any() and not set(self.numeric.kind.ravel().tolist()) <= set(kinds):
            return False
        return all_finite(self.numeric.bar)


@dataclass(frozen=True, slots=True)
class Evidence:
    """The outcomes; the first `pieces` of them make up the first probe. `looks` are the entries that were judged by
    themselves because of a `fold`."""

    modes: tuple[str, ...]
    outcomes: list[Outcome]
    pieces: int
    looks: list[Look]
    fold: Fold | None = None


def draw(task: Task) -> list[Probe]:
    """One probe. Outputs that are not finite at the point are left out, and inputs that they spoil: see `nans`. Inputs
    that a bound lets move only one way make a second part of it."""
    direction = random_direction(task.reference, task.steps, task.generator)
    cotangent = signed(task.generator, task.program.value.size)
    if not all_finite(task.program.value):
        finite = np.isfinite(task.program.value)
        direction, cotangent = np.where(tainted(task), 0.0, direction), np.where(finite, cotangent, 0.0)
    if task.limits is None:
        return [Probe(direction, cotangent)]
    pressed = task.limits.pressed(task.program.point, direction)
    inward = np.where(pressed, task.limits.inward(task.program.point, direction), 0.0)
    free = np.where(pressed, 0.0, direction)
    parts = [Probe(free, cotangent), Probe(inward, cotangent, "inward")]
    return [one for one in parts if one.direction.any()] or parts[:1]


def measure(task: Task, drawn: list[list[Probe]], analytic: list[list[dict[str, Sums]]]) -> Evidence:
    """The numeric side of all probes, part by part. Where outputs bend, they are taken apart: see `folds`."""
    modes = tuple(analytic[0][0])
    probes, sides = [one for parts in drawn for one in parts], [one for parts in analytic for one in parts]
    looked = [_glance(task, probe, side) for probe, side in zip(probes, sides, strict=True)]
    suspicious = any(one.suspicious for one in looked)
    if suspicious:
        task.repeats.ask()
    fold = find_fold(task, drawn[0][0], modes) if suspicious else None
    outcomes = []
    if fold is None:
        outcomes = [_outcome(task, *three) for three in zip(probes, sides, looked, strict=True)]
        if all(one.smooth for one in outcomes):
            return Evidence(modes, outcomes, len(drawn[0]), [])
        fold = None if suspicious else find_fold(task, drawn[0][0], modes)
    near = _nearer(task, drawn, analytic) if fold is None or fold.crowded else None
    if near is not None:
        return near
    looks = _looks(task, fold, drawn[0][0], analytic[0][0]) if fold is not None else []
    near = _nearer(task, drawn, analytic) if any(look.verdict is Verdict.UNDECIDED for look in looks) else None
    if near is not None:
        return near
    # Noise bends everywhere too. It is for the ladder to deal with.
    noise = (Kind.SMOOTH, Kind.STAIRS, Kind.ROUGH)
    if fold is None or (fold.crowded and any(look.kind in noise for look in looks)):
        outcomes = outcomes or [_outcome(task, *three) for three in zip(probes, sides, looked, strict=True)]
        return Evidence(modes, outcomes, len(drawn[0]), [])
    return _apart(task, drawn, modes, fold, looks)


def _apart(
    task: Task, drawn: list[list[Probe]], modes: tuple[str, ...], fold: Fold, looks: list[Look], share: float = 1.0
) -> Evidence:
    """Both sides of what a fold leaves of the probes, over so much of their length."""
    steep = [(look.coordinate, look.row) for look in looks if look.kind is Kind.STEEP]
    pieces = [[piece for part in parts for piece in fold.pieces(part.without(steep))] for parts in drawn]
    outcomes = []
    for piece in (one for several in pieces for one in several):
        side = {mode: sums_of(task, mode, piece) for mode in modes}
        outcomes.append(replace(_outcome(task, piece, side, _glance(task, piece, side, share)), share=share))
    return Evidence(modes, outcomes, len(pieces[0]), looks, fold)


def _nearer(task: Task, drawn: list[list[Probe]], analytic: list[list[dict[str, Sums]]]) -> Evidence | None:
    """Both sides over a short part of the probes, if few outputs bend there; see `nearer_fold`."""
    probes, sides = [one for parts in drawn for one in parts], [one for parts in analytic for one in parts]
    fold = nearer_fold(task, probes[0]) if _resolved(task, probes, sides) else None
    if fold is None:
        return None
    near = {mode: sums.shorter(NEARER) for mode, sums in sides[0].items()}
    looks = _looks(task, fold, probes[0].shorter(NEARER), near)
    # So near to a kink an entry may not be known as well as the others, of which there are many.
    told = [look for look in looks if look.verdict is not Verdict.UNDECIDED]
    return _apart(task, drawn, tuple(near), fold, told, NEARER)


def _resolved(task: Task, probes: list[Probe], analytic: list[dict[str, Sums]]) -> bool:
    """Whether probes that are `NEARER` still tell as much as they have to, by the rounding of the function."""
    for probe, sums in zip(probes, analytic, strict=True):
        floor = floor_of_sums(task.reference, probe.cotangent) / NEARER
        allowed = [granted(task, *one) for one in zip(_size(sums), task.program.inputs, strict=True)]
        if probe.way != "both" or (floor > np.array(allowed)).any():
            return False
    return form_of(task.reference) is precision.DOUBLE


def _looks(task: Task, fold: Fold, probe: Probe, analytic: dict[str, Sums]) -> list[Look]:
    modes = tuple(analytic)
    if fold.crowded and "reverse" in modes:
        fold = with_loudest(task, fold, probe)
    sizes = Sizes({mode: _typical(task, probe, sums) for mode, sums in analytic.items()})
    return [look for column in fold.columns for look in look_at(task, column, modes, sizes)]


def _typical(task: Task, probe: Probe, sums: Sums) -> Array:
    """The rms of each block's entries, estimated: E |w J u|^2 = |J|_F^2 E w^2 E u^2."""
    inputs = [np.sqrt(dot(u, u)) for u in (probe.direction[leaf.span] for leaf in task.program.inputs)]
    outputs = [np.sqrt(dot(w, w)) for w in (probe.cotangent[leaf.span] for leaf in task.program.outputs)]
    return np.nan_to_num(sums.size / np.maximum(np.outer(inputs, outputs), 1e-300), posinf=0.0)


@dataclass(frozen=True, slots=True)
class _Glances:
    """One for each input leaf; None where the probe leaves it out."""

    by_input: list[Glance | None]
    suspicious: bool


def _glance(task: Task, probe: Probe, analytic: dict[str, Sums], most: float = 1.0) -> _Glances:
    """Over so much of its length at most."""
    found: list[Glance | None] = [None] * len(task.program.inputs)
    moved = [(i, leaf) for i, leaf in enumerate(task.program.inputs) if _moves(probe.direction, leaf)]
    strictness, floor = PROBE.within(task.tolerance.finest), floor_of_sums(task.reference, probe.cotangent)
    size = _size(analytic)
    batch = max(1, SHORT // (task.program.point.size + task.program.value.size))
    suspicious = False
    for first in range(0, len(moved), batch):
        some = moved[first : first + batch]
        shares = [min(_share(task, probe, leaf, size[i], floor), most) for i, leaf in some]
        rows = [part(probe.direction, leaf) for _, leaf in some]
        rows = [row if share == 1.0 else share * row for row, share in zip(rows, shares, strict=True)]
        ways = rows[0] if len(rows) == 1 else np.concatenate(rows)
        seen = glance_sums(task.reference, probe.cotangent, ways, strictness, floor)
        for (i, leaf), (glance, bends), share in zip(some, seen, shares, strict=True):
            found[i] = glance if share == 1.0 else glance.per(share, strictness.over(max(share, CLOSER)))
            suspicious |= probe.way == "both" and (bends or _may_hide(task, leaf))
    return _Glances(found, suspicious)


def _moves(direction: Array, leaf: Leaf) -> bool:
    """Mostly all of it does, or nothing."""
    return leaf.size > 0 and bool(direction[leaf.start] != 0.0 or direction[leaf.span].any())


def _share(task: Task, probe: Probe, leaf: Leaf, size: Array, floor: Array) -> float:
    """How much of the direction to go at first. The slope of a sum over n coordinates is a random walk, sqrt(n) times
    that along one of them, but it bends n times as much. So the step is shorter, as far as rounding lets it tell."""
    inputs, outputs = leaf.size, task.program.value.size
    if inputs < FEW_INPUTS * outputs or probe.way != "both" or form_of(task.reference) is not precision.DOUBLE:
        return 1.0
    bend = rms(probe.direction[leaf.span]) / unit_of(task.program, leaf.span) * math.sqrt(inputs / outputs)
    known, allowed = (PROBE.agree * size + floor).tolist(), granted(task, size, leaf).tolist()
    blurred = [one / most for one, most in zip(known, allowed, strict=True) if most > 0.0]
    return float(2.0 ** math.ceil(math.log2(min(max(STRAIGHT / bend, CLOSER, *blurred), 1.0))))


def _may_hide(task: Task, leaf: Leaf) -> bool:
    """Whether a kink may be lost in a sum: few outputs, and an input that is a round number."""
    if task.program.value.size > FEW_OUTPUTS:
        return False
    bits = task.program.point[leaf.span].view(np.int64)
    return any(bool(((bits[some] & ROUND) == 0).any()) for some in pieces(leaf.size))


def _outcome(task: Task, probe: Probe, analytic: dict[str, Sums], looked: _Glances) -> Outcome:
    """The numeric side of a probe, input leaf by input leaf."""
    size = _size(analytic)
    roundoff = form_of(task.program).roundoff
    rows = []
    for i, (leaf, seen) in enumerate(zip(task.program.inputs, looked.by_input, strict=True)):
        if seen is None:
            nothing = np.zeros((1, len(task.program.outputs)))
            rows.append(Estimate.smooth(nothing, nothing))
        else:
            row = slice(i, i + 1)
            claimed = _Claimed([sums.total[row] for sums in analytic.values()], size[row], granted(task, size[i], leaf))
            rows.append(_along(task, probe, leaf, seen, claimed))
    return Outcome(probe, Estimate.stacked(rows), analytic, size, ROUNDING_FACTOR * roundoff * size)


@dataclass(frozen=True, slots=True)
class _Claimed:
    """The analytic sums of all modes along one input leaf, their size, (1, output leaf) each, and how far they may be
    off."""

    totals: list[Array]
    size: Array
    allowed: Array

    def met(self, seen: Glance) -> Mask:
        """By output leaf: where no mode leaves a doubt, of its number or of a bend."""
        agreed = [seen.agrees(total, self.size)[0] for total in self.totals]
        return agreed[0] if len(agreed) == 1 else np.asarray(np.logical_and.reduce(agreed))


def _along(task: Task, probe: Probe, leaf: Leaf, seen: Glance, claimed: _Claimed) -> Estimate:
    """A glance; a closer one where that leaves a doubt; and then the ladder."""
    known, allowed = seen.bar(claimed.size), claimed.allowed
    narrow = known[0] <= allowed
    if not narrow.all():
        narrow |= known[0] <= [
            unimportant_change(task, (seen.slope[0, o], known[0, o]), claimed.size[0, o], output, leaf)
            for o, output in enumerate(task.program.outputs)
        ]
    sure = narrow & claimed.met(seen)
    if sure.all():
        return Estimate.smooth(seen.slope, known)
    # One that only bends has been the same function each time: its slope is what is claimed, to many digits.
    if probe.way == "inward" or not all((np.abs(total - seen.slope) <= known).all() for total in claimed.totals):
        task.repeats.ask()
    field, displacement = by_leaf(task.reference, probe.cotangent, task.exact), part(probe.direction, leaf)
    if probe.way == "inward":  # no glance can agree closely here, so that the ladder must
        return refine(field, displacement, first_look(field, displacement), Goal(PROBE.agree * claimed.size, 0.0))
    if field.seen is None:
        near = closer_glance(field, displacement, seen.strictness)
        bar = near.bar(claimed.size)
        # Over so short a step nothing may change at all: agreement is worth something where there is a size.
        if (sure | ((claimed.size[0] > 0) & (bar[0] <= allowed) & claimed.met(near))).all():
            return Estimate.smooth(np.where(sure, seen.slope, near.slope), np.where(sure, known, bar))
    task.repeats.ask()
    goal = Goal(0.5 * allowed[None], 0.5 * task.tolerance.finest)
    return refine(field, displacement, first_look(field, displacement), goal)


def _size(analytic: dict[str, Sums]) -> Array:
    """Of the sums in all modes."""
    sizes = [sums.size for sums in analytic.values()]
    size = sizes[0] if len(sizes) == 1 else np.maximum.reduce(sizes)
    return np.asarray(size if all_finite(size) else np.nan_to_num(size))
