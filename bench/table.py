"""What a part of the bench hands back: tables for the reader, one-line claims for the README."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import rich.table

Size = Literal["full", "quick"]


@dataclass
class Table:
    title: str
    columns: tuple[str, ...]
    note: str = ""
    rows: list[tuple[str, ...]] = field(default_factory=list)

    def add(self, *cells: object) -> None:
        self.rows.append(tuple(map(str, cells)))

    def __rich__(self) -> rich.table.Table:
        table = rich.table.Table(title=self.title, caption=self.note or None, title_justify="left")
        for number, column in enumerate(self.columns):
            table.add_column(column, justify="right" if number else "left")
        for row in self.rows:
            table.add_row(*row)
        return table


@dataclass(frozen=True)
class Claim:
    """One row of the README's table: what is promised, what this run measured, whether it holds."""

    what: str
    promised: str
    measured: str
    holds: bool


@dataclass
class Part:
    tables: list[Table] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)


def number(value: float) -> str:
    """Three significant digits, plainly where that is short."""
    return f"{value:.3g}" if not 1000 <= abs(value) < 1e7 else f"{value:,.0f}"
