"""A large Jacobian crosswise: its columns in random sums by forward mode, its rows in random sums by reverse mode.

Forward mode says what every output does when the inputs of a group move together, and the function must do just that,
as in `together`. Of every such move, reverse mode must say what forward mode says, in random sums over the outputs, to
the last digits: an entry of it that is off shows by its whole size, which is far above those. So a few passes in each
mode do for one of every output and every input. Where nobody asked for forward mode, `rowsums` does without.

No mode is trusted for the sake of the other. What disagrees, bends or does not exist is no finding here but a reason to
look at every entry by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from gradproof.agreement import entry_tolerance
from gradproof.contracts.linear import SIZES, combination, loudness, mixed
from gradproof.evidence.forward import sizes
from gradproof.evidence.gathered import Gathered, Task, weakest
from gradproof.evidence.groups import Groups, groups_of
from gradproof.evidence.lengths import drawn_lengths
from gradproof.evidence.rowsums import SINGLE, gather_by_rows, passes, scales_of
from gradproof.evidence.together import Held, Moves, hold, resolves
from gradproof.precision import DOUBLE, form_of
from gradproof.program import Array, Leaf, Spot, pulled_of
from gradproof.quiet import QUIET
from gradproof.reference.field import field_of
from gradproof.reference.stencil import FLOOR_FACTOR
from gradproof.reference.steps import finely_signed
from gradproof.result import Comparison, Entry, Place, Table, Verdict
from gradproof.settings import MODES

# Reverse mode gives a Jacobian of fewer entries as quickly; by forward mode, groups must be so many times fewer than
# columns.
ENTRIES, SAVING = 2**14, 4
# By how many roundings sums may differ that are the same; and what they are to be less than, as a share of a tolerance.
ROUNDINGS, SHARE = 2.0**14, 0.1


def gather_crosswise(task: Task) -> Gathered | None:
    """All entries are right; or None, and nothing is known."""
    groups = groups_of(task.program.inputs)
    if not _pays(task, groups):
        return None
    lengths = drawn_lengths(task, groups)
    field, most = field_of(task.reference), task.tolerance.ceiling + task.tolerance.absolute
    if "forward" not in task.modes:
        return gather_by_rows(task, field, groups, lengths)
    if FLOOR_FACTOR * np.max(field.floor) > 0.5 * most * np.min(groups.least(lengths)):
        return None  # no sum could tell so little beside the rounding of values so large
    moves = _Scaled(groups, lengths, _near_one(task.program.inputs, lengths))
    try:
        with QUIET:
            along = _pushed(task, moves)
            if along is None or ("reverse" in task.modes and not _adjoint(task, moves, along)):
                return None
    except Exception:  # noqa: BLE001  whatever it is, the entries get their say
        return None
    held = hold(task, field, moves, [along / moves.factors], scales_of(task, moves, moves.amounts, along))
    return _gathered(task, moves, along, held) if held.agreed.all() else None


def _pays(task: Task, groups: Groups) -> bool:
    program = task.program
    if task.reference is not program or task.limits is not None or task.exact is not None:
        return False
    if not set(task.modes) <= set(MODES) or (task.order > 1 and "symmetric" in task.contracts):
        return False
    if form_of(program) is not DOUBLE or not resolves(task) or SAVING * groups.count > program.point.size:
        return False
    if "reverse" not in task.modes:
        return True
    many = program.point.size * program.value.size >= ENTRIES
    return many and SAVING * passes(len(program.outputs)) <= program.value.size


@dataclass(frozen=True, slots=True)
class _Scaled(Moves):
    """`amounts` (N,) are the lengths in other units: modes are linear, and see tangents of ordinary size."""

    amounts: Array

    @property
    def factors(self) -> Array:
        """The units, (groups, 1)."""
        firsts = np.unique(self.groups.of, return_index=True)[1]
        return np.asarray((self.amounts[firsts] / self.lengths[firsts])[:, None])


def _near_one(leaves: Sequence[Leaf], lengths: Array) -> Array:
    """The smallest of each leaf is about one."""
    amounts = np.empty_like(lengths)
    for leaf in leaves:
        least = np.min(np.abs(lengths[leaf.span]), initial=np.inf)
        amounts[leaf.span] = np.ldexp(lengths[leaf.span], 1 - int(np.frexp(least)[1]))
    return amounts


def _pushed(task: Task, moves: _Scaled) -> Array | None:
    """What forward mode makes of every group, (groups, M); None if it is not linear. A tangent that moves everything is
    pushed alone, as the user would, and must be what the groups add up to; so must it much smaller, with the other
    sign. And one input of each leaf, and the others of its group, must be what that is."""
    program, groups, amounts = task.program, moves.groups, moves.amounts
    count, factor = groups.count, loudness(program).quiet
    weights = combination(count, task.generator) / SIZES[-1]
    whole = weights[groups.of] * amounts
    alone = program.push(whole[None])[0]
    picked = [leaf.start + int(task.generator.integers(leaf.size)) for leaf in program.inputs if leaf.size]
    single = np.zeros((len(picked), amounts.size))
    single[np.arange(len(picked)), picked] = amounts[picked]
    others = np.where(groups.of == groups.of[picked][:, None], amounts, 0.0) - single
    rows = groups.rows(amounts)
    first = next(rows)
    found = program.push(np.concatenate([first, factor * whole[None], single, others]))
    along, further = np.concatenate([found[: len(first)], *map(program.push, rows)]), found[len(first) :]
    scaled, one, rest = further[0] / factor, further[1 : 1 + len(picked)], further[1 + len(picked) :]
    with np.errstate(invalid="ignore"):
        size = sizes(task, np.sqrt(weights[None] ** 2 @ along**2))
        linear = _same(alone, weights @ along, size) and _same(scaled, alone, size)
        linear &= _same(one + rest, along[groups.of[picked]], sizes(task, np.abs(one) + np.abs(rest)))
    return along if linear else None


def _same(one: Array, other: Array, size: Array) -> bool:
    """NaN is not."""
    return bool((np.abs(one - other) <= ROUNDINGS * DOUBLE.roundoff * size).all())


def _adjoint(task: Task, moves: _Scaled, along: Array) -> bool:
    """Whether w . (J u) = (J^T w) . u for the moves u and some w: those of the contract on linear pulls, and of each
    output alone some without zeros, with some, and with nothing but one number."""
    program, groups = task.program, moves.groups
    known, voices = pulled_of(program), loudness(program)
    cotangent = mixed(program.value.size, task.generator) if known is None else known[0]
    alone = program.pull(cotangent[None])[0] if known is None else known[1]
    outputs = [output for output in program.outputs if output.size]
    rows = [voices.quiet * cotangent, -voices.loud * cotangent]
    for output in outputs:
        rows.extend(_cotangents(task, output))
    w = np.stack([cotangent, *rows])
    gradients = np.concatenate([alone[None], program.pull(w[1:])]).T
    with np.errstate(invalid="ignore", over="ignore"):
        expected, given = w @ along.T, groups.sums(moves.amounts, gradients).T
        size = np.sqrt(w**2 @ (along**2).T) + np.sqrt(groups.sums(moves.amounts**2, gradients**2).T)
        scales, norms, least = (
            scales_of(task, moves, moves.amounts, along),
            groups.norms(moves.amounts),
            groups.least(moves.amounts),
        )
        for leaf, span in zip(groups.leaves, groups.spans, strict=True):
            size[:, span] += np.sqrt(w**2 @ scales[leaf.path] ** 2)[:, None] * norms[span]
        if not _same(given, expected, size):
            return False
    # A row without zeros sees every entry of its output, if its rounding leaves it to.
    full = range(3, len(w), 2 + SINGLE)
    for leaf, span in zip(groups.leaves, groups.spans, strict=True):
        for row, output in zip(full, outputs, strict=True):
            granted = entry_tolerance(np.zeros(1), float(scales[leaf.path][output.start]), task.tolerance)[0]
            if (ROUNDINGS * DOUBLE.roundoff * size[row, span] > SHARE * granted * least[span]).any():
                return False
    return True


def _cotangents(task: Task, output: Leaf) -> Iterator[Array]:
    """Of magnitudes from one to two."""
    own = np.arange(output.start, output.stop)
    for kept in (own, own[task.generator.random(own.size) < 0.5], *task.generator.choice(own, (SINGLE, 1))):
        row = np.zeros(task.program.value.size)
        row[kept] = finely_signed(task.generator, kept.size)
        yield row


def _gathered(task: Task, moves: _Scaled, along: Array, held: Held) -> Gathered:
    """The numbers of a comparison are, of every group, the sum that is farthest off."""
    factors, groups = moves.factors, moves.groups
    bar = np.maximum(held.seen.bar(held.size), held.unseen)
    found = Table(along, held.seen.slope * factors, bar * factors, 2.0 * held.granted * factors)
    least, norms = groups.least(moves.amounts), groups.norms(moves.amounts)
    comparisons, seen = [], []
    for mode in task.modes:
        for output in task.program.outputs:
            for leaf, span in zip(groups.leaves, groups.spans, strict=True):
                block, entries = _block(found, span, output.span), leaf.size * output.size
                top = _strongest(block, output, leaf) if entries else None
                if top is not None and not block.vanishes:
                    error = float(np.max((block.tolerance + block.bar) / least[span, None]))
                    seen.append((error, float(np.max(np.abs(block.analytic) / norms[span, None]))))
                source = _farthest(block) if entries else block
                comparisons.append(
                    Comparison(task.order, mode, output, leaf, "probes", source, Verdict.RIGHT, (), 0, entries, "", top)
                )
    note = f"all entries, in random sums of up to {np.bincount(groups.of).max()} of them"
    return Gathered(tuple(comparisons), (), weakest(seen, 0.0), manner=note)


def _block(table: Table, span: slice, output: slice) -> Table:
    own = span, output
    return Table(table.analytic[own], table.numeric[own], table.bar[own], table.tolerance[own])


def _farthest(block: Table) -> Table:
    """One number for each group."""
    at = np.arange(len(block.analytic)), np.argmax(block.excess, axis=1)
    return Table(block.analytic[at], block.numeric[at], block.bar[at], block.tolerance[at])


def _strongest(block: Table, output: Leaf, leaf: Leaf) -> Entry | None:
    """The largest sum; None if all are zero."""
    at = divmod(int(np.argmax(np.abs(block.analytic))), output.size)
    if not block.analytic[at]:
        return None
    return block.entry(Place(output.spot(output.start + at[1]), Spot(leaf.path)), at)
