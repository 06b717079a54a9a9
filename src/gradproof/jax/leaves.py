"""Arrays <-> coordinates: float64 rows on the core's side, NumPy arrays of the leaf's own dtype on JAX's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, repeat
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gradproof import precision
from gradproof.program import Array, Leaf, leaves

Arrays = Sequence[Any]

# Single rows that are asked for before the first of them is waited for.
IN_FLIGHT = 16


@dataclass(frozen=True, slots=True)
class Layout:
    """The leaves of one side of a program, and their dtypes."""

    leaves: tuple[Leaf, ...]
    dtypes: tuple[np.dtype[Any], ...]

    @classmethod
    def of(cls, named: Sequence[tuple[str, Any]]) -> Layout:
        return cls(
            leaves([(path, tuple(array.shape), _name(array.dtype)) for path, array in named]),
            tuple(array.dtype for _, array in named),
        )

    @property
    def size(self) -> int:
        return self.leaves[-1].stop if self.leaves else 0

    @property
    def roundoff(self) -> float:
        """That of the coarsest leaf."""
        return precision.coarsest(self.leaves).roundoff

    def single(self, row: Array) -> list[Any]:
        """One vector -> one array for each leaf, as the user's function expects them."""
        return [jnp.asarray(one) for one in self.plain(row)]

    def plain(self, row: Array) -> tuple[Any, ...]:
        """The same as NumPy arrays, which is all that a compiled function needs."""
        return next(self.singles(row[None]))

    def singles(self, rows: Array) -> Iterator[tuple[Any, ...]]:
        """The same of many rows, one after the other."""
        return zip(*self.arrays(rows), strict=True) if self.leaves else repeat((), len(rows))

    def arrays(self, rows: Array, more: Array | None = None) -> list[Any]:
        """(k, size) -> for each leaf an array (k, *shape) of its dtype; with more rows at the end, where there are any.
        The rows themselves serve where they can: JAX does not write into what it is given."""
        made = []
        for leaf, dtype in zip(self.leaves, self.dtypes, strict=True):
            part = _part(rows, leaf)
            if more is not None:
                longer = np.empty((len(rows) + len(more), part.shape[1]), dtype)
                longer[: len(rows)], longer[len(rows) :] = part, _part(more, leaf)
                part = longer
            made.append(part.reshape(len(part), *leaf.shape).astype(dtype, copy=False))
        return made

    def cast(self, arrays: Arrays) -> list[Any]:
        """Gradients of these leaves in their dtypes: JAX hands on what a rule returns, as it is."""
        return [
            one if one.dtype == dtype else _of_kind(one, leaf).astype(dtype)
            for leaf, dtype, one in zip(self.leaves, self.dtypes, arrays, strict=True)
        ]

    def write(self, arrays: Arrays, into: Array) -> None:
        """For each leaf (k, *shape), or more rows of which the last do not count -> (k, size)."""
        count = len(into)
        for leaf, array in zip(self.leaves, arrays, strict=True):
            flat = np.asarray(array)[:count].reshape(count, -1)
            into[:, leaf.span] = _real(flat) if leaf.is_complex else flat

    def write_single(self, arrays: Arrays, into: Array) -> None:
        """The same for one vector."""
        for leaf, array in zip(self.leaves, arrays, strict=True):
            flat = np.asarray(array).reshape(-1)
            into[leaf.span] = _real(flat) if leaf.is_complex else flat


def _part(rows: Array, leaf: Leaf) -> Any:
    part = rows[:, leaf.span]
    return np.ascontiguousarray(part).view(np.complex128) if leaf.is_complex else part


def _of_kind(array: Any, leaf: Leaf) -> Any:
    return array if leaf.is_complex else array.real


def _real(flat: Any) -> Any:
    """Pairs (re, im) of complex numbers."""
    return np.ascontiguousarray(flat).view(np.float64 if flat.dtype == np.complex128 else np.float32)


def units_and(more: Arrays) -> list[Any]:
    """For each leaf (k, *shape): a unit vector for every coordinate of all leaves, and then these rows."""
    sizes = [prod(one.shape[1:]) for one in more]
    total, start, made = sum(sizes), 0, []
    for one, size in zip(more, sizes, strict=True):
        units = jnp.eye(total, size, -start, one.dtype).reshape(total, *one.shape[1:])
        made.append(jnp.concatenate([units, one]))
        start += size
    return made


def conjugated(arrays: Arrays) -> list[Any]:
    """JAX's reverse mode is the transpose, not the adjoint: cotangents and gradients of complex leaves are the
    conjugates of what `gradproof.program` means by them. This is the only place that knows."""
    return [jnp.conj(array) if jnp.issubdtype(array.dtype, jnp.complexfloating) else array for array in arrays]


def differentiable(value: object) -> bool:
    """Whether this is an array with coordinates. Integers, booleans and random keys have none."""
    return isinstance(value, (jax.Array, np.ndarray, np.generic)) and _inexact(value.dtype)


@lru_cache
def _inexact(dtype: Any) -> bool:
    return bool(jnp.issubdtype(dtype, jnp.inexact))


@lru_cache
def _name(dtype: Any) -> str:
    return str(dtype.name)


def as_array(value: Any) -> Any:
    """A leaf may be an array of JAX or NumPy, or a number."""
    return value if isinstance(value, jax.Array) else jnp.asarray(value)


def handed_over(arrays: Arrays) -> list[Any]:
    """NumPy arrays as arrays of JAX, all in one call, where `as_array` takes some dozens of Python's for each. They may
    share memory: what is handed over is a copy."""
    given = [np.array(one) for one in arrays]
    return [as_array(one) for one in _passed_on(given)]  # with `jax.disable_jit()` they are still NumPy's


_passed_on: Any = jax.jit(lambda arrays: arrays)


def is_number(value: object) -> bool:
    """A plain Python number that could be differentiated, if somebody asked for it."""
    return isinstance(value, (float, complex)) and not isinstance(value, np.generic)


def rows_of(array: Array, width: int) -> Array:
    """What a caller handed to a seam function, as rows."""
    rows = np.ascontiguousarray(array, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != width:
        raise ValueError(f"expected rows of {width} coordinates, shape (k, {width}), got shape {np.shape(array)}")
    return rows


def rows_first(arrays: Arrays) -> Arrays:
    """(*shape, k) -> (k, size)."""
    return [np.asarray(one).reshape(-1, one.shape[-1]).T for one in arrays]


def in_flight(rows: Iterator[Arrays], into: Array) -> Iterator[tuple[Iterator[Arrays], Array]]:
    """Some rows at a time, and where their results go: JAX hands back promises, and to wait for each before the next is
    asked for takes longer than to compute it."""
    for first in range(0, len(into), IN_FLIGHT):
        targets = into[first : first + IN_FLIGHT]
        yield islice(rows, len(targets)), targets
