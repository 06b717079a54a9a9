"""Whatever a case does to its process is a row, and all other cases are checked."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradproof.result import Verdict
from gradproof.sweep import sweep
from gradproof.sweep.catalogues import known_as
from gradproof.sweep.row import Ending, Row
from gradproof.sweep.run import Sweep

pytestmark = pytest.mark.slow
CATALOGUES = Path(__file__).parent / "catalogues"
DISASTERS = CATALOGUES / "disasters.py"


@pytest.fixture(scope="module")
def swept() -> Sweep:
    files = [str(CATALOGUES / name) for name in ("disasters.py", "broken.py", "halfway.py", "deadly.py")]
    return sweep(files, jobs=2, seconds=4, memory=0.5)


def row(swept: Sweep, case: str) -> Row:
    (found,) = [each for each in swept.rows() if each.item.key.case in (case, known_as(str(CATALOGUES / case)))]
    return found


@pytest.mark.parametrize(
    ("case", "ending", "code", "said"),
    [
        ("segfault", Ending.CRASHED, "SIGSEGV", "about to read nothing"),
        ("abort", Ending.CRASHED, "SIGABRT", ""),
        ("leave", Ending.CRASHED, "exit 7", ""),
        ("endless", Ending.TOO_LONG, "timeout", "round and round"),
        ("huge", Ending.TOO_MUCH_MEMORY, "memory", ""),
        ("growing", Ending.TOO_MUCH_MEMORY, "memory", ""),
        ("raising", Ending.RAISED, "KeyError", ""),
        ("unimportable", Ending.RAISED, "RuntimeError", ""),
        ("broken.py", Ending.NOT_LISTED, "listing", "this file is broken"),
        ("halfway.py", Ending.NOT_LISTED, "listing", "the third cannot be named"),
        ("deadly.py", Ending.NOT_LISTED, "SIGSEGV", ""),
    ],
)
def test_every_disaster_is_recorded(swept: Sweep, case: str, ending: Ending, code: str, said: str) -> None:
    found = row(swept, case)
    assert (found.verdict, found.ending, found.code) == (Verdict.ERROR, ending, code)
    assert said in found.output
    assert found.message


def test_everything_else_is_finished_and_right(swept: Sweep) -> None:
    others = [each for each in swept.rows() if each.ending is Ending.FINISHED]
    assert {each.verdict for each in others} == {Verdict.RIGHT}
    assert len(others) == 8 + 2 + 2
    assert len(list(swept.rows())) == len(others) + 11
    assert row(swept, "Größe/尺寸/🙂").ending is Ending.FINISHED
    assert row(swept, "thousands").calls > 3000


def test_a_report_can_be_made_of_all_of_it(swept: Sweep) -> None:
    report = swept.report()
    assert report.verdict is Verdict.ERROR
    by_name = {result.name.removeprefix(f"{known_as(str(DISASTERS))}::"): result for result in report.results}
    assert "SIGSEGV" in str(by_name["segfault"])
    assert "the store does not keep them" in " ".join(by_name["thousands"].notes)
    assert len(swept.report(Verdict.ERROR).results) == 11
