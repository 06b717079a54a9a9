"""Every stored entry of a sparse Jacobian, and the zeros around them, in memory that grows with the stored entries.

Columns that share no row move together, each by its own signed amount. An output that owns an entry in the group must
change by that entry, all others not at all: so each entry is compared by itself, and an entry that nobody stored shows
in some output of the group that its column belongs to. What deviates is measured again, traced to its column, and
adjudicated by itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gradproof.agreement import CLEAR, entry_tolerance, judge
from gradproof.evidence.blame import NOBODY, Group, blamed
from gradproof.evidence.colouring import Grouping
from gradproof.evidence.gathered import Gathered, Task, weakest
from gradproof.evidence.glanced import enough, enough_of_zero
from gradproof.evidence.lengths import group_lengths
from gradproof.evidence.lines import grossly_off, lines_of_stored, own_scale
from gradproof.evidence.named import Blamed, Court, Suspects
from gradproof.evidence.scales import rounding, swings, unimportant_changes, unimportant_of
from gradproof.evidence.wording import kink_remark
from gradproof.norms import largest, rms
from gradproof.program import Array, Indices, Leaf, Mask, Stored, leaf_at
from gradproof.reference.estimate import Estimate, Goal, Kind, Kinds
from gradproof.reference.field import Field, field_of, only
from gradproof.reference.glance import ENTRY, glance
from gradproof.reference.ladder import first_look, fresh_opinion, refine
from gradproof.result import Comparison, Entry, Finding, Place, Power, Table, Verdict

MODE = "reverse"


@dataclass(frozen=True, eq=False, slots=True)
class Numbers:
    """The numeric side of the stored entries, filled in group by group; and what an entry outside of the pattern could
    be without being seen, for each input leaf."""

    value: Array
    bar: Array
    spread: Array
    kind: Kinds
    outside: dict[str, float]

    def put(self, entries: Indices, found: Estimate, lengths: Array) -> None:
        self.value[entries] = found.value[0] / lengths
        self.bar[entries] = found.bar[0] / np.abs(lengths)
        self.spread[entries] = found.spread[0] / np.abs(lengths)
        self.kind[entries] = found.kind[0]


def gather(task: Task, grouping: Grouping, findings: tuple[Finding, ...]) -> Gathered:
    stored = grouping.stored
    count = stored.values.size
    numbers = Numbers(np.zeros(count), np.zeros(count), np.zeros(count), np.zeros(count, np.uint8), {})
    field, lengths = field_of(task.reference, task.exact), group_lengths(task)
    order = np.argsort(grouping.groups, kind="stable")
    columns = np.split(order, np.flatnonzero(np.diff(grouping.groups[order])) + 1)
    of_entry = grouping.groups[stored.inputs]
    by_group = np.argsort(of_entry, kind="stable")
    ends = np.cumsum(np.bincount(of_entry, minlength=grouping.count))
    scales, lines = _scales(task, stored), _lines(task, stored)
    suspects: list[Suspects] = []
    for g, members in enumerate(columns):
        entries = by_group[ends[g - 1] if g else 0 : ends[g]]
        moved = _Moved(task, field, stored, entries, members, lengths, scales, lines)
        suspects += moved.looked(numbers)
    court = Court(task, field, stored, lines)
    comparisons = tuple(
        _comparison(task, stored, numbers, lines, (output, leaf), scale, court.blamed(suspects, output, leaf, scale))
        for output in task.program.outputs
        for leaf in task.program.inputs
        for scale in [scales[output.path, leaf.path]]
    )
    return Gathered(comparisons, findings + _kinks(task, stored, numbers), _power(comparisons, numbers, stored))


def _scales(task: Task, stored: Stored) -> dict[tuple[str, str], float]:
    """The rms of the stored entries of each block."""
    return {
        (output.path, leaf.path): rms(stored.values[_within(stored, output, leaf)])
        for output in task.program.outputs
        for leaf in task.program.inputs
    }


def _lines(task: Task, stored: Stored) -> Array:
    """The rms of the row or column of each stored entry, the smaller, within its block: see `lines`."""
    result = np.zeros(stored.values.size)
    for output in task.program.outputs:
        for leaf in task.program.inputs:
            some = _within(stored, output, leaf)
            result[some] = lines_of_stored(stored, some)
    return result


def _within(stored: Stored, output: Leaf, leaf: Leaf) -> Indices:
    inside = (stored.inputs >= leaf.start) & (stored.inputs < leaf.stop)
    inside &= (stored.outputs >= output.start) & (stored.outputs < output.stop)
    return np.flatnonzero(inside)


class _Moved:
    """One group of columns, moved together. All arrays are as long as the outputs (M)."""

    def __init__(
        self,
        task: Task,
        field: Field,
        stored: Stored,
        entries: Indices,
        members: Indices,
        lengths: Array,
        scales: dict[tuple[str, str], float],
        lines: Array,
    ) -> None:
        self._task, self._field, self._stored, self._entries = task, field, stored, entries
        self._leaf = leaf_at(task.program.inputs, int(members[0]))
        self._owners = stored.outputs[entries]
        self._lengths = np.zeros(lengths.size)
        self._lengths[members] = lengths[members]
        self._members = members
        self._shortest = float(np.min(np.abs(lengths[members])))
        self._length = np.full(field.value.size, self._shortest)
        self._length[self._owners] = np.abs(lengths[stored.inputs[entries]])
        self._scale, self._line = np.empty(field.value.size), np.zeros(field.value.size)
        self._line[self._owners] = lines[entries]
        self._rounding = np.empty(field.value.size)
        for output in task.program.outputs:
            self._scale[output.span] = scales[output.path, self._leaf.path]
            self._rounding[output.span] = rounding(task, output, self._leaf)
        self._expected = self._change(self._lengths)

    @property
    def _group(self) -> Group:
        return Group(self._field, self._members, self._lengths, self._change)

    def _change(self, lengths: Array) -> Array:
        """What the stored entries say of a displacement of these columns."""
        result = np.zeros(self._field.value.size)
        result[self._owners] = self._stored.values[self._entries] * lengths[self._stored.inputs[self._entries]]
        return result

    def looked(self, numbers: Numbers) -> list[Suspects]:
        """Two evaluations; more for the outputs that leave a doubt."""
        task, length = self._task, self._length
        seen = glance(self._field, self._lengths[None], ENTRY.within(task.tolerance.finest))
        scale = self._wanted(np.arange(length.size), seen.slope[0])
        size = np.maximum(np.abs(seen.slope), scale * length)
        bar, apart = seen.bar(size), np.abs(self._expected - seen.slope[0])
        rest = apart + seen.floor
        agreed = seen.agrees(self._expected[None], size)[0] & (bar[0] <= enough(task, seen.slope[0], length, scale))
        agreed &= rest <= enough_of_zero(task, np.full(1, self._shortest), scale)
        # A value that is not finite is reported on its own.
        agreed |= ~np.isfinite(task.program.value)
        numbers.put(self._entries, Estimate.smooth(seen.slope, bar).of_outputs(self._owners), self._own_lengths)
        known = float(np.max(rest[agreed], initial=0.0)) / self._shortest
        numbers.outside[self._leaf.path] = max(numbers.outside.get(self._leaf.path, 0.0), known)
        doubtful = np.flatnonzero(~agreed)
        return self._measured(doubtful, numbers) if doubtful.size else []

    @property
    def _own_lengths(self) -> Array:
        return self._lengths[self._stored.inputs[self._entries]]

    def _measured(self, outputs: Indices, numbers: Numbers) -> list[Suspects]:
        """The ladder for some outputs; a second opinion for those that then are wrong; who is to blame for the rest."""
        task, field, displacement = self._task, only(self._field, outputs), self._lengths[None]
        look = first_look(field, displacement)
        wanted = self._tolerance(outputs, self._wanted(outputs, look.slopes.central[0]))
        goal = Goal(0.5 * wanted[None], 0.5 * task.tolerance.relative)
        better = refine(field, displacement, look, goal)
        expected, tolerance = self._expected[None, outputs], self._granted(outputs, better)
        wrong = np.flatnonzero(judge(expected, better, tolerance[None]).wrong[0])
        if wrong.size:
            doubted = only(self._field, outputs[wrong])
            better.put_outputs(wrong, fresh_opinion(doubted, displacement, goal.relative))
            tolerance = self._granted(outputs, better)
        judgement = judge(expected, better, tolerance[None])
        place = np.full(self._field.value.size, NOBODY)
        place[outputs] = np.arange(outputs.size)
        own = place[self._owners]
        kept = own != NOBODY
        numbers.put(self._entries[kept], better.of_outputs(own[kept]), self._own_lengths[kept])
        wrong, vague = np.flatnonzero(judgement.wrong[0]), self._vague(judgement.undecided[0], better, outputs)
        result = []
        for some, verdict in ((wrong, Verdict.WRONG), (vague, Verdict.UNDECIDED)):
            if some.size:
                gap = better.gap(expected)[0, some]
                columns = self._columns(outputs[some], gap, verdict)
                allowed = tolerance[some] + better.bar[0, some]
                result.append(Suspects(verdict, self._leaf, self._group, outputs[some], columns, gap, allowed))
        return result

    def _wanted(self, outputs: Indices, change: Array) -> Array:
        """What the entries are measured by if all that seems to be grossly off were known well."""
        off = grossly_off(self._task, self._expected[outputs], change)
        return self._measure(outputs, change, np.where(off, 0.0, np.inf))

    def _granted(self, outputs: Indices, found: Estimate) -> Array:
        uncertain = np.where(found.kind[0] == Kind.SMOOTH, CLEAR * found.bar[0], np.inf)
        return self._tolerance(outputs, self._measure(outputs, found.value[0], uncertain))

    def _measure(self, outputs: Indices, change: Array, uncertain: Array) -> Array:
        """What the entries are measured by that have made these changes, known as well as that."""
        scale, length, line = self._scale[outputs], self._length[outputs], self._line[outputs]
        return own_scale(scale, change / length, line, uncertain / length, self._task.tolerance)

    def _tolerance(self, outputs: Indices, scale: Array) -> Array:
        """As changes over the displacement."""
        length = self._length[outputs]
        claimed = self._expected[outputs] / length
        granted = entry_tolerance(claimed, scale, self._task.tolerance)
        return np.asarray((granted + self._rounding[outputs]) * length)

    def _vague(self, undecided: Mask, better: Estimate, outputs: Indices) -> Indices:
        """Outputs that cannot be told, other than those where nothing is claimed and nothing of importance happens."""
        task, zero = self._task, self._expected[outputs] == 0
        unimportant = unimportant_changes(task, self._length)
        vague = undecided & ~(zero & (better.bar[0] <= unimportant[outputs]))
        if (vague & zero).any():
            flat = unimportant_of(task, swings(task, self._leaf)[outputs])
            vague &= ~(zero & (better.bar[0] <= flat))
        return np.flatnonzero(vague)

    def _columns(self, outputs: Indices, gap: Array, verdict: Verdict) -> Indices:
        """The column that each output's deviation comes from, NOBODY where that cannot be said."""
        owner = np.full(self._field.value.size, NOBODY)
        owner[self._owners] = self._stored.inputs[self._entries]
        if verdict is not Verdict.WRONG or not np.isfinite(gap).all():
            return np.asarray(owner[outputs])
        found = blamed(self._group, outputs, gap)
        return np.where(found == NOBODY, owner[outputs], found)


