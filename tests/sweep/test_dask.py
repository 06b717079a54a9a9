"""A sweep on a Dask cluster: a scheduler and two workers in processes of their own, one of which is killed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from test_store import content

import gradproof
from gradproof.errors import UsageError
from gradproof.result import Verdict
from gradproof.sweep import dask, sweep
from gradproof.sweep.progress import Progress

pytest.importorskip("distributed")

FOLDER = Path(__file__).parent
PLAIN = str(FOLDER / "catalogues" / "plain.py")


@dataclass(frozen=True)
class Cluster:
    address: str
    workers: list[subprocess.Popen[bytes]]


@contextmanager
def cluster(folder: Path, seconds: str = "0", paths: Sequence[str] = ("", "")) -> Iterator[Cluster]:
    """`paths`: where each worker looks for modules first."""
    environment = os.environ | {"PLAIN_SECONDS": seconds}
    file = folder / "scheduler.json"
    with ExitStack() as stack:

        def start(*words: str, first: str = "") -> subprocess.Popen[bytes]:
            command = [sys.executable, "-m", "distributed.cli.dask_" + words[0], *words[1:]]
            given = environment | {"PYTHONPATH": os.pathsep.join(filter(None, [first, *sys.path]))}
            process = subprocess.Popen(command, env=given, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process

        start("scheduler", "--host", "127.0.0.1", "--port", "0", "--dashboard-address", "127.0.0.1:0",
              "--no-dashboard", "--scheduler-file", str(file))  # fmt: skip
        workers = [
            start("worker", "--scheduler-file", str(file), "--no-nanny", "--nthreads", "1", "--no-dashboard",
                  "--local-directory", str(folder / f"worker{k}"), first=first)
            for k, first in enumerate(paths)
        ]  # fmt: skip
        yield Cluster(_address(file), workers)


def _address(file: Path) -> str:
    import json

    from distributed import Client

    deadline = time.monotonic() + 120
    while not file.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    address: str = json.loads(file.read_text())["address"]
    with Client(address, timeout="60 s", set_as_default=False) as client:  # type: ignore[no-untyped-call]
        client.wait_for_workers(2, timeout=120)  # type: ignore[no-untyped-call]
    return address


@pytest.mark.slow
def test_a_cluster_gives_the_same_rows_also_when_a_worker_is_killed(tmp_path: Path) -> None:
    with cluster(tmp_path, seconds="0.2") as running:
        once = threading.Event()

        def kill(progress: Progress) -> None:
            if progress.done >= 5 and not once.is_set():
                once.set()
                running.workers[0].send_signal(signal.SIGKILL)

        swept = sweep(PLAIN, scheduler=running.address, order="1,2", store=tmp_path / "sweep.db", show=kill)
        assert once.is_set()
    assert swept.progress.done == 50
    assert content(swept.store) == content(sweep(PLAIN, jobs=2, order="1,2").store)


@pytest.mark.slow
def test_a_worker_with_another_gradproof_is_named_and_refused(tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(Path(gradproof.__file__).parent, other / "gradproof")
    with (other / "gradproof" / "check.py").open("a") as source:
        source.write("# changed\n")
    with (
        cluster(tmp_path, paths=("", str(other))) as running,
        pytest.raises(UsageError, match=r"the worker tcp://\S+ on .* is not like .*: gradproof \S+, "),
    ):
        sweep(PLAIN, scheduler=running.address, store=tmp_path / "sweep.db")
    assert sweep(PLAIN, jobs=1, store=tmp_path / "sweep.db").verdict is Verdict.WRONG


def test_an_address_where_nobody_is_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask, "PATIENCE", "0.2 s")
    with pytest.raises(UsageError, match=r"no Dask scheduler answers at 'tcp://127\.0\.0\.1:9'"):
        sweep(PLAIN, scheduler="tcp://127.0.0.1:9")
