"""What the workers of a sweep do: list the cases of a catalogue, and judge them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gradproof.cases import Case
from gradproof.errors import UsageError
from gradproof.selection import EVERYTHING, Selection
from gradproof.sweep.catalogues import load
from gradproof.sweep.filters import Filter
from gradproof.sweep.judge import finder, judge
from gradproof.sweep.plan import Terms
from gradproof.sweep.row import Item, Key, Row
from gradproof.sweep.worker import Next, Started

WORK = "gradproof.sweep.work:work"
# Names are sent in batches: this many, or those of so many seconds.
BATCH, PATIENCE = 256, 0.2
LOADING = 10.0  # seconds that a first use takes at most


@dataclass(frozen=True, slots=True)
class Listing:
    """To find out which checks there are."""

    catalogue: str
    filter: Filter


@dataclass(frozen=True, slots=True)
class Chunk:
    """Checks to be made one after the other: neighbours share what is costly to build."""

    items: tuple[Item, ...]
    terms: Terms
    selection: Selection = EVERYTHING


def work(task: Listing | Chunk) -> Iterator[Started | Next | Row | tuple[Item, ...]]:
    return listed(task) if isinstance(task, Listing) else judged(task)


def listed(task: Listing) -> Iterator[Started | tuple[Item, ...]]:
    yield Started(task.catalogue)
    batch: list[Item] = []
    since = time.monotonic()
    try:
        catalogue = load(task.catalogue, task.filter.selection)
        for case in task.filter.chosen(each_once(catalogue.cases(), task.catalogue)):
            batch += [Item(Key(task.catalogue, case.name, order), case.traits) for order in task.filter.orders]
            if len(batch) >= BATCH or time.monotonic() - since > PATIENCE:
                yield tuple(batch)
                batch, since = [], time.monotonic()
    except GeneratorExit:  # nobody listens any more
        raise
    except BaseException:
        yield tuple(batch)  # a catalogue that fails halfway has its first half checked
        raise
    yield tuple(batch)


def each_once(cases: Iterable[Case], catalogue: str) -> Iterator[Case]:
    """A case is found again by its name: of two that share one, the second would never be checked, and one that a store
    cannot hold would never be found."""
    seen: set[str] = set()
    for case in cases:
        if case.name in seen:
            raise UsageError(f"{catalogue} has two cases named {case.name!r}; give one another name")
        if not _is_text(case.name):
            raise UsageError(
                f"{catalogue} has a case named {case.name!r}, which cannot be written; give it another name"
            )
        seen.add(case.name)
        yield case


def _is_text(name: str) -> bool:
    """Without halves of characters."""
    return not any("\ud800" <= one <= "\udfff" for one in name)


def judged(task: Chunk) -> Iterator[Started | Next | Row]:
    for number, item in enumerate(task.items):
        if number == 0:
            # What the catalogue loads counts as the start of the process, and not as the time of its first case.
            with contextlib.suppress(Exception):
                finder(item.key.catalogue, task.selection).find(item.key.case)
        yield Started(item.key) if number == 0 else Next()
        row = judge(item, task.terms, task.selection)
        if not _warm and row.seconds < LOADING:
            # The first check of a process pays for what frameworks load at their first use, which is nobody's time. The
            # second one has all of its time for itself.
            yield Started(item.key)
            row = judge(item, task.terms, task.selection)
        _warm.add("checks")
        yield row


_warm: set[str] = set()
