"""Which leaves to differentiate: path patterns, and the default."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import torch

from gradproof.errors import UsageError
from gradproof.paths import kind_of, kinds_of, matching
from gradproof.program import Skipped
from gradproof.torch.leaves import differentiable


def chosen(arguments: Sequence[tuple[str, Any]], params: Sequence[tuple[str, Any]], wrt: object) -> frozenset[str]:
    """The paths to differentiate, among arguments and parameters."""
    given = {path: value for path, value in arguments if differentiable(value)}
    own = {path: tensor for path, tensor in params if differentiable(tensor)}
    if wrt is not None:
        return matching(wrt, [*given, *own])
    for path, value in arguments:
        if path not in given and isinstance(value, torch.Tensor) and value.requires_grad:
            raise UsageError(
                f"{path} requires grad but is {kind_of(value)}, which has no coordinates; build it inside of a "
                "function of ordinary tensors: gradproof.check(lambda a, b: fn(build([a, b])), (a, b))"
            )
    wanted = [path for path, value in given.items() if value.requires_grad] or list(given)
    wanted += [path for path, tensor in own.items() if tensor.requires_grad]
    if not wanted:
        raise UsageError(
            f"no floating or complex tensor among the arguments ({kinds_of(arguments)}), so there is nothing to "
            "differentiate; pass one, as in gradproof.check(fn, torch.randn(3, dtype=torch.float64))"
        )
    return frozenset(wanted)


def foreign(arguments: Sequence[tuple[str, Any]]) -> tuple[Skipped, ...]:
    """Arrays of JAX among the arguments, of which there can be none before it is imported."""
    jax = sys.modules.get("jax")
    found = [] if jax is None else [path for path, value in arguments if isinstance(value, jax.Array)]
    return tuple(Skipped(path, "an array of JAX, which is a constant to torch") for path in found)
