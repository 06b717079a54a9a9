"""A framework as light as can be: a function returns its own Program. Workers then start without torch."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from programs import HandProgram, elementwise

from gradproof import adapters
from gradproof.cases import Call, Case, Traits

# Asked before NumPy, and only about what belongs to it: other tests may share this process.
BEFORE = {name: path for name, path in adapters.BUILT_IN.items() if name != "numpy"}
adapters.BUILT_IN = {**BEFORE, "light": "light", "numpy": adapters.BUILT_IN["numpy"]}
adapters._known.cache_clear()
FOLDER = Path(__file__).parent
SIZE = 4


def owns(fn: Callable[..., Any], args: Any, kwargs: Mapping[str, Any]) -> bool:
    return FOLDER in Path(inspect.getfile(fn)).parents if inspect.isfunction(fn) else False


def program_of(fn: Callable[..., Any], args: Any, kwargs: dict[str, Any], wrt: str | Sequence[str] | None) -> Any:
    return fn(*args, **kwargs)


def square(slope: float, point: np.ndarray) -> HandProgram:
    """x² with the derivative slope * x: right where slope is 2. Its gradient is the program x ↦ 2 w x."""
    second = lambda w: elementwise(lambda rows: 2 * w * rows, lambda x: 2 * w * np.ones_like(x), point)  # noqa: E731
    return elementwise(lambda rows: rows**2, lambda x: slope * x, point, second=second)


def case(name: str, slope: float = 2.0, **traits: str) -> Case:
    def make(seed: int) -> Call:
        return Call(square, (slope, np.random.default_rng(seed).uniform(0.5, 1.5, SIZE)))

    return Case(name, make, Traits(**traits))
