"""Which framework the user's arguments belong to. Adapters are imported only when their framework already is."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gradproof.errors import UsageError
from gradproof.program import Program


def program_of(
    fn: Callable[..., Any], args: Any, kwargs: Mapping[str, Any] | None, wrt: str | Sequence[str] | None
) -> Program:
    if not callable(fn):
        raise UsageError(f"the first argument must be the function to check, got {fn!r}; write check(fn, (x,))")
    if kwargs is not None and not isinstance(kwargs, Mapping):
        raise UsageError(
            f"kwargs must be a dict of keyword arguments, got {kwargs!r}; write check(fn, (x,), {{'scale': 2.0}})"
        )
    if "torch" in sys.modules:
        from gradproof.torch.adapter import program_of as torch_program

        return torch_program(fn, args, dict(kwargs or {}), wrt)
    raise UsageError("none of the arguments is a tensor of a supported framework; write check(fn, (torch.randn(3),))")
