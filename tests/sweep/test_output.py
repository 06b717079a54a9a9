"""What a case prints and starts: the right line is shown, the disk is not filled, nothing outlives its process."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from gradproof.sweep import child, sweep
from gradproof.sweep.child import Lost, crash_line, shown_of
from gradproof.sweep.local import how
from gradproof.sweep.row import Ending

HEAD = """
import os, pathlib, subprocess, sys, time
import numpy as np
import gradproof

JAC = {"jac": lambda x: np.diag(np.cos(x))}
"""
TALK = """
@gradproof.case(derivative=JAC)
def talk():
    for k in range(500):
        print("step", k, "of the loop, all fine so far")
    print("FATAL: bad handle 0x12, giving up", flush=True)
    os._exit(3)
"""
FLOOD = """
@gradproof.case(derivative=JAC)
def flood():
    while True:
        os.write(1, b"x" * 99_999 + b"\\n")
        time.sleep(0.001)
"""
GRAND = """
@gradproof.case(derivative=JAC)
def grand():
    started = subprocess.Popen(["sleep", "4321"])
    pathlib.Path(FILE).write_text(str(started.pid))
    {then}
    return np.sin, np.ones(2)
"""


def test_the_line_that_tells_of_a_crash_is_the_last_one(tmp_path: Path) -> None:
    (tmp_path / "cases.py").write_text(HEAD + TALK)
    (row,) = sweep(str(tmp_path / "cases.py"), jobs=1).rows()
    assert row.message == "the process ended with exit 3: FATAL: bad handle 0x12, giving up"
    assert row.output.startswith("step ")


def test_the_last_words_of_a_process_are_found_before_the_place_where_it_was() -> None:
    chatter = "fine so far\n" * 1000
    trace = "Fatal Python error: Segmentation fault\n\n" + "  File x, line 1 in f\n" * 50
    modules = f"Extension modules: {'numpy.random.mtrand, ' * 400}(total: 400)\n"
    shown = shown_of(chatter + trace + modules)
    assert crash_line(shown) == "Fatal Python error: Segmentation fault"
    assert len(shown) <= child.SHOWN_OUTPUT
    thrown = "terminate called after throwing an instance of 'std::runtime_error'\n  what():  no\n"
    assert crash_line(shown_of(chatter + thrown + trace)).startswith("terminate called")
    assert crash_line(shown_of("only\nthis\n\n")) == "this"
    assert crash_line("") == ""


def test_a_limit_is_told_with_what_was_taken() -> None:
    lost = Lost(None, Ending.TOO_LONG, "timeout", 15.2, 0.4, "", 3.0)
    assert how(lost) == "stopped after 15 s, 0 s of them at work; it may take 3 s of the processor or 15 s by the clock"


@pytest.mark.slow
def test_a_case_that_never_stops_printing_does_not_fill_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    shorten = child.Child._shorten_output

    def watched(self: child.Child) -> None:
        shorten(self)
        sizes.append(os.fstat(self._output.fileno()).st_size)

    monkeypatch.setattr(child.Child, "_shorten_output", watched)
    (tmp_path / "cases.py").write_text(HEAD + FLOOD)
    (row,) = sweep(str(tmp_path / "cases.py"), jobs=1, seconds=1).rows()
    assert row.ending is Ending.TOO_LONG
    assert len(sizes) > 3
    assert max(sizes) < 2 * child.MOST_OUTPUT
    assert "\0" not in row.output


@pytest.mark.slow
@pytest.mark.parametrize(
    ("then", "ending"),
    [("time.sleep(1e6)", Ending.TOO_LONG), ("os._exit(3)", Ending.CRASHED), ("pass", Ending.FINISHED)],
)
def test_what_a_case_has_started_ends_with_its_process(tmp_path: Path, then: str, ending: Ending) -> None:
    file = tmp_path / "pid"
    (tmp_path / "cases.py").write_text(f"{HEAD}\nFILE = {str(file)!r}\n{GRAND.format(then=then)}")
    (row,) = sweep(str(tmp_path / "cases.py"), jobs=1, seconds=0.5).rows()
    assert row.ending is ending
    assert _gone(int(file.read_text()))


def _gone(pid: int) -> bool:
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":  # nobody here collects it
            return True
        time.sleep(0.05)
    return False
