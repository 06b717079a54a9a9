"""torch.vmap by rules alone. For an operator without a batching rule torch loops over the rows by itself and warns."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch


@contextmanager
def by_rules() -> Iterator[None]:
    """Meanwhile such an operator raises."""
    switch: Any = torch._C._functorch
    before = switch._is_vmap_fallback_enabled()
    switch._set_vmap_fallback_enabled(False)  # noqa: FBT003
    try:
        yield
    finally:
        switch._set_vmap_fallback_enabled(before)


def vmap_of_autograd() -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The batching that autograd itself uses for `is_grads_batched`; it takes dual numbers, and custom Functions
    without a vmap rule. `torch.vmap` where a future torch no longer has it."""
    try:
        found: Callable[[Callable[..., Any]], Callable[..., Any]] = importlib.import_module(
            "torch._vmap_internals"
        )._vmap
    except (ImportError, AttributeError):
        return torch.vmap
    return found
