"""The checkers that are compared: gradproof's drop-in and torch's own, behind the same two functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch

from gradproof.sweep.versions import own

Mode = Literal["slow", "fast"]
MODES: tuple[Mode, ...] = ("slow", "fast")
NAMES = ("ours", "torch")


@dataclass(frozen=True)
class Checker:
    """`version` changes whenever the checker's verdicts or times could: outcomes of another version do not count."""

    name: str
    gradcheck: Callable[..., bool]
    gradgradcheck: Callable[..., bool]
    version: str


@dataclass(frozen=True)
class Candidate:
    """One checker in one mode: what is timed and judged on every case."""

    checker: str
    mode: Mode

    def __str__(self) -> str:
        return f"{self.checker} {self.mode}"


def load(name: str) -> Checker:
    if name == "torch":
        return Checker(name, torch.autograd.gradcheck, torch.autograd.gradgradcheck, _torch_version())
    if name == "ours":
        from gradproof.torch import gradcheck, gradgradcheck

        return Checker(name, gradcheck, gradgradcheck, f"gradproof {own()} on {_torch_version()}")
    raise ValueError(f"no checker is called {name!r}; there are {', '.join(NAMES)}")


def _torch_version() -> str:
    return f"torch {torch.__version__}"
