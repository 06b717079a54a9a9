"""Ctrl-C, and the signal by which CI systems cancel: real ones, to a real process. What was finished is written."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import gradproof
from gradproof.render import json

SLOW = """
import pathlib
import time

import numpy as np

import gradproof


def slow(x):
    pathlib.Path("started").touch()
    time.sleep(60)
    return np.sin(x)


def jac(x):
    return np.diag(np.cos(x))


@gradproof.case(derivative={"jac": jac})
def quick():
    return np.sin, np.ones(2)


@gradproof.case(derivative={"jac": jac})
def waits():
    return slow, np.ones(2)


@gradproof.case(derivative={"jac": jac})
def later():
    return np.sin, np.ones(2)
"""


def _started(command: list[str], folder: Path) -> subprocess.Popen[str]:
    """In a session of its own: the signal goes to all its processes, as from a keyboard. Whoever runs the tests in the
    background has it ignored."""
    return subprocess.Popen(
        command,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(Path(gradproof.__file__).parents[1]), "TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  it starts no thread
    )


def _interrupted(
    process: subprocess.Popen[str], ready: Callable[[], bool], number: int = signal.SIGINT
) -> tuple[str, str]:
    """What it prints when it is interrupted as soon as it is ready."""
    while not ready():
        assert process.poll() is None
        time.sleep(0.05)
    if number == signal.SIGINT:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    printed = process.communicate(timeout=60)
    assert process.returncode == 130
    return printed


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_cleanly_and_keeps_what_was_finished(tmp_path: Path, jobs: str, number: int) -> None:
    (tmp_path / "cases.py").write_text(SLOW)
    targets = ["cases.py"] if jobs == "1" else ["cases.py::quick", "cases.py::waits"]
    command = [sys.executable, "-u", "-m", "gradproof", "check", *targets, "--json", "r.json", "--jobs", jobs]
    process = _started(command, tmp_path)
    assert process.stdout is not None
    first = process.stdout.readline()
    rest, errors = _interrupted(process, (tmp_path / "started").exists, number)
    assert "RIGHT  cases.py::quick" in first
    assert "interrupted: 1 case: 1 right in" in rest
    assert f"; {2 if jobs == '1' else 1} not run" in rest
    assert "Traceback" not in errors
    report = json.loads((tmp_path / "r.json").read_text())
    assert [result.name for result in report.results] == ["cases.py::quick"]


def _rows(store: Path) -> int:
    with contextlib.suppress(sqlite3.OperationalError), contextlib.closing(sqlite3.connect(store)) as database:
        return int(database.execute("SELECT count(*) FROM rows").fetchone()[0])
    return 0  # it has no table yet


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_an_interrupted_sweep_without_a_store_writes_what_was_finished(tmp_path: Path) -> None:
    (tmp_path / "cases.py").write_text(SLOW)
    words = ["sweep", "cases.py", "--json", "r.json", "--jobs", "1"]
    process = _started([sys.executable, "-u", "-m", "gradproof", *words], tmp_path)
    out, errors = _interrupted(process, lambda: any(map(_rows, tmp_path.glob("*/sweep.db"))))
    assert "stopped after " in out
    assert "Traceback" not in errors
    report = json.loads((tmp_path / "r.json").read_text())
    assert [result.verdict for result in report.results] == [gradproof.Verdict.RIGHT]
    assert not list(tmp_path.glob("*/sweep.db"))
