"""Who asks for a page gets its plots: on the command line, and in a run of pytest."""

from __future__ import annotations

from pathlib import Path

import pytest

import gradproof_pytest
from gradproof import check
from gradproof.cli import main
from gradproof.render.json import loads

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
