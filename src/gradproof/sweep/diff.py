"""Two stores compared: what became wrong or right, what became slower, what lost digits, what came and went."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import TYPE_CHECKING

from gradproof.result import Verdict
from gradproof.sweep.row import Key, Row

if TYPE_CHECKING:
    from rich.table import Table

# A check counts as slower from this factor on, and only where it takes this many seconds; one loses digits from this
# many on, below the digits that rounding leaves to nobody.
SLOWER, NOTICED = 1.5, 0.1
DIGITS, ENOUGH = 1.0, 9.0
LISTED = 40
BAD = (Verdict.WRONG, Verdict.ERROR)


@dataclass(frozen=True, slots=True)
class Change:
    """One check, before and after; None where it is only in the other store."""

    kind: str
    before: Row | None
    after: Row | None

    @property
    def row(self) -> Row:
        row = self.after or self.before
        assert row is not None
        return row

    def words(self) -> str:
        if self.after is None:
            return str(self.row.verdict)
        said = f": {self.after.diagnosis or self.after.message}" if self.after.verdict is not Verdict.RIGHT else ""
        if self.before is None:
            return f"{self.after.verdict}{said}"
        if self.kind == "slower":
            return f"{self.before.processor:.2f} s to {self.after.processor:.2f} s"
        if self.kind == "lost digits":
            return f"{self.before.digits:.1f} to {self.after.digits:.1f} digits"
        return f"{self.before.verdict} to {self.after.verdict}{said}"


@dataclass(frozen=True, slots=True)
class Difference:
    """`moved`: the catalogues of the new store that go by another name in the old one, and that name."""

    changes: tuple[Change, ...]
    moved: tuple[tuple[str, str], ...] = ()

    def of(self, kind: str) -> tuple[Change, ...]:
        return tuple(change for change in self.changes if change.kind == kind)

    @property
    def worse(self) -> bool:
        """Whether anything became wrong, or came so: what CI asks."""
        return bool(self.of("became wrong") or self.of("new and wrong"))


KINDS = ("became wrong", "new and wrong", "became right", "other verdict", "slower", "lost digits", "gone", "new")


def difference(old: Iterable[Row], new: Iterable[Row]) -> Difference:
    """Loudest first."""
    was, now = list(old), list(new)
    moved = paired(*({row.item.key.catalogue for row in rows} for rows in (was, now)))
    before = {row.item.key: row for row in was}
    after = {_as_before(row.item.key, moved): row for row in now}
    changes = [Change("gone", row, None) for key, row in before.items() if key not in after]
    changes += [_came(row) for key, row in after.items() if key not in before]
    for key, row in after.items():
        if key in before:
            changes += _changes(before[key], row)
    changes.sort(key=lambda change: (KINDS.index(change.kind), -_weight(change)))
    return Difference(tuple(changes), tuple(sorted(moved.items())))


def paired(old: set[str], new: set[str]) -> dict[str, str]:
    """The files among the new catalogues that are none of the old ones, and which of those they are: two checkouts of
    one library differ in where they are. By the longest common end of their paths, where only one has it."""
    found: dict[str, str] = {}
    left = {name for name in old - new if _is_file(name)}
    right = {name for name in new - old if _is_file(name)}
    while True:
        best = {b: _closest(b, left) for b in right}
        pairs = {b: a for b, a in best.items() if a is not None and _closest(a, right) == b}
        if not pairs:
            return found
        found |= pairs
        left -= set(pairs.values())
        right -= set(pairs)


def _is_file(catalogue: str) -> bool:
    return catalogue.partition(":")[0].endswith(".py")


def _closest(name: str, others: set[str]) -> str | None:
    ends = {other: _common_end(name, other) for other in others}
    longest = max(ends.values(), default=0)
    found = [other for other, end in ends.items() if end == longest]
    return found[0] if longest and len(found) == 1 else None


def _common_end(one: str, other: str) -> int:
    count = 0
    for a, b in zip(reversed(PurePath(one).parts), reversed(PurePath(other).parts), strict=False):
        if a != b:
            break
        count += 1
    return count


def _as_before(key: Key, moved: dict[str, str]) -> Key:
    """A catalogue that could not be listed has a row of its own name."""
    name = moved.get(key.catalogue, key.catalogue)
    return replace(key, catalogue=name, case=name if key.case == key.catalogue else key.case)


def _came(row: Row) -> Change:
    return Change("new and wrong" if row.verdict in BAD else "new", None, row)


def _changes(before: Row, after: Row) -> Iterator[Change]:
    if after.verdict in BAD and before.verdict not in BAD:
        yield Change("became wrong", before, after)
    elif after.verdict is Verdict.RIGHT and before.verdict is not Verdict.RIGHT:
        yield Change("became right", before, after)
    elif after.verdict is not before.verdict:
        yield Change("other verdict", before, after)
    if after.processor > NOTICED and after.processor > SLOWER * before.processor:
        yield Change("slower", before, after)
    known = before.digits is not None and after.digits is not None
    if known and after.digits < ENOUGH and before.digits - after.digits >= DIGITS:  # type: ignore[operator]
        yield Change("lost digits", before, after)


def _weight(change: Change) -> float:
    if change.before is None or change.after is None:
        return 0.0
    return change.after.processor - change.before.processor if change.kind == "slower" else 0.0


def tables(found: Difference) -> Iterator[Table]:
    from rich.table import Table
    from rich.text import Text

    catalogues = {change.row.item.key.catalogue for change in found.changes}
    for kind in KINDS:
        changes = found.of(kind)
        if not changes:
            continue
        table = Table(title=f"{kind}: {len(changes):,}", title_justify="left", show_header=False)
        for change in changes[:LISTED]:
            table.add_row(Text(change.row.item.key.among(catalogues)), Text(change.words(), overflow="fold"))
        if len(changes) > LISTED:
            table.add_row(f"... and {len(changes) - LISTED:,} more", "")
        yield table
