"""A folder with files of cases, and the command line run in this process."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from gradproof.cli import main

CASES = """
import torch

import gradproof


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return ctx.factor * x**2 * g, None


X = torch.linspace(0.5, 2, 4, dtype=torch.float64)


@gradproof.case
def right():
    return Cube.apply, (X, 3)


@gradproof.case
def wrong():
    return Cube.apply, (X, 6)


@gradproof.case
def undecided():
    return torch.log, -X


@gradproof.case
def broken():
    raise ValueError("no such data")


@gradproof.case(params={"n": [1, 8]}, seeds=2, order=2)
def softmax(n, rng):
    return torch.softmax, (torch.tensor(rng.standard_normal(n)),), {"dim": 0}
"""


@dataclass(frozen=True)
class Ran:
    """How a command ended, and what it printed."""

    status: int
    out: str
    err: str


Command = Callable[..., Ran]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Holds cases.py, and is where commands run. Modules that a test loads from it are forgotten afterwards."""
    (tmp_path / "cases.py").write_text(CASES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield tmp_path
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
