"""The process that runs the cases: whatever happens to it, the parent goes on."""

from __future__ import annotations

import contextlib
import signal
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from multiprocessing.connection import Connection

import torch

from bench.operators.cases import Case, Check, fraction_of
from bench.operators.checkers import MODES, Candidate, Checker, load
from bench.operators.databases import Group
from bench.operators.measure import Effort, Outcome, measure


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


@dataclass(frozen=True)
class Started:
    """Sent before each check, so that the parent knows whom to blame if nothing more comes."""

    case: str
    candidate: Candidate


@dataclass(frozen=True)
class Finished:
    """No more cases; `trouble` where the samples themselves could not be made."""

    trouble: str = ""


Message = Started | list[Outcome] | Finished


def work(connection: Connection) -> None:
    """Tasks in, messages out, for as long as there is somebody at the other end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    with contextlib.suppress(EOFError, ConnectionError):
        while True:
            _answer(connection, connection.recv())


def _answer(connection: Connection, task: Task) -> None:
    trouble = ""
    try:
        for message in _run(task, connection):
            connection.send(message)
    except ConnectionError:
        raise
    except Exception as error:  # noqa: BLE001 - a sample that cannot be made must not end the run
        trouble = f"{type(error).__name__}: {error}"[:300]
    connection.send(Finished(trouble))


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


def _run(task: Task, connection: Connection) -> Iterator[list[Outcome]]:
    checkers = {name: _loaded(name) for name in {each.checker for each in task.candidates}}
    wanted = task.names()
    for case in task.group.cases():
        pending = task.pending(case.name) if case.name in wanted else ()
        if pending:
            yield measure(
                case, pending, checkers, task.effort,
                lambda candidate, name=case.name: connection.send(Started(name, candidate)),
            )  # fmt: skip
