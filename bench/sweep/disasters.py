"""Cases that do to their process what should not be done, between others that are right."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator

import numpy as np
import torch

from gradproof.cases import Call, Case


def segfault() -> None:
    ctypes.string_at(0)


def abort() -> None:
    os.abort()


def endless() -> None:
    while True:
        pass


def asleep() -> None:
    import time

    time.sleep(10**6)


def huge_tensor() -> None:
    torch.ones(100 * 2**30, dtype=torch.uint8)


def huge_array() -> None:
    np.ones(100 * 2**30, dtype=np.uint8)


def unimportable() -> None:
    import bench.sweep.broken  # noqa: F401


HAPPENING: tuple[Callable[[], None], ...] = (
    segfault, abort, endless, asleep, huge_tensor, huge_array, unimportable,
)  # fmt: skip


def cases() -> Iterator[Case]:
    for happen in HAPPENING:
        yield Case(f"before {happen.__name__}", _sine)
        yield Case(happen.__name__, lambda _seed, happen=happen: _made(happen))
    yield Case("naïve/Größe/尺寸/🙂", _sine)
    yield Case("thousands of outputs", lambda _seed: Call(_thousands, (torch.rand(2, dtype=torch.float64),)))
    yield Case("the last one", _sine)


def _sine(_seed: int) -> Call:
    return Call(torch.sin, (torch.rand(3, dtype=torch.float64),))


def _made(happen: Callable[[], None]) -> Call:
    happen()
    raise AssertionError("it should have happened")


def _thousands(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return tuple((x.sin()[0] * x[1] * k) for k in range(3000))
