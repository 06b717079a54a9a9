"""Rows in an SQLite file, written as they come: a sweep that is killed at any moment goes on where it was."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import IO, Self

from gradproof.errors import UsageError
from gradproof.result import Report, Verdict
from gradproof.sweep import kept
from gradproof.sweep.again import again
from gradproof.sweep.database import guarded, opened
from gradproof.sweep.home import Home, other_source
from gradproof.sweep.plan import Plan, Terms
from gradproof.sweep.row import PASSING, Ending, Key, Row, row_from

FORMAT = 1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS rows (
    catalogue TEXT, "case" TEXT, "order" INTEGER,
    operator TEXT, family TEXT, dtype TEXT, device TEXT,
    verdict TEXT, ending TEXT, code TEXT, message TEXT, diagnosis TEXT,
    digits REAL, calls INTEGER, seconds REAL, processor REAL, result TEXT, output TEXT,
    PRIMARY KEY (catalogue, "case", "order")
);
"""
_SET_FACT = "INSERT OR REPLACE INTO facts VALUES (?, ?)"
_ADD_ROW = f"INSERT OR REPLACE INTO rows VALUES ({','.join('?' * 18)})"  # noqa: S608 - our own
_LIGHT = 'catalogue, "case", "order", operator, family, dtype, device, verdict, ending, code, message, diagnosis, '
_LIGHT += "digits, calls, seconds, processor, '' AS result, output"


class Store:
    """`path` None: in memory; `access`: `opened` or `opened_to_read`. Facts: what was swept, how, and the versions that
    did it."""

    def __init__(self, path: Path | None, access: Callable[[Path | None, str], sqlite3.Connection] = opened) -> None:
        self.path = path
        self._lock: IO[bytes] | None = None
        self._database = access(path, _SCHEMA)
        made = self.facts().get("format", str(FORMAT))
        if made != str(FORMAT):
            self.close()
            raise UsageError(
                f"{path} has format {made}, and this gradproof reads {FORMAT}; use the version that made it"
            )

    def begin(self, plan: Plan, home: Home) -> None:
        """Make the store this sweep's own, or go on with it. Rows that were made in another way do not mix."""
        self.claim()
        facts = {"format": str(FORMAT), "terms": json.dumps(asdict(plan.terms))} | home.facts()
        before = self.facts()
        for name, value in facts.items():
            if before.get(name, value) != value:
                what = differing(name, before[name], value)
                raise UsageError(f"{self.path} was made with {what}; name another file: --store new.db")
        with guarded(self.path), self._database:
            self._database.executemany(_SET_FACT, facts.items())
            # A catalogue that could not be read is read again.
            self._database.execute("DELETE FROM rows WHERE ending = ?", (Ending.NOT_LISTED.value,))

    def claim(self) -> None:
        """Two sweeps into one file would do everything twice."""
        if self.path is None:
            return
        try:
            import fcntl
        except ImportError:  # not on this system
            return
        # A file beside it: closing a second handle of the database itself would drop SQLite's own locks.
        beside = self.path.with_name(self.path.name + "-lock")
        while self._lock is None:
            lock = beside.open("wb")
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                lock.close()
                raise UsageError(f"another sweep is writing to {self.path}; wait, or name another file") from None
            # Whoever had it before may have removed the file between our two steps.
            if beside.exists() and beside.stat().st_ino == os.fstat(lock.fileno()).st_ino:
                self._lock = lock

    def release(self) -> None:
        """Others may write now; this object still reads."""
        if self._lock is not None:
            with contextlib.suppress(OSError):
                Path(self._lock.name).unlink()
            self._lock.close()
            self._lock = None

    def facts(self) -> dict[str, str]:
        with guarded(self.path):
            return dict(self._database.execute("SELECT name, value FROM facts"))

    def add(self, row: Row) -> None:
        with guarded(self.path), self._database:
            self._database.execute(_ADD_ROW, row.plain())

    def take(self, facts: Mapping[str, str], rows: Iterable[Row]) -> None:
        """All of these or, where something is wrong with one, none. The facts that are here stay."""
        with guarded(self.path), self._database:
            self._database.executemany(_SET_FACT, {**facts, **self.facts()}.items())
            self._database.executemany(_ADD_ROW, (row.plain() for row in rows))

    def finished(self, retry: Collection[str] = ()) -> dict[Key, Verdict]:
        """Without those that say nothing of their case, and those of these verdicts and endings."""
        query = 'SELECT catalogue, "case", "order", verdict, ending FROM rows'
        again = {*retry, *(ending.value for ending in PASSING)}
        with guarded(self.path):
            rows = self._database.execute(query)
            return {Key(*key): Verdict(verdict) for *key, verdict, ending in rows if not {verdict, ending} & again}

    def rows(self) -> Iterator[Row]:
        """In the order of their names, without the results, which are most of the file."""
        return self._selected(_LIGHT)

    def whole_rows(self) -> Iterator[Row]:
        """The same with the results."""
        return self._selected("*")

    def _selected(self, columns: str) -> Iterator[Row]:
        with guarded(self.path):
            query = f'SELECT {columns} FROM rows ORDER BY catalogue, "case", "order"'  # noqa: S608 - our own
            yield from map(row_from, self._database.execute(query))

    def report(self, chosen: Collection[Key], *verdicts: Verdict) -> Report:
        """The results of these checks with these verdicts (none named: all), each with what runs it again."""
        facts = self.facts()
        terms = Terms.stored(facts.get("terms", "{}"))
        rows = (row for row in self.whole_rows() if row.item.key in chosen and row.verdict in (verdicts or Verdict))
        catalogues = {key.catalogue for key in chosen}
        with guarded(self.path):
            results = tuple(
                replace(kept.loads(row.result), name=row.item.key.among(catalogues), source=again(row, terms))
                for row in rows
            )
            return Report(results, tuple(json.loads(facts.get("versions", "{}")).items()))

    def close(self) -> None:
        self._database.close()
        self.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def differing(name: str, before: str, now: str) -> str:
    """A fact that is not as it was, in words."""
    if name.startswith("source of "):
        return other_source(name.removeprefix("source of "), json.loads(before), json.loads(now))
    return f"other {name}: {_change(before, now)}"


def _change(before: str, now: str) -> str:
    """Only what is not the same in both; in words, where they are dictionaries."""
    was, is_ = json.loads(before), json.loads(now)
    if not (isinstance(was, dict) and isinstance(is_, dict)):
        return f"{was}, now {is_}"
    names = [name for name in {**was, **is_} if was.get(name) != is_.get(name)]
    return "; ".join(f"{name} {_said(was.get(name))}, now {_said(is_.get(name))}" for name in names)


def _said(value: object) -> str:
    if isinstance(value, list):
        return ",".join(map(str, value))
    return "not given" if value is None else str(value)
