"""From outputs that deviate, and the columns that are to blame, to entries of the Jacobian: each judged by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gradproof.agreement import CLEAR, entry_tolerance, judge
from gradproof.evidence.blame import NOBODY, Group, followed
from gradproof.evidence.entries import measured_entry
from gradproof.evidence.gathered import Task
from gradproof.evidence.lines import own_scale
from gradproof.evidence.scales import rounding
from gradproof.program import Array, Indices, Leaf, Stored
from gradproof.reference.estimate import Kind
from gradproof.reference.field import Field, only
from gradproof.reference.ladder import fresh_opinion
from gradproof.result import Entry, Place, Verdict

# So many of a block are measured by themselves; the others are taken for what their group says of them.
ADJUDICATED = 8
# Deviations within the tolerance, of all columns of a group, add up to more than so many times the root of their number
# with a probability of 3e-8 (Hoeffding).
SIGMAS = 6.0


@dataclass(frozen=True, eq=False, slots=True)
class Suspects:
    """Outputs that deviate (`verdict` is WRONG), or cannot be told, when a group of columns of a leaf moves; the column
    to blame for each, by how much it deviates, and by how much it may."""

    verdict: Verdict
    leaf: Leaf
    group: Group
    outputs: Indices
    columns: Indices
    gap: Array
    allowed: Array

    @property
    def excess(self) -> Array:
        return np.asarray(np.abs(self.gap) / (self.allowed + 1e-300))

    @property
    def beyond(self) -> Indices:
        """The outputs that no deviations within the tolerance add up to."""
        return np.asarray(self.outputs[~(self.excess <= SIGMAS * np.sqrt(self.group.columns.size))])

    def within(self, output: Leaf) -> Suspects:
        some = (self.outputs >= output.start) & (self.outputs < output.stop)
        parts = (self.outputs[some], self.columns[some], self.gap[some], self.allowed[some])
        return Suspects(self.verdict, self.leaf, self.group, *parts)


@dataclass(frozen=True, eq=False, slots=True)
class Blamed:
    """What the suspects of one block came to."""

    verdict: Verdict
    found: tuple[Entry, ...] = ()
    wrong: int = 0
    reason: str = ""


class Court:
    """Judges the suspects of a block, (output leaf, input leaf), whose stored entries have the rms `scale`; `lines`:
    that of the row or column of each, the smaller."""

    def __init__(self, task: Task, field: Field, stored: Stored, lines: Array) -> None:
        self._task, self._field, self._stored, self._lines = task, field, stored, lines

    def blamed(self, suspects: Sequence[Suspects], output: Leaf, leaf: Leaf, scale: float) -> Blamed:
        own = [one.within(output) for one in suspects if one.leaf is leaf]
        wrong = [one for one in own if one.verdict is Verdict.WRONG and one.outputs.size]
        if wrong:
            count, pairs = sum(one.outputs.size for one in wrong), _worst(wrong)
            found, cleared = self._adjudicated(wrong, pairs, output, leaf, scale)
            if found:
                found.sort(key=lambda entry: -entry.deviation / (entry.tolerance + entry.bar + 1e-300))
                return Blamed(Verdict.WRONG, tuple(found), count - len(pairs) + len(found))
            beyond = {int(j) for one in wrong for j in one.beyond}
            if beyond and not cleared:
                return Blamed(Verdict.WRONG, wrong=count, reason="no single entry stands out")
            if beyond - cleared.keys():
                return Blamed(Verdict.UNDECIDED, reason="kink" if "kink" in cleared.values() else "noise")
        vague = [one for one in own if one.verdict is Verdict.UNDECIDED and one.outputs.size]
        if vague:
            entries = tuple(self._entry(pair, output, leaf, scale)[0] for pair in _worst(vague))
            return Blamed(Verdict.UNDECIDED, entries, reason="noise")
        remark = "the deviation is spread over entries that are each within tolerance" if wrong else ""
        return Blamed(Verdict.RIGHT, reason=remark)

    def _adjudicated(
        self, suspects: Sequence[Suspects], pairs: list[tuple[int, int]], output: Leaf, leaf: Leaf, scale: float
    ) -> tuple[list[Entry], dict[int, str]]:
        """The wrong entries; and the outputs that deviate by entries alone which, each by itself, are right: by their
        kinks, or because one look has ended on a tread of stairs."""
        found, cleared = [], {}
        for j, i in pairs:
            entry, verdict = self._entry((j, i), output, leaf, scale)
            if verdict is Verdict.WRONG:
                found.append(entry)
            else:
                one = next(one for one in suspects if j in one.outputs[one.columns == i])
                behind = self._behind(one, (j, i), output, leaf, scale)
                if behind.verdict is Verdict.RIGHT:
                    cleared[j] = "kink" if entry.spread else "noise"
                found += behind.found
        return found, cleared

    def _behind(self, one: Suspects, pair: tuple[int, int], output: Leaf, leaf: Leaf, scale: float) -> Blamed:
        """What an output does when a column whose entry is right is at rest; and when all are at whose kinks it is:
        several of them may look like a slope that none of them has, and hide one that is wrong."""
        group, (j, column) = one.group, pair
        allowed = float(one.allowed[one.outputs == j][0])
        for _ in range(ADJUDICATED):
            group = group.without(column)
            gap = group.deviation(j) if group.columns.size else 0.0
            if abs(gap) <= allowed:
                return Blamed(Verdict.RIGHT)
            column = followed(group, j, gap)
            if column == NOBODY:
                break
            entry, verdict = self._entry((j, column), output, leaf, scale)
            if verdict is Verdict.WRONG:
                return Blamed(Verdict.WRONG, (entry,))
            if not entry.spread:
                break
        return Blamed(Verdict.UNDECIDED)

    def _entry(self, pair: tuple[int, int], output: Leaf, leaf: Leaf, scale: float) -> tuple[Entry, Verdict]:
        """One entry, by moving its column alone."""
        task, (j, i) = self._task, pair
        step = np.eye(1, task.steps.size, i) * task.steps
        opinion = fresh_opinion(only(self._field, np.array([j])), step, 0.5 * task.tolerance.relative)
        numeric = opinion.scaled(1.0 / task.steps[[i]])
        at = np.flatnonzero((self._stored.outputs == j) & (self._stored.inputs == i))
        analytic = np.full((1, 1), self._stored.values[at[0]] if at.size else 0.0)
        uncertain = np.where(numeric.kind == Kind.SMOOTH, CLEAR * numeric.bar, np.inf)
        line = np.full((1, 1), self._lines[at[0]] if at.size else 0.0)
        measure = own_scale(scale, numeric.value, line, uncertain, task.tolerance)
        tolerance = entry_tolerance(numeric.value, measure, task.tolerance) + rounding(task, output, leaf)
        verdict = Verdict.WRONG if judge(analytic, numeric, tolerance).wrong.any() else Verdict.RIGHT
        return measured_entry(Place(output.spot(j), leaf.spot(i)), (0, 0), analytic, numeric, tolerance), verdict


def _worst(suspects: Sequence[Suspects]) -> list[tuple[int, int]]:
    """Some (output, input) pairs, by how far they are off; nearly equal ones stay in their order."""
    outputs, columns, excess = (
        np.concatenate([getattr(one, part) for one in suspects]) for part in ("outputs", "columns", "excess")
    )
    with np.errstate(invalid="ignore"):
        rank = np.round(np.log2(np.nan_to_num(excess, nan=np.inf, posinf=np.inf) + 1e-300), 1)
    order = np.lexsort((columns, outputs, -rank))
    pairs = [(int(outputs[k]), int(columns[k])) for k in order[: 4 * ADJUDICATED] if columns[k] != NOBODY]
    return list(dict.fromkeys(pairs))[:ADJUDICATED]
