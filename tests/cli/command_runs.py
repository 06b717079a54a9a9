"""What the tests of the command line share: a file of cases, and how a command ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

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
