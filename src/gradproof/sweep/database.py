"""SQLite files: opened to write while others read, or only to read, and what is told of a damaged one."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from gradproof.errors import UsageError


def opened(path: Path | None, schema: str) -> sqlite3.Connection:
    """A database that is written to while others read it. `path` None: in memory."""
    try:
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
        database = sqlite3.connect(path or ":memory:", timeout=30)
        there = _tables(database)
        if there and not there & _named(schema):
            raise UsageError(f"{path} is a database of something else (it has {min(there)}); name another file")
        # A write-ahead log survives kill -9 and costs no disk flush for every row.
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA synchronous=NORMAL")
        database.executescript(schema)
    except (OSError, sqlite3.OperationalError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"{path} cannot be written: {reason}; name another file: --store sweep.db") from error
    except sqlite3.DatabaseError as error:
        raise UsageError(f"{path} is not a file of rows ({error}); name another one") from error
    return database


def opened_to_read(path: Path | None, schema: str) -> sqlite3.Connection:
    """The same, and nothing is written, also not beside it."""
    if path is None:
        return opened(path, schema)
    # Only one that is being written to, or was not closed, has a log to be read too.
    log = path.with_name(path.name + "-wal").exists()
    try:
        database = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro{'' if log else '&immutable=1'}", uri=True)
        there = _tables(database)
    except sqlite3.DatabaseError as error:
        raise UsageError(f"{path} is not a file of rows ({error}); name another one") from error
    if not _named(schema) <= there:
        raise UsageError(f"{path} is not the store of a sweep; name the file that --store wrote")
    return database


@contextlib.contextmanager
def guarded(path: Path | None) -> Iterator[None]:
    """What a damaged file makes of reading and writing, in words."""
    try:
        yield
    except UsageError:
        raise
    except sqlite3.DatabaseError as error:
        raise UsageError(f"{path} is damaged or cannot be written ({error}); name another file") from error
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path} has a row that is not understood ({error}); name another file") from error


def _tables(database: sqlite3.Connection) -> set[str]:
    return {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def _named(schema: str) -> set[str]:
    return set(re.findall(r"CREATE TABLE IF NOT EXISTS (\w+)", schema))
