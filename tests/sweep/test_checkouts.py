"""One catalogue under several names: other words for its path, and another checkout of the same library."""

from __future__ import annotations

from pathlib import Path

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
