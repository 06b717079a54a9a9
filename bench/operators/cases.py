"""A case: one operator, one sample, one kind of check, with the settings that PyTorch's own gradient tests use."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from bench.operators.checkers import Checker, Mode

Kind = Literal["grad", "gradgrad", "forward", "fwgrad_bwgrad", "inplace_grad", "inplace_gradgrad", "inplace_forward"]
KINDS: tuple[Kind, ...] = (
    "grad", "gradgrad", "forward", "fwgrad_bwgrad", "inplace_grad", "inplace_gradgrad", "inplace_forward",
)  # fmt: skip


@dataclass(frozen=True)
class Check:
    """One call of a checker; `mode` is added by whoever makes it."""

    order: Literal["gradcheck", "gradgradcheck"]
    settings: Mapping[str, object]


@dataclass(frozen=True)
class Case:
    """`checks` are made one after the other; the first that does not pass gives the verdict."""

    name: str
    fn: Callable[..., object]
    inputs: tuple[object, ...]
    checks: tuple[Check, ...]

    def judge(self, checker: Checker, mode: Mode) -> Judgement:
        """What the checker says."""
        counted = _Counted(self.fn)
        try:
            for check in self.checks:
                run = getattr(checker, check.order)
                if not run(counted, self.inputs, **check.settings, fast_mode=mode == "fast"):
                    return Judgement("fail", "returned False", counted.calls)
        except Exception as error:  # noqa: BLE001 - whatever it raises is its verdict
            failed = type(error).__name__ == "GradcheckError"
            return Judgement("fail" if failed else f"error:{type(error).__name__}", _headline(error), counted.calls)
        return Judgement("pass", "", counted.calls)


def seed() -> None:
    """Alike before every check: operators and checkers draw from the global generators. That of torch takes as long as
    many a check: it notes down the stack for every device that there could be."""
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002 - the generator that some of torch's samples use


@dataclass(frozen=True)
class Judgement:
    """verdict: pass, fail (the checker's own complaint) or error:<type> (what came out of the function or autograd)."""

    verdict: str
    message: str
    calls: int


class _Counted:
    def __init__(self, fn: Callable[..., object]) -> None:
        self.fn, self.calls = fn, 0

    def __call__(self, *args: object) -> object:
        self.calls += 1
        return self.fn(*args)


def _headline(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else ""


def fraction_of(name: str, seed: int) -> float:
    """A number in [0, 1) that belongs to the name: a choice by it does not depend on what else is chosen from."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{name}".encode()).digest()[:8], "big") / 2**64
