"""A run: which groups, which candidates, into which store, with progress."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from bench.operators.cases import KINDS, Kind, fraction_of
from bench.operators.checkers import MODES, NAMES, Candidate, Mode, load
from bench.operators.databases import DATABASES, DTYPES, Group, groups
from bench.operators.measure import Effort, Outcome
from bench.operators.store import Store
from bench.operators.worker import Task
from bench.operators.worker import outcomes_of as judged
from gradproof.sweep.worker import Done
from gradproof.torch.catalogue.entries import Size

ALL_DATABASES = (*DATABASES, "module_db")
DEFAULT_STORE = Path(".bench") / "operators.sqlite"


@dataclass(frozen=True)
class Selection:
    """What is run. `sample`: the fraction of groups; `most`: cases of each group at most (0: all); chosen by `seed`."""

    operators: str = "*"
    databases: tuple[str, ...] = ALL_DATABASES
    dtypes: tuple[str, ...] = tuple(DTYPES)
    kinds: tuple[Kind, ...] = KINDS
    modes: tuple[Mode, ...] = MODES
    checkers: tuple[str, ...] = NAMES
    size: Size = "small"
    sample: float = 1.0
    most: int = 0
    seed: int = 0

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        return tuple(Candidate(checker, mode) for mode in self.modes for checker in self.checkers)

    @property
    def is_everything(self) -> bool:
        return self == Selection(seed=self.seed)

    def groups(self) -> list[Group]:
        found = groups(self.databases, self.dtypes, self.kinds, self.size)
        return [
            group
            for group in found
            if fnmatchcase(group.operator, self.operators) and fraction_of(str(group), self.seed) < self.sample
        ]


@dataclass
class Progress:
    """Where a run is; `last` is the group that was finished or the case that was judged last."""

    groups: int
    started: float = field(default_factory=time.monotonic)
    groups_done: int = 0
    cases_done: int = 0
    last: str = ""
    troubles: list[str] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        return self.groups_done == self.groups and not self.troubles

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started


def run(
    selection: Selection,
    store: Store,
    *,
    effort: Effort,
    jobs: int = 1,
    seconds: float = float("inf"),
    show: Callable[[Progress], None] = lambda _: None,
) -> Progress:
    """Judge what the store does not have yet, until `seconds` are over. Interrupted, it ends in order."""
    chosen = selection.groups()
    progress = Progress(len(chosen))
    tasks = [
        Task(group, selection.candidates, frozenset(store.finished(str(group))), effort, selection.most, selection.seed)
        for group in chosen
    ]
    try:
        for task, message in judged(tasks, jobs):
            if isinstance(message, Done):
                progress.groups_done += 1
                progress.last = str(task.group)
                if message.trouble:
                    progress.troubles.append(f"{task.group}: {message.trouble.strip()[-300:]}")
            else:
                store.add(message)
                progress.cases_done += 1
                progress.last = message[0].case
            show(progress)
            if progress.seconds > seconds:
                break
    except KeyboardInterrupt:
        pass
    return progress


def versions(checkers: tuple[str, ...]) -> dict[str, str]:
    return {name: load(name).version for name in checkers}


def outcomes_of(selection: Selection, store: Store) -> Iterator[Outcome]:
    """Those outcomes in the store that belong to the selection."""
    wanted = {str(group) for group in selection.groups()}
    return (each for each in store.outcomes() if each.case.rsplit("/", 1)[0] in wanted)
