"""The comparison with torch on PyTorch's operators: cases, verdicts, times, store, workers, report, differences."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.autograd import Function

pytest.importorskip("expecttest")

from bench.operators.cases import Case, Check
from bench.operators.checkers import MODES, Candidate, Checker, load
from bench.operators.databases import Group, groups
from bench.operators.differences import Difference, Pair, read
from bench.operators.measure import Effort, Outcome, measure
from bench.operators.report import Report
from bench.operators.run import Progress, run
from bench.operators.store import Store
from bench.operators.worker import Task, outcomes_of
from gradproof.sweep.worker import Done

ROOT = Path(__file__).parents[2]
TORCH = load("torch")
BOTH = {"torch": TORCH, "ours": replace(TORCH, name="ours", version="a copy")}
CANDIDATES = tuple(Candidate(checker, mode) for mode in MODES for checker in BOTH)
SINGLE = (Candidate("torch", "fast"),)
EFFORT = Effort(limit=10, repeats=0)
GRADCHECK = (Check("gradcheck", {}),)


def outcomes(messages: Iterable[object]) -> list[Outcome]:
    return [each for message in messages if isinstance(message, list) for each in message]


def judged(case: Case, candidates: tuple[Candidate, ...] = CANDIDATES, effort: Effort = EFFORT) -> list[Outcome]:
    return outcomes(measure(case, candidates, BOTH, effort))


class WrongSquare(Function):
    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad: Tensor) -> Tensor:
        return 3 * ctx.saved_tensors[0] * grad


def case_of(fn: Callable[..., object], name: str = "made/up/float64/grad/0") -> Case:
    return Case(name, fn, (torch.linspace(0.5, 2, 4, dtype=torch.float64, requires_grad=True),), GRADCHECK)


# --- cases -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "group",
    [
        Group("op_db", "sin", "float64", "grad"),
        Group("op_db", "cat", "complex128", "grad"),  # a list of tensors
        Group("op_db", "nn.functional.linear", "float64", "gradgrad"),
        Group("op_db", "mul", "complex128", "forward"),
        Group("op_db", "exp", "float64", "fwgrad_bwgrad"),
        Group("op_db", "tanh", "float64", "inplace_grad"),
        Group("custom_op_db", "NumpySplitCopyCustomOp", "float64", "grad"),
        Group("autograd_function_db", "NumpyMulAutogradFunction", "float64", "grad"),
        Group("module_db", "nn.Linear", "float64", "grad"),
    ],
    ids=str,
)
def test_operators_of_pytorch_pass_in_both_modes(group: Group) -> None:
    case = next(iter(group.cases()))
    outcomes = judged(case)
    assert case.name.startswith(f"{group}/")
    assert [(each.candidate, each.verdict) for each in outcomes] == [(each, "pass") for each in CANDIDATES]
    slow, fast = outcomes[0], outcomes[2]
    assert slow.calls >= fast.calls > 1
    assert all(each.seconds > 0 for each in outcomes)


def test_names_and_samples_are_the_same_every_time() -> None:
    group = Group("op_db", "dist", "float64", "grad")
    first, second = list(group.cases()), list(group.cases())
    assert [case.name for case in first] == [case.name for case in second]
    assert len(first) > 3
    for one, other in zip(first, second, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(one.inputs, other.inputs, strict=True))


def test_what_pytorch_skips_or_does_not_support_is_no_group() -> None:
    names = {
        str(group)
        for group in groups(["op_db"], ["float64", "complex128"], ["grad", "forward", "inplace_grad"], "small")
    }
    assert {"op_db/sin/float64/grad", "op_db/sin/complex128/forward", "op_db/sin/float64/inplace_grad"} <= names
    assert "op_db/as_strided/float64/grad" not in names  # skipped
    assert "op_db/argmax/float64/grad" not in names  # has no gradient
    assert "op_db/erf/complex128/grad" not in names  # not for this dtype
    assert "op_db/cat/float64/inplace_grad" not in names  # no such variant


def test_samples_of_the_fast_tests_are_larger() -> None:
    small, full = (next(iter(Group("op_db", "sin", "float64", "grad", size).cases())) for size in ("small", "full"))
    assert full.inputs[0].numel() > small.inputs[0].numel()
    assert full.name != small.name


def test_a_module_is_checked_whole_and_by_parameter() -> None:
    cases = Group("module_db", "nn.Linear", "float64", "grad").cases()
    wanted = {case.name.rsplit("/", 1)[1]: [x.requires_grad for x in case.inputs] for case in cases}
    # weight, bias, and the input, which this sample passes by keyword
    assert wanted["train.0.all"] == [True, True, True]
    assert wanted["train.0.only0"] == [True, False, False]
    assert wanted["train.0.only1"] == [False, True, False]
    # a sample without bias, its input passed by position
    assert wanted["train.1.all"] == wanted["train.1.only0"] == [True, True]
    assert "train.1.only1" not in wanted


# --- verdicts --------------------------------------------------------------------------------------------------------


def test_a_wrong_gradient_fails() -> None:
    assert {each.verdict for each in judged(case_of(lambda x: x * x))} == {"pass"}
    outcomes = judged(case_of(WrongSquare.apply))
    assert {each.verdict for each in outcomes} == {"fail"}
    assert "Jacobian" in outcomes[0].message or "gradients" in outcomes[0].message


def test_an_exception_is_a_verdict_of_its_own() -> None:
    def broken(x: Tensor) -> Tensor:
        raise KeyError("no such thing")

    assert {(each.verdict, each.message) for each in judged(case_of(broken))} == {("error:KeyError", "'no such thing'")}


def test_a_check_is_given_up_after_its_time_limit() -> None:
    def endless(x: Tensor) -> Tensor:
        until = time.process_time() + 0.2
        while time.process_time() < until:
            pass
        return x.sin()

    (outcome,) = judged(case_of(endless), (Candidate("torch", "slow"),), Effort(limit=0.3, repeats=0))
    assert outcome.verdict == "timeout"
    assert outcome.seconds == 0.3


def test_quick_checks_are_timed_again_in_turns() -> None:
    order = []

    def noted(checker: Checker) -> Checker:
        def gradcheck(*args: object, **settings: object) -> bool:
            order.append(checker.name)
            return checker.gradcheck(*args, **settings)

        return replace(checker, gradcheck=gradcheck)

    checkers = {name: noted(checker) for name, checker in BOTH.items()}
    candidates = (Candidate("ours", "fast"), Candidate("torch", "fast"))
    found = outcomes(measure(case_of(torch.sin), candidates, checkers, Effort(repeats=5, most=3)))
    assert order == ["ours", "torch"] * 4
    assert [each.runs for each in found] == [4, 4]


# --- store and workers -----------------------------------------------------------------------------------------------


def outcome(case: str, checker: str, mode: str, verdict: str = "pass", seconds: float = 1.0) -> Outcome:
    return Outcome(case, Candidate(checker, mode), verdict, f"{checker} said so", seconds, runs=1, calls=10)


def test_a_store_keeps_outcomes_by_version(tmp_path: Path) -> None:
    path, first = tmp_path / "folder" / "store.sqlite", outcome("db/f/float64/grad/0", "torch", "slow")
    store = Store(path, {"torch": "1"})
    store.add([first, outcome("db/f/float64/gradgrad/0", "torch", "slow")])
    store.close()
    again = Store(path, {"torch": "1"})
    assert again.finished("db/f/float64/grad") == {(first.case, first.candidate)}
    assert first in list(again.outcomes())
    assert list(Store(path, {"torch": "2"}).outcomes()) == []


@dataclass(frozen=True)
class Leisurely:
    """Eight cases of a tenth of a second and more; and a selection of just this group."""

    candidates = (Candidate("torch", "fast"),)
    most = seed = 0

    def groups(self) -> list[Leisurely]:
        return [self]

    def cases(self) -> Iterator[Case]:
        return (case_of(_slow_sin, f"{self}/{number}") for number in range(8))

    def __str__(self) -> str:
        return "made/slow/float64/grad"

    def run(self, path: Path) -> Progress:
        return run(self, Store(path, {"torch": TORCH.version}), effort=EFFORT)  # type: ignore[arg-type]


def _slow_sin(x: Tensor) -> Tensor:
    time.sleep(0.03)
    return x.sin()


def test_a_killed_run_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    process = subprocess.Popen([sys.executable, __file__, str(path)], env=environment)
    deadline = time.monotonic() + 60
    while _rows(path) < 2:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    kept = _rows(path)
    assert 2 <= kept < 8
    progress = Leisurely().run(path)
    assert progress.complete
    assert progress.cases_done == 8 - kept
    assert _rows(path) == 8


def _rows(path: Path) -> int:
    if not path.exists():
        return 0
    with sqlite3.connect(path, timeout=5) as database:
        found = database.execute("SELECT count(*) FROM sqlite_master WHERE name = 'outcomes'").fetchone()
        return database.execute("SELECT count(*) FROM outcomes").fetchone()[0] if found[0] else 0


@dataclass(frozen=True)
class Deadly:
    """Three cases; the second ends the process that runs it."""

    def cases(self) -> Iterator[Case]:
        for number, fn in enumerate((torch.sin, _die, torch.cos)):
            yield case_of(fn, f"made/up/float64/grad/{number}")


def _die(x: Tensor) -> Tensor:
    os.kill(os.getpid(), signal.SIGSEGV)
    return x


def test_a_crash_is_an_outcome_and_the_run_goes_on() -> None:
    task = Task(Deadly(), SINGLE, frozenset(), EFFORT, 0, 0)  # type: ignore[arg-type]
    messages = [message for _, message in outcomes_of([task], 1)]
    verdicts = {each.case[-1]: each.verdict for message in messages if isinstance(message, list) for each in message}
    assert verdicts == {"0": "pass", "1": "crash:SIGSEGV", "2": "pass"}
    assert messages[-1] == Done()


# --- report ----------------------------------------------------------------------------------------------------------

CASE = "op_db/f/float64/grad/0"
LINE = Difference(case="op_db/f/*", mode="fast", ours="fail", torch="pass", right="ours", why="torch misses it")


def everybody(case: str, seconds: tuple[float, ...], verdicts: str = "pass pass pass pass") -> list[Outcome]:
    return [
        outcome(case, each.checker, each.mode, verdict, taken)
        for each, verdict, taken in zip(CANDIDATES, verdicts.split(), seconds, strict=True)
    ]


def test_totals_ratios_and_the_slowest() -> None:
    # CANDIDATES: torch slow, ours slow, torch fast, ours fast
    other = "op_db/g/float64/grad/0"
    report = Report([*everybody(CASE, (30, 1, 2, 1)), *everybody(other, (10, 3, 2, 3))], [])
    assert [each.value for each in report.ratios()] == [4 / 40, 4 / 4, 4 / 4]
    assert [each.calls for each in report.ratios()] == [(20, 20)] * 3
    ratio, name, *_ = report.worst(lambda pair: f"{pair.case} {pair.mode}")[0]
    assert (ratio, name) == (1.5, f"{other} fast")
    assert [claim.holds for claim in report.claims()] == [True, True, True, False, True]
    assert any(CASE in row for table in report.tables() for row in ["".join(cells) for cells in table.rows])


def test_a_disagreement_needs_a_line_and_a_line_a_disagreement() -> None:
    alike, unlike = everybody(CASE, (1, 1, 1, 1)), everybody(CASE, (1, 1, 1, 1), "pass pass pass fail")
    assert [len(Report(unlike, []).unexplained), len(Report(unlike, [LINE]).unexplained)] == [1, 0]
    assert [Report(unlike, [LINE]).stale, Report(alike, [LINE]).stale] == [[], [LINE]]
    assert Report(unlike, [replace(LINE, mode="slow")]).unexplained
    assert Report(unlike, [replace(LINE, ours="error:*")]).unexplained
    assert not Report(unlike, []).claims()[-1].holds
    assert Report(unlike, [LINE]).claims()[-1].holds


def test_what_torch_did_not_finish_is_no_disagreement() -> None:
    ours, theirs = outcome(CASE, "ours", "slow"), outcome(CASE, "torch", "slow")
    assert not Pair("slow", ours, replace(theirs, verdict="timeout")).differs
    assert Pair("slow", replace(ours, verdict="timeout"), theirs).differs
    assert Pair("slow", replace(ours, verdict="error:TypeError"), replace(theirs, verdict="error:ValueError")).differs


def test_the_file_of_differences_is_well_formed() -> None:
    lines = read()
    assert len({(line.case, line.mode, line.ours, line.torch) for line in lines}) == len(lines)
    for line in lines:
        assert line.mode in {"slow", "fast", "*"}
        assert line.ours != line.torch
        assert line.case.count("/") == 4
        assert set(line.case.split("/")[2]) <= set("float64complex128*")
    with pytest.raises(ValueError, match="right is 'nobody'"):
        replace(LINE, right="nobody")
    with pytest.raises(ValueError, match="one line"):
        replace(LINE, why="")


if __name__ == "__main__":
    # Under the module's own name: the workers must find the class.
    import test_operators_bench

    test_operators_bench.Leisurely().run(Path(sys.argv[1]))
