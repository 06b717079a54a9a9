"""A glance at many columns of the Jacobian at once. The inputs of a group move together, by different, signed amounts.

Every output must then change by what its entries in the group claim together. An entry that is off shows by its whole
size. Several could hide each other only if they cancelled in random multiples, at every output where they occur: for
errors of the tolerance's size a chance of some per cent at one output, for errors of the size of the entries one in a
million. So agreement to eight digits leaves no doubt, after two evaluations a group instead of two a column; and where
it is missing, every column of the group is looked at by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gradproof.agreement import Mask
from gradproof.evidence.alone import glance_at_columns
from gradproof.evidence.gathered import Task, distinct
from gradproof.evidence.glanced import NONE, Glanced, enough, strictness_of
from gradproof.evidence.groups import MEMBERS, Groups, groups_of
from gradproof.evidence.scales import block_scales
from gradproof.norms import rms
from gradproof.program import Array, Indices
from gradproof.reference.field import Field
from gradproof.reference.glance import BENT_BY_ROUNDING, SUSPICIOUS, Glance, glance, joined
from gradproof.reference.stencil import FLOOR_FACTOR
from gradproof.reference.steps import finely_signed

# Groups must be this many times fewer than inputs to be worth while.
SAVING = 2
# Inputs that move together move by steps that differ at most by this factor.
DISPARITY = 32.0


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
    if not found.sure[groups.crowds() > 1].all():
        groups = groups_of(task.program.inputs, MEMBERS)
        if SAVING * groups.count > task.steps.size:
            return None
        found = _together(task, field, analytic, groups, scales)
    return found.seen if found.sure.all() else _taken_apart(task, field, analytic, found)


@dataclass(frozen=True, slots=True)
class _Found:
    """What was seen, and which groups leave no doubt (k,)."""

    seen: Together
    sure: Mask


def _together(task: Task, field: Field, analytic: dict[str, Array], groups: Groups, scales: dict[str, Array]) -> _Found:
    lengths = drawn_lengths(task, groups)
    held = hold(task, field, Moves(groups, lengths), [groups.sums(lengths, one) for one in distinct(analytic)], scales)
    claimed, agree = next(iter(analytic.values())), held.seen.strictness.agree
    seen = Together(task.program.inputs, lengths, agree, scales, NONE, claimed, groups.of, held.beyond, held.unseen)
    return _Found(seen, np.asarray(held.agreed.all(axis=1)))


def resolves(task: Task) -> bool:
    """Whether what the sides must agree to is finer than the tolerance."""
    return 2 * strictness_of(task).agree <= task.tolerance.relative


@dataclass(frozen=True, slots=True)
class Moves:
    """Groups of inputs, and how far each input moves (N,)."""

    groups: Groups
    lengths: Array


@dataclass(frozen=True, slots=True)
class Held:
    """What was seen, and `size` (k, M), which it is judged by; where that leaves no doubt about what is claimed; what
    was seen beyond the first claim, what an entry could be off by, and half of what it may be."""

    seen: Glance
    size: Array
    agreed: Mask
    beyond: Array
    unseen: Array
    granted: Array


def hold(task: Task, field: Field, moves: Moves, claims: Sequence[Array], scales: dict[str, Array]) -> Held:
    """Move the inputs of each group together, and hold what is `claimed` (k, M) of the changes against them. `scales`
    are those of `block_scales`."""
    groups, lengths = moves.groups, moves.lengths
    seen = joined([glance(field, rows, strictness_of(task)) for rows in groups.rows(lengths)])
    scale = np.empty_like(seen.slope)
    for leaf, span in zip(groups.leaves, groups.spans, strict=True):
        scale[span] = scales[leaf.path]
    size = np.maximum(np.abs(seen.slope), scale * groups.norms(lengths)[:, None])
    size /= np.sqrt(groups.crowds())[:, None]  # that of a usual group: no entry is to be overlooked in a larger one
    beyond = [seen.slope - claimed for claimed in claims]
    apart = np.abs(beyond[0])
    for other in beyond[1:]:
        np.maximum(apart, np.abs(other), out=apart)
    floor = _floor(task, seen)
    agreed = apart <= seen.strictness.agree * size + floor
    agreed &= seen.bend <= SUSPICIOUS * size + BENT_BY_ROUNDING * floor
    unseen = apart + seen.floor
    least = groups.least(lengths)[:, None]
    granted = enough(task, np.zeros(unseen.shape), least, scale)
    agreed &= seen.strictness.agree * scale * least + unseen <= granted
    return Held(seen, size, agreed, beyond[0], unseen, granted)


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


def _floor(task: Task, seen: Glance) -> Array:
    """What rounding may add, (M,). Where little is left of the terms of a sum, it rounds as they do: as large as others
    of its leaf. What that hides is held against the tolerance in any case."""
    floor = seen.floor.copy()
    for output in task.program.outputs:
        np.maximum(floor[output.span], rms(floor[output.span]), out=floor[output.span])
    return floor


def drawn_lengths(task: Task, groups: Groups) -> Array:
    """The same, so that all of a group together move about as far as a single one would; where nothing bends, each by
    itself does."""
    lengths = group_lengths(task)
    for leaf, span in zip(groups.leaves, groups.spans, strict=True):
        members = leaf.size // max(span.stop - span.start, 1)
        if members <= MEMBERS:
            lengths[leaf.span] *= 2.0 ** -(members.bit_length() // 2)
    return lengths


def group_lengths(task: Task) -> Array:
    """How far each input moves when it moves together with others: different, signed amounts."""
    lengths = finely_signed(task.generator, task.steps.size)
    for leaf in task.program.inputs:
        # The smallest step of a group must resolve entries that are claimed to be zero, above the noise of all outputs.
        steps = task.steps[leaf.span]
        lengths[leaf.span] *= np.maximum(steps, steps.max(initial=0.0) / DISPARITY)
    return lengths
