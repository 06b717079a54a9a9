"""What says nothing of a case is tried again by the next run, and so is what the user names."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradproof.errors import UsageError
from gradproof.result import Verdict
from gradproof.sweep import filters, judge, sweep
from gradproof.sweep.plan import Terms
from gradproof.sweep.row import Ending, Item, Key
from gradproof.sweep.run import Sweep

CASES = """
import os, pathlib, signal
import numpy as np
import gradproof

JAC = {{"jac": lambda x: np.diag(np.cos(x))}}

@gradproof.case(derivative=JAC)
def right():
    return np.sin, np.ones(3)

@gradproof.case(derivative=JAC)
def unlucky():
    if pathlib.Path({there!r}).exists():
        os.kill(os.getpid(), signal.{signal})
    return np.sin, np.ones(3)
"""


def endings(swept: Sweep) -> dict[str, Ending]:
    return {row.item.key.case: row.ending for row in swept.rows()}


@pytest.fixture
def there(tmp_path: Path) -> Path:
    file = tmp_path / "there"
    file.touch()
    return file


def cases(there: Path, signal: str) -> str:
    file = there.parent / "cases.py"
    file.write_text(CASES.format(there=str(there), signal=signal))
    return str(file)


def test_a_case_whose_process_was_killed_from_outside_is_tried_again(there: Path) -> None:
    spec, store = cases(there, "SIGKILL"), there.parent / "s.db"
    first = sweep(spec, jobs=1, store=store)
    assert endings(first) == {"right": Ending.FINISHED, "unlucky": Ending.KILLED}
    (row,) = [row for row in first.rows() if row.code == "SIGKILL"]
    assert row.message.startswith("the process was killed from outside (SIGKILL)")
    there.unlink()
    again = sweep(spec, jobs=1, store=store)
    assert (again.progress.done, again.progress.earlier) == (1, 1)
    assert again.verdict is Verdict.RIGHT


def test_a_crash_of_its_own_is_kept_unless_it_is_to_be_retried(there: Path) -> None:
    spec, store = cases(there, "SIGABRT"), there.parent / "s.db"
    assert endings(sweep(spec, jobs=1, store=store)) == {"right": Ending.FINISHED, "unlucky": Ending.CRASHED}
    there.unlink()
    kept = sweep(spec, jobs=1, store=store)
    assert (kept.progress.done, kept.verdict) == (0, Verdict.ERROR)
    assert sweep(spec, jobs=1, store=store, retry="wrong,too-long").progress.done == 0
    again = sweep(spec, jobs=1, store=store, retry="crashed")
    assert (again.progress.done, again.verdict) == (1, Verdict.RIGHT)


def test_words_for_what_is_retried() -> None:
    assert filters.retried("error,too-long") == ("error", "too long")
    assert filters.retried(None) == ()
    with pytest.raises(UsageError, match=r"no row to retry that is 'slow'; write one of right, .* too-long"):
        filters.retried("slow")


def test_a_case_that_a_worker_cannot_load_is_no_verdict_on_the_case(tmp_path: Path) -> None:
    row = judge.judge(Item(Key(str(tmp_path / "nowhere.py"), "sine", 0)), Terms())
    assert (row.ending, row.verdict) == (Ending.NOT_FOUND, Verdict.ERROR)
    assert "listed, but not found where it was to be checked: UsageError: there is no catalogue" in row.message


def test_what_an_executor_lost_is_tried_again(tmp_path: Path) -> None:
    from test_executors import PLAIN, Losing

    lost = sweep(PLAIN, executor=Losing(OSError("gone")), store=tmp_path / "s.db", ops="neg")
    assert [row.ending for row in lost.rows()] == [Ending.KILLED]
    assert sweep(PLAIN, jobs=1, store=tmp_path / "s.db", ops="neg").verdict is Verdict.RIGHT
