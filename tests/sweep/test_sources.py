"""What a catalogue stands on: the files that it imports, wherever they are, here and where its checks are made."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from gradproof.cli.main import gradproof
from gradproof.errors import UsageError
from gradproof.result import Verdict
from gradproof.sweep import sweep
from gradproof.sweep.home import Home
from gradproof.sweep.plan import Plan
from gradproof.sweep.sources import found_sources, sources_of

CASES = """
import numpy as np
import gradproof
from deep import rules

@gradproof.case(derivative={"jac": rules.jac})
def sine():
    return np.sin, np.ones(3)
"""
RULES = """
from ..{name} import scale
import numpy, json, no_such_module

def jac(x):
    from late import later
"""
JAC = "import numpy as np\n\ndef jac(x):\n    return {factor} * np.diag(np.cos(x))\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "__init__.py").touch()
    (tmp_path / "deep" / "rules.py").write_text(JAC.format(factor=1))
    (tmp_path / "cases.py").write_text(CASES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_a_file_imports_is_found_without_importing_it(tmp_path: Path) -> None:
    for name in ("own/__init__.py", "own/scale.py", "own/sub/__init__.py", "late/later.py", "unused.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("raise SystemExit")
    (tmp_path / "own" / "sub" / "rules.py").write_text(RULES.format(name="scale"))
    (tmp_path / "cases.py").write_text("import gradproof\nimport own.sub.rules")
    found = sources_of("cases.py", tmp_path)
    assert list(found) == ["cases", "late.later", "own", "own.scale", "own.sub", "own.sub.rules"]
    assert found_sources("cases.py", tmp_path, found) == found
    inside = sources_of("own/sub/rules.py", tmp_path)
    assert list(inside) == ["late.later", "own", "own.scale", "own.sub.rules"]
    assert sources_of("own.sub.rules", tmp_path) == inside
    assert sources_of("torch", tmp_path) == sources_of("nowhere.py", tmp_path) == {}


def test_rows_of_a_library_that_has_changed_do_not_pass_for_new_ones(folder: Path) -> None:
    words = ["sweep", "cases.py", "--store", "s.db", "--jobs", "1"]
    assert CliRunner().invoke(gradproof, words).exit_code == 0
    again = CliRunner().invoke(gradproof, words)
    assert again.exit_code == 0
    assert "1 result of an earlier run\n" in again.output
    (folder / "deep" / "rules.py").write_text(JAC.format(factor=2))
    stale = CliRunner().invoke(gradproof, words)
    assert "s.db was made with another source of cases.py (deep.rules); name another" in str(stale.exception)
    fresh = CliRunner().invoke(gradproof, ["sweep", "cases.py", "--jobs", "1"])
    assert fresh.exit_code == 1
    assert "earlier" not in fresh.output


def test_a_worker_with_other_code_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home.of(Plan(("cases.py",)))
    home.expect()
    replace(home, versions=(*home.versions, ("platform", "another kernel"))).expect()
    other = replace(home, versions=(*home.versions, ("numpy", "1.0")))
    with pytest.raises(UsageError, match=r"a worker on .* is not like the sweep that asks it: numpy 1\.0, here"):
        other.expect()
    (folder / "deep" / "rules.py").write_text(JAC.format(factor=2))
    changed = replace(home, versions=(*home.versions, ("platform", "asked anew")))
    with pytest.raises(UsageError, match=r"another source of cases\.py \(deep\.rules\)"):
        changed.expect()
    with pytest.raises(UsageError, match=r"it does not find cases\.py in "):
        replace(home, folder=str(folder / "deep")).expect()
    monkeypatch.setattr(Home, "of", lambda plan: other)
    with ThreadPoolExecutor(1) as threads, pytest.raises(UsageError, match=r"numpy 1\.0"):
        sweep("cases.py", executor=threads)


def test_a_worker_in_another_folder_finds_the_files_and_their_changes(folder: Path) -> None:
    (folder / "elsewhere").mkdir()
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _moved, (str(folder / "elsewhere"),)) as pool:
        assert sweep("cases.py", executor=pool).verdict is Verdict.RIGHT
        (folder / "deep" / "rules.py").write_text(JAC.format(factor=2))
        assert sweep("cases.py", executor=pool).verdict is Verdict.WRONG


def _moved(folder: str) -> None:
    import os

    os.chdir(folder)
