"""Arrays <-> coordinates: float64 rows on the core's side, the leaf's own dtype and kind of number on the user's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradproof import precision
from gradproof.program import Array, ComplexArray, Leaf, leaves


@dataclass(frozen=True, slots=True)
class Layout:
    """The leaves of one side of a program, with the dtype of each and whether it is a number or an array."""

    leaves: tuple[Leaf, ...]
    dtypes: tuple[np.dtype[Any], ...]
    kinds: tuple[type, ...]

    @classmethod
    def of(cls, named: Sequence[tuple[str, Any]]) -> Layout:
        found = [(path, np.asarray(value)) for path, value in named]
        return cls(
            leaves([(path, array.shape, dtype_name(array.dtype)) for path, array in found]),
            tuple(array.dtype for _, array in found),
            tuple(type(value) for _, value in named),
        )

    @property
    def size(self) -> int:
        return self.leaves[-1].stop if self.leaves else 0

    def arrays(self, row: Array) -> list[Any]:
        """One vector, which is given away -> for each leaf what the user would have passed. A float64 array may be a
        view of the row; all else is fresh."""
        made: list[Any] = []
        for leaf, dtype, kind in zip(self.leaves, self.dtypes, self.kinds, strict=True):
            part: Any = row[leaf.span]
            if leaf.is_complex:
                part = part.view(np.complex128)
            made.append(_as(kind, part.reshape(leaf.shape).astype(dtype, copy=False)))
        return made

    def complex_arrays(self, row: ComplexArray) -> list[Any]:
        """The same at a complex point; all leaves are real ones."""
        return [
            _as(kind, row[leaf.span].reshape(leaf.shape)) for leaf, kind in zip(self.leaves, self.kinds, strict=True)
        ]

    def write(self, arrays: Sequence[Any], into: Array) -> None:
        """For each leaf an array of its shape, or None for zeros."""
        for leaf, value in zip(self.leaves, arrays, strict=True):
            into[leaf.span] = 0.0 if value is None else coordinates(value, leaf)


def coordinates(value: Any, leaf: Leaf) -> Array:
    """The coordinates of an array that belongs to this leaf; an imaginary part that a real leaf has no place for is
    dropped by those who have checked that it does not matter."""
    array = np.asarray(value).reshape(-1)
    if leaf.is_complex:
        return np.ascontiguousarray(array, dtype=np.complex128).view(np.float64)
    return np.asarray(array.real, dtype=np.float64)


def differentiable(value: object) -> bool:
    """Whether this is an array (or a number of NumPy's) with coordinates. Python's own numbers are parameters, unless
    the user says otherwise."""
    return isinstance(value, (np.ndarray, np.generic)) and np.issubdtype(value.dtype, np.inexact)


def is_number(value: object) -> bool:
    return isinstance(value, (float, complex)) or differentiable(value)


def dtype_name(dtype: np.dtype[Any]) -> str:
    """Of a format that the core knows: wider ones count as double."""
    wide = "complex128" if np.issubdtype(dtype, np.complexfloating) else "float64"
    return dtype.name if precision.of(dtype.name) is not precision.HALF or dtype.name == "float16" else wide


def double(value: Any) -> Any:
    """The same in float64 or complex128; what is no floating array stays as it is."""
    if not differentiable(value):
        return value
    wide = np.complex128 if np.issubdtype(value.dtype, np.complexfloating) else np.float64
    return value.astype(wide) if value.dtype.itemsize < np.dtype(wide).itemsize else value


def _as(kind: type, array: Any) -> Any:
    """An array, or the scalar that the user passed."""
    if kind in (float, complex):
        return array.item()
    return array[()] if issubclass(kind, np.generic) else array
