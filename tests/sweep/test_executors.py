"""Any executor gives the same rows as the processes of this machine; what it loses is said."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import pytest
from test_store import content

from gradproof.result import Verdict
from gradproof.sweep import sweep
from gradproof.sweep.row import Ending

FOLDER = Path(__file__).parent / "catalogues"
PLAIN = str(FOLDER / "plain.py")


def test_threads_and_processes_give_the_same_rows() -> None:
    local = content(sweep(PLAIN, jobs=2).store)
    with ThreadPoolExecutor(2) as threads:
        assert content(sweep(PLAIN, executor=threads).store) == local
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as processes:
        assert content(sweep(PLAIN, executor=processes).store) == local
    assert len(local) == 25


def test_a_crash_does_not_reach_the_executor() -> None:
    with ThreadPoolExecutor(1) as threads:
        swept = sweep(str(FOLDER / "disasters.py"), ops="segfault,before*", executor=threads)
    endings = [(row.item.key.case, row.ending) for row in swept.rows() if row.ending is not Ending.FINISHED]
    assert endings == [("segfault", Ending.CRASHED)]
    assert swept.progress.done == 9


class Losing(Executor):
    """Loses its first chunk, by this exception."""

    def __init__(self, raised: Exception) -> None:
        self.raised: Exception | None = raised
        self.inner = ThreadPoolExecutor(1)

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        if self.raised is None:
            return self.inner.submit(fn, *args, **kwargs)
        future: Future[Any] = Future()
        future.set_exception(self.raised)
        self.raised = None
        return future


def test_a_lost_chunk_is_a_row_for_each_of_its_checks() -> None:
    rows = list(sweep(PLAIN, executor=Losing(OSError("gone")), limit=20).rows())
    lost = [row for row in rows if row.code == "lost"]
    assert len(rows) == 20
    assert 1 <= len(lost) <= 16
    assert {(row.verdict, row.ending) for row in lost} == {(Verdict.ERROR, Ending.KILLED)}


def test_a_broken_executor_ends_the_sweep_and_it_can_be_resumed(tmp_path: Path) -> None:
    store = tmp_path / "sweep.db"
    with pytest.raises(BrokenProcessPool):
        sweep(PLAIN, executor=Losing(BrokenProcessPool()), store=store)
    assert content(sweep(PLAIN, jobs=1, store=store).store) == content(sweep(PLAIN, jobs=1).store)
