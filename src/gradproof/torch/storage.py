"""A function may read the memory around its argument: `x[5:15].as_strided(...)` does. A copy of the argument alone has
nothing around it, so where that raises, the copy is put into a copy of the whole storage."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

# How torch (2.13) says that a view would leave its storage.
OUT_OF_BOUNDS = "out of bounds for storage"


def with_storage(func: Callable[..., Any], arguments: Sequence[Any]) -> Callable[..., Any] | None:
    """The function on copies that lie where its positional arguments lie; None if each of those fills its storage."""
    buffers = {i: _storage(one) for i, one in enumerate(arguments) if _is_part(one)}
    if not buffers:
        return None
    places = {i: (arguments[i].shape, arguments[i].stride(), arguments[i].storage_offset()) for i in buffers}

    @functools.wraps(func, updated=())
    def placed(*given: Any, **named: Any) -> Any:
        full = list(given)
        for i, buffer in buffers.items():
            full[i] = torch.as_strided_scatter(buffer, given[i], *places[i]).as_strided(*places[i])
        return func(*full, **named)

    return placed


def _is_part(value: Any) -> bool:
    if not (isinstance(value, Tensor) and value.layout is torch.strided):
        return False
    return value.untyped_storage().nbytes() > value.numel() * value.element_size()


def _storage(tensor: Tensor) -> Tensor:
    count = tensor.untyped_storage().nbytes() // tensor.element_size()
    return tensor.detach().as_strided((count,), (1,), 0).clone()
