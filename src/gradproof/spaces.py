"""Sets that an argument stays in while it is perturbed: `check(fn, a, spaces={"args[0]": Symmetric()})`.

A space knows its tangents and the way back. `project` is the orthogonal projection onto the tangents at a point,
`retract` goes from the point along a tangent and stays in the set. So every entry of the argument still has its own
derivative: the one along its projection. All arrays are NumPy's, in the argument's own shape, real or complex;
directions have one more dimension in front.
"""

# ruff: noqa: ARG002  all spaces have the same methods, and not each needs all that it is given

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[Any]

# An argument belongs to a set when it misses it by no more than so many roundings of its size.
ROUNDINGS = 256.0


class Space(Protocol):
    """What `spaces=` takes; the classes below, or one's own."""

    def refusal(self, point: Numbers, roundoff: float) -> str:
        """Why the point is not in the set, as the end of a sentence; empty if it is."""

    def project(self, point: Numbers, directions: Numbers) -> Numbers: ...

    def retract(self, point: Numbers, tangents: Numbers) -> Numbers:
        """The points reached; NaN where they would leave the set."""


@dataclass(frozen=True, slots=True)
class Symmetric:
    """Matrices with x = x^T, of any number of leading dimensions."""

    def refusal(self, point: Numbers, roundoff: float) -> str:
        return _matrix(point) or _apart(point, np.swapaxes(point, -1, -2), roundoff, "is not symmetric")

    def project(self, point: Numbers, directions: Numbers) -> Numbers:
        return 0.5 * (directions + np.swapaxes(directions, -1, -2))

    def retract(self, point: Numbers, tangents: Numbers) -> Numbers:
        return point + tangents


@dataclass(frozen=True, slots=True)
class Hermitian:
    """Matrices with x = x^H; real ones are symmetric."""

    def refusal(self, point: Numbers, roundoff: float) -> str:
        return _matrix(point) or _apart(point, _adjoint(point), roundoff, "is not Hermitian")

    def project(self, point: Numbers, directions: Numbers) -> Numbers:
        return 0.5 * (directions + _adjoint(directions))

    def retract(self, point: Numbers, tangents: Numbers) -> Numbers:
        return point + tangents


@dataclass(frozen=True, slots=True)
class PositiveDefinite:
    """Hermitian matrices with positive eigenvalues; steps that would lose one are not taken."""

    def refusal(self, point: Numbers, roundoff: float) -> str:
        return Hermitian().refusal(point, roundoff) or (
            ""
            if _smallest(point) > 0
            else f"is not positive definite: its smallest eigenvalue is {_smallest(point):.3g}"
        )

    def project(self, point: Numbers, directions: Numbers) -> Numbers:
        return Hermitian().project(point, directions)

    def retract(self, point: Numbers, tangents: Numbers) -> Numbers:
        reached = point + tangents
        # An eigenvalue moves by no more than the norm of the tangent; only beyond that must one look.
        length = np.sqrt(np.sum(np.abs(tangents) ** 2, axis=tuple(range(1, tangents.ndim))))
        for row in np.flatnonzero(~(length < _smallest(point))):
            if not (np.isfinite(reached[row]).all() and _smallest(reached[row]) > 0):
                reached[row] = np.nan
        return reached


@dataclass(frozen=True, slots=True)
class LowerTriangular:
    """Matrices that are zero above the diagonal."""

    def refusal(self, point: Numbers, roundoff: float) -> str:
        return _matrix(point) or ("is not zero above the diagonal" if np.triu(point, 1).any() else "")

    def project(self, point: Numbers, directions: Numbers) -> Numbers:
        return np.tril(directions)

    def retract(self, point: Numbers, tangents: Numbers) -> Numbers:
        return point + tangents


@dataclass(frozen=True, slots=True)
class UpperTriangular:
    """Matrices that are zero below the diagonal."""

    def refusal(self, point: Numbers, roundoff: float) -> str:
        return _matrix(point) or ("is not zero below the diagonal" if np.tril(point, -1).any() else "")

    def project(self, point: Numbers, directions: Numbers) -> Numbers:
        return np.triu(directions)

    def retract(self, point: Numbers, tangents: Numbers) -> Numbers:
        return point + tangents


