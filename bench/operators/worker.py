"""The tasks of a run, in worker processes that are watched: what one died of is an outcome."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

import torch

from bench.operators.cases import Case, Check, fraction_of
from bench.operators.checkers import MODES, Candidate, Checker, load
from bench.operators.databases import Group
from bench.operators.measure import Effort, Label, Outcome, measure
from gradproof.sweep.child import Limits, Lost
from gradproof.sweep.pool import Pool
from gradproof.sweep.row import Ending
from gradproof.sweep.worker import Done, Started


@dataclass(frozen=True)
class Task:
    """`most`: cases of the group that are run at most (0: all); `finished` is left out."""

    group: Group
    candidates: tuple[Candidate, ...]
    finished: frozenset[tuple[str, Candidate]]
    effort: Effort
    most: int
    seed: int

    def pending(self, name: str) -> tuple[Candidate, ...]:
        return tuple(each for each in self.candidates if (name, each) not in self.finished)

    def names(self) -> set[str]:
        """The cases that are wanted: all, or the first `most` in an order that belongs to the seed."""
        names = sorted((case.name for case in self.group.cases()), key=lambda name: fraction_of(name, self.seed))
        return set(names[: self.most or None])


WORK = "bench.operators.worker:work"
# A check limits its own processor time; on a busy machine or in one long call it may take this much more by the clock.
SLACK, GRACE = 4.0, 20.0


@cache
def _loaded(name: str) -> Checker:
    """A checker that has run before: what it loads at its first use is nobody's time."""
    checker = load(name)
    second = Check("gradgradcheck", {"check_fwd_over_rev": True, "check_batched_grad": True})
    first = Check(
        "gradcheck", {"check_forward_ad": True, "check_batched_grad": True, "check_batched_forward_grad": True}
    )
    for dtype in (torch.float64, torch.complex128):
        case = Case("warm-up", torch.sin, (torch.ones(3, dtype=dtype, requires_grad=True),), (first, second))
        for mode in MODES:
            case.judge(checker, mode)
    return checker


def work(task: Task) -> Iterator[Started | list[Outcome]]:
    """Runs in a worker. Each case is announced, and each candidate, so that a crash has its outcome."""
    torch.set_num_threads(1)
    checkers = {name: _loaded(name) for name in {each.checker for each in task.candidates}}
    wanted = task.names()
    for case in task.group.cases():
        pending = task.pending(case.name) if case.name in wanted else ()
        if pending:
            yield from measure(case, pending, checkers, task.effort)


def outcomes_of(tasks: Sequence[Task], jobs: int) -> Iterator[tuple[Task, list[Outcome] | Done]]:
    """Outcomes as they come, and Done once for each task, in whatever order."""
    limit = max((task.effort.limit for task in tasks), default=0.0)
    with Pool(WORK, jobs, Limits(seconds=SLACK * limit + GRACE, memory=0)) as pool:
        for task in tasks:
            pool.put(task)
        finished: dict[str, set[tuple[str, Candidate]]] = defaultdict(set)
        for task, message in pool.run():
            own = finished[str(task.group)]
            if not isinstance(message, Lost):
                if isinstance(message, list):
                    own |= {(each.case, each.candidate) for each in message}
                yield task, message
            elif message.label is None:
                yield task, Done(f"the process ended ({message.code}) before any check")
            else:
                lost = _lost(message)
                own.add((lost.case, lost.candidate))
                yield task, [lost]
                pool.put_first(replace(task, finished=task.finished | own))


def _lost(message: Lost) -> Outcome:
    assert isinstance(message.label, Label)
    verdict = "timeout" if message.ending is Ending.TOO_LONG else f"crash:{message.code}"
    return Outcome(message.label.case, message.label.candidate, verdict, "", message.seconds, 1, 0)
