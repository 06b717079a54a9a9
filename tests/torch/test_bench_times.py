"""How the benchmarks take their times: counted on a clock that only the candidates move, never measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

pytest.importorskip("expecttest")

from bench import timing
from bench.operators import measure as measured
from bench.operators.cases import Judgement
from bench.operators.checkers import Candidate
from bench.operators.measure import Effort, Outcome, TimeIsUp, measure

RIGHT = Judgement("pass", "", 1)


@dataclass
class Clock:
    """The time, and what happened."""

    now: float = 0.0
    events: list[str] = field(default_factory=list)

    def perf_counter(self) -> float:
        return self.now

    thread_time = perf_counter

    def collect(self) -> None:
        self.events.append("collect")

    def freeze(self) -> None:
        self.events.append("freeze")


@dataclass
class Played:
    """In the place of a case: how long each run of a candidate takes, the last one for ever; None is a timeout."""

    clock: Clock
    seconds: dict[str, list[float | None]]
    name: str = "made/up/float64/grad/0"

    def judge(self, checker: str, _mode: str) -> Judgement:
        runs = self.seconds[checker]
        taken = runs.pop(0) if len(runs) > 1 else runs[0]
        self.clock.events.append(checker)
        if taken is None:
            raise TimeIsUp
        self.clock.now += taken
        return RIGHT

    def outcomes(self, effort: Effort) -> dict[str, Outcome]:
        checkers = {name: name for name in self.seconds}
        candidates = [Candidate(name, "slow") for name in self.seconds]
        (found,) = [one for one in measure(self, candidates, checkers, effort) if isinstance(one, list)]  # type: ignore[arg-type]
        return {one.candidate.checker: one for one in found}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    made = Clock()
    monkeypatch.setattr(measured, "time", made)
    monkeypatch.setattr(measured, "gc", made)
    measured._settle.cache_clear()
    yield made
    measured._settle.cache_clear()


def test_the_collector_is_settled_once_and_before_anything_is_timed(clock: Clock) -> None:
    for _ in range(3):
        Played(clock, {"ours": [1.0], "torch": [1.0]}).outcomes(Effort(repeats=0))
    assert clock.events == ["collect", "freeze", *["ours", "torch"] * 3]


def test_a_first_run_that_is_not_quick_is_not_the_only_one(clock: Clock) -> None:
    effort = Effort(repeats=0.06, most=7)
    found = Played(clock, {"ours": [0.4, 0.1], "torch": [0.6, 0.1], "quick": [0.02, 0.001]}).outcomes(effort)
    assert (found["ours"].runs, found["ours"].seconds) == (2, pytest.approx(0.1))
    assert (found["torch"].runs, found["torch"].seconds) == (1, pytest.approx(0.6))
    assert (found["quick"].runs, found["quick"].seconds) == (1 + effort.most, pytest.approx(0.001))
    once = Played(clock, {"ours": [0.4, 0.1], "torch": [0.6]}).outcomes(Effort(repeats=0))
    assert {one.runs for one in once.values()} == {1}


def test_what_a_check_that_ran_out_of_time_leaves_behind_is_cleared_before_the_next(clock: Clock) -> None:
    found = Played(clock, {"ours": [None], "torch": [1.0]}).outcomes(Effort(limit=10, repeats=0))
    assert [one.verdict for one in found.values()] == ["timeout", "pass"]
    assert found["ours"].seconds == 10
    assert clock.events == ["collect", "freeze", "ours", "collect", "torch"]


@dataclass
class Runner:
    """A candidate that takes longer when another one ran before it: its code is no longer in the cache."""

    clock: Clock
    name: str
    seconds: float
    cold: float

    def __call__(self) -> None:
        warm = self.clock.events[-1:] == [self.name]
        self.clock.events.append(self.name)
        self.clock.now += self.seconds if warm else self.seconds + self.cold


def test_a_turn_of_a_quick_candidate_is_several_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(timing, "time", clock)
    quick, slow = Runner(clock, "quick", 0.001, 0.004), Runner(clock, "slow", 0.05, 0.004)
    found = timing.interleaved({"quick": quick, "slow": slow}, least=3, most=3, clock=clock.perf_counter)
    turns = "".join(name[0] for name in clock.events).split("s")
    assert [len(turn) for turn in turns if turn][-3:] == [4, 4, 4]
    assert found["quick"] == pytest.approx(0.002)  # of a single run it would be 0.005
    assert found["slow"] == pytest.approx(0.054)
