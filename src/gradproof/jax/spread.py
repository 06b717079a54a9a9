"""Arrays that are spread over the devices of a mesh with explicit axes: how is a part of their type then, and of what
functions take. Outside of a call nothing is spread: its first act is to spread its arguments, its last to gather what
it returns. JAX differentiates and batches both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
from jax.sharding import NamedSharding, PartitionSpec

from gradproof.jax.leaves import Arrays


def sharding_of(value: Any) -> Any:
    """None for most."""
    return value.sharding if _is_spread(value) else None


def spread(arrays: Arrays, shardings: Sequence[Any]) -> Arrays:
    if not any(shardings):
        return arrays
    move: Any = jax.sharding.reshard  # JAX 0.5 has none, and no such arrays
    return [move(one, sharding) if sharding else one for one, sharding in zip(arrays, shardings, strict=True)]


def gathered(arrays: Arrays, shardings: Sequence[Any]) -> Arrays:
    """`shardings`: of the arguments; a tracer does not know the devices."""
    whole = [NamedSharding(one.mesh, PartitionSpec()) for one in shardings if one]  # type: ignore[no-untyped-call]
    return spread(arrays, [whole[0] if whole and _is_spread(one) else None for one in arrays])


def _is_spread(value: Any) -> bool:
    spec = getattr(getattr(getattr(value, "aval", None), "sharding", None), "spec", ())
    return any(axis is not None for axis in spec)
