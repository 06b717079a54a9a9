"""One case under all its candidates: verdicts, calls of the operator, and times taken in turns."""

from __future__ import annotations

import contextlib
import functools
import gc
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from types import FrameType

from bench.operators.cases import Case, Judgement, seed
from bench.operators.checkers import Candidate, Checker
from gradproof.sweep.worker import Started


@dataclass(frozen=True)
class Effort:
    """limit: processor seconds after which one check is given up; repeats: seconds for timing quick ones more."""

    limit: float = 60.0
    repeats: float = 0.06
    most: int = 7


@dataclass(frozen=True)
class Outcome:
    """verdict: as in Judgement, or timeout, or crash:<signal>; seconds: of the processor, which others do not slow."""

    case: str
    candidate: Candidate
    verdict: str
    message: str
    seconds: float
    runs: int
    calls: int


@dataclass(frozen=True)
class Label:
    """What a worker is at."""

    case: str
    candidate: Candidate


# Seconds up to which a single run is not enough.
AGAIN = 0.5


class TimeIsUp(BaseException):
    """Not an Exception: a checker that survives errors of the function must not survive this one."""


def measure(
    case: Case,
    candidates: Sequence[Candidate],
    checkers: Mapping[str, Checker],
    effort: Effort,
) -> Iterator[Started | list[Outcome]]:
    """Each candidate is announced before it runs; the outcomes of all come at the end."""
    _settle()
    yield Started(Label(case.name, candidates[0]))  # the first call of an operator may already crash
    _warm_up(case)
    judgements: dict[Candidate, Judgement] = {}
    times: dict[Candidate, list[float]] = {}
    for candidate in candidates:
        yield Started(Label(case.name, candidate))
        judgements[candidate], seconds = _timed(case, candidate, checkers, effort.limit)
        times[candidate] = [seconds]
    _repeat(case, times, checkers, effort)
    yield [
        Outcome(case.name, candidate, found.verdict, found.message, _typical(taken), len(taken), found.calls)
        for candidate, taken in times.items()
        for found in (judgements[candidate],)
    ]


@functools.cache
def _settle() -> None:
    """Once in a process: Python's collector need not look through PyTorch's databases in the middle of somebody's time
    (that takes 0.2 s, a hundred times as long as most checks)."""
    gc.collect()
    gc.freeze()


def _typical(taken: list[float]) -> float:
    """The first run pays for what is loaded once; it counts only where there is no other."""
    return median(taken[1:] or taken)


def _repeat(
    case: Case, times: Mapping[Candidate, list[float]], checkers: Mapping[str, Checker], effort: Effort
) -> None:
    """All quick candidates again, in turns, while the budget lasts; those that are not so quick once: a first run pays
    for what is loaded once, and for what a candidate before it has left behind."""
    slower = [candidate for candidate, taken in times.items() if effort.repeats / 2 <= taken[0] < AGAIN]
    for candidate in slower if effort.repeats else ():
        times[candidate].append(_timed(case, candidate, checkers, effort.limit)[1])
    quick = [candidate for candidate, taken in times.items() if taken[0] < effort.repeats / 2]
    spent, rounds = 0.0, 0
    while quick and rounds < effort.most and spent < effort.repeats:
        for candidate in quick:
            _, seconds = _timed(case, candidate, checkers, effort.limit)
            times[candidate].append(seconds)
            spent += seconds
        rounds += 1


def _timed(case: Case, candidate: Candidate, checkers: Mapping[str, Checker], limit: float) -> tuple[Judgement, float]:
    checker = checkers[candidate.checker]
    seed()  # in nobody's time
    # Not the process's time: while a timer of it runs, Linux brings that up to date in ticks of 4 ms only.
    before = time.thread_time()
    try:
        with time_limit(limit):
            judgement = case.judge(checker, candidate.mode)
    except TimeIsUp:
        judgement = None
    seconds = time.thread_time() - before
    if judgement is None:
        gc.collect()  # gigabytes of a Jacobian, perhaps: the next candidate must not be the one to give them back
        return Judgement("timeout", f"gave up after {limit:g} s", 0), limit
    return judgement, seconds


def _warm_up(case: Case) -> None:
    with contextlib.suppress(Exception):
        case.fn(*case.inputs)


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Processor time, and only between two Python instructions: a hang is left to whoever watches this process."""

    def ring(_number: int, _frame: FrameType | None) -> None:
        raise TimeIsUp

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
