"""A call reduced to 'input leaf arrays -> output leaf arrays', which JAX can trace, and its two derivatives.

What `reverse` and `forward` take and give follows the conventions of `gradproof.program`.
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from gradproof.jax.leaves import Arrays, Layout, as_array, conjugated, differentiable
from gradproof.jax.modes import translated
from gradproof.jax.outputs import Outputs, no_tangent
from gradproof.jax.recipes import has_reverse_rules
from gradproof.jax.spread import gathered, sharding_of, spread
from gradproof.jax.tree import Tree, flatten, rebuild
from gradproof.program import Skipped, leaves

Pull = Callable[[Arrays], Arrays]

_DOUBLE = (np.float64, np.complex128)


@dataclass(frozen=True, slots=True)
class Reversed:
    """The outputs at a point, and the map from their cotangents to those of the inputs."""

    values: Arrays
    pull: Pull


@dataclass(frozen=True, slots=True)
class Pushed:
    """The outputs at a point, and their tangents."""

    values: Arrays
    tangents: Arrays


class Call:
    """`run` is traced by all of JAX's transformations. The derivatives are JAX's own unless a subclass has others."""

    inputs: Layout
    skipped: tuple[Skipped, ...] = ()
    returned: tuple[np.dtype[Any], ...] = ()  # the dtypes of the gradients, once there are any

    @property
    def outputs(self) -> Layout:
        """Known after the first run."""
        raise NotImplementedError

    def run(self, arrays: Arrays) -> Arrays:
        raise NotImplementedError

    def learn_from(self, twin: Call) -> None:
        """Take over what another one knows of the outputs."""

    def reverse(self, arrays: Arrays) -> Reversed:
        with translated("reverse"):
            values, transposed = jax.vjp(lambda *xs: tuple(self.run(xs)), *arrays)

        def pull(cotangents: Arrays) -> Arrays:
            with translated("reverse"):
                found = transposed(tuple(conjugated(cotangents)))
            self.returned = tuple(one.dtype for one in found)
            return conjugated(self.inputs.cast(found))

        return Reversed(values, pull)

    def forward(self, arrays: Arrays, tangents: Arrays) -> Pushed:
        with translated("forward", lambda: has_reverse_rules(self.run, arrays)):
            return Pushed(*jax.jvp(lambda *xs: tuple(self.run(xs)), tuple(arrays), tuple(tangents)))


@dataclass(frozen=True, slots=True)
class Signature:
    """What the user called: a function, and the structure of (args, kwargs) or, if the function is itself a structure
    with arrays, of (args, kwargs, fn); the leaves with their paths; and which of them are differentiated."""

    fn: Callable[..., Any]
    tree: Tree
    named: tuple[tuple[str, Any], ...]
    wanted: frozenset[str]


class UserCall(Call):
    """The user's function with its arguments: some are the input leaves, the rest is fixed."""

    def __init__(self, signature: Signature) -> None:
        self.signature = signature
        self._fn = signature.fn
        named = signature.named
        self.slots = [slot for slot, (path, _) in enumerate(named) if path in signature.wanted]
        self.start = [(named[slot][0], _as_it_is(named[slot][1])) for slot in self.slots]
        self.inputs = Layout.of(self.start)
        shardings = self._shardings = [sharding_of(value) for _, value in named]
        self._own_shardings = [shardings[slot] for slot in self.slots]
        # NumPy arrays that stay fixed are copied for each call; JAX's cannot be changed, other objects go by reference.
        self.fixed: list[Any] = [None if path in signature.wanted else value for path, value in named]
        self._copied = [slot for slot, value in enumerate(self.fixed) if isinstance(value, np.ndarray)]
        self._outputs: Outputs | None = None

    @property
    def outputs(self) -> Layout:
        return self._learned.layout

    @property
    def skipped(self) -> tuple[Skipped, ...]:  # type: ignore[override]
        return self._learned.skipped

    @property
    def _learned(self) -> Outputs:
        if self._outputs is None:
            raise RuntimeError("the outputs are known after the first call")
        return self._outputs

    def run(self, arrays: Arrays) -> Arrays:
        args, kwargs, *own = self.arguments(spread(arrays, self._own_shardings))
        result = (own[0] if own else self._fn)(*args, **kwargs)
        if self._outputs is None:
            self._outputs = Outputs(result)
        return gathered(self._outputs.leaves_of(result), self._shardings)

    def arguments(self, arrays: Arrays) -> Any:
        """(args, kwargs), and fn if it is a structure, with these leaves."""
        values = self.fixed.copy()
        for slot in self._copied:
            values[slot] = values[slot].copy()
        return self._structured(values, arrays)

    def tangents(self, arrays: Arrays) -> Any:
        """The same for tangents: what is fixed has none, and JAX wants to see that."""
        return self._structured([no_tangent(value) for value in self.fixed], arrays)

    def leaves_of_arguments(self, structure: Any) -> Arrays:
        """The inverse: from a structure like (args, kwargs) to the leaves that are differentiated."""
        found: list[tuple[str, Any]] = []
        flatten(structure, "", found)
        if len(found) != len(self.fixed):
            raise ValueError(f"{len(found)} leaves instead of {len(self.fixed)}")
        return [found[slot][1] for slot in self.slots]

    def leaves_of_result(self, result: Any) -> Arrays:
        return self._learned.leaves_of(result)

    def structured_result(self, values: Arrays) -> Any:
        """What the function returned, with other leaves."""
        return self._learned.rebuilt(values)

    def _structured(self, values: list[Any], arrays: Arrays) -> Any:
        for slot, array in zip(self.slots, arrays, strict=True):
            values[slot] = array
        return rebuild(self.signature.tree, iter(values))

    def learn_from(self, twin: Call) -> None:
        if isinstance(twin, UserCall):
            self._outputs = twin._outputs

    def weakly(self) -> UserCall:
        """The same, but it does not keep the function alive. Raises TypeError if there is no other way."""
        function, twin = weakref.ref(self.signature.fn), copy.copy(self)

        def fn(*args: Any, **kwargs: Any) -> Any:
            alive = function()
            assert alive is not None
            return alive(*args, **kwargs)

        twin._fn, twin.start = fn, []
        twin.signature = Signature(fn, self.signature.tree, (), frozenset())
        return twin

    def widened(self) -> UserCall | None:
        """The same call on float64 and complex128 copies of all floating arrays; None if they are that already."""
        named, wanted = self.signature.named, self.signature.wanted
        # Numbers, and NumPy's arrays, are as wide as the mode allows: what counts is what was made of them here.
        wide = tuple((path, double(as_array(value) if path in wanted else value)) for path, value in named)
        fixed = [(new, old) for (path, new), (_, old) in zip(wide, named, strict=True) if path not in wanted]
        if all(new is old for new, old in fixed) and all(dtype in _DOUBLE for dtype in self.inputs.dtypes):
            return None
        return UserCall(Signature(self.signature.fn, self.signature.tree, wide, wanted))

    def anew(self) -> UserCall:
        """The same call, of which nothing is known."""
        return UserCall(self.signature)


