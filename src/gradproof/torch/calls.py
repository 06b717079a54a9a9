"""A call of the user's function, reduced to 'input leaf tensors -> output leaf tensors', one at a time or k at once.

Whoever makes a call hands over tensors that it no longer needs: the function may overwrite them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Protocol

import numpy as np
import torch

from gradproof.errors import OutputsChanged, Unsupported
from gradproof.program import Array, Skipped
from gradproof.torch.batchrules import at_once
from gradproof.torch.captured import put_back
from gradproof.torch.forms import MKLDNN, Forms, Meaning
from gradproof.torch.leaves import Layout, dtype_name
from gradproof.torch.state import Values
from gradproof.torch.strides import arrangement
from gradproof.torch.subclasses import plain, widened
from gradproof.torch.tree import Tree, flatten, rebuild
from gradproof.torch.turns import Turn

Tensors = Sequence[torch.Tensor]


class Call(Protocol):
    inputs: Layout
    forms: Forms
    modules: tuple[torch.nn.Module, ...]
    reading: Callable[[], AbstractContextManager[object]] | None  # a scope that calls and reverse passes are made in
    held: Turn | None  # what no other thread may have meanwhile
    hooked: str  # says of which inputs there are hooks; then reverse passes are made one by one

    @property
    def outputs(self) -> Layout:
        """Known after the first call."""

    @property
    def skipped(self) -> tuple[Skipped, ...]: ...

    def one(self, leaves: Tensors) -> Tensors:
        """From coordinates, or from the points of a graph."""

    def many(self, leaves: Tensors) -> Tensors:
        """The same for k rows: one more dimension in front of each input and output."""


class UserCall:
    """The user's function with its arguments: some are the input leaves, the rest is fixed."""

    def __init__(
        self,
        fn: Callable[..., Any],
        arguments: tuple[Tree | None, Sequence[tuple[str, Any]]],
        state: Sequence[tuple[str, torch.Tensor]],
        wanted: frozenset[str],
        meaning: Meaning,
        captured: frozenset[str] = frozenset(),
        registered: frozenset[str] = frozenset(),
    ) -> None:
        """`arguments` is the flattened (args, kwargs); `state` a module's parameters and buffers, by path."""
        self._registered = registered
        self._fn = fn
        self._tree, named = arguments
        self._state = [path.partition(".")[2] for path, _ in state]
        named = (*named, *state)
        self._named = named
        self._wanted = wanted
        self._meaning = meaning
        self._slots: list[int] = []
        # Tensors that stay fixed are copied for each call too; other objects go through by reference.
        self._template: list[Any] = [None] * len(named)
        self._copied: list[int] = []
        for slot, (path, value) in enumerate(named):
            if path in wanted:
                self._slots.append(slot)
            else:
                self._template[slot] = value.detach() if isinstance(value, torch.Tensor) else value
                if isinstance(value, (torch.Tensor, np.ndarray)):
                    self._copied.append(slot)
        chosen = [named[slot] for slot in self._slots]
        self.forms = Forms.of(chosen, meaning, captured, registered)
        self._captured = self.forms.captured
        # Those of the user's own tensors, which calls get copies of; captured ones have theirs.
        self._hooks = [
            (i, tuple(tensor._backward_hooks.values()))
            for i, (path, tensor) in enumerate(chosen)
            if tensor._backward_hooks and path not in captured
        ]
        found = [None if i in self.forms.by_input else arrangement(tensor) for i, (_, tensor) in enumerate(chosen)]
        self._arranged = [(i, one) for i, one in enumerate(found) if one is not None]
        self._start = self.forms.coordinates(chosen)
        self.inputs = Layout.of(self._start)
        self.modules = tuple(fn.modules()) if isinstance(fn, torch.nn.Module) else ()
        self.reading: Callable[[], AbstractContextManager[object]] | None = None
        self.held: Turn | None = None
        self.hooked = _said_of([self.inputs.leaves[i].path for i, _ in self._hooks])
        self._outputs: _Outputs | None = None
        self._direct = _is_flat(self._tree, len(self._slots)) and not (
            self.modules or state or self.forms.by_input or self._arranged or self._hooks
        )

    @property
    def outputs(self) -> Layout:
        return self._learned.layout

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        return self._learned.skipped

    @property
    def layouts(self) -> tuple[torch.layout, ...]:
        """Of the outputs as the function returned them."""
        return self._learned.layouts

    @property
    def tensors(self) -> int:
        """How many the function returned, with a derivative or without."""
        return self._learned.tensors

    @property
    def _learned(self) -> _Outputs:
        if self._outputs is None:
            raise RuntimeError("the outputs are known after the first call")
        return self._outputs

    def one(self, leaves: Tensors) -> Tensors:
        if not self._captured:
            return self._once(leaves)
        with put_back(self._captured):
            return [value.clone() for value in self._once(leaves)]

    def _once(self, leaves: Tensors) -> Tensors:
        return self._leaves_of(self._fn(*leaves)) if self._direct else self._rebuilt(leaves)

    def _leaves_of(self, result: Any) -> Tensors:
        if self._outputs is None:
            self._outputs = _Outputs(result, self.forms.dense)
        return self._outputs.leaves_of(result)

    def many(self, leaves: Tensors) -> Tensors:
        if not self._learned.layout.leaves:
            return ()
        return at_once(self.one, leaves)

    def point(self) -> Array:
        """The coordinates of the user's own arguments."""
        return self.inputs.vector([tensor for _, tensor in self._start])

    def widened(self, wider: Callable[[Any], Any] | None = None) -> UserCall | None:
        """The same call on float64 and complex128 copies of all floating tensors; None if they are that already."""
        wide = [(path, (wider or double)(value)) for path, value in self._named]
        if all(new is old for (_, new), (_, old) in zip(wide, self._named, strict=True)):
            return None
        if self._captured:
            raise Unsupported(self.forms.reason)
        return self._of(wide)

    def read_by(self, reading: Callable[[], AbstractContextManager[object]]) -> UserCall:
        """The same call, to be made in a scope."""
        call = self._of(self._named)
        call.reading = reading
        return call

    def _of(self, named: Sequence[tuple[str, Any]]) -> UserCall:
        split = len(named) - len(self._state)
        arguments, kept = (self._tree, named[:split]), self._registered
        call = UserCall(self._fn, arguments, named[split:], self._wanted, self._meaning, registered=kept)
        call.held = self.held
        call._hooks, call.hooked = self._hooks, self.hooked  # a wider copy of a tensor has none
        return call

    def as_given(self, leaves: Tensors) -> Tensors:
        """The same with these very tensors for the input leaves, whatever their strides."""
        return self._with(leaves)

    def _rebuilt(self, leaves: Tensors) -> Tensors:
        if self.forms.by_input:
            leaves = self.forms.arguments(leaves)
        if self._arranged:
            leaves = list(leaves)
            for i, arranged in self._arranged:
                leaves[i] = arranged(leaves[i])
        return self._with(leaves)

    def _with(self, leaves: Tensors) -> Tensors:
        values = self._template.copy()
        for slot in self._copied:
            values[slot] = values[slot].clone() if isinstance(values[slot], torch.Tensor) else values[slot].copy()
        for slot, leaf in zip(self._slots, leaves, strict=True):
            values[slot] = leaf
        for i, hooks in self._hooks:
            for hook in hooks if leaves[i].requires_grad else ():
                leaves[i].register_hook(partial(_where_defined, hook))  # type: ignore[no-untyped-call]
        iterator = iter(values)
        args, kwargs = rebuild(self._tree, iterator)
        if not self._state:
            return self._leaves_of(self._fn(*args, **kwargs))
        state = dict(zip(self._state, iterator, strict=True))
        found = self._leaves_of(torch.func.functional_call(self._fn, state, args, kwargs))  # type: ignore[arg-type]
        return Values(found, self.modules[0], state) if torch.is_grad_enabled() else found


