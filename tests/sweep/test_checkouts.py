"""One catalogue under several names: other words for its path, and another checkout of the same library."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner

from gradproof.cli.main import gradproof
from gradproof.sweep import catalogues, sweep
from gradproof.sweep.diff import paired

RULES = """
import numpy as np
import gradproof

@gradproof.case(params={{"n": [1, 2]}}, derivative={{"jac": lambda x: np.diag(np.cos(x))}})
def sine(n, rng):
    return np.sin, rng.standard_normal(n)

@gradproof.case(params={{"n": [2, 8]}}, derivative={{"jac": lambda x: np.diag({slope} * x**2)}})
def power(n, rng):
    return lambda x: x**3, rng.standard_normal(n)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, slope in (("one", 3), ("two", 2)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "rules.py").write_text(RULES.format(slope=slope))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_file_has_one_name_however_it_is_written(folder: Path) -> None:
    for spec in ("one/rules.py", "./one/rules.py", "two/../one/rules.py", str(folder / "one" / "rules.py")):
        assert catalogues.known_as(spec) == "one/rules.py"
        swept = sweep(spec, jobs=1, ops="sine", store=folder / "s.db")
    assert len(list(swept.store.rows())) == 2
    assert catalogues.known_as("../rules.py:make") == f"{folder.parent / 'rules.py'}:make"
    assert catalogues.known_as("torch.modules") == "torch.modules"


def test_the_mistakes_of_another_checkout_are_seen(folder: Path) -> None:
    for name in ("one", "two"):
        sweep(f"{name}/rules.py", jobs=1, store=folder / f"{name}.db").store.close()
    worse = CliRunner().invoke(gradproof, ["sweep", "diff", "one.db", "two.db"])
    assert worse.exit_code == 1, worse.output
    assert "two/rules.py is compared with one/rules.py" in worse.output
    assert "became wrong: 2" in worse.output
    assert "gone" not in worse.output
    better = CliRunner().invoke(gradproof, ["sweep", "diff", "two.db", "one.db"])
    assert (better.exit_code, "became right: 2" in better.output) == (0, True)


def test_two_catalogues_with_the_same_names_are_told_apart(folder: Path) -> None:
    files = ["--json", "both.json", "--junit", "both.xml"]
    both = CliRunner().invoke(gradproof, ["sweep", "one/rules.py", "two/rules.py", "--jobs", "1", *files])
    assert both.exit_code == 1
    assert "two/rules.py" in both.output.partition("Not right")[2]
    cases = [one.attrib for one in ET.parse(folder / "both.xml").iter("testcase")]
    assert len({(one["classname"], one["name"]) for one in cases}) == 8
    assert (cases[0]["classname"], cases[0]["name"]) == ("one.rules", "power[n=2]")
    for name, status in (("one", 0), ("two", 1)):
        shown = CliRunner().invoke(gradproof, ["replay", f"both.json::{name}/rules.py::power[n=2]"])
        assert shown.exit_code == status, shown.output
    alone = sweep("one/rules.py", jobs=1).report()
    assert [result.name for result in alone.results] == ["power[n=2]", "power[n=8]", "sine[n=1]", "sine[n=2]"]


@pytest.mark.parametrize(
    ("old", "new", "pairs"),
    [
        ({"a/rules.py"}, {"b/rules.py"}, {"b/rules.py": "a/rules.py"}),
        ({"a/r.py", "a/s/r.py"}, {"b/r.py", "b/s/r.py"}, {"b/r.py": "a/r.py", "b/s/r.py": "a/s/r.py"}),
        ({"r.py"}, {"r.py", "b/r.py"}, {}),  # equal names come first
        ({"a/r.py"}, {"b/r.py", "c/r.py"}, {}),  # which one, nobody can tell
        ({"a/r.py"}, {"a/q.py"}, {}),
        ({"torch"}, {"jax"}, {}),
    ],
)
def test_catalogues_are_paired_where_only_one_will_do(old: set[str], new: set[str], pairs: dict[str, str]) -> None:
    assert paired(old, new) == pairs
