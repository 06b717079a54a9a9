"""Framework-free programs: a NumPy function with derivatives written by hand, right or wrong, to test the core."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gradproof.errors import Unsupported
from gradproof.program import Array, Leaf, Skipped, Tally, leaves

Rows = Callable[[Array], Array]


@dataclass
class HandProgram:
    """`function` maps rows (k, N) to rows (k, M); `jacobian` is the (M, N) matrix that the author claims at the point.

    `pull_with` and `push_with` replace the claimed reverse and forward modes altogether.
    """

    function: Rows
    jacobian: Array
    point: Array
    input_shapes: tuple[tuple[int, ...], ...] = ()
    output_shapes: tuple[tuple[int, ...], ...] = ()
    pull_with: Rows | None = None
    push_with: Rows | None = None
    modes: tuple[str, ...] = ("reverse", "forward")
    dtype: str = "float64"
    name: str = "by hand"
    skipped: tuple[Skipped, ...] = ()
    notes: tuple[str, ...] = ()
    batched: bool = True
    tally: Tally = field(default_factory=Tally)
    second: Callable[[Array], Any] | None = None

    def __post_init__(self) -> None:
        self.point = np.asarray(self.point, float)
        self.value = self.values(self.point[None].copy())[0]
        shapes = self.input_shapes or (self.point.shape,)
        self.inputs: tuple[Leaf, ...] = leaves([(f"x{k}", shape, self.dtype) for k, shape in enumerate(shapes)])
        shapes = self.output_shapes or (self.value.shape,)
        self.outputs: tuple[Leaf, ...] = leaves([(f"y{k}", shape, self.dtype) for k, shape in enumerate(shapes)])

    def values(self, points: Array) -> Array:
        self.tally.evaluations += len(points)
        with np.errstate(all="ignore"):
            return np.asarray(self.function(points), float)

    def repeated_value(self) -> Array:
        return self.values(self.point[None].copy())[0]

    def pull(self, cotangents: Array) -> Array:
        if "reverse" not in self.modes:
            raise Unsupported("no reverse mode")
        self.tally.pulls += len(cotangents)
        return self.pull_with(cotangents) if self.pull_with else cotangents @ self.jacobian

    def push(self, tangents: Array) -> Array:
        if "forward" not in self.modes:
            raise Unsupported("no forward mode")
        self.tally.pushes += len(tangents)
        return self.push_with(tangents) if self.push_with else tangents @ self.jacobian.T

    def gradient(self, cotangent: Array) -> Any:
        if self.second is None:
            raise Unsupported("no second order")
        return self.second(cotangent)

    def widened(self) -> Any:
        return self


def elementwise(function: Rows, derivative: Rows, point: Array, **options: Any) -> HandProgram:
    """A function of each coordinate alone, with a diagonal Jacobian kept as a vector: any size."""
    point = np.asarray(point, float)
    with np.errstate(all="ignore"):
        diagonal = np.asarray(derivative(point), float)
    options.setdefault("pull_with", lambda rows: rows * diagonal)
    options.setdefault("push_with", lambda rows: rows * diagonal)
    return HandProgram(function, np.zeros((0, 0)), point, **options)
