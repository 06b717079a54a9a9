"""A Jacobian at one point, however it was given: rows times it, and its transpose. Batch first, in coordinates.

The conventions for complex numbers, for all that is written by hand:

- A matrix from complex to complex is that of a complex-differentiable function: dy = J dx.
- From real to complex it is dy = J dx, too. From complex to real it holds gradients: dy = Re(conj(g) dx), that is
  g = d y/d(real part) + i d y/d(imaginary part).
- `vjp` is the adjoint for the real inner product <a, b> = Re(sum(conj(a) b)); `jvp` is the derivative along v. Both can
  say what no complex matrix can: the derivative of a function that is not complex-differentiable.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from gradproof.errors import Unsupported
from gradproof.program import Array, Stored

# (output is complex, input is complex) -> which part of a matrix entry stands at which (output, input) coordinates.
PARTS: dict[tuple[bool, bool], tuple[tuple[int, int, Callable[[Any], Any]], ...]] = {
    (False, False): ((0, 0, np.real),),
    (True, False): ((0, 0, np.real), (1, 0, np.imag)),
    (False, True): ((0, 0, np.real), (0, 1, np.imag)),
    (True, True): ((0, 0, np.real), (0, 1, lambda c: -np.imag(c)), (1, 0, np.imag), (1, 1, np.real)),
}


class Linear(Protocol):
    """Modes that do not exist raise Unsupported."""

    def pull(self, cotangents: Array) -> Array: ...

    def push(self, tangents: Array) -> Array: ...


@dataclass(frozen=True, eq=False, slots=True)
class Dense:
    matrix: Array

    def pull(self, cotangents: Array) -> Array:
        return np.asarray(cotangents @ self.matrix)

    def push(self, tangents: Array) -> Array:
        return np.asarray(tangents @ self.matrix.T)


@dataclass(frozen=True, eq=False, slots=True)
class Sparse:
    stored: Stored
    rows: int
    columns: int

    def pull(self, cotangents: Array) -> Array:
        outputs, inputs, values = self.stored.outputs, self.stored.inputs, self.stored.values
        result = np.empty((len(cotangents), self.columns))
        for row, target in zip(cotangents, result, strict=True):
            target[:] = np.bincount(inputs, values * row[outputs], self.columns)
        return result

    def push(self, tangents: Array) -> Array:
        outputs, inputs, values = self.stored.outputs, self.stored.inputs, self.stored.values
        result = np.empty((len(tangents), self.rows))
        for row, target in zip(tangents, result, strict=True):
            target[:] = np.bincount(outputs, values * row[inputs], self.rows)
        return result


@dataclass(frozen=True, eq=False, slots=True)
class Functions:
    """One vector at a time; None where the author wrote nothing."""

    pulled: Callable[[Array], Array] | None
    pushed: Callable[[Array], Array] | None
    rows: int
    columns: int

    def pull(self, cotangents: Array) -> Array:
        return _each(self.pulled, cotangents, self.columns, "no vjp was given")

    def push(self, tangents: Array) -> Array:
        return _each(self.pushed, tangents, self.rows, "no jvp was given")


def _each(one: Callable[[Array], Array] | None, rows: Array, width: int, missing: str) -> Array:
    if one is None:
        raise Unsupported(missing)
    result = np.empty((len(rows), width))
    for row, target in zip(rows, result, strict=True):
        target[:] = one(row)
    return result


def merged(stored: Stored, columns: int) -> Stored:
    """Each entry once: what is stored twice adds up. Sorted by output."""
    keys = stored.outputs.astype(np.int64) * columns + stored.inputs
    unique, place = np.unique(keys, return_inverse=True)
    if unique.size == keys.size and (np.diff(keys) > 0).all():
        return stored
    outputs, inputs = np.divmod(unique, columns)
    values = np.bincount(place, stored.values, unique.size).astype(np.float64)
    return Stored(outputs.astype(np.intp), inputs.astype(np.intp), values)
