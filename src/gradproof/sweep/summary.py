"""What a sweep says at its end: a table by family, and the operators that are not right, with what was found."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from gradproof.result import Verdict, worst_of
from gradproof.sweep.filters import Words, words
from gradproof.sweep.row import Row
from gradproof.verdict import LOUDEST_FIRST

if TYPE_CHECKING:
    from rich.table import Table

LISTED = 60
_COLOUR = {Verdict.WRONG: "red", Verdict.ERROR: "magenta", Verdict.UNDECIDED: "yellow", Verdict.UNSUPPORTED: "cyan"}


@dataclass
class Family:
    """The rows of one family, counted."""

    counts: Counter[Verdict] = field(default_factory=Counter)
    operators: set[str] = field(default_factory=set)
    calls: int = 0
    seconds: float = 0.0
    digits: float | None = None

    def add(self, row: Row) -> None:
        self.counts[row.verdict] += 1
        self.operators.add(operator_of(row))
        self.calls += row.calls
        self.seconds += row.processor
        if row.verdict is Verdict.RIGHT and row.digits is not None:
            self.digits = row.digits if self.digits is None else min(self.digits, row.digits)


@dataclass(frozen=True, slots=True)
class Group:
    """Rows of one operator, dtype and order that have the same verdict and code. `first` speaks for them: the first
    whose cause was recognised, or else the first."""

    catalogue: str
    operator: str
    dtype: str
    order: int
    verdict: Verdict
    code: str
    count: int
    first: Row


@dataclass(frozen=True)
class Summary:
    """`families` by name; `groups` of all that is not right, loudest first; all `catalogues`."""

    families: dict[str, Family]
    groups: tuple[Group, ...]
    catalogues: frozenset[str] = frozenset()

    @property
    def counts(self) -> Counter[Verdict]:
        return sum((family.counts for family in self.families.values()), Counter())

    @property
    def verdict(self) -> Verdict:
        """Where nothing was checked, nothing can be told. What was skipped on purpose does not count beside others."""
        skipped = sum(group.count for group in self.groups if group.code == "skipped")
        ran = self.counts - Counter({Verdict.UNSUPPORTED: skipped})
        return worst_of(list(ran)) if ran else Verdict.UNDECIDED

    def tables(self) -> list[Table]:
        return [_families(self.families), *([_loud(self.groups, self.catalogues)] if self.groups else [])]


def summary_of(rows: Iterable[Row]) -> Summary:
    families: dict[str, Family] = defaultdict(Family)
    loud: dict[tuple[str, str, str, int, Verdict, str], list[Row]] = defaultdict(list)
    catalogues: set[str] = set()
    for row in rows:
        catalogues.add(row.item.key.catalogue)
        families[row.item.traits.family or row.item.key.catalogue].add(row)
        if row.verdict is not Verdict.RIGHT:
            traits, key = row.item.traits, row.item.key
            loud[key.catalogue, operator_of(row), traits.dtype, key.order, row.verdict, row.code].append(row)
    groups = [
        Group(*key, len(found), next((row for row in found if row.diagnosis), found[0])) for key, found in loud.items()
    ]
    groups.sort(key=lambda one: (LOUDEST_FIRST.index(one.verdict), one.catalogue, one.operator, one.dtype, one.order))
    return Summary(dict(sorted(families.items())), tuple(groups), frozenset(catalogues))


def unmet(rows: Iterable[Row], ops: Words, dtype: Words, device: Words) -> list[str]:
    """The words among these that no row answers to: one that is misspelt must not pass for one without mistakes."""
    there = {(operator_of(row), row.item.traits.dtype, row.item.traits.device) for row in rows}
    return [
        f"{name} {word}"
        for place, (name, given) in enumerate((("ops", ops), ("dtype", dtype), ("device", device)))
        for word in words(given)
        if not any(fnmatchcase(one[place], word) for one in there)
    ]


def operator_of(row: Row) -> str:
    return row.item.traits.operator or row.item.key.case


def _families(families: dict[str, Family]) -> Table:
    from rich.table import Table

    table = Table(title="By family", title_justify="left")
    columns = ("family", "operators", "checks", *(verdict.value for verdict in Verdict), "digits", "calls", "seconds")
    for column in columns:
        table.add_column(column, justify="left" if column == "family" else "right")
    for name, family in families.items():
        counts = [f"{family.counts[verdict]:,}" if family.counts[verdict] else "" for verdict in Verdict]
        digits = "" if family.digits is None else f"{family.digits:.1f}"
        table.add_row(
            name, f"{len(family.operators):,}", f"{family.counts.total():,}", *counts, digits, f"{family.calls:,}",
            f"{family.seconds:,.1f}",
        )  # fmt: skip
    return table


def _loud(groups: tuple[Group, ...], catalogues: frozenset[str]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(title="Not right", title_justify="left")
    named = len(catalogues) > 1
    columns = ("verdict", *(("catalogue",) if named else ()), "operator", "dtype", "order", "checks", "code")
    for column in (*columns, "what was found"):
        table.add_column(column, overflow="fold")
    for group in groups[:LISTED]:
        said = group.first.diagnosis or group.first.message
        table.add_row(
            Text(group.verdict.value, _COLOUR.get(group.verdict, "")), *([Text(group.catalogue)] if named else []),
            Text(group.operator), group.dtype, str(group.order or ""), str(group.count), Text(group.code), Text(said),
        )  # fmt: skip
    if len(groups) > LISTED:
        table.add_row("...", f"and {len(groups) - LISTED} more groups")
    return table
