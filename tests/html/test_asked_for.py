"""Who asks for a page gets its plots: on the command line, and in a run of pytest."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import gradproof
import gradproof_pytest
from gradproof import check
from gradproof.cli import main
from gradproof.render.json import loads
from gradproof.result import Report

torch = pytest.importorskip("torch")


@pytest.mark.parametrize(("words", "traces"), [((), 0), (("--html", "report.html"), 1)])
def test_on_the_command_line(
    words: tuple[str, ...], traces: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(["check", "torch:sin", "--arg", "rand(3)", "--json", "report.json", *words])
    assert not ended.value.code
    (result,) = loads((tmp_path / "report.json").read_text("utf-8")).results
    assert len(result.traces) == traces
    if words:
        assert 'class="plot taylor"' in (tmp_path / "report.html").read_text("utf-8")


@pytest.mark.parametrize(("options", "traces"), [([], 0), (["--gradproof-html=report.html"], 1)])
def test_in_a_run_of_pytest(options: list[str], traces: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # the installed plugin is the same one
    config = pytest.Config.fromdictargs({}, ["-p", "gradproof_pytest", *options])
    session = gradproof_pytest.Session(config)
    monkeypatch.setattr(gradproof_pytest, "host", session)
    assert len(check(torch.sin, torch.ones(2, dtype=torch.float64)).traces) == traces


# A case, and a test, that leaves a file behind where it is run.
RUNS = """
import pathlib
import numpy as np
import gradproof

@gradproof.case(derivative={"jac": lambda x: np.diag(np.cos(x))})
def sine():
    pathlib.Path("ran").touch()
    return np.sin, np.ones(2)

def test_sine():
    pathlib.Path("ran").touch()
"""
COMMANDS = {
    "check": "from gradproof.cli import main; main(['check', 'test_it.py', '--html', 'report.html'])",
    "sweep": "from gradproof.cli import main; main(['sweep', 'test_it.py', '--html', 'report.html'])",
    "show": "from gradproof.cli import main; main(['show', 'stored.json', '--html', 'report.html'])",
    "pytest": "import pytest; sys.exit(pytest.main(['-p', 'gradproof_pytest', '--gradproof-html=report.html']))",
}


def started(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", f"import sys; {code}"],
        cwd=folder,
        env=os.environ
        | {"PYTHONPATH": str(Path(gradproof.__file__).parents[1]), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_without_plotly_a_page_is_refused_before_anything_runs(name: str, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(RUNS)
    Report(()).to_json(tmp_path / "stored.json")
    done = started(f"sys.modules['plotly'] = None; {COMMANDS[name]}", tmp_path)
    said = "report.html is drawn with plotly, which is not installed; pip install 'gradproof[html]'"
    assert (done.returncode, said in done.stderr) == (4 if name == "pytest" else 2, True), done.stderr + done.stdout
    assert "Traceback" not in done.stderr + done.stdout
    assert not (tmp_path / "ran").exists()
    assert not (tmp_path / "report.html").exists()


@pytest.mark.parametrize("name", ["check", "pytest"])
def test_with_plotly_the_same_command_runs(name: str, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(RUNS)
    done = started(COMMANDS[name], tmp_path)
    assert done.returncode == 0, done.stderr + done.stdout
    assert (tmp_path / "ran").exists()
    assert (tmp_path / "report.html").exists()


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("Report(result).to_html('r.html')", "an HTML report needs plotly, which is not installed"),
        ("result.plot()", "matplotlib"),
    ],
)
def test_without_the_extra_the_method_names_it(code: str, said: str, tmp_path: Path) -> None:
    made = "import numpy as np; from gradproof import *; r = check(np.sin, np.ones(1), derivative={'grad': np.cos})"
    absent = "sys.modules['plotly'] = sys.modules['matplotlib'] = None"
    done = started(f"{absent}; {made}; result = r; {code}", tmp_path)
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("gradproof.errors.UsageError: ")
    assert said in last
    assert "pip install" in last
