"""Tensors <-> coordinates: float64 rows on the core's side, the leaf's own dtype and device on torch's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from gradproof import precision
from gradproof.program import Array, Leaf, leaves


@dataclass(frozen=True, slots=True)
class Layout:
    """The leaves of one side of a program, with what torch must know about each to make a tensor of it."""

    leaves: tuple[Leaf, ...]
    dtypes: tuple[torch.dtype, ...]
    devices: tuple[torch.device, ...]

    @classmethod
    def of(cls, named: Sequence[tuple[str, torch.Tensor]]) -> Layout:
        return cls(
            leaves([(path, tuple(tensor.shape), dtype_name(tensor.dtype)) for path, tensor in named]),
            tuple(tensor.dtype for _, tensor in named),
            tuple(tensor.device for _, tensor in named),
        )

    @property
    def size(self) -> int:
        return self.leaves[-1].stop if self.leaves else 0

    @property
    def roundoff(self) -> float:
        """That of the coarsest leaf."""
        return max((precision.of(leaf.dtype).roundoff for leaf in self.leaves), default=precision.DOUBLE.roundoff)

    def tensors(self, rows: Array) -> list[torch.Tensor]:
        """(k, size) -> for each leaf a fresh contiguous tensor (k, *shape): one copy, which also converts."""
        source = torch.from_numpy(rows)
        return [
            _made(source[:, leaf.start : leaf.stop], (len(rows), *leaf.shape), dtype, device)
            for leaf, dtype, device in zip(self.leaves, self.dtypes, self.devices, strict=True)
        ]

    def adopted(self, rows: Array) -> list[torch.Tensor]:
        """The same without a copy where the rows can serve as they are: they are given away by whoever calls."""
        if any(dtype is not torch.float64 for dtype in self.dtypes) or any(one.type != "cpu" for one in self.devices):
            return self.tensors(rows)
        source = torch.from_numpy(rows)
        return [source[:, leaf.start : leaf.stop].view(len(rows), *leaf.shape) for leaf in self.leaves]

    def single(self, row: Array) -> list[torch.Tensor]:
        """One vector -> one fresh tensor for each leaf."""
        source = torch.from_numpy(row)
        return [
            _made(source[leaf.start : leaf.stop], leaf.shape, dtype, device)
            for leaf, dtype, device in zip(self.leaves, self.dtypes, self.devices, strict=True)
        ]

    def write(self, tensors: Sequence[torch.Tensor | None], into: Array) -> None:
        """For each leaf (k, *shape), or None for zeros -> (k, size), always a copy: fn may own what it returned."""
        target = torch.from_numpy(into)
        count = into.shape[0]
        for leaf, tensor in zip(self.leaves, tensors, strict=True):
            if tensor is None:
                target[:, leaf.start : leaf.stop].zero_()
                continue
            flat = real(tensor).reshape(count, leaf.size)
            target[:, leaf.start : leaf.stop].copy_(flat)

    def write_single(self, tensors: Sequence[torch.Tensor | None], into: Array) -> None:
        """The same for one vector."""
        target = torch.from_numpy(into)
        for leaf, tensor in zip(self.leaves, tensors, strict=True):
            part = target[leaf.start : leaf.stop]
            if tensor is None:
                part.zero_()
            else:
                part.copy_(real(tensor).reshape(leaf.size))


def _made(part: torch.Tensor, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """A fresh, contiguous tensor of these coordinates."""
    if dtype.is_complex:
        tensor = torch.empty(shape, dtype=dtype, device=device)
        torch.view_as_real(tensor).view(part.shape).copy_(part)
        return tensor
    return part.to(device, dtype, copy=True, memory_format=torch.contiguous_format).view(shape)


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
    tensor = tensor.detach()
    if tensor.layout is not torch.strided:
        tensor = tensor.to_dense()
    return torch.view_as_real(tensor.resolve_conj().resolve_neg()) if tensor.dtype.is_complex else tensor


def is_strided(tensor: torch.Tensor) -> bool:
    """Whether this is an ordinary dense tensor."""
    return type(tensor) is torch.Tensor and tensor.layout is torch.strided


def identical(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Bit by bit, as far as numbers go: NaN is like NaN."""
    if one.layout is not torch.strided or one.shape != other.shape:
        return one.shape == other.shape
    one, other = one.detach(), other.detach()
    if one.dtype is torch.complex32:  # torch 2.13 cannot compare these
        one, other = torch.view_as_real(one), torch.view_as_real(other)
    return torch.equal(one, other) or bool(((one == other) | (one.isnan() & other.isnan())).all())


def rows_of(array: Array, width: int) -> Array:
    """What a caller handed to a seam function, as rows that torch can look at (it warns about read-only arrays)."""
    rows = np.ascontiguousarray(array, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != width:
        raise ValueError(f"expected rows of {width} coordinates, shape (k, {width}), got shape {np.shape(array)}")
    return rows if rows.flags.writeable else rows.copy()
