"""A framework-free program: a formula in NumPy with its exact Jacobian, evaluated in any NumPy precision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradproof.errors import Unsupported
from gradproof.program import Array, Leaf, Program, Skipped, Tally, leaves

Rows = NDArray[np.floating]


@dataclass(frozen=True)
class Formula:
    """`values` maps rows (k, N) to rows (k, M) in whatever precision they come in; `slope(x, d)` is J(x) d, exactly
    enough when x and d are long doubles."""

    name: str
    values: Callable[[Rows], Rows]
    slope: Callable[[Rows, Rows], Rows]


class NumpyProgram:
    """A Formula at a point. The point is rounded to the format first: that is where the derivative is taken."""

    def __init__(self, formula: Formula, point: Array, dtype: str = "float64") -> None:
        self._formula, self._dtype = formula, np.dtype(dtype)
        self.point: Array = np.asarray(point, self._dtype).astype(np.float64)
        self.tally = Tally()
        self.value: Array = self.values(self.point[None])[0]
        self.tally.evaluations = 0
        self.inputs: tuple[Leaf, ...] = leaves([("x", self.point.shape, dtype)])
        self.outputs: tuple[Leaf, ...] = leaves([("y", self.value.shape, dtype)])
        self.name = formula.name
        self.skipped: tuple[Skipped, ...] = ()
        self.notes: tuple[str, ...] = ()
        self.batched = True

    def values(self, points: Array) -> Array:
        self.tally.evaluations += len(points)
        with np.errstate(all="ignore"):
            return np.asarray(self._formula.values(points.astype(self._dtype)), np.float64)

    def repeated_value(self) -> Array:
        return self.values(self.point[None])[0]

    def push(self, tangents: Array) -> Array:
        self.tally.pushes += len(tangents)
        return np.stack([self.exact(tangent) for tangent in tangents]).astype(np.float64)

    def pull(self, cotangents: Array) -> Array:
        self.tally.pulls += len(cotangents)
        columns = np.stack([self.exact(unit) for unit in np.eye(self.point.size)])
        return np.asarray(cotangents @ columns.T, np.float64)

    def exact(self, tangent: Array) -> NDArray[np.longdouble]:
        """J d in long double."""
        with np.errstate(all="ignore"):
            slope = self._formula.slope(self.point.astype(np.longdouble), tangent.astype(np.longdouble))
        return np.atleast_1d(np.asarray(slope, np.longdouble))

    def gradient(self, cotangent: Array) -> Program:
        raise Unsupported(f"{self.name}: no second derivative is written down for {cotangent.size} outputs")

    def widened(self) -> Program:
        if self._dtype == np.float64:
            return self
        return NumpyProgram(self._formula, self.point, "float64")
