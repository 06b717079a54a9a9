"""A sweep that is killed with SIGKILL, again and again, ends with the store of one that was left alone."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from test_store import content

from gradproof.sweep import sweep
from gradproof.sweep.store import Store

FOLDER = Path(__file__).parent
PLAIN = str(FOLDER / "catalogues" / "plain.py")
KILLS = 4  # `python -m bench.sweep kills` has 50


def start(store: Path) -> subprocess.Popen[bytes]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "PLAIN_SECONDS": "0.1"}
    command = [sys.executable, str(FOLDER / "sweeping.py"), str(store), "2", PLAIN, "1,2"]
    return subprocess.Popen(command, env=environment, start_new_session=True)


def rows(store: Path) -> int:
    if not store.exists():
        return 0
    with Store(store) as opened:
        return len(opened.finished())


def offspring(pid: int) -> list[int]:
    """The processes that this one has started."""
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return [int(word) for word in listed.stdout.split()]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
def test_the_final_store_is_that_of_an_undisturbed_run(tmp_path: Path) -> None:
    store = tmp_path / "sweep.db"
    chance = random.Random(1)
    for _ in range(KILLS):
        before, process = rows(store), start(store)
        # A moment after some progress: somewhere in a case, in a write, in between.
        while rows(store) <= before and process.poll() is None:
            time.sleep(0.02)
        time.sleep(chance.uniform(0, 0.3))
        workers = offspring(process.pid)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert rows(store) >= before
        deadline = time.monotonic() + 30
        while any(map(alive, workers)):
            assert time.monotonic() < deadline, "a worker outlives its sweep"
            time.sleep(0.05)
    killed = rows(store)
    swept = sweep(PLAIN, jobs=2, order="1,2", store=store)
    assert swept.progress.earlier == killed
    assert swept.progress.done == 50 - killed
    assert content(swept.store) == content(sweep(PLAIN, jobs=2, order="1,2").store)
