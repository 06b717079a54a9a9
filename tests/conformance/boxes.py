"""A framework of a third party, as small as can be, and its adapter: a `Box` holds float64 numbers, a `Boxed` function
knows its derivatives. It shows what docs/adapters.md asks for, and that the scenarios run over it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradproof.errors import Unsupported
from gradproof.paths import matching
from gradproof.program import Array, Leaf, Program, Skipped, Tally, leaves


@dataclass
class Box:
    numbers: np.ndarray


@dataclass(frozen=True)
class Boxed:
    """`forward(*arrays)`, `pulled(w, *arrays)`, `pushed(v, *arrays)`; outputs and tangents of several are tuples."""

    forward: Callable[..., Any]
    pulled: Callable[..., Any]
    pushed: Callable[..., Any] | None

    def __call__(self, *boxes: Box) -> Any:
        found = self.forward(*(box.numbers for box in boxes))
        return tuple(map(Box, found)) if isinstance(found, tuple) else Box(found)


# ---- the adapter: two functions and a class


def owns(fn: Callable[..., Any], args: Any, kwargs: Mapping[str, Any]) -> bool:
    several = args if isinstance(args, (tuple, list)) else (args,)
    return any(isinstance(one, Box) for one in several)


def program_of(fn: Boxed, args: Any, kwargs: Mapping[str, Any], wrt: str | Sequence[str] | None) -> Program:
    boxes = tuple(args) if isinstance(args, (tuple, list)) else (args,)
    paths = [f"args[{k}]" for k in range(len(boxes))]
    wanted = set(paths) if wrt is None else matching(wrt, paths)
    return BoxProgram(fn, [box.numbers for box in boxes], [k for k, path in enumerate(paths) if path in wanted])


class BoxProgram:
    name = "boxed"
    skipped: tuple[Skipped, ...] = ()
    notes: tuple[str, ...] = ()
    batched = False

    def __init__(self, fn: Boxed, arrays: list[np.ndarray], wanted: list[int]) -> None:
        self._fn, self._arrays, self._wanted = fn, [np.array(one, float) for one in arrays], wanted
        self.tally = Tally()
        self.inputs: tuple[Leaf, ...] = leaves([(f"args[{k}]", self._arrays[k].shape, "float64") for k in wanted])
        self.point = _frozen([self._arrays[k] for k in wanted])
        outputs = self._called(self.point)
        one = len(outputs) == 1
        shapes = [("out" if one else f"out[{k}]", np.shape(y), "float64") for k, y in enumerate(outputs)]
        self.outputs: tuple[Leaf, ...] = leaves(shapes)
        self.value = _frozen(outputs)

    def _arguments(self, row: Array) -> list[np.ndarray]:
        arrays = [one.copy() for one in self._arrays]
        for leaf, k in zip(self.inputs, self._wanted, strict=True):
            arrays[k] = row[leaf.span].reshape(leaf.shape).copy()
        return arrays

    def _called(self, row: Array) -> tuple[Any, ...]:
        with np.errstate(all="ignore"):
            found = self._fn.forward(*self._arguments(row))
        return found if isinstance(found, tuple) else (found,)

    def values(self, points: Array) -> Array:
        self.tally.evaluations += len(points)
        result = np.full((len(points), self.value.size), np.nan)
        for row, target in zip(points, result, strict=True):
            with suppress(Exception):  # the step left the domain: the row stays NaN
                target[:] = _joined(self._called(row))
        return result

    def repeated_value(self) -> Array:
        return self.values(np.stack([self.point, self.point]))[1]

    def pull(self, cotangents: Array) -> Array:
        self.tally.pulls += len(cotangents)
        result = np.empty((len(cotangents), self.point.size))
        for row, target in zip(cotangents, result, strict=True):
            parts = tuple(row[leaf.span].reshape(leaf.shape) for leaf in self.outputs)
            found = self._fn.pulled(parts if len(parts) > 1 else parts[0], *self._arguments(self.point))
            target[:] = _joined([found[k] for k in self._wanted])
        return result

    def push(self, tangents: Array) -> Array:
        if self._fn.pushed is None:
            raise Unsupported("no forward derivative was boxed")
        self.tally.pushes += len(tangents)
        result = np.empty((len(tangents), self.value.size))
        for row, target in zip(tangents, result, strict=True):
            along = [np.zeros_like(one) for one in self._arrays]
            for leaf, k in zip(self.inputs, self._wanted, strict=True):
                along[k] = row[leaf.span].reshape(leaf.shape)
            found = self._fn.pushed(tuple(along), *self._arguments(self.point))
            target[:] = _joined(found if isinstance(found, tuple) else (found,))
        return result

    def gradient(self, cotangent: Array) -> Program:
        raise Unsupported("boxes know no second derivatives")

    def widened(self) -> Program:
        raise Unsupported("boxes hold float64 numbers")


def _joined(arrays: Sequence[Any]) -> Array:
    return np.concatenate([np.asarray(one, float).ravel() for one in arrays]) if arrays else np.zeros(0)


def _frozen(arrays: Sequence[Any]) -> Array:
    joined = _joined(arrays)
    joined.flags.writeable = False
    return joined
