"""Sparse arguments as coordinates: COO and the four compressed layouts, in two meanings.

Masked: the coordinates are the stored values; what is not stored is not there. All: the coordinates are all entries;
numeric evaluations see every entry stored, while the reverse pass runs at the user's own pattern,
which must not matter.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

BLOCKED = (torch.sparse_bsr, torch.sparse_bsc)
COMPRESSED = (torch.sparse_csr, torch.sparse_csc, *BLOCKED)
SPARSE = (torch.sparse_coo, *COMPRESSED)


@dataclass(frozen=True, slots=True)
class Pattern:
    """Which entries of a sparse tensor are stored. Another tensor with this pattern is a copy with other values."""

    tensor: Tensor

    def filled(self, values: Tensor) -> Tensor:
        made = self.tensor.clone()
        stored(made).copy_(values)
        return made

    def places(self) -> Tensor:
        """For each stored number its index in the flattened dense tensor, in the shape of the stored values."""
        tensor = self.tensor
        if tensor.layout is torch.sparse_coo:
            return self._places_of_coordinates()
        # Number the stored values, and see where the numbers turn up.
        shape = stored(tensor).shape
        numbers = torch.arange(1, shape.numel() + 1, dtype=torch.float64, device=tensor.device).reshape(shape)
        dense = _like(tensor, numbers).to_dense().flatten()
        turned_up = dense.nonzero().squeeze(1)
        places = torch.empty(shape.numel(), dtype=torch.int64, device=tensor.device)
        places[dense[turned_up].to(torch.int64) - 1] = turned_up
        return places.reshape(shape)

    def _places_of_coordinates(self) -> Tensor:
        tensor = self.tensor
        within = tensor.shape[tensor.sparse_dim() :]
        starts = keys(tensor).mul(within.numel())
        offsets = torch.arange(within.numel(), device=tensor.device).reshape(within)
        return starts.reshape(-1, *[1] * len(within)) + offsets


@dataclass(frozen=True, slots=True)
class Stored:
    """Masked: one coordinate for each stored value; a value stored twice is two coordinates."""

    path: str
    pattern: Pattern

    @property
    def coordinates(self) -> Tensor:
        return stored(self.pattern.tensor)

    def argument(self, coordinates: Tensor) -> Tensor:
        return self.pattern.filled(coordinates)

    def leaf(self) -> Tensor:
        return self.pattern.tensor.clone()

    def copy(self, leaf: Tensor) -> Tensor:
        return leaf.clone()

    def gradient(self, gradient: Tensor) -> Tensor:
        """What the gradient, of whatever layout, holds where this tensor stores a value."""
        tensor = self.pattern.tensor
        if gradient.layout is torch.sparse_coo is tensor.layout and gradient.sparse_dim() == tensor.sparse_dim():
            found = _looked_up(gradient, keys(tensor))
            if found is not None:
                return found
        # Of compressed layouts, `values()` cannot be differentiated twice (torch 2.13): the result is detached.
        if gradient.layout in COMPRESSED and not gradient.requires_grad and _same_pattern(gradient, tensor):
            return gradient.values()
        return opened(gradient).reshape(-1)[self.pattern.places()]


@dataclass(frozen=True, slots=True)
class Everywhere:
    """All: one coordinate for each entry of the dense tensor, stored or not."""

    path: str
    tensor: Tensor
    full: Pattern
    places: Tensor

    @classmethod
    def of(cls, path: str, tensor: Tensor) -> Everywhere:
        full = Pattern(_all_stored(tensor))
        return cls(path, tensor, full, full.places())

    @property
    def coordinates(self) -> Tensor:
        return self.tensor.to_dense()

    def argument(self, coordinates: Tensor) -> Tensor:
        return self.full.filled(coordinates.reshape(-1)[self.places])

    def leaf(self) -> Tensor:
        return self.tensor.clone()

    def copy(self, leaf: Tensor) -> Tensor:
        return leaf.clone()

    def gradient(self, gradient: Tensor) -> Tensor:
        return opened(gradient)


def stored(tensor: Tensor) -> Tensor:
    """The stored values themselves, not a copy of them."""
    return tensor._values() if tensor.layout is torch.sparse_coo else tensor.values()


def opened(tensor: Tensor) -> Tensor:
    """Dense, and a cotangent reaches all entries on its way back: those not stored are zeros, not absent."""
    if tensor.layout is torch.strided:
        return tensor
    return tensor.to_dense(masked_grad=False) if tensor.layout in SPARSE else tensor.to_dense()


def masked(tensor: Tensor) -> Tensor:
    """Dense, and a cotangent reaches only the stored entries on its way back."""
    return tensor if tensor.layout is torch.strided else tensor.to_dense()


def keys(tensor: Tensor) -> Tensor:
    """For each stored value of a COO tensor its index in the flattened sparse dimensions."""
    indices = tensor._indices()
    result = indices.new_zeros(indices.shape[1])
    for index, size in zip(indices, tensor.shape, strict=False):
        result = result * size + index
    return result


def _looked_up(gradient: Tensor, wanted: Tensor) -> Tensor | None:
    """The values of a COO tensor at these keys, without making it dense: it may be far too large for that. None if it
    is still to be differentiated and does not store them all: an entry may be left out because it happens to be zero.
    """
    gradient = gradient.coalesce()
    given, values = keys(gradient), gradient.values()
    if torch.equal(given, wanted):
        return values
    found = torch.searchsorted(given, wanted)
    there = torch.isin(wanted, given)
    if gradient.requires_grad:
        return values[found] if there.all() else None
    result = values.new_zeros((len(wanted), *values.shape[1:]))
    result[there] = values[found[there]]
    return result


def _indices(tensor: Tensor) -> tuple[Tensor, Tensor]:
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return tensor.crow_indices(), tensor.col_indices()
    return tensor.ccol_indices(), tensor.row_indices()


def _same_pattern(one: Tensor, other: Tensor) -> bool:
    return (
        one.layout is other.layout
        and one.values().shape == other.values().shape
        and all(torch.equal(a, b) for a, b in zip(_indices(one), _indices(other), strict=True))
    )


def _like(tensor: Tensor, values: Tensor) -> Tensor:
    """A compressed tensor of the same pattern, of the values' own dtype."""
    return torch.sparse_compressed_tensor(
        *_indices(tensor), values, tensor.shape, layout=tensor.layout, check_invariants=False
    )


def _all_stored(tensor: Tensor) -> Tensor:
    ones = torch.ones(tensor.shape, dtype=tensor.dtype, device=tensor.device)
    if tensor.layout is torch.sparse_coo:
        return ones.to_sparse(tensor.sparse_dim())
    batch = tensor.ndim - tensor.sparse_dim() - tensor.dense_dim()
    block = tuple(tensor.values().shape[batch + 1 : batch + 3]) if tensor.layout in BLOCKED else None
    return ones.to_sparse(layout=tensor.layout, blocksize=block, dense_dim=tensor.dense_dim())