@dataclass(frozen=True, slots=True)
class Orthogonal:
    """Matrices with orthonormal columns, square or tall; complex ones are unitary.

    The way back is Cayley's transform (Wen and Yin 2013), which stays in the set to rounding.
    """

    def refusal(self, point: Numbers, roundoff: float) -> str:
        if point.ndim < 2 or point.shape[-2] < point.shape[-1]:
            return "is not a matrix with at least as many rows as columns"
        return _apart(
            _adjoint(point) @ point, np.eye(point.shape[-1]), roundoff, "has columns that are not orthonormal"
        )

    def project(self, point: Numbers, directions: Numbers) -> Numbers:
        return np.asarray(directions - point @ Hermitian().project(point, _adjoint(point) @ directions))

    def retract(self, point: Numbers, tangents: Numbers) -> Numbers:
        one = np.eye(point.shape[-2])
        across = (one - 0.5 * point @ _adjoint(point)) @ tangents @ _adjoint(point)
        half = 0.5 * (across - _adjoint(across))
        return np.linalg.solve(one - half, (one + half) @ point)


@dataclass(frozen=True, slots=True)
class Simplex:
    """Positive numbers that sum to one along an axis."""

    axis: int = -1

    def refusal(self, point: Numbers, roundoff: float) -> str:
        if np.iscomplexobj(point) or point.ndim == 0:
            return "is not an array of real numbers"
        if not (point > 0).all():
            return "has entries that are not positive: move it inside of the simplex"
        return _apart(point.sum(self.axis), np.ones(()), roundoff, f"does not sum to 1 along axis {self.axis}")

    def project(self, point: Numbers, directions: Numbers) -> Numbers:
        axis = self.axis if self.axis < 0 else self.axis + 1
        return np.asarray(directions - directions.mean(axis, keepdims=True))

    def retract(self, point: Numbers, tangents: Numbers) -> Numbers:
        reached = point + tangents
        reached[(reached < 0).any(axis=tuple(range(1, reached.ndim)))] = np.nan
        return reached


@dataclass(frozen=True, eq=False)
class Sparsity:
    """Arrays that may differ from zero only where `mask`, of the same shape, is true."""

    mask: Any

    def refusal(self, point: Numbers, roundoff: float) -> str:
        mask = np.asarray(self.mask, dtype=bool)
        if mask.shape != point.shape:
            return f"has shape {point.shape}, the mask {mask.shape}"
        return "is not zero outside of the mask" if np.where(mask, 0.0, point).any() else ""

    def project(self, point: Numbers, directions: Numbers) -> Numbers:
        return np.where(np.asarray(self.mask, dtype=bool), directions, 0.0)

    def retract(self, point: Numbers, tangents: Numbers) -> Numbers:
        return point + tangents


@dataclass(frozen=True, eq=False)
class Projector:
    """One's own set. `onto(direction)` is the orthogonal projection onto the tangents at the point where the check is
    made, one array at a time; `back(point, tangent)` goes along one, and is a plain sum if left out."""

    onto: Callable[[Numbers], Numbers]
    back: Callable[[Numbers, Numbers], Numbers] | None = None

    def refusal(self, point: Numbers, roundoff: float) -> str:
        generator = np.random.default_rng(0)
        first, second = (_random(generator, point) for _ in range(2))
        (u, v), both = self.project(point, np.stack([first, second])), self.onto(first + 2.0 * second)
        again = self.project(point, np.stack([u, v]))
        size = np.sqrt(float(point.size))
        if u.shape != point.shape:
            return f"has shape {point.shape}, but its projector returns {u.shape}"
        inner = abs(np.vdot(u, second).real - np.vdot(first, v).real)
        worst = max(np.abs(again - [u, v]).max(), np.abs(both - u - 2.0 * v).max(), inner / size)
        return "" if worst <= 1e-6 else "has a projector that is not linear, idempotent and symmetric"

    def project(self, point: Numbers, directions: Numbers) -> Numbers:
        return np.stack([np.asarray(self.onto(direction)) for direction in directions])

    def retract(self, point: Numbers, tangents: Numbers) -> Numbers:
        if self.back is None:
            return point + tangents
        return np.stack([np.asarray(self.back(point, tangent)) for tangent in tangents])


def _matrix(point: Numbers) -> str:
    square = point.ndim >= 2 and point.shape[-1] == point.shape[-2]
    return "" if square else f"is not a square matrix, but of shape {point.shape}"


def _adjoint(matrix: Numbers) -> Numbers:
    return np.conj(np.swapaxes(matrix, -1, -2))


def _smallest(point: Numbers) -> float:
    return float(np.min(np.linalg.eigvalsh(point)))


def _apart(first: Numbers, second: Numbers, roundoff: float, words: str) -> str:
    gap = float(np.max(np.abs(first - second), initial=0.0))
    allowed = ROUNDINGS * roundoff * max(float(np.max(np.abs(first), initial=0.0)), 1e-300)
    return "" if gap <= allowed else f"{words}: it is off by {gap:.3g}"


def _random(generator: np.random.Generator, like: Numbers) -> Numbers:
    drawn: Numbers = generator.standard_normal(like.shape)
    return drawn + 1j * generator.standard_normal(like.shape) if np.iscomplexobj(like) else drawn
