"""Sums of products, and the size of a block: one number that every scale-free decision refers to.

BLAS gets few numbers at a time, which are no work for threads: those and the threads of the framework under test wait
for each other, which costs milliseconds where the sum itself takes microseconds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gradproof.program import Array

# Numbers that are looked at together: few enough for all that is made of them to stay in the cache.
PIECE = 2**15
# Numbers that BLAS adds up without threads (OpenBLAS: up to 10,000), in less than half the time of einsum.
FEW = 10_000
# Further apart than this, relative to the largest of them, numbers are not the same but for rounding.
NEARLY = 2.0**-30


def dot(first: Array, second: Array) -> float:
    if first.size <= FEW:
        return float(first.dot(second))
    return sum([float(first[k : k + FEW].dot(second[k : k + FEW])) for k in range(0, first.size, FEW)])


def pieces(size: int) -> Iterator[slice]:
    return (slice(first, min(first + PIECE, size)) for first in range(0, size, PIECE))


def all_finite(values: Array) -> bool:
    """Mostly so, which one sum shows."""
    return math.isfinite(np.add.reduce(values, axis=None)) or bool(np.isfinite(values).all())


def product_size(weights: Array, values: Array) -> float:
    """The root of the sum of squares of the products."""
    if values.size <= PIECE:
        terms = weights * values
        return math.sqrt(dot(terms, terms))
    square = 0.0
    for some in pieces(values.size):
        terms = weights[some] * values[some]
        square += dot(terms, terms)
    return math.sqrt(square)


@dataclass(frozen=True, slots=True)
class Weighed:
    """Of products of weights and values: their sum, the root of the sum of their squares; and the largest value."""

    total: float
    size: float
    largest: float

    @classmethod
    def of(cls, weights: Array, values: Array) -> Weighed:
        if values.size <= PIECE:
            terms = weights * values
            return cls(float(np.add.reduce(terms)), math.sqrt(dot(terms, terms)), largest(values))
        total = square = top = 0.0
        room = np.empty(PIECE)
        for some in pieces(values.size):
            terms = np.multiply(weights[some], values[some], out=room[: some.stop - some.start])
            total += float(np.add.reduce(terms))
            square += dot(terms, terms)
            top = float(np.maximum(top, largest(values[some])))  # NaN stays
        return cls(total, math.sqrt(square), top)


def rows_dot(rows: Array, others: Array) -> Array:
    """Every row times the vector, or times the row beside it."""
    if rows.shape[1] > FEW:
        return np.asarray(np.einsum("ki,i->k" if others.ndim == 1 else "ki,ki->k", rows, others))
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(np.matmul(rows[:, None, :], others[..., None])[:, 0, 0])


def rows_weighed(rows: Array, weights: Array) -> Array:
    """The same, but what has no weight does not count, not even where it is not finite."""
    total = rows_dot(rows, weights)
    if np.isfinite(total).all() or weights.all():
        return total
    return np.asarray(np.sum(np.where(weights == 0, 0.0, rows * weights), axis=1))


def largest(values: Array) -> float:
    """The largest absolute value, without a copy; 0 when there are none."""
    highest, lowest = (one.reduce(values, axis=None, initial=0.0) for one in (np.maximum, np.minimum))
    return max(float(highest), -float(lowest))


def first_of_largest(values: Array) -> int:
    """Where the largest value stands. Of those that are alike but for rounding it is the first, so that every machine
    names the same one."""
    top = float(np.nanmax(values))
    return int(np.argmax(values >= top - NEARLY * abs(top)))


def is_multiple(values: Array, of: Array, factor: float) -> bool:
    """Whether each of the values is so many times the other, to the last digit."""
    if values.size <= PIECE:
        return bool((values == factor * of).all())
    return all((values[some] == factor * of[some]).all() for some in pieces(values.size))


def farthest(first: Array, second: Array) -> float:
    """The largest difference of two arrays, or NaN: piece by piece, few enough numbers to stay in the cache."""
    if first.ndim == 1 and first.size > PIECE:
        return float(np.max([largest(first[some] - second[some]) for some in pieces(first.size)]))
    if first.ndim == 2 and first.strides[0] < first.strides[1]:
        first, second = first.T, second.T
    if first.ndim != 2 or first.size <= PIECE:
        return largest(first - second)
    step = max(1, PIECE // first.shape[1])
    room = np.empty((step, first.shape[1]))
    tops = [
        largest(np.subtract(first[k : k + step], second[k : k + step], out=room[: len(first[k : k + step])]))
        for k in range(0, len(first), step)
    ]
    return float(np.max(tops))


def rms(values: Array) -> float:
    """Root mean square of the finite entries, safe against overflow; 0 when there are none."""
    if values.size == 0:
        return 0.0
    square = _square(values) / values.size
    if math.isfinite(square) and square > 1e-200:
        return math.sqrt(square)
    flat = values.ravel(order="K")
    finite = flat[np.isfinite(flat)]
    largest = float(np.max(np.abs(finite), initial=0.0))
    return largest * float(np.sqrt(np.mean(np.square(finite / largest)))) if largest > 0 else 0.0


def _square(values: Array) -> float:
    """The sum of squares; a part of a Jacobian as it is, without a copy."""
    if values.ndim == 2 and not (values.flags.c_contiguous or values.flags.f_contiguous):
        rows = values if values.strides[0] >= values.strides[1] else values.T
        return float(np.sum(rows_dot(rows, rows)))
    flat = values.ravel(order="K")
    return dot(flat, flat)
