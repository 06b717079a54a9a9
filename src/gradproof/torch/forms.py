"""What fn is given for an input leaf that is not an ordinary dense tensor: sparse, mkldnn, a subclass, or captured.

The core and the adapter know only the leaf's coordinates, a dense tensor. A form translates: coordinates into the
argument of a numeric evaluation, the user's own tensor into a leaf of the graph, and a gradient into coordinates.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch.masked import MaskedTensor

from gradproof.program import Array
from gradproof.torch.captured import Captured
from gradproof.torch.leaves import Layout
from gradproof.torch.sparse import SPARSE, Everywhere, Pattern, Stored, masked, opened
from gradproof.torch.subclasses import PLAIN, Masked, Registered, Subclass

MKLDNN: torch.layout = torch._mkldnn  # type: ignore[attr-defined]


class Meaning(enum.Enum):
    """What the coordinates of a sparse argument are: its stored values, or all its entries."""

    MASKED = "masked"
    ALL = "all"


class Form(Protocol):
    @property
    def path(self) -> str: ...

    @property
    def coordinates(self) -> Tensor:
        """Those of the user's tensor."""

    def argument(self, coordinates: Tensor) -> Tensor:
        """A fresh tensor of the user's layout and class with these coordinates."""

    def leaf(self) -> Tensor:
        """A fresh copy of the user's tensor, with its own pattern."""

    def copy(self, leaf: Tensor) -> Tensor:
        """A copy of such a leaf, as a differentiable function of it."""

    def gradient(self, gradient: Tensor) -> Tensor:
        """The coordinates of a gradient of any layout, as a differentiable function of it."""


@dataclass(frozen=True, slots=True)
class Mkldnn:
    path: str
    tensor: Tensor

    @property
    def coordinates(self) -> Tensor:
        return self.tensor.to_dense()

    def argument(self, coordinates: Tensor) -> Tensor:
        return coordinates.to_mkldnn()

    def leaf(self) -> Tensor:
        return self.tensor.clone()

    def copy(self, leaf: Tensor) -> Tensor:
        return leaf.clone()

    def gradient(self, gradient: Tensor) -> Tensor:
        return opened(gradient)


@dataclass(frozen=True, slots=True)
class Forms:
    """The forms of a call's inputs, by their number; an input that is not named is an ordinary dense tensor."""

    by_input: Mapping[int, Form]
    reason: str = ""

    @classmethod
    def of(
        cls,
        named: Sequence[tuple[str, Tensor]],
        meaning: Meaning,
        captured: frozenset[str],
        registered: frozenset[str] = frozenset(),
    ) -> Forms:
        found: dict[int, Form] = {}
        for i, (path, tensor) in enumerate(named):
            form: Form | None
            if path in registered:
                form = Registered(path, tensor)
            else:
                form = Captured(path, tensor) if path in captured else form_of(path, tensor, meaning)
            if form is not None:
                found[i] = form
        if captured:
            return cls(found, f"fn uses {', '.join(sorted(captured))} past its arguments")
        return cls(found, next((f"{named[i][0]} is {_kind(named[i][1])}" for i in found), ""))

    @property
    def captured(self) -> list[Captured]:
        return [form for form in self.by_input.values() if isinstance(form, Captured)]

    @property
    def pulled_at_once(self) -> bool:
        """Whether a reverse pass may take several cotangents: it goes through a graph that is there, and moves no
        captured tensor; but autograd batches only what is dense."""
        return all(isinstance(form, Captured) for form in self.by_input.values())

    def coordinates(self, named: Sequence[tuple[str, Tensor]]) -> list[tuple[str, Tensor]]:
        """The leaves as coordinates, with their paths."""
        return [
            (self.by_input[i].path, self.by_input[i].coordinates) if i in self.by_input else pair
            for i, pair in enumerate(named)
        ]

    def points(self, layout: Layout, point: Array) -> list[Tensor]:
        """Leaves of a new graph, as the user's own call has them."""
        leaves = layout.adopted(point)
        for i, form in self.by_input.items():
            leaves[i] = form.leaf()
        return [leaf.requires_grad_() for leaf in leaves]

    def copies(self, leaves: Sequence[Tensor]) -> list[Tensor]:
        """To call fn with: it may overwrite what it gets."""
        made = [leaf.clone() for leaf in leaves]
        for i, form in self.by_input.items():
            made[i] = form.copy(leaves[i])
        return made

    def arguments(self, leaves: Sequence[Tensor]) -> Sequence[Tensor]:
        """Coordinates become arguments; what is an argument already stays."""
        if not self.by_input:
            return leaves
        made = list(leaves)
        for i, form in self.by_input.items():
            if type(made[i]) is Tensor and made[i].layout is torch.strided:
                argument = form.argument(made[i].detach())
                made[i] = form.copy(argument.requires_grad_()) if made[i].requires_grad else argument
        return made

    def gradients(self, gradients: Sequence[Tensor | None]) -> list[Tensor | None]:
        """The coordinates of what a reverse pass gave."""
        if not self.by_input:
            return [None if gradient is None else masked(gradient) for gradient in gradients]
        forms = [self.by_input.get(i) for i in range(len(gradients))]
        return [
            None if gradient is None else form.gradient(gradient) if form else masked(gradient)
            for form, gradient in zip(forms, gradients, strict=True)
        ]

    def zeros(self, i: int, point: Tensor) -> Tensor:
        """The coordinates of a gradient that is not there."""
        return torch.zeros_like(self.by_input[i].coordinates if i in self.by_input else point)

    @property
    def dense(self) -> Callable[[Tensor], Tensor]:
        """How a result of fn is made dense. Where unstored entries of the inputs are absent, so are the outputs'."""
        return masked if any(type(form) is Stored for form in self.by_input.values()) else opened

    @property
    def no_push(self) -> str:
        """Why there is no forward mode. torch 2.13 makes dual numbers of dense tensors only, and not of masked ones."""
        if self.captured:
            return f"{self.reason}, where dual numbers do not get"
        strided = all(type(form) is Subclass for form in self.by_input.values())
        return "" if strided else f"{self.reason}, and torch makes no dual numbers of that"


def form_of(path: str, tensor: Tensor, meaning: Meaning) -> Form | None:
    """None for an ordinary dense tensor."""
    if tensor.layout in SPARSE:
        tensor = tensor.detach()
        if meaning is Meaning.ALL:
            return Everywhere.of(path, tensor)
        return Stored(f"{path}.values()", Pattern(tensor))
    if tensor.layout is MKLDNN:
        return Mkldnn(path, tensor.detach())
    if isinstance(tensor, MaskedTensor):
        return Masked(path, tensor)
    return None if type(tensor) in PLAIN else Subclass(path, tensor)


def _kind(tensor: Tensor) -> str:
    if tensor.layout is torch.strided:
        return f"a {type(tensor).__name__}"
    return str(tensor.layout).removeprefix("torch.").lstrip("_")