class DerivedCall(Call):
    """Made of another call."""

    def __init__(self, inner: Call) -> None:
        self.inner = inner


class GradientCall(DerivedCall):
    """(x, w) -> J(x)^T w of another call."""

    def __init__(self, inner: Call) -> None:
        super().__init__(inner)
        self.inputs = joined(inner.inputs, _renamed(inner.outputs, "cotangent"))
        self._gradients = _renamed(inner.inputs, "grad")

    @property
    def outputs(self) -> Layout:
        return self._gradients

    def run(self, arrays: Arrays) -> Arrays:
        count = len(self.inner.inputs.leaves)
        return self.inner.reverse(arrays[:count]).pull(arrays[count:])


class TangentCall(DerivedCall):
    """(x, u) -> J(x) u of another call."""

    def __init__(self, inner: Call) -> None:
        super().__init__(inner)
        self.inputs = joined(inner.inputs, _renamed(inner.inputs, "tangent"))
        self._tangents = _renamed(inner.outputs, "tangent")

    @property
    def outputs(self) -> Layout:
        return self._tangents

    def run(self, arrays: Arrays) -> Arrays:
        count = len(self.inner.inputs.leaves)
        return self.inner.forward(arrays[:count], arrays[count:]).tangents


class LinearizedCall(DerivedCall):
    """The same call, but its forward mode is the linear map that `jax.linearize` makes."""

    def __init__(self, inner: Call) -> None:
        super().__init__(inner)
        self.inputs = inner.inputs
        self.skipped = inner.skipped

    @property
    def outputs(self) -> Layout:
        return self.inner.outputs

    def run(self, arrays: Arrays) -> Arrays:
        return self.inner.run(arrays)

    def reverse(self, arrays: Arrays) -> Reversed:
        return self.inner.reverse(arrays)

    def forward(self, arrays: Arrays, tangents: Arrays) -> Pushed:
        with translated("forward", lambda: has_reverse_rules(self.run, arrays)):
            values, linear = jax.linearize(lambda *xs: tuple(self.run(xs)), *arrays)
            return Pushed(values, linear(*tangents))


def joined(first: Layout, second: Layout) -> Layout:
    every = (*first.leaves, *second.leaves)
    return Layout(leaves([(leaf.path, leaf.shape, leaf.dtype) for leaf in every]), first.dtypes + second.dtypes)


def _renamed(layout: Layout, word: str) -> Layout:
    return Layout(leaves([(f"{word}({leaf.path})", leaf.shape, leaf.dtype) for leaf in layout.leaves]), layout.dtypes)


def _as_it_is(value: Any) -> Any:
    """A leaf as JAX would have it; an array of NumPy will do where JAX would keep its format."""
    kept = type(value) is np.ndarray and jax.dtypes.canonicalize_dtype(value.dtype) == value.dtype
    return value if kept else as_array(value)


def double(value: Any) -> Any:
    if not differentiable(value) or value.dtype in _DOUBLE:
        return value
    wide = np.asarray(value).astype(np.complex128 if jax.numpy.iscomplexobj(value) else np.float64)
    return jax.device_put(wide, value.sharding) if sharding_of(value) else wide
