"""Signed probes judged: w . (J u) on both sides, for random directions u and w, at a cost that does not depend on size.

A single wrong entry of size e shows as about e whatever N and M are, and the threshold is the error bar, not a
tolerance that grows with the size. A probe beyond its bar is no verdict yet: `bisect` looks for the entry.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gradproof.agreement import CLEAR
from gradproof.evidence.bisect import Located, Suspect, locate
from gradproof.evidence.columns import reason_of, with_looks
from gradproof.evidence.gathered import Gathered, Task, weakest
from gradproof.evidence.measure import Evidence, Outcome
from gradproof.evidence.scales import granted, lost, slight_change, swings, unimportant_change, unimportant_of
from gradproof.evidence.sums import Probe, part
from gradproof.evidence.ties import OUTPUTS, Tie, check_ties
from gradproof.evidence.wording import REMARKS, crowd_remark, hidden_kink_remark
from gradproof.norms import all_finite, dot
from gradproof.precision import DOUBLE, coarsest, form_of
from gradproof.program import Array, Leaf
from gradproof.reference.estimate import Estimate, Kind
from gradproof.reference.field import field_of
from gradproof.result import Comparison, Finding, Place, Power, Table, Verdict
from gradproof.settings import Detail

# P(|signed sum| > 6 sigma) <= 2 exp(-18) = 3e-8 (Hoeffding).
SIGMAS = 6.0
# Where there is no one slope, the sum over many entries proves nothing against any of them.
SEVERAL = frozenset({Kind.KINK, Kind.STAIRS, Kind.STEEP, Kind.JUMP})
# A deviation beyond a glance's bar is measured again, with a bar of its own that is up to so many times wider.
DOUBTED = 32.0
# So many wrong blocks of a mode are followed to an entry: they are printed, and looked at for a cause.
FOLLOWED: dict[Detail, int] = {"verdict": 1, "summary": 3, "plots": 3}
NOT_SINGLED_OUT = "every entry that was looked at is within tolerance, but such entries cannot add up to this"


def gather(task: Task, evidence: Evidence) -> Gathered:
    """Judge every (mode, output, input) over all probes, and look for the entry where one disagrees."""
    pairs = [
        _pair(task, mode, evidence.outcomes, gaps, (i, o))
        for mode, gaps in _gaps(evidence).items()
        for o in range(len(task.program.outputs))
        for i in range(len(task.program.inputs))
    ]
    followed = _follow(task, pairs)
    comparisons = tuple(
        with_looks(task, _judged(task, pair, followed.get(pair), evidence), evidence.looks) for pair in pairs
    )
    findings = (*_ties(task, evidence), *_remarks(task, evidence))
    return Gathered(comparisons, findings, _power(task, evidence, comparisons))


def _ties(task: Task, evidence: Evidence) -> tuple[Finding, ...]:
    """Entries at a kink that were looked at one by one, and belong to the same output."""
    kinked = [look for look in evidence.looks if look.kind is Kind.KINK]
    if not kinked:
        return ()
    rows = sorted({look.row for look in kinked if look.mode == kinked[0].mode})
    found: dict[str, list[tuple[Tie, Array]]] = {}
    for row in rows:
        for mode in evidence.modes:
            own = [look for look in kinked if (look.mode, look.row) == (mode, row)]
            if len(own) > 1:
                tie = Tie(
                    row,
                    np.array([look.coordinate for look in own]),
                    np.array([look.entry.numeric for look in own]),
                    np.array([look.entry.spread for look in own]),
                )
                found.setdefault(mode, []).append((tie, np.array([look.entry.analytic for look in own])))
    if not found:
        return ()
    ties = [tie for tie, _ in next(iter(found.values()))][:OUTPUTS]
    claimed = {mode: [gradient for _, gradient in pairs][:OUTPUTS] for mode, pairs in found.items()}
    return check_ties(task, field_of(task.reference), ties, claimed)


@dataclass(frozen=True, slots=True)
class Doubt:
    """What was followed of the probe whose sides differ most, by how much and beyond which bar; `beyond` where no
    deviations within tolerance add up to as much, so that some entry must be wrong even if it is not found."""

    probe: Probe
    deviation: float
    bar: float
    kind: Kind
    beyond: bool
    excess: float  # in tolerances

    @property
    def proof(self) -> bool:
        """Whether the block is wrong, wherever in it that may be."""
        return self.beyond and self.kind not in SEVERAL


@dataclass(frozen=True, eq=False, slots=True)
class Pair:
    """An output leaf and an input leaf in one mode, by their numbers, and both sides of all probes."""

    mode: str
    o: int
    i: int
    table: Table
    doubt: Doubt | None


def _gaps(evidence: Evidence) -> dict[str, list[Array]]:
    """How far the sides of every probe are apart, in each mode, (input leaf, output leaf)."""
    outcomes = evidence.outcomes
    return {mode: [one.numeric.gap(one.analytic[mode].total) for one in outcomes] for mode in evidence.modes}


def _pair(task: Task, mode: str, outcomes: Sequence[Outcome], gaps: Sequence[Array], where: tuple[int, int]) -> Pair:
    i, o = where
    input_leaf = task.program.inputs[i]
    numbers = [
        (
            one.analytic[mode].total[where],
            one.numeric.value[where],
            one.numeric.spread[where],
            one.numeric.bar[where],
            one.rounding[where],
            one.size[where],
            apart[where],
        )
        for one, apart in zip(outcomes, gaps, strict=True)
    ]
    analytic, numeric, spread, bar, rounding, size, gap = np.array(numbers).reshape(-1, 7).T
    tolerance = granted(task, size, input_leaf)
    slack = bar + rounding
    excess = np.abs(gap) - slack
    table = Table(analytic, numeric, slack, tolerance, spread if spread.any() else None)
    if all_finite(analytic) and not (excess > 0.0).any():
        return Pair(mode, o, i, table, None)
    if not numeric[excess > 0].any() and np.abs(gap).max() <= _lost(task, task.program.outputs[o], input_leaf):
        return Pair(mode, o, i, table, None)
    worst = int(np.argmax(np.nan_to_num(excess / np.maximum(bar, 1e-300), nan=np.inf)))
    share = outcomes[worst].share
    most = SIGMAS * _loosest(task, tolerance[worst]) + CLEAR * bar[worst]
    doubt = Doubt(
        outcomes[worst].probe.shorter(share),
        share * float(gap[worst]),
        share * float(slack[worst]),
        Kind(int(outcomes[worst].numeric.kind[i, o])),
        bool(np.isfinite(most)) and not excess[worst] <= most,
        float(np.nan_to_num(excess[worst] / max(tolerance[worst] + bar[worst], 1e-300), nan=np.inf)),
    )
    return Pair(mode, o, i, table, doubt)


def _lost(task: Task, output: Leaf, leaf: Leaf) -> float:
    """How large a sum may be that is lost in the rounding of an output, all of which does not move."""
    if form_of(task.program) is not DOUBLE:
        return 0.0
    steps = task.steps[leaf.span]
    return float(lost(task, leaf)[output.span].min() * np.sqrt(dot(steps, steps) * output.size))


def _follow(task: Task, pairs: Sequence[Pair]) -> dict[Pair, Located]:
    """The entries behind the sums that differ. One wrong operation makes all wrong that comes before it in a network:
    the worst blocks of each mode are looked into, and those whose verdict depends on it."""
    followed: dict[Pair, Located] = {}
    doubted = [(pair, pair.doubt) for pair in pairs if pair.doubt is not None]
    if not doubted:
        return followed
    told: Counter[str] = Counter()
    double = coarsest(task.reference.inputs) is DOUBLE
    for pair, doubt in sorted(doubted, key=lambda both: -both[1].excess):
        if double and doubt.proof and told[pair.mode] >= FOLLOWED[task.detail]:
            continue
        output, leaf = task.program.outputs[pair.o], task.program.inputs[pair.i]
        direction, cotangent = part(doubt.probe.direction, leaf)[0], part(doubt.probe.cotangent, output)[0]
        suspect = Suspect(pair.mode, output, leaf, direction, cotangent, doubt.deviation, doubt.bar)
        followed[pair] = locate(task, suspect)
        told[pair.mode] += bool(followed[pair].found)
    return followed


def _judged(task: Task, pair: Pair, located: Located | None, evidence: Evidence) -> Comparison:
    output_leaf, input_leaf = task.program.outputs[pair.o], task.program.inputs[pair.i]
    table = pair.table
    verdict, reason = Verdict.RIGHT, ""
    doubt = pair.doubt
    if doubt is not None and located is None:
        verdict = Verdict.WRONG  # and not looked into
    elif doubt is not None and located is not None:
        verdict = Verdict.WRONG if located.found or doubt.beyond else Verdict.RIGHT
        reason = located.remark if verdict is Verdict.RIGHT else NOT_SINGLED_OUT if not located.found else ""
        rough = SEVERAL & (located.kinds | {doubt.kind})
        if doubt.beyond and not located.found and (rough or coarsest(task.reference.inputs) is not DOUBLE):
            # Kinks of opposite sign that could not be told apart allow more than what is left of both; and the steps of
            # a narrow format are so long that a function may turn round within one.
            verdict, reason = Verdict.UNDECIDED, reason_of(task, rough)
    located = Located(()) if located is None else located
    if verdict is Verdict.RIGHT and _too_wide(task, pair, evidence):
        kinds = [Kind(int(outcome.numeric.kind[pair.i, pair.o])) for outcome in evidence.outcomes]
        verdict, reason = Verdict.UNDECIDED, reason_of(task, kinds)
    return Comparison(
        order=task.order,
        mode=pair.mode,
        output=output_leaf,
        input=input_leaf,
        scope="probes",
        source=table,
        verdict=verdict,
        found=located.found or (located.unclear if verdict is Verdict.UNDECIDED else ()),
        wrong=len(located.found),
        entries=output_leaf.size * input_leaf.size,
        reason=reason,
    )


def _too_wide(task: Task, pair: Pair, evidence: Evidence) -> bool:
    """Whether a bar of the first probe leaves open what the sum is."""
    i, o, table = pair.i, pair.o, pair.table
    output, leaf = task.program.outputs[o], task.program.inputs[i]
    for k, outcome in enumerate(evidence.outcomes[: evidence.pieces]):
        bar, size = float(outcome.numeric.bar[i, o]), float(outcome.size[i, o])
        if (
            bar > table.tolerance[k]
            and bar > unimportant_change(task, (table.numeric[k], bar), size, output, leaf)
            and bar > slight_change(task, size, output)
            and not _flat(task, outcome.numeric, i, o)
        ):
            return True
    return False


def _flat(task: Task, numeric: Estimate, i: int, o: int) -> bool:
    """Whether a sum is zero within its bar, which is narrow beside what becomes of the output as the input moves."""
    if abs(numeric.value[i, o]) > numeric.bar[i, o]:
        return False
    output = task.program.outputs[o]
    size = swings(task, task.program.inputs[i])[output.start] * float(np.sqrt(output.size))
    return bool(numeric.bar[i, o] <= unimportant_of(task, float(size)))


def _loosest(task: Task, granted: float) -> float:
    """`granted` is for the strictest part of the tolerance; this is what the most generous part would grant."""
    tolerance = task.tolerance
    return granted * max(tolerance.relative, tolerance.of_block) / tolerance.finest if tolerance.finest else granted


def _remarks(task: Task, evidence: Evidence) -> list[Finding]:
    """Kinks by their place; or, where none could be singled out, that there is one."""
    findings: list[Finding] = []
    if not evidence.looks and evidence.fold is None and not any(one.numeric.kind.any() for one in evidence.outcomes):
        return findings
    seen = {str(look.entry.place): look for look in evidence.looks}.values()
    for kind, remark in REMARKS.items():
        own = [look.entry for look in seen if look.kind is kind]
        if own:
            first = own[0]
            ends = (first.numeric - first.spread, first.numeric + first.spread)
            findings.append(remark(first.place, len(own), *ends))
    if evidence.fold is not None and evidence.fold.crowded:
        findings.append(crowd_remark(int(np.count_nonzero(evidence.fold.inputs)), len(evidence.looks)))
    if not findings:
        for kinks in (outcome.numeric.kind == Kind.KINK for outcome in evidence.outcomes):
            if kinks.any():
                i, o = np.argwhere(kinks)[0]
                place = Place.of(task.program.outputs[o], task.program.inputs[i])
                return [hidden_kink_remark(place)]
    return findings


def _power(task: Task, evidence: Evidence, comparisons: tuple[Comparison, ...]) -> Power | None:
    """A single wrong entry e_ji contributes e_ji u_i w_j to the first probe, with |u_i| at least half of its step and
    |w_j| at least 0.5: what exceeds the slack is seen."""
    seen = []
    places = [(i, o) for o in range(len(task.program.outputs)) for i in range(len(task.program.inputs))]
    shortest = [float(task.steps[leaf.span].min(initial=np.inf)) for leaf in task.program.inputs]
    for comparison, (i, o) in zip(comparisons, places * len(evidence.modes), strict=True):
        # What is zero within its bar has no size that an error could be a share of.
        empty = not comparison.entries or not evidence.outcomes or comparison.vanishes
        if empty or comparison.verdict is not Verdict.RIGHT:
            continue
        slack = DOUBTED * (comparison.bar + comparison.deviation)
        for k, outcome in enumerate(evidence.outcomes[: evidence.pieces]):
            top = float(outcome.analytic[comparison.mode].largest[i, o])
            error = float(slack[k]) / (0.25 * shortest[i])
            seen.append((max(error, task.tolerance.absolute + task.tolerance.relative * top), top))
    return weakest(seen, 0.0)