def _comparison(
    task: Task, stored: Stored, numbers: Numbers, lines: Array, pair: tuple[Leaf, Leaf], scale: float, blamed: Blamed
) -> Comparison:
    output, leaf = pair
    some = _within(stored, output, leaf)
    uncertain = np.where(numbers.kind[some] == Kind.SMOOTH, CLEAR * numbers.bar[some], np.inf)
    measures = own_scale(scale, numbers.value[some], lines[some], uncertain, task.tolerance)
    table = Table(
        stored.values[some],
        numbers.value[some],
        numbers.bar[some],
        entry_tolerance(numbers.value[some], measures, task.tolerance) + rounding(task, output, leaf),
        numbers.spread[some] if numbers.kind[some].any() else None,
        (stored.outputs[some] - output.start, stored.inputs[some] - leaf.start),
    )
    return Comparison(
        order=task.order,
        mode=MODE,
        output=output,
        input=leaf,
        scope="pattern",
        source=table,
        verdict=blamed.verdict,
        found=blamed.found,
        wrong=blamed.wrong,
        entries=output.size * leaf.size,
        reason=blamed.reason,
        strongest=_strongest(stored, table, some, pair) if blamed.verdict is Verdict.RIGHT else None,
    )


def _strongest(stored: Stored, table: Table, some: Indices, pair: tuple[Leaf, Leaf]) -> Entry | None:
    if not some.size or table.spread is not None:
        return None
    top = int(np.argmax(np.abs(table.numeric)))
    place = Place(pair[0].spot(int(stored.outputs[some[top]])), pair[1].spot(int(stored.inputs[some[top]])))
    return table.entry(place, (top,))


def _kinks(task: Task, stored: Stored, numbers: Numbers) -> tuple[Finding, ...]:
    bent = np.flatnonzero(numbers.kind == Kind.KINK)
    if not bent.size:
        return ()
    j, i = int(stored.outputs[bent[0]]), int(stored.inputs[bent[0]])
    place = Place(leaf_at(task.program.outputs, j).spot(j), leaf_at(task.program.inputs, i).spot(i))
    value, spread = float(numbers.value[bent[0]]), float(numbers.spread[bent[0]])
    return (kink_remark(place, bent.size, value - spread, value + spread),)


def _power(comparisons: tuple[Comparison, ...], numbers: Numbers, stored: Stored) -> Power | None:
    """For stored entries their tolerance and bar; for the others what their group leaves unseen."""
    seen = []
    for block in comparisons:
        top = largest(block.numeric)
        if top > 0:
            seen.append((max(float(np.max(block.tolerance + block.bar)), numbers.outside[block.input.path]), top))
    return weakest(seen, stored.values.size / max(sum(block.entries for block in comparisons), 1))
