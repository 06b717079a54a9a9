"""Every check that was listed gets a row, also where what comes after it fails."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from programs import HandProgram

from gradproof.cases import Call, Case
from gradproof.check import check_program
from gradproof.result import Verdict
from gradproof.settings import Settings
from gradproof.sweep import executor, kept, local, sweep, work
from gradproof.sweep import judge as judging
from gradproof.sweep.local import left_over, lost_by
from gradproof.sweep.plan import Terms
from gradproof.sweep.row import Ending, Item, Key, Row
from gradproof.sweep.work import Chunk
from gradproof.sweep.worker import Done, Next, Started

ITEMS = tuple(Item(Key("light", name, 1)) for name in ("first", "second", "third"))


@pytest.mark.parametrize(("outputs", "inputs"), [((0,), (100,)), ((100,), (0,)), ((0,), (3,)), ((0,), (0,))])
def test_empty_blocks_of_any_width_are_kept(outputs: tuple[int, ...], inputs: tuple[int, ...]) -> None:
    """Beside one that is not empty."""
    point = np.linspace(1.0, 2.0, inputs[0] + 2)
    jacobian = np.zeros((outputs[0] + 2, point.size))
    jacobian[-2:, -2:] = np.diag(2 * point[-2:])

    def function(rows: np.ndarray) -> np.ndarray:
        return np.concatenate([np.ones((len(rows), outputs[0])), rows[:, -2:] ** 2], axis=1)

    program = HandProgram(function, jacobian, point, input_shapes=(inputs, (2,)), output_shapes=(outputs, (2,)))
    result = check_program(program, Settings.validated(seed=1))
    assert result.verdict is Verdict.RIGHT
    again = kept.loads(kept.dumps(result))
    assert [len(one.picture().excess) for one in again.comparisons].count(1) >= 1
    for comparison in result.comparisons:
        assert (len(comparison.picture().excess) == 0) == (comparison.entries == 0)
        assert (len(comparison.picture(1).excess) == 0) == (comparison.entries == 0)


def test_what_fails_after_a_check_is_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> str:
        raise ZeroDivisionError("of nothing by nothing")

    full = kept.dumps
    monkeypatch.setattr(kept, "dumps", lambda result: fail() if result.verdict is Verdict.RIGHT else full(result))
    monkeypatch.setattr(judging, "finder", lambda *_: _Right())
    row = judging.judge(ITEMS[0], Terms())
    assert (row.verdict, row.ending, row.code) == (Verdict.ERROR, Ending.RAISED, "ZeroDivisionError")
    assert "of nothing by nothing" in row.message


class _Right:
    def find(self, name: str) -> object:
        return Case(
            name, lambda _seed: Call(np.sin, (np.ones(3),), {}, {"derivative": {"jac": lambda x: np.diag(np.cos(x))}})
        )


def test_a_worker_that_fails_by_itself_loses_one_check_and_not_the_others() -> None:
    chunk = Chunk(ITEMS, Terms())
    assert lost_by(Done()) is None
    lost = lost_by(Done("Traceback (most recent call last):\n  ...\nValueError: no such thing"))
    assert lost is not None
    row, rest = left_over(chunk, lost, {ITEMS[0].key})
    assert row is not None
    assert (row.item, row.verdict, row.ending) == (ITEMS[1], Verdict.ERROR, Ending.RAISED)
    assert "ValueError: no such thing" in row.message
    assert rest.items == ITEMS[2:]


def test_each_of_two_runs_of_a_first_check_has_its_own_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "_warm", set())
    plain = str(Path(__file__).parent / "catalogues" / "plain.py")
    items = tuple(Item(Key(plain, name, 1)) for name in ("neg/a", "cubé/0"))
    messages = list(work.judged(Chunk(items, Terms())))
    assert [type(message) for message in messages] == [Started, Started, Row, Next, Row]
    assert messages[0] == messages[1] == Started(items[0].key)


def test_two_cases_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "twins.py").write_text(TWINS)
    swept = sweep(str(tmp_path / "twins.py"), jobs=1)
    assert swept.verdict is Verdict.ERROR
    said = [row.message for row in swept.rows() if row.ending is Ending.NOT_LISTED]
    assert len(said) == 1
    assert "twins.py has two cases named 'twin'; give one another name" in said[0]
    (tmp_path / "twins.py").write_text(TWINS.replace('Case("twin", make(2))', 'Case("other", make(2))'))
    assert sweep(str(tmp_path / "twins.py"), jobs=1).progress.counts == {Verdict.RIGHT: 2, Verdict.WRONG: 1}


TWINS = """
import numpy as np
from gradproof import Call, Case

def make(slope):
    jac = {"jac": lambda x: slope * np.diag(np.cos(x))}
    return lambda seed: Call(np.sin, (np.ones(2),), {}, {"derivative": jac})

CASES = [Case("single", make(1)), Case("twin", make(1)), Case("twin", make(2))]
"""


@pytest.mark.slow
def test_a_case_within_its_time_is_not_too_long_for_being_the_first(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    swept = sweep(str(tmp_path / "slow.py"), jobs=1, seconds=2.5)
    assert [row.ending for row in swept.rows()] == [Ending.TOO_LONG, Ending.FINISHED]


SLOW = """
import time
import numpy as np
import gradproof

def busy(seconds):
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass

@gradproof.case(derivative={"jac": lambda x: np.diag(np.cos(x))})
def two_seconds():
    busy(1.7)
    return np.sin, np.ones(2)

@gradproof.case(derivative={"jac": lambda x: np.diag(np.cos(x))})
def for_ever():
    busy(1e9)
"""


@pytest.mark.parametrize("on_an_executor", [False, True])
def test_the_check_at_which_a_worker_fails_has_its_row(on_an_executor: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (local, executor):
        monkeypatch.setattr(module, "WORK", "failing:work")
    with ThreadPoolExecutor(1) as threads:
        where = {"executor": threads} if on_an_executor else {"jobs": 1}
        swept = sweep(str(Path(__file__).parent / "catalogues" / "plain.py"), limit=6, **where)
    rows = list(swept.rows())
    assert len(rows) == swept.progress.done == 6
    (lost,) = [row for row in rows if row.ending is not Ending.FINISHED]
    assert (lost.item.key.case, lost.verdict, lost.ending) == ("square/float32/2", Verdict.ERROR, Ending.RAISED)
    assert "the worker failed: ValueError: no such thing" in lost.message
