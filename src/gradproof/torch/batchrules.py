"""Rows of a batch at once, by torch's batching rules.

`torch.vmap` and `is_grads_batched` take any structure of arguments and spend more on taking it apart than a small
function takes. Here it is known: tensors with the rows in front. Where a future torch has other inner parts, its own
verbs serve.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

_SWITCH: Any = torch._C._functorch

Rows = Sequence[torch.Tensor]
Verb = Callable[[Rows], Sequence[Any]]  # to tensors, or to tensors and None
Batching = Callable[[Verb, Rows], list[Any]]


# Where an operator without a batching rule is called from C++, torch says so on stderr, past Python's warnings. There
# is no way to ask whether it would; nobody but torch's own tests switches that off.
_warn_of_loops: Callable[[bool], None] = getattr(_SWITCH, "_set_vmap_fallback_warning_enabled", lambda _: None)


class ByRules:
    """Meanwhile an operator without a batching rule raises; else torch loops over the rows by itself and warns."""

    __slots__ = ("_before",)

    def __enter__(self) -> None:
        self._before = _SWITCH._is_vmap_fallback_enabled()
        _SWITCH._set_vmap_fallback_enabled(False)  # noqa: FBT003

    def __exit__(self, *_: object) -> None:
        _SWITCH._set_vmap_fallback_enabled(self._before)


def at_once(fn: Verb, rows: Rows) -> list[Any]:
    """`torch.vmap` of a function from tensors to at least one tensor; random numbers are the same in each row. A value
    that is None stays so."""
    with torch.autograd.graph.disable_saved_tensors_hooks("vmap does not go with hooks for saved tensors"):
        _warn_of_loops(False)  # noqa: FBT003
        try:
            return _at_once(fn, rows)
        finally:
            _warn_of_loops(True)  # noqa: FBT003


def reverse_at_once(fn: Verb, rows: Rows) -> list[Any]:
    """The same by rules alone, for a reverse pass, which saves no tensors."""
    with ByRules():
        return _at_once(fn, rows)


def _at_once(fn: Verb, rows: Rows) -> list[Any]:
    parts = _parts_of_vmap()
    if parts is None or not rows:
        return _through(functools.partial(torch.vmap, randomness="same"), fn, rows)
    count = rows[0].shape[0]
    level = parts._vmap_increment_nesting(count, "same")
    try:
        values = fn([parts._add_batch_dim(row, 0, level) for row in rows])
        return [None if one is None else parts._remove_batch_dim(one, level, count, 0) for one in values]
    finally:
        parts._vmap_decrement_nesting()


def at_once_in_autograd(fn: Verb, rows: Rows) -> list[Any]:
    """The same by the batching that autograd itself uses for `is_grads_batched`. It has fewer rules, and loops over the
    rows where it has none, but takes dual numbers, and custom Functions without a vmap rule."""
    if not _autograd_has_parts():
        return _through(_batching_of_autograd(), fn, rows)
    inner: Any = torch
    count = rows[0].shape[0]
    level = inner._C._vmapmode_increment_nesting()
    try:
        values = fn([inner._add_batch_dim(row, 0, level) for row in rows])
        return [None if one is None else inner._remove_batch_dim(one, level, count, 0) for one in values]
    finally:
        inner._C._vmapmode_decrement_nesting()


# For reverse passes, the best first. The last is none: a batch of copies of the point, which one pass serves as it is.
REVERSE: Mapping[str, Batching | None] = {
    "batched": reverse_at_once,
    "batched by autograd": at_once_in_autograd,
    "vmap": None,
}


def _through(batching: Callable[..., Any], fn: Verb, rows: Rows) -> list[Any]:
    """By whatever there is that maps tensors to tensors."""
    present: list[bool] = []

    def defined(*row: torch.Tensor) -> tuple[torch.Tensor, ...]:
        values = fn(row)
        present[:] = [value is not None for value in values]
        return tuple(value for value in values if value is not None)

    found = iter(batching(defined)(*rows))
    return [next(found) if there else None for there in present]


def _batching_of_autograd() -> Callable[..., Any]:
    try:
        batching: Callable[..., Any] = importlib.import_module("torch._vmap_internals")._vmap
    except (ImportError, AttributeError):
        return torch.vmap
    return batching


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
