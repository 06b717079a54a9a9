"""Tensors <-> coordinates: float64 rows on the core's side, the leaf's own dtype and device on torch's."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gradproof import precision
from gradproof.program import Array, Leaf, leaves

# So many numbers take longer to be compared than to be handed from torch to NumPy.
MANY = 2**15


@dataclass(frozen=True, slots=True)
class Layout:
    """The leaves of one side of a program, with what torch must know about each to make a tensor of it."""

    leaves: tuple[Leaf, ...]
    dtypes: tuple[torch.dtype, ...]
    devices: tuple[torch.device, ...]

    # Derived, and asked for all the time: the number of coordinates, the rounding of the coarsest leaf, and for each
    # leaf whether its tensors are what coordinates are on this side.
    size: int = field(init=False)
    roundoff: float = field(init=False)
    here: tuple[bool, ...] = field(init=False)

    def __post_init__(self) -> None:
        here = [
            dtype is torch.float64 and device.type == "cpu"
            for dtype, device in zip(self.dtypes, self.devices, strict=True)
        ]
        object.__setattr__(self, "size", self.leaves[-1].stop if self.leaves else 0)
        object.__setattr__(self, "roundoff", precision.coarsest(self.leaves).roundoff)
        object.__setattr__(self, "here", tuple(here))

    @classmethod
    def of(cls, named: Sequence[tuple[str, torch.Tensor]]) -> Layout:
        return _laid_out(tuple([(path, tensor.shape, tensor.dtype, tensor.device) for path, tensor in named]))

    def tensors(self, rows: Array) -> list[torch.Tensor]:
        """(..., size) -> for each leaf a fresh contiguous tensor (..., *shape): one copy, which also converts."""
        ahead = rows.shape[:-1]
        return [self._made(i, rows[..., leaf.span], (*ahead, *leaf.shape)) for i, leaf in enumerate(self.leaves)]

    def adopted(self, rows: Array) -> list[torch.Tensor]:
        """The same without a copy where the rows can serve as they are: they are given away by whoever calls."""
        ahead = rows.shape[:-1]
        return [
            torch.from_numpy(rows[..., leaf.span].reshape((*ahead, *leaf.shape)))
            if self.here[i]
            else self._made(i, rows[..., leaf.span], (*ahead, *leaf.shape))
            for i, leaf in enumerate(self.leaves)
        ]

    def _made(self, i: int, part: Array, shape: tuple[int, ...]) -> torch.Tensor:
        """Of one leaf: a fresh, contiguous tensor of these coordinates, in memory that torch has aligned: how a sum
        rounds may depend on that."""
        if self.here[i]:
            return torch.from_numpy(part.reshape(shape)).clone(memory_format=torch.contiguous_format)
        tensor = torch.empty(shape, dtype=self.dtypes[i], device=self.devices[i])
        flat = torch.view_as_real(tensor) if tensor.dtype.is_complex else tensor
        flat.view(part.shape).copy_(torch.from_numpy(part))
        return tensor

    def write(self, tensors: Sequence[torch.Tensor | None], into: Array) -> None:
        """For each leaf (..., *shape), or None for zeros -> (..., size), always a copy: fn may own what it returned."""
        for leaf, tensor in zip(self.leaves, tensors, strict=True):
            part = into[..., leaf.span]
            part[...] = 0.0 if tensor is None else numbers(tensor).reshape(part.shape)

    def vector(self, tensors: Sequence[torch.Tensor | None]) -> Array:
        """One tensor for each leaf, or None for zeros -> a vector of its own."""
        result = np.empty(self.size)
        self.write(tensors, result)
        return result


@functools.lru_cache(maxsize=256)  # most calls have arguments like those of the one before
def _laid_out(described: tuple[tuple[str, torch.Size, torch.dtype, torch.device], ...]) -> Layout:
    return Layout(
        leaves([(path, shape, dtype_name(dtype)) for path, shape, dtype, _ in described]),
        tuple(dtype for _, _, dtype, _ in described),
        tuple(device for *_, device in described),
    )


@functools.cache
def dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def differentiable(value: object) -> bool:
    """Whether this is a tensor with coordinates. Nested tensors have none: their rows differ in length."""
    return (
        isinstance(value, torch.Tensor)
        and (value.dtype.is_floating_point or value.dtype.is_complex)
        and not value.is_nested
    )


def real(tensor: torch.Tensor) -> torch.Tensor:
    """Detached, strided, with (re, im) pairs in a last dimension if complex; lazy conjugations are carried out."""
    if tensor.requires_grad:
        tensor = tensor.detach()
    if tensor.layout is not torch.strided:
        tensor = tensor.to_dense()
    if not tensor.dtype.is_complex:
        return tensor
    # Detached again: the values of a sparse tensor are a view of it, of which torch 2.13 makes no other.
    return torch.view_as_real(tensor.resolve_conj().resolve_neg().detach())


def numbers(tensor: torch.Tensor) -> NDArray[np.floating[Any]]:
    """The same as NumPy sees it, without a copy where that can be."""
    tensor = real(tensor)
    try:
        found: NDArray[np.floating[Any]] = tensor.numpy()
    except (RuntimeError, TypeError):  # elsewhere, of a format that NumPy does not know, or not carried out yet
        plain = torch.empty(tensor.shape, dtype=torch.float64)
        plain.copy_(tensor)  # which returns what a subclass makes of it
        found = plain.numpy()
    return found


def is_strided(tensor: torch.Tensor) -> bool:
    """Whether this is an ordinary dense tensor."""
    return type(tensor) is torch.Tensor and tensor.layout is torch.strided


def identical(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Bit by bit, as far as numbers go: NaN is like NaN."""
    if one.layout is not torch.strided or one.shape != other.shape:
        return one.shape == other.shape
    if one.dtype is torch.complex32:  # torch 2.13 cannot compare these
        one, other = torch.view_as_real(one.detach()), torch.view_as_real(other.detach())
    return equal(one, other) or bool(((one == other) | (one.isnan() & other.isnan())).all())


def equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    """As `torch.equal`, which takes more than twice as long as NumPy for many numbers (2.13)."""
    if one.numel() <= MANY or one.shape != other.shape or not (_is_plain(one) and _is_plain(other)):
        return torch.equal(one, other)
    return bool((numbers(one) == numbers(other)).all())


def _is_plain(tensor: torch.Tensor) -> bool:
    return is_strided(tensor) and tensor.dtype is torch.float64 and tensor.device.type == "cpu"


def rows_of(array: Array, width: int) -> Array:
    """What a caller handed to a seam function, as rows that torch can look at (it warns about read-only arrays)."""
    rows = np.ascontiguousarray(array, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != width:
        raise ValueError(f"expected rows of {width} coordinates, shape (k, {width}), got shape {np.shape(array)}")
    return rows if rows.flags.writeable else rows.copy()