class _Outputs:
    """What the first call returned: which leaves are coordinates, which are skipped, in what structure."""

    def __init__(self, result: Any, dense: Callable[[torch.Tensor], torch.Tensor]) -> None:
        self._dense = dense
        found: list[tuple[str, Any]] = []
        self._tree = flatten(result, "out", found)
        reasons = [_reason_to_skip(value) for _, value in found]
        self._kept = [i for i, reason in enumerate(reasons) if reason is None]
        self.layout = Layout.of([found[i] for i in self._kept])
        self._expected = [(found[i][1].shape, found[i][1].dtype) for i in self._kept]
        self.skipped = tuple([Skipped(path, why) for (path, _), why in zip(found, reasons, strict=True) if why])
        self.tensors = sum([isinstance(value, torch.Tensor) for _, value in found])
        self.layouts = tuple([found[i][1].layout for i in self._kept])
        self._bare = self._expected[0] if self._tree is None and self._kept else None

    def leaves_of(self, result: Any) -> Tensors:
        """The kept leaves of another result, which must look like the first. Called for each row, so it is quick."""
        bare = self._bare
        if bare is not None and type(result) is torch.Tensor and result.shape == bare[0] and result.dtype is bare[1]:
            return (self._dense(result),)
        named: list[tuple[str, Any]] = []
        if flatten(result, "out", named) != self._tree:
            raise OutputsChanged.structure(self.layout.leaves, self.skipped, (path for path, _ in named))
        kept = [named[i][1] for i in self._kept]
        for value, (shape, dtype) in zip(kept, self._expected, strict=True):
            if not isinstance(value, torch.Tensor) or value.shape != shape or value.dtype != dtype:
                self._refuse(kept)
        return [self._dense(plain(value)) for value in kept]

    def _refuse(self, kept: Sequence[Any]) -> None:
        for leaf, value, (shape, dtype) in zip(self.layout.leaves, kept, self._expected, strict=True):
            if not isinstance(value, torch.Tensor):
                got = f"a {type(value).__name__}"
            elif value.shape != shape or value.dtype != dtype:
                got = f"shape {tuple(value.shape)} {dtype_name(value.dtype)}"
            else:
                continue
            same_shape = isinstance(value, torch.Tensor) and value.shape == shape
            raise OutputsChanged(
                f"{leaf.path} has shape {leaf.shape} {leaf.dtype} at the point but {got} at a nearby point; a function "
                "can be checked only if its output keeps its shape and dtype: pad it, or return a fixed part of it",
                "dtype" if same_shape else "shape",
                str(dtype if same_shape else shape),
                str(value.dtype if same_shape else getattr(value, "shape", type(value).__name__)),
            )


