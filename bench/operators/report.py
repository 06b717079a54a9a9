"""From outcomes to tables: totals and ratios, calls of the operator, disagreements."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from bench.operators.checkers import MODES, Candidate
from bench.operators.differences import Difference, Pair
from bench.operators.measure import Outcome
from bench.table import Claim, Table, number

# Below this a ratio of two single times says more about the machine than about the checkers.
FLOOR = 0.005
SHOWN = 40
OURS_SLOW, OURS_FAST = Candidate("ours", "slow"), Candidate("ours", "fast")
TORCH_SLOW, TORCH_FAST = Candidate("torch", "slow"), Candidate("torch", "fast")
# Numerator, denominator, how much the totals may be apart at most.
RATIOS = ((OURS_SLOW, TORCH_SLOW, 0.1), (OURS_SLOW, TORCH_FAST, 1.0), (OURS_FAST, TORCH_FAST, 1.0))
SINGLE = 1.2


@dataclass(frozen=True)
class Ratio:
    """Totals of two candidates over the cases that both have judged."""

    over: Candidate
    under: Candidate
    promised: float
    cases: int
    seconds: tuple[float, float]
    calls: tuple[int, int]

    @property
    def value(self) -> float:
        return self.seconds[0] / self.seconds[1]


class Report:
    """Everything that can be said about a set of outcomes."""

    def __init__(self, outcomes: Iterable[Outcome], differences: Sequence[Difference]) -> None:
        self._found: dict[str, dict[Candidate, Outcome]] = defaultdict(dict)
        for each in outcomes:
            self._found[each.case][each.candidate] = each
        self.pairs = list(self._pairs())
        self.disagreements = [pair for pair in self.pairs if pair.differs]
        self.unexplained = [pair for pair in self.disagreements if not any(d.explains(pair) for d in differences)]
        self.stale = [d for d in differences if not any(d.explains(pair) for pair in self.disagreements)]
        self._differences = differences

    def _pairs(self) -> Iterator[Pair]:
        for found in self._found.values():
            for mode in MODES:
                ours, theirs = found.get(Candidate("ours", mode)), found.get(Candidate("torch", mode))
                if ours and theirs:
                    yield Pair(mode, ours, theirs)

    def ratios(self) -> list[Ratio]:
        made = []
        for over, under, promised in RATIOS:
            both = [(found[over], found[under]) for found in self._found.values() if over in found and under in found]
            if both:
                seconds = sum(a.seconds for a, _ in both), sum(b.seconds for _, b in both)
                calls = sum(a.calls for a, _ in both), sum(b.calls for _, b in both)
                made.append(Ratio(over, under, promised, len(both), seconds, calls))
        return made

    def worst(self, name: Callable[[Pair], str]) -> list[tuple[float, str, float, float]]:
        """(ours / torch, name, ours, torch) in seconds, worst first, of all that take longer than the floor."""
        totals: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
        for pair in self.pairs:
            total = totals[name(pair)]
            total[0] += pair.ours.seconds
            total[1] += pair.torch.seconds
        return sorted(
            ((ours / theirs, key, ours, theirs) for key, (ours, theirs) in totals.items() if ours >= FLOOR),
            reverse=True,
        )

    def tables(self) -> list[Table]:
        return [
            table
            for table in (self._totals(), self._ratio_table(), *self._worst_tables(), self._verdicts(), self._open())
            if table.rows
        ]

    def _totals(self) -> Table:
        table = Table("Candidates", ("candidate", "cases", "seconds", "calls of the operator", "verdicts"))
        for candidate in (OURS_SLOW, TORCH_SLOW, OURS_FAST, TORCH_FAST):
            own = [found[candidate] for found in self._found.values() if candidate in found]
            if own:
                verdicts = ", ".join(f"{count} {verdict}" for verdict, count in _counted(each.verdict for each in own))
                seconds, calls = sum(each.seconds for each in own), sum(each.calls for each in own)
                table.add(candidate, f"{len(own):,}", f"{seconds:,.1f}", f"{calls:,}", verdicts)
        return table

    def _ratio_table(self) -> Table:
        table = Table("Totals over the cases that both judged", ("ratio", "cases", "seconds", "times", "aim", "calls"))
        for each in self.ratios():
            seconds, calls = (f"{x:,.1f}" for x in each.seconds), (f"{x:,}" for x in each.calls)
            table.add(
                f"{each.over} / {each.under}", f"{each.cases:,}", " / ".join(seconds),
                number(each.value), f"≤ {each.promised:g}", " / ".join(calls),
            )  # fmt: skip
        return table

    def _worst_tables(self) -> list[Table]:
        tables = []
        for title, name in (("operators", _operator), ("cases", _case)):
            table = Table(f"Slowest {title} against torch", (title, "ours / torch", "ours (ms)", "torch (ms)"))
            for ratio, key, ours, theirs in self.worst(name)[:8]:
                table.add(key, number(ratio), f"{1000 * ours:,.1f}", f"{1000 * theirs:,.1f}")
            tables.append(table)
        return tables

    def _verdicts(self) -> Table:
        table = Table("Known differences", ("case", "mode", "ours", "torch", "right", "cases", "why"))
        for line in self._differences:
            count = sum(line.explains(pair) for pair in self.disagreements)
            if count:
                table.add(line.case, line.mode, line.ours, line.torch, line.right, count, line.why)
        return table

    def _open(self) -> Table:
        title = f"Disagreements that no line explains: {len(self.unexplained)}"
        table = Table(title, ("group", "mode", "ours", "torch", "cases", "one of them: ours | torch"))
        grouped: dict[tuple[str, ...], list[Pair]] = defaultdict(list)
        for pair in self.unexplained:
            grouped[_group(pair), pair.mode, pair.ours.verdict, pair.torch.verdict].append(pair)
        for key, pairs in sorted(grouped.items(), key=lambda item: -len(item[1]))[:SHOWN]:
            first = pairs[0]
            said = f"{first.case.rsplit('/', 1)[1]}: {first.ours.message[:120]} | {first.torch.message[:120]}"
            table.add(*key, len(pairs), said)
        if len(grouped) > SHOWN:
            table.add(f"... and {len(grouped) - SHOWN} more groups", "", "", "", "", "")
        return table

    def claims(self) -> list[Claim]:
        made = [
            Claim(
                f"PyTorch's operators: total time, {each.over} / {each.under}",
                f"≤ {each.promised:g}",
                number(each.value),
                each.value <= each.promised,
            )
            for each in self.ratios()
        ]
        for ratio, name, *_ in self.worst(_operator)[:1]:
            what, measured = "PyTorch's operators: slowest one against torch", f"{number(ratio)} ({name})"
            made.append(Claim(what, f"≤ {SINGLE:g} times", measured, ratio <= SINGLE))
        if self.pairs:
            what = f"PyTorch's operators: unexplained differences from torch's verdicts, of {len(self.pairs):,}"
            made.append(Claim(what, "0", str(len(self.unexplained)), not self.unexplained))
        return made


def _operator(pair: Pair) -> str:
    return "/".join(pair.case.split("/")[:2]) + f" {pair.mode}"


def _case(pair: Pair) -> str:
    return f"{pair.case} {pair.mode}"


def _group(pair: Pair) -> str:
    return pair.case.rsplit("/", 1)[0]


def _counted(values: Iterable[str]) -> list[tuple[str, int]]:
    return Counter(values).most_common()
