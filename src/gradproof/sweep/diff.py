"""Two stores compared: what became wrong or right, what became slower, what lost digits, what came and went."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gradproof.result import Verdict
from gradproof.sweep.row import Row

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
        if self.before is None or self.after is None:
            return str(self.row.verdict)
        if self.kind == "slower":
            return f"{self.before.processor:.2f} s to {self.after.processor:.2f} s"
        if self.kind == "lost digits":
            return f"{self.before.digits:.1f} to {self.after.digits:.1f} digits"
        said = f": {self.after.diagnosis or self.after.message}" if self.after.verdict is not Verdict.RIGHT else ""
        return f"{self.before.verdict} to {self.after.verdict}{said}"


@dataclass(frozen=True, slots=True)
class Difference:
    changes: tuple[Change, ...]

    def of(self, kind: str) -> tuple[Change, ...]:
        return tuple(change for change in self.changes if change.kind == kind)

    @property
    def worse(self) -> bool:
        """Whether anything became wrong: what CI asks."""
        return bool(self.of("became wrong"))


KINDS = ("became wrong", "became right", "other verdict", "slower", "lost digits", "gone", "new")


def difference(old: Iterable[Row], new: Iterable[Row]) -> Difference:
    """Loudest first."""
    before = {row.item.key: row for row in old}
    after = {row.item.key: row for row in new}
    changes = [Change("gone", row, None) for key, row in before.items() if key not in after]
    changes += [Change("new", None, row) for key, row in after.items() if key not in before]
    for key, row in after.items():
        if key in before:
            changes += _changes(before[key], row)
    return Difference(tuple(sorted(changes, key=lambda change: (KINDS.index(change.kind), -_weight(change)))))


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

    for kind in KINDS:
        changes = found.of(kind)
        if not changes:
            continue
        table = Table(title=f"{kind}: {len(changes):,}", title_justify="left", show_header=False)
        for change in changes[:LISTED]:
            table.add_row(Text(str(change.row.item.key)), Text(change.words(), overflow="fold"))
        if len(changes) > LISTED:
            table.add_row(f"... and {len(changes) - LISTED:,} more", "")
        yield table
