"""The stores of several machines, each with a part of a sweep, put into one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gradproof.errors import UsageError
from gradproof.sweep.database import opened_to_read
from gradproof.sweep.home import NOT_COMPARED
from gradproof.sweep.row import PASSING
from gradproof.sweep.store import Store, differing


@dataclass(frozen=True, slots=True)
class Merged:
    """`rows` in the end; `twice`: how many were in several parts, of which the last one counts; `platforms` of all."""

    rows: int
    twice: int
    platforms: tuple[str, ...]


def merged(out: Path, parts: Sequence[Path]) -> Merged:
    """Into `out`, which may have rows already. All must have been made in the same way by the same versions."""
    empty = False
    try:
        with Store(out) as whole:
            whole.claim()
            empty = not whole.facts()
            return _together(whole, parts)
    except UsageError:
        if empty:
            out.unlink(missing_ok=True)  # nobody wants a store of nothing, or of some parts
        raise


def _together(whole: Store, parts: Sequence[Path]) -> Merged:
    twice = 0
    platforms = _expect_same(whole, parts)
    for path in parts:
        with Store(path, opened_to_read) as part:
            there = whole.finished()
            twice += len(there.keys() & part.finished().keys())
            # A row that says nothing of its case takes no other's place.
            rows = (row for row in part.whole_rows() if row.ending not in PASSING or row.item.key not in there)
            whole.take(part.facts(), rows)
    return Merged(sum(1 for _ in whole.rows()), twice, platforms)


def _expect_same(whole: Store, parts: Sequence[Path]) -> tuple[str, ...]:
    """Object before anything is written. The platforms, which may be several."""
    facts, platforms = _facts(whole), [_platform(whole)]
    for path in parts:
        if whole.path is not None and path.resolve() == whole.path.resolve():
            raise UsageError(f"{path} is the file to write to; leave it out, its rows stay")
        with Store(path, opened_to_read) as part:
            now = _facts(part)
            platforms.append(_platform(part))
        if not now:
            raise UsageError(f"{path} is not the store of a sweep; name the files that --store wrote")
        for name, value in now.items():
            if facts.setdefault(name, value) != value:
                what = differing(name, facts[name], value)
                raise UsageError(
                    f"{path} was not made as those before it, but with {what}; merge what belongs together"
                )
    return tuple(dict.fromkeys(filter(None, platforms)))


def _facts(store: Store) -> dict[str, str]:
    facts = store.facts()
    versions = {name: value for name, value in _versions(store).items() if name != NOT_COMPARED}
    return facts | {"versions": json.dumps(versions)} if facts else {}


def _platform(store: Store) -> str:
    return _versions(store).get(NOT_COMPARED, "")


def _versions(store: Store) -> dict[str, str]:
    found: dict[str, str] = json.loads(store.facts().get("versions", "{}"))
    return found
