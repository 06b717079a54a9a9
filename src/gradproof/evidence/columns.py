"""Single coordinates along which the function is not smooth, each judged by itself: the hull test in probe mode."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from gradproof.agreement import entry_tolerance, judge
from gradproof.evidence.entries import measured_entry
from gradproof.evidence.folds import LONG, Column
from gradproof.evidence.gathered import Task
from gradproof.evidence.scales import rounding
from gradproof.evidence.wording import REASONS
from gradproof.precision import DOUBLE, coarsest
from gradproof.program import Array, Indices, Leaf, leaf_at
from gradproof.reference.estimate import Estimate, Kind
from gradproof.reference.field import field_of, only
from gradproof.reference.ladder import fresh_opinion
from gradproof.reference.surroundings import reconsidered
from gradproof.result import Comparison, Entry, Place, Verdict

# Of the outputs that bend along a coordinate, so many are looked at; fewer where one pull takes long: so many numbers
# are pulled in all, inputs and outputs together.
OUTPUTS, PULLED = 8, 2 * LONG


@dataclass(frozen=True, slots=True)
class Look:
    """One entry of the Jacobian, judged by itself in one mode."""

    mode: str
    output: Leaf
    input: Leaf
    row: int
    coordinate: int
    entry: Entry
    kind: Kind
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Sizes:
    """The rms of a block's entries, by mode, input leaf and output leaf."""

    table: dict[str, Array]

    def of(self, mode: str, i: int, o: int) -> float:
        return float(self.table[mode][i, o])


def look_at(task: Task, column: Column, modes: tuple[str, ...], sizes: Sizes) -> list[Look]:
    """The entries of one column that are not smooth. Outputs beyond a few are picked from all over."""
    outputs = column.outputs
    most = max(1, min(OUTPUTS, PULLED // (task.steps.size + task.program.value.size)))
    if outputs.size > most:
        outputs = outputs[np.linspace(0, outputs.size - 1, most).astype(int)]
    step = np.eye(1, task.steps.size, column.coordinate) * task.steps
    field = only(field_of(task.reference, task.exact), outputs)
    opinion = fresh_opinion(field, step, 0.5 * task.tolerance.relative)
    claimed = {mode: _analytic(task, mode, column.coordinate, outputs) for mode in modes}
    looks = _looks(task, (column.coordinate, outputs), opinion, claimed, sizes)
    # A kink that does not show along the coordinate takes many evaluations to find: only where it may excuse something.
    if task.limits is None and coarsest(task.reference.inputs) is DOUBLE and any(map(_is_wrong, looks)):
        opinion = reconsidered(field, column.coordinate, task.steps, opinion)
        looks = _looks(task, (column.coordinate, outputs), opinion, claimed, sizes)
    return looks


def _is_wrong(look: Look) -> bool:
    return look.verdict is Verdict.WRONG


def _looks(
    task: Task, where: tuple[int, Indices], opinion: Estimate, claimed: dict[str, Array], sizes: Sizes
) -> list[Look]:
    coordinate, outputs = where
    numeric = opinion.scaled(1.0 / task.steps[[coordinate]])
    return [
        _judged(task, (mode, int(j), coordinate), numeric.block(slice(0, 1), slice(k, k + 1)), value, sizes)
        for mode, analytic in claimed.items()
        for k, (j, value) in enumerate(zip(outputs, analytic, strict=True))
    ]


def _analytic(task: Task, mode: str, coordinate: int, outputs: Indices) -> Array:
    if mode == "forward":
        return np.asarray(task.program.push(np.eye(1, task.steps.size, coordinate))[0, outputs])
    # One by one: these may be vectors of a million.
    return np.array([task.program.pull(np.eye(1, task.program.value.size, j))[0, coordinate] for j in outputs])


def _judged(task: Task, where: tuple[str, int, int], numeric: Estimate, analytic: float, sizes: Sizes) -> Look:
    mode, j, i = where
    output, leaf = leaf_at(task.program.outputs, j), leaf_at(task.program.inputs, i)
    size = np.abs(numeric.value[0]) + numeric.spread[0]
    scale = sizes.of(mode, task.program.inputs.index(leaf), task.program.outputs.index(output))
    size = np.where(numeric.bar[0] < size, size, 0.0)  # where there is one
    tolerance = entry_tolerance(size, scale, task.tolerance) + rounding(task, output, leaf)
    claimed, granted = np.full((1, 1), analytic), tolerance[None]
    judgement = judge(claimed, numeric, granted)
    verdict = Verdict.RIGHT
    if judgement.wrong.any():
        verdict = Verdict.WRONG
    elif judgement.undecided.any():
        verdict = Verdict.UNDECIDED
    entry = measured_entry(Place(output.spot(j), leaf.spot(i)), (0, 0), claimed, numeric, granted)
    return Look(mode, output, leaf, j, i, entry, Kind(int(numeric.kind[0, 0])), verdict)


def reason_of(task: Task, kinds: Iterable[Kind]) -> str:
    """Why entries of these kinds cannot be told."""
    kinds = set(kinds)
    # The long steps of a narrow format make kinks and stairs of what is none.
    narrow = coarsest(task.reference.inputs) is not DOUBLE
    for kind in (Kind.JUMP, Kind.STEEP, Kind.SLOW, Kind.EDGE, *(() if narrow else (Kind.STAIRS, Kind.KINK))):
        if kind in kinds:
            return REASONS[kind]
    return "precision" if narrow else "noise"


def with_looks(task: Task, comparison: Comparison, looks: list[Look]) -> Comparison:
    """The comparison of a pair of leaves, and what single entries of it add to the verdict."""
    if not looks and comparison.verdict is Verdict.RIGHT:
        return comparison
    own = [one for one in looks if (one.mode, one.output, one.input) == _key(comparison)]
    for verdict in (Verdict.WRONG, Verdict.UNDECIDED):
        told = [one for one in own if one.verdict is verdict]
        if comparison.verdict is verdict or (told and comparison.verdict is not Verdict.WRONG):
            found = tuple(one.entry for one in told) + comparison.found
            reason = reason_of(task, [told[0].kind]) if told and verdict is Verdict.UNDECIDED else comparison.reason
            wrong = len(found) if verdict is Verdict.WRONG else 0
            return replace(comparison, verdict=verdict, found=found[:8], wrong=wrong, reason=reason)
    return comparison


def _key(comparison: Comparison) -> tuple[str, Leaf, Leaf]:
    return comparison.mode, comparison.output, comparison.input
