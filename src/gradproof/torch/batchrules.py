"""Rows of a batch at once, by torch's batching rules.

`torch.vmap` and `is_grads_batched` take any structure of arguments and spend more on taking it apart than a small
function takes. Here it is known: tensors with the rows in front. Where a future torch has other inner parts, its own
verbs serve.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

Rows = Sequence[torch.Tensor]


@contextmanager
def by_rules() -> Iterator[None]:
    """Meanwhile an operator without a batching rule raises; else torch loops over the rows by itself and warns."""
    switch: Any = torch._C._functorch
    before = switch._is_vmap_fallback_enabled()
    switch._set_vmap_fallback_enabled(False)  # noqa: FBT003
    try:
        yield
    finally:
        switch._set_vmap_fallback_enabled(before)


def at_once(fn: Callable[[Rows], Rows], rows: Rows) -> Rows:
    """`torch.vmap` of a function from tensors to at least one tensor; random numbers are the same in each row."""
    parts = _parts_of_vmap()
    if parts is None or not rows:
        values: Rows = torch.vmap(lambda *row: tuple(fn(row)), randomness="same")(*rows)
        return values
    count = rows[0].shape[0]
    with torch.autograd.graph.disable_saved_tensors_hooks("vmap does not go with hooks for saved tensors"):
        level = parts._vmap_increment_nesting(count, "same")
        try:
            values = fn([parts._add_batch_dim(row, 0, level) for row in rows])
            return [parts._remove_batch_dim(value, level, count, 0) for value in values]
        finally:
            parts._vmap_decrement_nesting()


def at_once_in_autograd(
    fn: Callable[[Rows], Sequence[torch.Tensor | None]], rows: Rows
) -> Sequence[torch.Tensor | None]:
    """The same by the batching that autograd itself uses for `is_grads_batched`; it takes dual numbers, and custom
    Functions without a vmap rule. A value that is None stays so."""
    if not _autograd_has_parts():
        return _at_once_in_some_autograd(fn, rows)
    inner: Any = torch
    count = rows[0].shape[0]
    level = inner._C._vmapmode_increment_nesting()
    try:
        values = fn([inner._add_batch_dim(row, 0, level) for row in rows])
        return [None if one is None else inner._remove_batch_dim(one, level, count, 0) for one in values]
    finally:
        inner._C._vmapmode_decrement_nesting()


def _at_once_in_some_autograd(
    fn: Callable[[Rows], Sequence[torch.Tensor | None]], rows: Rows
) -> Sequence[torch.Tensor | None]:
    """Through whatever there is that maps tensors to tensors."""
    present: list[bool] = []

    def defined(*row: torch.Tensor) -> tuple[torch.Tensor, ...]:
        values = fn(row)
        present[:] = [value is not None for value in values]
        return tuple(value for value in values if value is not None)

    try:
        batching: Callable[..., Any] = importlib.import_module("torch._vmap_internals")._vmap
    except (ImportError, AttributeError):
        batching = torch.vmap
    found = iter(batching(defined)(*rows))
    return [next(found) if there else None for there in present]


@functools.cache
def _parts_of_vmap() -> Any:
    """What `torch.vmap` is made of (torch 1.13 to 2.13); None in a torch without it."""
    torch.vmap(torch.neg)(torch.zeros(1))  # the first one in a process loads some rules
    parts: Any = torch._C._functorch
    names = ("_vmap_increment_nesting", "_vmap_decrement_nesting", "_add_batch_dim", "_remove_batch_dim")
    return parts if all(hasattr(parts, name) for name in names) else None


@functools.cache
def _autograd_has_parts() -> bool:
    inner: Any = torch
    counted = hasattr(inner._C, "_vmapmode_increment_nesting") and hasattr(inner._C, "_vmapmode_decrement_nesting")
    return counted and hasattr(inner, "_add_batch_dim") and hasattr(inner, "_remove_batch_dim")
