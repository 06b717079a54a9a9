"""A glance at many columns of the Jacobian at once. The inputs of a group move together, by different, signed amounts.

Every output must then change by what its entries in the group claim together. An entry that is off shows by its whole
size. Several could hide each other only if they cancelled in random multiples, at every output where they occur: for
errors of the tolerance's size a chance of some per cent at one output, for errors of the size of the entries one in a
million. So agreement to eight digits leaves no doubt, after two evaluations a group instead of two a column; and where
it is missing, every column of the group is looked at by itself.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gradproof.evidence.alone import glance_at_columns
from gradproof.evidence.gathered import Task, distinct
from gradproof.evidence.glanced import NONE, Glanced, enough_of_zero, strictness_of
from gradproof.evidence.groups import MEMBERS, Groups, groups_of
from gradproof.evidence.lengths import better_lengths, drawn_lengths
from gradproof.evidence.scales import block_scales
from gradproof.norms import rms
from gradproof.program import Array, Indices, Mask
from gradproof.reference.field import Field
from gradproof.reference.glance import BENT_BY_ROUNDING, SUSPICIOUS, Glance, glance, joined
from gradproof.reference.stencil import FLOOR_FACTOR

# Groups must be this many times fewer than inputs to be worth while.
SAVING = 2


@dataclass(frozen=True, slots=True)
class Together(Glanced):
    """`claimed` (N, M) is what one of the modes says. `groups` (N,) is the group of each input; for each group (k, M),
    `beyond` is what was seen beyond what is claimed, and `unseen` what an entry could be off by."""

    claimed: Array
    groups: Indices
    beyond: Array
    unseen: Array

    def numeric(self, inputs: slice, outputs: slice) -> Array:
        """What is seen, less what is claimed of the others in the group."""
        seen = self.beyond[self.groups[inputs], outputs] / self.lengths[inputs, None]
        return np.asarray(self.claimed[inputs, outputs] + seen)

    def rest(self, inputs: slice, outputs: slice) -> Array:
        return self.unseen[self.groups[inputs], outputs]

    def most(self, inputs: slice, outputs: slice) -> Array:
        return np.asarray(self.unseen[:, outputs].max(axis=1)[self.groups[inputs]])

    def one(self, i: int, j: int) -> tuple[float, float]:
        group = self.groups[i]
        value = float(self.claimed[i, j]) + float(self.beyond[group, j]) / float(self.lengths[i])
        return value, float(self.unseen[group, j])


def glance_together(task: Task, field: Field, analytic: dict[str, Array]) -> Together | None:
    """None where this would save little, or leaves many doubts. The many inputs of a group in which the program should
    be linear must agree as well as few would; where they do not, they get usual groups."""
    groups = groups_of(task.program.inputs)
    if not resolves(task) or SAVING * groups.count > task.steps.size:
        return None
    scales = block_scales(task, analytic)
    found = _together(task, field, analytic, groups, scales)
    if any(groups.linear) and not found.sure[groups.straight()].all():
        groups = groups_of(task.program.inputs, MEMBERS)
        if SAVING * groups.count > task.steps.size:
            return None
        found = _together(task, field, analytic, groups, scales)
    if not found.sure.all():
        found = _again(task, field, analytic, groups, found)
    return found.seen if found.sure.all() else _taken_apart(task, field, analytic, found)


@dataclass(frozen=True, slots=True)
class _Found:
    """What was seen, which groups leave no doubt (k,), and how they came by it."""

    seen: Together
    sure: Mask
    held: Held


def _together(task: Task, field: Field, analytic: dict[str, Array], groups: Groups, scales: dict[str, Array]) -> _Found:
    lengths = drawn_lengths(task, groups)
    held = hold(task, field, Moves(groups, lengths), [groups.sums(lengths, one) for one in distinct(analytic)], scales)
    claimed, agree = next(iter(analytic.values())), held.seen.strictness.agree
    seen = Together(task.program.inputs, lengths, agree, scales, NONE, claimed, groups.of, held.beyond, held.unseen)
    return _Found(seen, np.asarray(held.agreed.all(axis=1)), held)


def _again(task: Task, field: Field, analytic: dict[str, Array], groups: Groups, found: _Found) -> _Found:
    """The groups that leave a doubt once more, over lengths that leave less to truncation, or to rounding, if there are
    such: two evaluations, where to take them apart takes two for each of their inputs."""
    doubted = np.flatnonzero(~found.sure)
    shifts = np.zeros(groups.count, dtype=np.intp)
    shifts[doubted] = better_lengths(*found.held.shares(doubted))
    chosen = np.flatnonzero(shifts)
    if not chosen.size:
        return found
    seen, lengths = found.seen, np.ldexp(found.seen.lengths, shifts[groups.of])
    claims = [groups.sums(lengths, one)[chosen] for one in distinct(analytic)]
    held = hold(task, field, Moves(groups, lengths, chosen=chosen), claims, seen.scales)
    beyond, unseen, sure = seen.beyond.copy(), seen.unseen.copy(), found.sure.copy()
    beyond[chosen], unseen[chosen], sure[chosen] = held.beyond, held.unseen, held.agreed.all(axis=1)
    agree = min(seen.agree, held.seen.strictness.agree)  # whichever: what there was beyond it is in `unseen`
    return replace(found, seen=replace(seen, lengths=lengths, agree=agree, beyond=beyond, unseen=unseen), sure=sure)


def resolves(task: Task) -> bool:
    """Whether what the sides must agree to is finer than the tolerance."""
    return 2 * strictness_of(task).agree <= task.tolerance.relative


@dataclass(frozen=True, slots=True)
class Moves:
    """Groups of inputs, and how far each input moves (N,); maybe only some of the groups."""

    groups: Groups
    lengths: Array
    chosen: Indices | None = dataclasses.field(default=None, kw_only=True)

    def rows(self) -> Iterator[Array]:
        if self.chosen is None:
            return self.groups.rows(self.lengths)
        return self.groups.some_rows(self.lengths, self.chosen)

    def of(self, each: Array) -> Array:
        """What belongs to these groups, of what belongs to all."""
        return each if self.chosen is None else each[self.chosen]

    def scale(self, scales: dict[str, Array], outputs: int) -> Array:
        """For each of these groups, that of its leaf for every output, (k, M)."""
        scale = np.empty((self.groups.count, outputs))
        for leaf, span in zip(self.groups.leaves, self.groups.spans, strict=True):
            scale[span] = scales[leaf.path]
        return self.of(scale)

    def size(self, slope: Array, scale: Array) -> Array:
        """What a change of the outputs is judged by, (k, M). That of a usual group: no entry is to be overlooked in a
        larger one."""
        size = np.maximum(np.abs(slope), scale * self.of(self.groups.norms(self.lengths))[:, None])
        size /= np.sqrt(self.of(self.groups.crowds))[:, None]
        return size


@dataclass(frozen=True, slots=True)
class Held:
    """What was seen, and `size` (k, M), which it is judged by; where that leaves no doubt about what is claimed; what
    was seen beyond the first claim, what an entry could be off by, and half of what it may be; what the sides may
    differ by, and what rounding may add to that (M,)."""

    seen: Glance
    size: Array
    agreed: Mask
    beyond: Array
    unseen: Array
    granted: Array
    allowed: Array
    floor: Array

    def shares(self, rows: Indices) -> tuple[Array, Array]:
        """Of these groups, truncation and rounding as a share of what there may be of them: see `better_lengths`. What
        bends has more than that of the first, whatever its length."""
        granted, seen = self.granted[rows], self.seen
        apart = np.maximum(self.unseen[rows] - 2 * seen.floor, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.maximum(apart / self.allowed[rows], apart / granted)
            share[seen.bend[rows] > SUSPICIOUS * self.size[rows] + BENT_BY_ROUNDING * self.floor] = np.inf
            return share.max(axis=1), np.asarray((seen.floor / granted).max(axis=1))


def hold(task: Task, field: Field, moves: Moves, claims: Sequence[Array], scales: dict[str, Array]) -> Held:
    """Move the inputs of each group together, and hold what is `claimed` (k, M) of the changes against them. `scales`
    are those of `block_scales`."""
    groups, lengths = moves.groups, moves.lengths
    seen = moved(task, field, moves)
    scale = moves.scale(scales, seen.slope.shape[1])
    size = moves.size(seen.slope, scale)
    beyond = [seen.slope - claimed for claimed in claims]
    apart = np.abs(beyond[0])
    for other in beyond[1:]:
        np.maximum(apart, np.abs(other), out=apart)
    floor = floor_of(task, seen)
    allowed = seen.strictness.agree * size + floor
    agreed = apart <= allowed
    agreed &= seen.bend <= SUSPICIOUS * size + BENT_BY_ROUNDING * floor
    unseen = apart + seen.floor
    least = moves.of(groups.least(lengths))[:, None]
    granted = enough_of_zero(task, least, scale)
    narrow = seen.strictness.agree * scale * least + unseen <= granted
    if not narrow.all():
        # Large entries beside a tolerance that is not: what counts is how closely they do agree, not how they have to.
        seen = replace(seen, strictness=seen.strictness.closest())
        narrow = seen.strictness.agree * scale * least + unseen <= granted
    agreed &= narrow
    return Held(seen, size, agreed, beyond[0], unseen, granted, allowed, floor)


def _taken_apart(task: Task, field: Field, analytic: dict[str, Array], doubted: _Found) -> Together | None:
    """The groups that leave a doubt, column by column: each of these is then a group of its own."""
    found, sure = doubted.seen, doubted.sure
    task.repeats.ask()
    columns = np.flatnonzero(~sure[found.groups])
    if SAVING * columns.size > task.steps.size:
        return None
    alone = glance_at_columns(task, field, analytic, found.scales, columns)
    groups, lengths, steps = found.groups.copy(), found.lengths.copy(), task.steps[columns]
    groups[columns] = len(sure) + np.arange(columns.size)
    lengths[columns] = steps
    beyond = alone.slope - found.claimed[columns] * steps[:, None]
    beyond[alone.doubtful] = 0.0  # these are looked at anew, and what they claim need not even be finite
    floor = np.broadcast_to(FLOOR_FACTOR * field.floor, alone.slope.shape)
    return replace(
        found,
        lengths=lengths,
        doubtful=columns[alone.doubtful],
        groups=groups,
        beyond=np.concatenate([found.beyond, beyond]),
        unseen=np.concatenate([found.unseen, floor]),
    )


def moved(task: Task, field: Field, moves: Moves) -> Glance:
    """What all outputs do."""
    return joined([glance(field, rows, strictness_of(task)) for rows in moves.rows()])


def floor_of(task: Task, seen: Glance) -> Array:
    """What rounding may add, (M,). Where little is left of the terms of a sum, it rounds as they do: as large as others
    of its leaf. What that hides is held against the tolerance in any case."""
    floor = seen.floor.copy()
    for output in task.program.outputs:
        np.maximum(floor[output.span], rms(floor[output.span]), out=floor[output.span])
    return floor
