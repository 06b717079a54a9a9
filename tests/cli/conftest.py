"""A folder with files of cases, and the command line run in this process."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from command_runs import CASES, Command, Ran

from gradproof.cli import main


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Holds cases.py, and is where commands run. Modules that a test loads from it are forgotten afterwards."""
    (tmp_path / "cases.py").write_text(CASES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    wide = "jax" in before and sys.modules["jax"].config.jax_enable_x64
    yield tmp_path
    if "jax" in sys.modules:  # a quick look switches it to 64 bits, in this process
        sys.modules["jax"].config.update("jax_enable_x64", bool(wide))
    for name in set(sys.modules) - before:
        if str(tmp_path) in (getattr(sys.modules[name], "__file__", None) or ""):
            del sys.modules[name]


@pytest.fixture
def command(folder: Path, capfd: pytest.CaptureFixture[str]) -> Command:
    """`command("check", "cases.py")`."""

    def run(*words: str) -> Ran:
        with pytest.raises(SystemExit) as ended:
            main(list(words))
        printed = capfd.readouterr()
        return Ran(int(ended.value.code or 0), printed.out, printed.err)

    return run
