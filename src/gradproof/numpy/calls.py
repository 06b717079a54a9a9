"""A call of the user's function, reduced to 'a vector of coordinates -> output leaves'; and the structures that its
derivatives speak in."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradproof.errors import OutputsChanged, UsageError
from gradproof.numpy.leaves import Layout, differentiable, double
from gradproof.numpy.tree import Tree, flatten, leaf_count, matched, rebuild
from gradproof.program import Array, ComplexArray, Skipped

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


class Call:
    """The user's function with its arguments: some are the input leaves, the rest is fixed."""

    def __init__(
        self, fn: Callable[..., Any], tree: Tree, named: Sequence[tuple[str, Any]], wanted: frozenset[str]
    ) -> None:
        """`tree` and `named` are the flattened (args, kwargs)."""
        self.fn = fn
        self._tree, self._named, self._wanted = tree, named, wanted
        self._slots = [slot for slot, (path, _) in enumerate(named) if path in wanted]
        self.inputs = Layout.of([named[slot] for slot in self._slots])
        self._fixed = [None if path in wanted else value for path, value in named]
        self._copied = [
            slot for slot, value in enumerate(self._fixed) if isinstance(value, (np.ndarray, np.random.Generator))
        ]
        self._target = Target(tree, self._slots)
        self._outputs: Outputs | None = None

    @property
    def outputs(self) -> Outputs:
        if self._outputs is None:
            raise RuntimeError("the outputs are known after the first call")
        return self._outputs

    def point(self) -> Array:
        """The coordinates of the user's own arguments."""
        point = np.empty(self.inputs.size)
        self.inputs.write([self._named[slot][1] for slot in self._slots], point)
        return point

    def fixed(self, running: list[Any] | None = None) -> list[Any]:
        """Copies of the arrays and generators that stay as they are; other objects go through by reference. The
        generators of a call that is over, `running`, go on instead."""
        values = self._fixed.copy()
        for slot in self._copied:
            goes_on = running is not None and isinstance(values[slot], np.random.Generator)
            values[slot] = running[slot] if running and goes_on else copy.deepcopy(values[slot])
        return values

    def arguments(self, row: Array, fixed: list[Any] | None = None) -> Arguments:
        """What the user would pass at this point; the row is given away."""
        return self._filled(self.inputs.arrays(row), fixed)

    def named(self, arguments: Arguments) -> list[tuple[str, Any]]:
        """The leaves of such arguments, by their paths."""
        found: list[tuple[str, Any]] = []
        flatten(arguments, "", found)
        return [(path, value) for (path, _), (_, value) in zip(self._named, found, strict=True)]

    def complex_arguments(self, row: ComplexArray) -> Arguments:
        return self._filled(self.inputs.complex_arrays(row), None)

    def _filled(self, leaves: Sequence[Any], fixed: list[Any] | None) -> Arguments:
        values = self.fixed() if fixed is None else fixed
        for slot, leaf in zip(self._slots, leaves, strict=True):
            values[slot] = leaf
        arguments: Arguments = rebuild(self._tree, iter(values))
        return arguments

    def run(self, arguments: Arguments) -> list[Any]:
        """The output leaves, which must look like those of the first call."""
        result = self.fn(*arguments[0], **arguments[1])
        if self._outputs is None:
            self._outputs = Outputs(result)
        return self._outputs.leaves_of(result)

    def tangents(self, row: Array) -> Any:
        """A displacement, in the structure of what is differentiated."""
        return self._target.built(self.inputs.arrays(row.copy()))

    def gradients(self, value: Any, what: str) -> list[Any]:
        """For each input leaf its part of a value in the structure of what is differentiated."""
        return self._target.parts(value, what)

    def widened(self) -> Call | None:
        """The same call on float64 and complex128 copies of all floating arrays; None if they are that already."""
        wide = [(path, double(value)) for path, value in self._named]
        if all(new is old for (_, new), (_, old) in zip(wide, self._named, strict=True)):
            return None
        return Call(self.fn, self._tree, wide, self._wanted)


