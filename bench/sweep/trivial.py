"""Ten thousand cases that take a few milliseconds each, in NumPy: what is left is the sweep's own time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gradproof.cases import Call, Case, Traits

COUNT = 10_000


def cases() -> Iterator[Case]:
    for number in range(COUNT):
        yield Case(f"sin/{number}", _call, Traits("sin", "trivial", "float64", "cpu"))


def _call(seed: int) -> Call:
    point = np.random.default_rng(seed).uniform(-1, 1, 3)
    return Call(np.sin, (point,), options={"derivative": {"jac": lambda x: np.diag(np.cos(x))}})
