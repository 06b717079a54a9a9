"""Outcomes in an SQLite file, written as they come: a run that is killed goes on where it was."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.operators.checkers import Candidate
from bench.operators.measure import Outcome
from gradproof.sweep.store import opened

_SCHEMA = """
CREATE TABLE IF NOT EXISTS outcomes (
    name TEXT, checker TEXT, mode TEXT, version TEXT,
    verdict TEXT, message TEXT, seconds REAL, runs INTEGER, calls INTEGER,
    PRIMARY KEY (name, checker, mode, version)
) WITHOUT ROWID
"""


@dataclass
class Store:
    """`versions`: of each checker in this run. Outcomes of other versions stay in the file and are not seen."""

    path: Path
    versions: Mapping[str, str]

    def __post_init__(self) -> None:
        self._database = opened(self.path, _SCHEMA)

    def add(self, outcomes: Iterable[Outcome]) -> None:
        with self._database:
            self._database.executemany(
                "INSERT OR REPLACE INTO outcomes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (
                        each.case, each.candidate.checker, each.candidate.mode, self.versions[each.candidate.checker],
                        each.verdict, each.message, each.seconds, each.runs, each.calls,
                    )
                    for each in outcomes
                ],
            )  # fmt: skip

    def finished(self, group: str) -> set[tuple[str, Candidate]]:
        """What needs no second run below this group's name."""
        return {
            (each.case, each.candidate) for each in self._select("name >= ? AND name < ?", f"{group}/", f"{group}0")
        }

    def outcomes(self) -> Iterator[Outcome]:
        return self._select("1")

    def _select(self, condition: str, *values: str) -> Iterator[Outcome]:
        for checker, version in self.versions.items():
            rows = self._database.execute(
                "SELECT name, mode, verdict, message, seconds, runs, calls FROM outcomes "
                f"WHERE checker = ? AND version = ? AND {condition}",
                (checker, version, *values),
            )
            for name, mode, *rest in rows:
                yield Outcome(name, Candidate(checker, mode), *rest)

    def close(self) -> None:
        self._database.close()
