"""What is shown of a sweep: progress, summary, difference, and the command line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner
from rich.console import Console

from gradproof.cases import Traits
from gradproof.cli.main import gradproof
from gradproof.result import Verdict
from gradproof.sweep.diff import difference, tables
from gradproof.sweep.local import Found
from gradproof.sweep.progress import Progress, shown
from gradproof.sweep.row import Ending, Item, Key, Row
from gradproof.sweep.summary import summary_of

FOLDER = Path(__file__).parent / "catalogues"
PLAIN = str(FOLDER / "plain.py")


def row(case: str, verdict: Verdict = Verdict.RIGHT, **given: object) -> Row:
    operator = case.partition("/")[0]
    item = Item(Key("made-up", case, 1), Traits(operator, "family", "float64", "cpu"))
    return replace(Row(item, verdict, Ending.FINISHED, digits=10.0, calls=5, seconds=1.0, processor=0.5), **given)


WRONG = row("tan/1", Verdict.WRONG, code="mismatch", message="it is wrong", diagnosis="twice too large")


def text(*shown: object) -> str:
    console = Console(width=200)
    with console.capture() as captured:
        for each in shown:
            console.print(each)
    return captured.get()


def test_progress_counts_rows_and_what_was_there_before() -> None:
    progress = Progress()
    earlier = (row("a"), row("b"), row("sin/0"), WRONG)
    progress.add(Found(tuple(one.item.key for one in earlier), (Verdict.RIGHT, Verdict.UNDECIDED)))
    assert progress.left is None
    progress.add(row("sin/0", seconds=3.0))
    progress.add(WRONG)
    progress.add(Found((row("c").item.key,), complete=True))
    assert (progress.found, progress.earlier, progress.done, progress.calls) == (5, 2, 2, 10)
    assert progress.counts == {Verdict.RIGHT: 2, Verdict.UNDECIDED: 1, Verdict.WRONG: 1}
    assert progress.slowest is not None
    assert progress.slowest.item.key.case == "sin/0"
    words = " ".join(progress.words())
    for part in ("4 of 5", "1 wrong, 1 undecided, 0 error", "10 calls", "left", "slowest sin/0, order 1 3.0 s"):
        assert part in words


def test_progress_is_drawn_in_a_terminal_and_said_in_lines_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    from gradproof.sweep import progress as module

    monkeypatch.setattr(module, "LINE_EVERY", 0.0)
    monkeypatch.setattr(module, "DRAWN_EVERY", 0.0)
    progress = Progress()
    progress.add(Found((WRONG.item.key, row("a").item.key), complete=True))
    progress.add(WRONG)
    for terminal in (False, True):
        console = Console(width=200, force_terminal=terminal)
        with console.capture() as captured, shown(progress, console) as step:
            step()
        assert "1 of 2" in captured.get()
        assert ("━" in captured.get()) == terminal


def test_a_summary_by_family_and_by_what_is_not_right() -> None:
    other = row("tan/2", Verdict.WRONG, code="mismatch", message="it is wrong")
    summary = summary_of([row("sin/0"), WRONG, other, row("cos/0", Verdict.ERROR, code="SIGSEGV", message="crash")])
    assert summary.verdict is Verdict.ERROR
    assert summary.counts == {Verdict.RIGHT: 1, Verdict.WRONG: 2, Verdict.ERROR: 1}
    assert [(group.operator, group.count) for group in summary.groups] == [("cos", 1), ("tan", 2)]
    shown = text(*summary.tables())
    assert "twice too large" in shown
    assert "family" in shown
    assert summary_of([row("sin/0")]).verdict is Verdict.RIGHT
    assert summary_of([]).verdict is Verdict.UNDECIDED


def test_the_difference_of_two_stores() -> None:
    old = [row("a"), row("b"), WRONG, row("c"), row("d"), row("gone"), row("e", Verdict.UNSUPPORTED)]
    new = [
        row("a"),
        replace(row("b"), verdict=Verdict.WRONG, message="now wrong"),
        row("tan/1"),
        row("c", processor=2.0),
        row("d", digits=4.0),
        row("new"),
        row("e", Verdict.UNDECIDED),
    ]
    found = difference(old, new)
    assert [(change.kind, change.row.item.key.case) for change in found.changes] == [
        ("became wrong", "b"),
        ("became right", "tan/1"),
        ("other verdict", "e"),
        ("slower", "c"),
        ("lost digits", "d"),
        ("gone", "gone"),
        ("new", "new"),
    ]
    assert found.worse
    said = text(*tables(found))
    for part in ("RIGHT to WRONG: now wrong", "0.50 s to 2.00 s", "10.0 to 4.0 digits"):
        assert part in said
    assert not difference(old, old).changes
    assert not difference(new, old).of("slower")


@pytest.mark.parametrize("verdict", list(Verdict))
def test_a_case_that_comes_wrong_is_worse_and_one_that_comes_right_is_not(verdict: Verdict) -> None:
    found = difference([row("a")], [row("a"), replace(row("b", verdict), message="why")])
    bad = verdict in (Verdict.WRONG, Verdict.ERROR)
    assert found.worse is bad
    assert [change.kind for change in found.changes] == ["new and wrong" if bad else "new"]
    assert (f"{verdict}: why" in text(*tables(found))) is (verdict is not Verdict.RIGHT)
    assert not difference([row("a"), row("b", verdict)], [row("a")]).worse


# --- the command line ------------------------------------------------------------------------------------------------


def test_a_sweep_from_the_command_line_with_its_files(tmp_path: Path) -> None:
    store, as_json, junit = tmp_path / "s.db", tmp_path / "r.json", tmp_path / "r.xml"
    words = ["sweep", PLAIN, "--ops", "cubé", "--ops", "neg", "--jobs", "1", "--store", store, "--json", as_json]
    done = CliRunner().invoke(gradproof, [*map(str, words), "--junit", str(junit)])
    assert done.exit_code == 1, done.output
    assert "3 checks: 1 right, 2 wrong; 3 of them now" in done.output
    assert "cubé" in done.output
    assert json.loads(as_json.read_text())["counts"]["wrong"] == 2
    assert ET.parse(junit).getroot().attrib["failures"] == "2"
    again = CliRunner().invoke(gradproof, [*map(str, words), "--limit", "2"])
    assert "0 of them now" in again.output
    same = CliRunner().invoke(gradproof, ["sweep", "diff", str(store), str(store)])
    assert (same.exit_code, same.output.strip()) == (0, "no difference")


def test_what_is_not_understood_is_said_before_anything_runs(tmp_path: Path) -> None:
    for words in (["--order", "zero"], ["--shard", "9/8"], ["--effort", "huge"], ["--modes", "sideways"]):
        done = CliRunner().invoke(gradproof, ["sweep", PLAIN, *words])
        assert done.exit_code != 0
        assert "write" in str(done.exception)
    for shard, said in (("3/2", "no shard 3/2; write 1/2 to 2/2"), ("3/0", "write 3/8"), ("3", "--shard 3 is not")):
        assert said in str(CliRunner().invoke(gradproof, ["sweep", PLAIN, "--shard", shard]).exception)
    for spec in ("trch", "no/such.py"):
        done = CliRunner().invoke(gradproof, ["sweep", spec])
        assert "no catalogue" in str(done.exception)
    done = CliRunner().invoke(gradproof, ["sweep", PLAIN, "--ops", "nothing", "--jobs", "1"])
    assert (done.exit_code, "no case was chosen" in done.output) == (2, True)
    assert "there is no case of --ops nothing" in done.output
    assert "┏" not in done.output
    (tmp_path / "empty.db").touch()
    done = CliRunner().invoke(gradproof, ["sweep", "diff", str(tmp_path / "empty.db"), str(tmp_path / "empty.db")])
    assert "is not the store of a sweep" in str(done.exception)


def test_a_name_that_no_case_answers_to_is_told() -> None:
    words = ["--ops", "square,sqare", "--ops", "s*", "--dtype", "float64,float46", "--jobs", "1"]
    done = CliRunner().invoke(gradproof, ["sweep", PLAIN, *words])
    told = [line for line in done.output.splitlines() if line.startswith("there is no case of")]
    assert told == ["there is no case of --ops sqare", "there is no case of --dtype float46"]


def test_a_run_speaks_of_what_it_chose_and_not_of_all_that_the_store_holds(tmp_path: Path) -> None:
    words = ["sweep", PLAIN, "--jobs", "1", "--store", str(tmp_path / "s.db"), "--json", str(tmp_path / "r.json")]
    assert CliRunner().invoke(gradproof, [*words, "--ops", "cubé,neg"]).exit_code == 1
    right = CliRunner().invoke(gradproof, [*words, "--ops", "neg"])
    assert right.exit_code == 0, right.output
    assert "1 check: 1 right; 0 of them now" in right.output
    assert json.loads((tmp_path / "r.json").read_text())["counts"]["wrong"] == 0
    wrong = CliRunner().invoke(gradproof, [*words, "--case", "cubé/1"])
    assert wrong.exit_code == 1, wrong.output
    assert "1 check: 1 wrong; 0 of them now" in wrong.output
    assert [one["name"] for one in json.loads((tmp_path / "r.json").read_text())["results"]] == ["cubé/1"]
