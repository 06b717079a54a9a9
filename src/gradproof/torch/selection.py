"""Which leaves to differentiate: path patterns, and the default."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import torch

from gradproof.errors import UsageError
from gradproof.torch.leaves import differentiable


def chosen(arguments: Sequence[tuple[str, Any]], params: Sequence[tuple[str, Any]], wrt: object) -> frozenset[str]:
    """The paths to differentiate, among arguments and parameters."""
    floating = [(path, tensor) for path, tensor in (*arguments, *params) if differentiable(tensor)]
    if wrt is not None:
        return _matching(_patterns(wrt), [path for path, _ in floating])
    for path, value in arguments:
        if isinstance(value, torch.Tensor) and value.requires_grad and not differentiable(value):
            raise UsageError(
                f"{path} requires grad but is {_kind(value)}, which has no coordinates; build it inside of a "
                "function of ordinary tensors: gradproof.check(lambda a, b: fn(build([a, b])), (a, b))"
            )
    wanted = [path for path, tensor in arguments if differentiable(tensor) and tensor.requires_grad]
    if not wanted:
        wanted = [path for path, tensor in arguments if differentiable(tensor)]
    wanted += [path for path, tensor in params if differentiable(tensor) and tensor.requires_grad]
    if not wanted:
        kinds = ", ".join(f"{path}: {_kind(value)}" for path, value in arguments[:6]) or "no arguments at all"
        raise UsageError(
            f"no floating or complex tensor among the arguments ({kinds}), so there is nothing to differentiate; "
            "pass one, as in gradproof.check(fn, torch.randn(3, dtype=torch.float64))"
        )
    return frozenset(wanted)


def _patterns(wrt: object) -> tuple[str, ...]:
    patterns = (wrt,) if isinstance(wrt, str) else tuple(wrt) if isinstance(wrt, (list, tuple, set, frozenset)) else ()
    if not patterns or not all(isinstance(pattern, str) for pattern in patterns):
        raise UsageError(
            f"wrt={wrt!r} is not understood; write a path or several, with * and ? as wildcards: "
            "wrt='args[0]', wrt=('args[0]', 'params.*.weight')"
        )
    return patterns


def _matching(patterns: Sequence[str], paths: Sequence[str]) -> frozenset[str]:
    wanted: set[str] = set()
    for pattern in patterns:
        matcher = _compiled(pattern.removesuffix(".values()"))  # how findings name what a sparse tensor stores
        hits = [path for path in paths if matcher.fullmatch(path)]
        if not hits:
            available = ", ".join(paths) or "none"
            example = f": wrt={paths[0]!r}" if paths else ""
            raise UsageError(
                f"wrt={pattern!r} matches no floating or complex tensor; available: {available}; "
                f"write one of them{example}"
            )
        wanted.update(hits)
    return frozenset(wanted)


def _compiled(pattern: str) -> re.Pattern[str]:
    """`*` and `?` are wildcards, all else is literal; a match may stop where a subtree begins."""
    body = "".join({"*": ".*", "?": "."}.get(char, re.escape(char)) for char in pattern)
    return re.compile(f"(?:{body})(?:[\\[.].*)?", re.DOTALL)


def _kind(value: object) -> str:
    dtype = getattr(value, "dtype", None)
    return type(value).__name__ + (f" of {dtype}" if dtype is not None else "")
