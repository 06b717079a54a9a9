"""Which leaves to differentiate: path patterns, and the default."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradproof.errors import UsageError
from gradproof.jax.leaves import differentiable, is_number
from gradproof.paths import kinds_of, matching


def chosen(named: Sequence[tuple[str, Any]], wrt: object) -> frozenset[str]:
    """The paths to differentiate. By default all floating and complex arrays; numbers if there is no array at all."""
    arrays = [path for path, value in named if differentiable(value)]
    numbers = [path for path, value in named if is_number(value)]
    if wrt is not None:
        return matching(wrt, arrays + numbers)
    return frozenset(_some(named, arrays or numbers))


def everything(named: Sequence[tuple[str, Any]]) -> frozenset[str]:
    """All arrays and all numbers: what JAX's own checker differentiates."""
    return frozenset(_some(named, [path for path, value in named if differentiable(value) or is_number(value)]))


def _some(named: Sequence[tuple[str, Any]], paths: list[str]) -> list[str]:
    if not paths:
        raise UsageError(
            f"no floating or complex array among the arguments ({kinds_of(named)}), so there is nothing to "
            "differentiate; pass one, as in gradproof.check(fn, jnp.ones(3))"
        )
    return paths