class Target:
    """The structure of what is differentiated: that of the one positional argument which holds it, or a tuple of such
    arguments."""

    def __init__(self, tree: Tree, slots: Sequence[int]) -> None:
        args = tree.children[0]
        assert args is not None
        first, held, self._positions = 0, [], []
        inside: list[int] = []
        for position, child in enumerate(args.children):
            span = range(first, first + leaf_count(child))
            first = span.stop
            if any(slot in span for slot in slots):
                held.append(child)
                self._positions.append(position)
                inside += span
        self._arguments = len(args.children)
        self._tree = held[0] if len(held) == 1 else Tree(tuple, *_places(len(held)), tuple(held), tuple)
        self._kept = [inside.index(slot) for slot in slots]
        self._count = len(inside)

    def parts(self, value: Any, what: str) -> list[Any]:
        if isinstance(value, tuple) and len(value) == self._arguments and not self._fits(value):
            value = tuple(value[position] for position in self._positions)
            value = value[0] if len(value) == 1 else value
        found = matched(self._tree, value, what)
        return [found[place] for place in self._kept]

    def _fits(self, value: tuple[Any, ...]) -> bool:
        """Whether a tuple already is the structure, and not one with a place for every argument."""
        if len(self._positions) > 1:
            return len(self._positions) == len(value)
        return self._tree is not None and len(self._tree.children) == len(value)

    def built(self, leaves: Sequence[Any]) -> Any:
        values: list[Any] = [None] * self._count
        for place, leaf in zip(self._kept, leaves, strict=True):
            values[place] = leaf
        return rebuild(self._tree, iter(values))


def _places(count: int) -> tuple[tuple[int, ...], tuple[str, ...]]:
    return tuple(range(count)), tuple(f"[{i}]" for i in range(count))


class Outputs:
    """What the first call returned: which leaves are coordinates, which are skipped, in what structure."""

    def __init__(self, result: Any) -> None:
        found: list[tuple[str, Any]] = []
        self._tree = flatten(plain(result), "out", found)
        self._count = len(found)
        self._kept = [i for i, (_, value) in enumerate(found) if _reason_to_skip(value) is None]
        self.layout = Layout.of([found[i] for i in self._kept])
        self.skipped = tuple(
            Skipped(path, reason) for path, value in found if (reason := _reason_to_skip(value)) is not None
        )

    def leaves_of(self, result: Any) -> list[Any]:
        named: list[tuple[str, Any]] = []
        if flatten(plain(result), "out", named) != self._tree:
            raise OutputsChanged.structure(self.layout.leaves, self.skipped, (path for path, _ in named))
        kept = [named[i][1] for i in self._kept]
        for leaf, value in zip(self.layout.leaves, kept, strict=True):
            self._same(leaf.path, leaf.shape, value)
        return kept

    def _same(self, path: str, shape: tuple[int, ...], value: Any) -> None:
        if np.shape(value) != shape:
            raise OutputsChanged(
                f"{path} has shape {shape} at the point but {np.shape(value)} at a nearby point; a function can be "
                "checked only if its output keeps its shape: pad it, or return a fixed part of it",
                "shape",
                str(shape),
                str(np.shape(value)),
            )

    def built(self, row: Array) -> Any:
        """A cotangent, in the structure of the outputs."""
        values: list[Any] = [None] * self._count
        for place, array in zip(self._kept, self.layout.arrays(row.copy()), strict=True):
            values[place] = array
        return rebuild(self._tree, iter(values))

    def parts(self, value: Any, what: str) -> list[Any]:
        """For each output leaf its part of a value in this structure."""
        value = value if self._tree is None else plain(value)
        found = matched(self._tree, value, what)
        return [found[place] for place in self._kept]


def plain(result: Any) -> Any:
    """Lists of numbers, as SciPy's functions may return them, are one array."""
    if type(result) in (list, tuple) and result and all(_numeric(part) for part in result):
        array = np.asarray(result)
        if np.issubdtype(array.dtype, np.inexact):
            return array
    return result


def _numeric(value: Any) -> bool:
    if type(value) is list:
        return bool(value) and all(_numeric(part) for part in value)
    return isinstance(value, (int, float, complex, np.number)) or (isinstance(value, np.ndarray) and value.ndim == 0)


def _reason_to_skip(value: object) -> str | None:
    if value is None:
        return "None"
    if isinstance(value, (float, complex)) or differentiable(value):
        return None
    dtype = getattr(value, "dtype", None)
    return f"{dtype} has no derivative" if dtype is not None else f"{type(value).__name__}, not an array"


def shaped(value: Any, shape: tuple[int, ...], what: str) -> Any:
    """A part of a derivative, which must have the shape of its leaf; None and the number 0 stand for zeros."""
    if value is None or np.shape(value) == shape:
        return value
    if np.size(value) == np.prod(shape, dtype=int) and np.ndim(value) <= 1 >= len(shape):
        return np.reshape(value, shape)  # a vector of one for a number, or the reverse
    if np.ndim(value) == 0 and np.asarray(value).item() == 0:
        return None
    raise UsageError(f"{what} has shape {np.shape(value)}, but must have the shape {shape} of what it belongs to")
