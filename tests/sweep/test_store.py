"""The store: rows come back as they were, another way of checking does not mix, two sweeps do not meet."""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import gradproof
from gradproof.cli.main import gradproof as command_line
from gradproof.errors import UsageError
from gradproof.result import Verdict
from gradproof.sweep import sweep
from gradproof.sweep.catalogues import known_as
from gradproof.sweep.child import Child, Limits
from gradproof.sweep.database import opened, opened_to_read
from gradproof.sweep.home import Home
from gradproof.sweep.plan import Plan
from gradproof.sweep.row import Key, Row
from gradproof.sweep.store import Store

PLAIN = str(Path(__file__).parent / "catalogues" / "plain.py")
COUNT = 25
HOME = Home("/", (), ())


def content(store: Store) -> list[tuple[object, ...]]:
    """Everything but the times."""
    return [without_times(row) for row in store.whole_rows()]


def without_times(row: Row) -> tuple[object, ...]:
    result = json.loads(row.result)
    del result["cost"]["seconds"]
    return row.item, row.verdict, row.ending, row.code, row.message, row.digits, row.calls, json.dumps(result)


def test_rows_come_back_and_a_second_run_adds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "sweep.db"
    first = sweep(PLAIN, jobs=1, order="1,2", limit=3, store=path)
    assert [str(row.item.key) for row in first.rows()] == [
        f"square/{dtype}/{number}, order {order}"
        for number, dtype in ((0, "float32"), (2, "float32"), (1, "float64"))
        for order in (1, 2)
    ]
    before = content(first.store)
    again = sweep(PLAIN, jobs=1, order="1,2", limit=3, store=path)
    assert (again.progress.done, again.progress.earlier) == (0, 6)
    assert again.progress.counts == {Verdict.RIGHT: 6}
    assert content(again.store) == before
    more = sweep(PLAIN, jobs=1, order=1, store=path)
    assert more.progress.done == COUNT - 3


def test_the_results_in_it_make_a_report(tmp_path: Path) -> None:
    swept = sweep(PLAIN, jobs=1, ops="cub*,neg", store=tmp_path / "sweep.db")
    report = swept.report()
    assert [result.name for result in report.results] == ["cubé/0", "cubé/1", "neg/a"]
    wrong = swept.report(Verdict.WRONG).results
    assert len(wrong) == 2
    assert "WRONG" in str(wrong[0])
    assert wrong[0].comparisons[0].picture().shape == (4, 4)
    assert dict(report.environment)["numpy"]
    (row,) = [row for row in swept.rows() if row.item.key.case == "cubé/0"]
    assert (row.verdict, row.code) == (Verdict.WRONG, "mismatch")
    assert "1.5" in row.diagnosis


def test_rows_of_another_way_of_checking_do_not_mix(tmp_path: Path) -> None:
    path = tmp_path / "sweep.db"
    sweep(PLAIN, jobs=1, ops="neg", store=path)
    with pytest.raises(UsageError, match=r"made with other terms: tolerance not given, now 0\.001; name another file"):
        sweep(PLAIN, jobs=1, ops="neg", store=path, tolerance=1e-3)
    with sqlite3.connect(path) as database:
        database.execute("UPDATE facts SET value = '{}' WHERE name = 'versions'")
    with pytest.raises(UsageError, match="made with other versions: gradproof not given, now 0"):
        sweep(PLAIN, jobs=1, ops="neg", store=path)


def test_rows_of_a_file_that_has_changed_do_not_pass_for_new_ones(tmp_path: Path) -> None:
    path, file = tmp_path / "sweep.db", tmp_path / "mine.py"
    file.write_text(Path(PLAIN).read_text("utf-8"), "utf-8")
    sweep(str(file), jobs=1, ops="neg", store=path)
    sweep(str(file), jobs=1, ops="cub*", store=path)
    sweep(PLAIN, jobs=1, ops="neg", store=path)  # another file may go into the same store
    file.write_text(file.read_text("utf-8") + "\n", "utf-8")
    with pytest.raises(UsageError, match=r"made with another source of .*mine\.py; name another file: --store new\.db"):
        sweep(str(file), jobs=1, ops="neg", store=path)


