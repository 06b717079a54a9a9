"""Arguments of a class of their own: subclasses of torch.Tensor, wrappers that dispatch, masked tensors."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.masked import MaskedTensor, masked_tensor

from gradproof.torch.sparse import opened

PLAIN = (Tensor, torch.nn.Parameter)


@dataclass(frozen=True, slots=True)
class Subclass:
    """The class decides what an operation means; copying is done past it, and what is attached comes along."""

    path: str
    tensor: Tensor

    @property
    def coordinates(self) -> Tensor:
        return plain(self.tensor).detach()

    def argument(self, coordinates: Tensor) -> Tensor:
        made = self.leaf()
        with torch._C.DisableTorchFunctionSubclass():
            made.copy_(coordinates)
        return made

    def leaf(self) -> Tensor:
        return self.copy(self.tensor.detach())

    def copy(self, leaf: Tensor) -> Tensor:
        return _as_before(leaf.clone(), self.tensor)

    def gradient(self, gradient: Tensor) -> Tensor:
        return opened(plain(gradient))


@dataclass(frozen=True, slots=True)
class Registered:
    """A parameter that the function registers in a module of its own, which takes leaves only: it gets those that the
    graph begins with, not copies of them."""

    path: str
    tensor: Tensor

    @property
    def coordinates(self) -> Tensor:
        return self.tensor.detach()

    def argument(self, coordinates: Tensor) -> Tensor:
        return torch.nn.Parameter(coordinates.detach().clone())

    def leaf(self) -> Tensor:
        return self.argument(self.tensor)

    def copy(self, leaf: Tensor) -> Tensor:
        return leaf

    def gradient(self, gradient: Tensor) -> Tensor:
        return opened(gradient)


@dataclass(frozen=True, slots=True)
class Masked:
    """A masked tensor. An entry that is masked out is a coordinate on which nothing depends."""

    path: str
    tensor: MaskedTensor

    @property
    def coordinates(self) -> Tensor:
        return plain(self.tensor).detach()

    def argument(self, coordinates: Tensor) -> Tensor:
        made: Tensor = masked_tensor(coordinates.clone(), self.tensor.get_mask().clone())  # type: ignore[no-untyped-call]
        return made

    def leaf(self) -> Tensor:
        return self.copy(self.tensor.detach())

    def copy(self, leaf: Tensor) -> Tensor:
        return leaf.clone()

    def gradient(self, gradient: Tensor) -> Tensor:
        return opened(plain(gradient))


def plain(tensor: Tensor) -> Tensor:
    """The numbers of a strided tensor of any class as an ordinary one, as a differentiable function of it."""
    if type(tensor) in PLAIN or tensor.layout is not torch.strided:
        return tensor
    if isinstance(tensor, MaskedTensor):
        filled: Tensor = tensor.to_tensor(0)  # type: ignore[no-untyped-call]
        return filled
    with torch._C.DisableTorchFunctionSubclass():
        return torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device).copy_(tensor)


def widened(tensor: Tensor, real: torch.dtype = torch.float64) -> Tensor:
    """In this format, or that of its complex numbers."""
    return _as_before(tensor.to(real.to_complex() if tensor.dtype.is_complex else real), tensor)


def _as_before(made: Tensor, tensor: Tensor) -> Tensor:
    """Of the class of `tensor`, with what the user has attached to that. Some classes turn plain in any operation."""
    if type(tensor) in PLAIN or made is tensor:
        return made
    if type(made) is not type(tensor):
        made = made.as_subclass(type(tensor))
    made.__dict__.update({name: value for name, value in tensor.__dict__.items() if name not in made.__dict__})
    return made