def _reason_to_skip(value: object) -> str | None:
    if value is None:
        return "None"
    if not isinstance(value, torch.Tensor):
        return f"{type(value).__name__}, not a tensor"
    if not (value.dtype.is_floating_point or value.dtype.is_complex):
        return f"{dtype_name(value.dtype)} has no derivative"
    return None


def _said_of(hooked: Sequence[str]) -> str:
    return f"{', '.join(hooked)} {'has' if len(hooked) == 1 else 'have'} hooks, which are checked too" if hooked else ""


def _where_defined(hook: Callable[[torch.Tensor], torch.Tensor | None], gradient: torch.Tensor | None) -> Any:
    """The engine (torch 2.13) calls hooks for a gradient that is not there too; few are written for that."""
    return None if gradient is None else hook(gradient)


def _all_leaves(tree: Tree | None, kind: type) -> bool:
    return tree is not None and tree.kind is kind and all(child is None for child in tree.children)


def _is_flat(tree: Tree | None, leaves: int) -> bool:
    """Whether (args, kwargs) is a tuple of just these leaves, and no keyword arguments."""
    if tree is None or tree.children[0] is None or tree.children[1] is None:
        return False
    args, kwargs = tree.children[0], tree.children[1]
    return _all_leaves(args, tuple) and len(args.children) == leaves and not kwargs.children


def double(value: Any) -> Any:
    if not isinstance(value, torch.Tensor) or not (value.dtype.is_floating_point or value.dtype.is_complex):
        return value
    # There is no float64 of mkldnn; what works on it mostly works on dense tensors too.
    return widened(value.to_dense() if value.layout is MKLDNN else value)