def test_one_sweep_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "sweep.db"
    first, second = Store(path), Store(path)
    first.begin(Plan(("x",)), HOME)
    with pytest.raises(UsageError, match="another sweep is writing"):
        second.begin(Plan(("x",)), HOME)
    first.release()
    second.begin(Plan(("x",)), HOME)
    second.close()
    assert [file.name for file in tmp_path.iterdir() if "lock" in file.name] == []


def test_a_file_that_is_no_store_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("this is not a database, but a long enough text to be taken for one" * 20)
    with pytest.raises(UsageError, match="name another one"):
        Store(path)


def damaged(path: Path) -> Path:
    """The first pages, which say that it is a database with these tables, are whole."""
    with path.open("r+b") as file:
        file.seek(3 * 4096)
        file.write(b"\xff" * (path.stat().st_size - 3 * 4096))
    return path


def test_a_damaged_store_is_told_and_is_no_verdict(tmp_path: Path) -> None:
    whole, other = tmp_path / "whole.db", tmp_path / "damaged.db"
    for path in (whole, other):
        sweep(PLAIN, jobs=1, store=path).store.close()
    damaged(other)
    for words in (["diff", str(other), str(whole)], ["diff", str(whole), str(other)], [PLAIN, "--store", str(other)]):
        done = CliRunner().invoke(command_line, ["sweep", *words])
        assert isinstance(done.exception, UsageError)  # status 2
        assert re.search(r"damaged\.db is (damaged or cannot be written|not a file of rows) \(", str(done.exception))
    with sqlite3.connect(whole) as database:
        database.execute("UPDATE rows SET verdict = 'maybe' WHERE \"case\" = 'neg/a'")
    with pytest.raises(
        UsageError, match=r"whole\.db has a row that is not understood \('maybe' is not a valid Verdict"
    ):
        list(Store(whole).rows())


def test_nothing_is_written_into_what_is_only_read_nor_into_what_is_another_database(tmp_path: Path) -> None:
    foreign, store = tmp_path / "foreign.db", tmp_path / "store.db"
    with sqlite3.connect(foreign) as database:
        database.execute("CREATE TABLE mine (x)")
    sweep(PLAIN, jobs=1, ops="neg", store=store).store.close()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for words in (["diff", str(foreign), str(store)], ["diff", str(store), str(foreign)]):
        done = CliRunner().invoke(command_line, ["sweep", *words])
        assert "foreign.db is not the store of a sweep" in str(done.exception)
    with pytest.raises(UsageError, match=r"foreign\.db is a database of something else \(it has mine\)"):
        sweep(PLAIN, jobs=1, store=foreign)
    assert CliRunner().invoke(command_line, ["sweep", "diff", str(store), str(store)]).exit_code == 0
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_store_that_is_being_written_to_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    writing = sweep(PLAIN, jobs=1, ops="neg", store=path).store
    with Store(path, opened_to_read) as reading:
        assert len(list(reading.rows())) == 1
    writing.close()


def test_the_public_name_sweeps() -> None:
    swept = gradproof.sweep(PLAIN, jobs=1, ops="neg")
    assert [(row.item.key, row.verdict) for row in swept.rows()] == [(Key(known_as(PLAIN), "neg/a", 0), Verdict.RIGHT)]
    assert swept.verdict is Verdict.RIGHT


@pytest.mark.parametrize("access", [opened, opened_to_read])
def test_a_store_of_another_format_is_refused_to_readers_too(tmp_path: Path, access: Callable[..., Any]) -> None:
    path = tmp_path / "newer.db"
    with Store(path) as store:
        store.begin(Plan((PLAIN,)), HOME)
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE facts SET value = '2' WHERE name = 'format'")
    with pytest.raises(UsageError, match=r"newer\.db has format 2, and this gradproof reads 1"):
        Store(path, access)


def test_a_store_that_cannot_be_written_is_not_called_damaged(tmp_path: Path) -> None:
    (tmp_path / "sweep.db").mkdir()
    with pytest.raises(UsageError, match=r"sweep\.db cannot be written: unable to open"):
        Store(tmp_path / "sweep.db")


def test_a_path_object_among_the_folders_of_imports_ends_no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [Path("/nowhere"), *sys.path])
    assert sweep(PLAIN, jobs=1, limit=1).verdict is Verdict.RIGHT


def test_a_process_that_is_stopped_leaves_nothing_open() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        child = Child("gradproof.sweep.work:work", Limits())
        child.stop()
    assert child._output.closed
