"""A large Jacobian by reverse mode alone: its rows in random sums, held against what the function does.

The inputs of a group move together, as in `together`, and every output changes by some amount. Of the random sums of
all outputs that are pulled, each must say what the same sum of these amounts is: an entry that is off shows in all of
them, by its whole size. So a few passes do for one of every output.

Where the digits of the differences do not tell so little, or anything else leaves a doubt, every entry gets its say.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gradproof.agreement import tolerance_of_one
from gradproof.contracts.linear import loudness, mixed
from gradproof.evidence.gathered import Gathered, Task, weakest
from gradproof.evidence.glanced import enough_of_zero
from gradproof.evidence.groups import Groups
from gradproof.evidence.scales import rounding
from gradproof.evidence.together import Moves, floor_of, moved
from gradproof.norms import rms
from gradproof.precision import DOUBLE
from gradproof.program import Array, Leaf, pulled_of
from gradproof.quiet import QUIET
from gradproof.reference.field import Field
from gradproof.reference.glance import BENT_BY_ROUNDING, PROBE, SUSPICIOUS
from gradproof.reference.stencil import FLOOR_FACTOR
from gradproof.reference.steps import finely_signed
from gradproof.result import Comparison, Place, Table, Verdict

# By how many roundings sums may differ that are the same.
ROUNDINGS = 2.0**14
# The size of a block is estimated from sums of its entries; a smaller one is stricter. Sums that are no larger than so
# many times their rounding have no size.
SURELY, ROUNDED = 0.5, 4.0
# log2 of how much farther the groups move at most, where rounding hides too much in the sums of many outputs.
LONGER = 2
# Cotangents that the full one of an output consists of: with gaps, what is left, and single ones.
SINGLE = 2
PARTS = 2 + SINGLE
# The rows that come first: one of all outputs, and the same much smaller and much larger.
FIRST = 3


def passes(outputs: int) -> int:
    """How many rows are pulled."""
    return FIRST + (1 + PARTS) * outputs


def gather_by_rows(task: Task, field: Field, groups: Groups, lengths: Array) -> Gathered | None:
    """All entries are right; or None, and nothing is known."""
    try:
        with QUIET:
            pulled = _pulled(task)
    except Exception:  # noqa: BLE001  whatever it is, the entries get their say
        return None
    if pulled is None:
        return None
    claimed = _claimed(task, pulled)
    moves = Moves(groups, np.ldexp(lengths, _longer(task, field, Moves(groups, lengths), pulled, claimed)))
    sums = _held(task, field, moves, pulled, claimed)
    return None if sums is None else _gathered(task, moves, sums)


@dataclass(frozen=True, slots=True)
class _Pulled:
    """Of every row (k, M) its gradient (k, N)."""

    cotangents: Array
    gradients: Array

    def full(self, task: Task) -> Iterator[tuple[Leaf, Array, Array]]:
        """Every output with its row that has no zeros."""
        own = slice(FIRST, None, 1 + PARTS)
        return zip(task.program.outputs, self.cotangents[own], self.gradients[own], strict=True)


def _pulled(task: Task) -> _Pulled | None:
    """None if reverse mode is not linear: one cotangent of all outputs is pulled alone, as the user would, and must
    give the same much smaller and much larger; and one of each output must be what its parts add up to."""
    program = task.program
    known, voices = pulled_of(program), loudness(program)
    first = mixed(program.value.size, task.generator) if known is None else known[0]
    alone = program.pull(first[None])[0] if known is None else known[1]
    factors = np.array([[voices.quiet], [-voices.loud]])
    rows = np.concatenate([factors * first, *(_parts(task, output) for output in program.outputs)])
    gradients = program.pull(rows)
    with np.errstate(invalid="ignore", over="ignore"):
        linear = _same(gradients[:2] / factors, alone, np.abs(alone), program.inputs)
        for start in range(2, len(rows), 1 + PARTS):
            parts = gradients[start + 1 : start + 1 + PARTS]
            linear &= _same(gradients[start], parts.sum(axis=0), np.abs(parts).sum(axis=0), program.inputs)
    return _Pulled(np.concatenate([first[None], rows]), np.concatenate([alone[None], gradients])) if linear else None


def _parts(task: Task, output: Leaf) -> Array:
    """A cotangent of one output, of magnitudes from one to two, and those that it consists of."""
    rows = np.zeros((1 + PARTS, task.program.value.size))
    rows[0, output.span] = finely_signed(task.generator, output.size)
    part = 1 + (task.generator.random(output.size) < 0.5)
    single = task.generator.permutation(output.size)[:SINGLE]
    part[single] = PARTS - np.arange(single.size)
    rows[part, np.arange(output.start, output.stop)] = rows[0, output.span]
    return rows


def _same(one: Array, other: Array, size: Array, leaves: tuple[Leaf, ...]) -> bool:
    """To the last digits; NaN is not."""
    for leaf in leaves:
        size[leaf.span] += rms(size[leaf.span])
    return bool((np.abs(one - other) <= ROUNDINGS * DOUBLE.roundoff * size).all())


def _claimed(task: Task, pulled: _Pulled) -> dict[str, Array]:
    """For each input leaf, a low estimate of what is claimed to be the rms of its block, for every output (M,). What is
    nothing but rounding claims to be zero."""
    result = {leaf.path: np.zeros(task.program.value.size) for leaf in task.program.inputs}
    for output, cotangent, gradient in pulled.full(task):
        for leaf in task.program.inputs:
            size = rms(gradient[leaf.span]) / (float(np.linalg.norm(cotangent)) or 1.0)
            result[leaf.path][output.span] = SURELY * size if size > rounding(task, output, leaf) else 0.0
    return result


def _longer(task: Task, field: Field, moves: Moves, pulled: _Pulled, claimed: dict[str, Array]) -> int:
    """log2 of how much farther the groups should move, so that rounding is a quarter of what there may be of it."""
    groups, shortest, share = moves.groups, moves.groups.least(moves.lengths), 0.0
    for output, cotangent, _ in pulled.full(task):
        hidden = FLOOR_FACTOR * float(np.linalg.norm(cotangent[output.span] * field.floor[output.span]))
        for leaf, span in zip(groups.leaves, groups.spans, strict=True):
            scale = float(claimed[leaf.path][output.span].max(initial=0.0))
            if scale:
                share = max(share, hidden / (0.5 * tolerance_of_one(0.0, scale, task.tolerance) * shortest[span].min()))
    return int(np.clip(np.ceil(np.log2(4.0 * share)), 0, LONGER)) if share else 0


@dataclass(frozen=True, slots=True)
class _Sums:
    """For every row and every group, (k, groups), what reverse mode says and what the function does; and what rounding
    may add to the latter, (k, 1). `scale` (groups, M) is that of the blocks."""

    given: Array
    expected: Array
    rounding: Array
    scale: Array


def _held(task: Task, field: Field, moves: Moves, pulled: _Pulled, claimed: dict[str, Array]) -> _Sums | None:
    """None if the sums disagree, an output bends, or what is claimed is lost in the rounding of what the outputs do."""
    seen = moved(task, field, moves)
    floor = floor_of(task, seen)
    scale = moves.scale(scales_of(task, moves, moves.lengths, seen.slope, floor), floor.size)
    size = moves.size(seen.slope, scale)
    if ((scale == 0) & (moves.scale(claimed, floor.size) > 0)).any():
        return None
    if not (seen.bend <= SUSPICIOUS * size + BENT_BY_ROUNDING * floor).all():
        return None
    with np.errstate(invalid="ignore", over="ignore"):
        weights = pulled.cotangents**2
        expected = pulled.cotangents @ seen.slope.T
        given = moves.groups.sums(moves.lengths, pulled.gradients.T).T
        hidden = np.sqrt(weights @ floor**2)[:, None]
        agree = min(PROBE.agree, seen.strictness.agree)
        agreed = np.abs(given - expected) <= agree * np.sqrt(weights @ (size**2).T) + hidden
    return _Sums(given, expected, hidden, scale) if agreed.all() else None


def scales_of(task: Task, moves: Moves, amounts: Array, along: Array, floor: Array | None = None) -> dict[str, Array]:
    """For each input leaf, a low estimate of the rms of its block for every output (M,), out of what the outputs do as
    the groups move by such amounts, (groups, M): the terms of a random sum add up like a random walk."""
    norms, result = moves.groups.norms(amounts), {}
    for leaf, span in zip(moves.groups.leaves, moves.groups.spans, strict=True):
        row = np.zeros(task.program.value.size)
        for output in task.program.outputs:
            size = rms(along[span, output.span])
            if floor is None or size > ROUNDED * rms(floor[output.span]):
                row[output.span] = SURELY * size / (rms(norms[span]) or 1.0)
        result[leaf.path] = row
    return result


def _gathered(task: Task, moves: Moves, sums: _Sums) -> Gathered | None:
    """A comparison of each block has one number for each group: the sum over all outputs, per shortest move. None if an
    entry could be off by too much unseen."""
    groups, least, norms = moves.groups, moves.groups.least(moves.lengths), moves.groups.norms(moves.lengths)
    granted = enough_of_zero(task, least[:, None], sums.scale)
    row, comparisons, seen = FIRST, [], []
    for output in task.program.outputs:
        for leaf, span in zip(groups.leaves, groups.spans, strict=True):
            shortest, own = least[span], (span, output.span)
            enough, scale = granted[own].min(axis=1, initial=np.inf), sums.scale[own].max(axis=1, initial=0.0)
            given, expected = sums.given[row, span], sums.expected[row, span]
            bar = PROBE.agree * scale * shortest + np.abs(given - expected) + sums.rounding[row]
            if not (bar <= enough).all():
                return None
            table = Table(given / shortest, expected / shortest, bar / shortest, 2.0 * enough / shortest)
            if not table.vanishes:
                top = float(np.max(np.abs(given) / norms[span]))
                seen.append((float(np.max(table.tolerance + table.bar)), top))
            comparisons.append(_comparison(task, output, leaf, table))
        row += 1 + PARTS
    note = f"all entries, in random sums of all outputs and up to {np.bincount(groups.of).max()} inputs"
    return Gathered(tuple(comparisons), (), weakest(seen, 0.0), manner=note)


def _comparison(task: Task, output: Leaf, leaf: Leaf, table: Table) -> Comparison:
    entries, top = output.size * leaf.size, None
    if entries and table.analytic.any():
        at = int(np.argmax(np.abs(table.analytic)))
        top = table.entry(Place.of(output, leaf), (at,))
    return Comparison(task.order, "reverse", output, leaf, "probes", table, Verdict.RIGHT, (), 0, entries, "", top)
