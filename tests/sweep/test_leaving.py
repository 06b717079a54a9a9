"""A case that calls sys.exit, skips itself or raises an interrupt has its row, and its process goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradproof.result import Verdict
from gradproof.sweep import sweep
from gradproof.sweep.row import Ending, Row
from gradproof.sweep.summary import summary_of

LEAVING = str(Path(__file__).parent / "catalogues" / "leaving.py")


@pytest.fixture(scope="module")
def rows() -> dict[str, Row]:
    return {row.item.key.case: row for row in sweep(LEAVING, jobs=1).rows()}


@pytest.mark.parametrize(
    ("case", "code", "said"),
    [
        ("leave", "SystemExit", "it called sys.exit(3)"),
        ("interrupt", "KeyboardInterrupt", "KeyboardInterrupt ("),
        ("undecodable", "FileNotFoundError", r"FileNotFoundError: there is no file \udcff.txt"),
    ],
)
def test_what_leaves_has_raised(rows: dict[str, Row], case: str, code: str, said: str) -> None:
    found = rows[case]
    assert (found.verdict, found.ending, found.code) == (Verdict.ERROR, Ending.RAISED, code)
    assert found.message.startswith(said)
    assert "leaving.py" in found.message


@pytest.mark.parametrize(("case", "reason"), [("skip", "no such device"), ("skip_unittest", "not today")])
def test_what_skips_itself_is_skipped(rows: dict[str, Row], case: str, reason: str) -> None:
    found = rows[case]
    assert (found.verdict, found.ending, found.code) == (Verdict.UNSUPPORTED, Ending.FINISHED, "skipped")
    assert found.message == reason


def test_the_others_are_checked(rows: dict[str, Row]) -> None:
    assert {rows[case].verdict for case in ("first", "last")} == {Verdict.RIGHT}


def test_what_was_skipped_does_not_count_beside_others(rows: dict[str, Row]) -> None:
    assert summary_of([rows["first"], rows["skip"]]).verdict is Verdict.RIGHT
    assert summary_of([rows["skip"]]).verdict is Verdict.UNDECIDED


@pytest.mark.parametrize(
    ("name", "said"),
    [("Unlisted", "SystemExit: 4"), ("Offline", "nobody there"), ("Unwritable", "which cannot be written")],
)
def test_a_listing_that_leaves_says_how_and_its_first_half_is_checked(name: str, said: str) -> None:
    first, unlisted = sorted(sweep(f"{LEAVING}:{name}", jobs=1).rows(), key=lambda row: row.ending is Ending.NOT_LISTED)
    assert (first.item.key.case, first.verdict) == ("first", Verdict.RIGHT)
    assert (unlisted.ending, unlisted.code) == (Ending.NOT_LISTED, "listing")
    assert said in unlisted.message
