"""What a function that the user wrote does to the arrays that it is given, and to those that it returned before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradproof.numpy.matrices import is_sparse
from gradproof.numpy.tree import flatten, rebuild

Named = Sequence[tuple[str, Any]]


class Snapshot:
    """Arrays by name, and their numbers as they are now."""

    def __init__(self, named: Named) -> None:
        self._kept = [(path, value, value.tobytes()) for path, value in named if _has_numbers(value)]

    def changed(self) -> list[str]:
        return [path for path, value, before in self._kept if value.tobytes() != before]


class Watched:
    """The same function; what it writes into, of what it is given or has returned, is noted.

    All its calls are handed the same arrays, changed in place, as many a loop does: what it keeps by the identity of an
    array, or without a copy, is then out of date.
    """

    def __init__(self, given: Callable[..., Any], name: Callable[[int], str]) -> None:
        """`name`: what to call a positional argument."""
        self._given, self._name = given, name
        self.overwritten: list[str] = []
        self.overwrites_results = False
        self._handed: dict[str, Any] = {}
        self._returned = Snapshot(())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        found: list[tuple[str, Any]] = []
        trees = [flatten(value, self._name(place), found) for place, value in enumerate(args)]
        trees.append(flatten(kwargs, "kwargs", found))
        found = [(path, self._same_array(path, value)) for path, value in found]
        values = iter([value for _, value in found])
        *positional, named = [rebuild(tree, values) for tree in trees]
        given = Snapshot(found)
        result = self._given(*positional, **named)
        self.overwritten += given.changed()
        self.overwrites_results |= bool(self._returned.changed())
        # Who returns what was given, as the gradient of x^2 / 2 is x, overwrites nothing: that is the caller's array.
        self._returned = Snapshot([one for one in _arrays_in(result) if not _shared(one[1], found)])
        return result

    def _same_array(self, path: str, value: Any) -> Any:
        if not _has_numbers(value):
            return value
        kept = self._handed.setdefault(path, value)
        if kept is value or (kept.shape, kept.dtype) != (value.shape, value.dtype) or not kept.flags.writeable:
            return value
        np.copyto(kept, value)
        return kept


def _has_numbers(value: object) -> bool:
    return isinstance(value, np.ndarray) and not value.dtype.hasobject


def _arrays_in(result: Any) -> list[tuple[str, Any]]:
    """A sparse matrix by its stored values."""
    found: list[tuple[str, Any]] = []
    flatten(result, "", found)
    return [(path, getattr(value, "data", None) if is_sparse(value) else value) for path, value in found]


def _shared(value: Any, given: Named) -> bool:
    return _has_numbers(value) and any(np.may_share_memory(value, one) for _, one in given if _has_numbers(one))
