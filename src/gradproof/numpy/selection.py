"""Which arguments to differentiate: path patterns, and the default."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from gradproof.errors import UsageError
from gradproof.numpy.leaves import differentiable, is_number


def chosen(named: Sequence[tuple[str, Any]], wrt: object, first_only: str) -> frozenset[str]:
    """The paths to differentiate. By default all arrays among the positional arguments or, where the derivative is that
    of SciPy's `fun(x, *args)` (`first_only` names it), those of the first."""
    positional = [(path, value) for path, value in named if path.startswith("args")]
    if wrt is not None:
        return _matching(_patterns(wrt), [path for path, value in positional if is_number(value)])
    if first_only:
        positional = [(path, value) for path, value in positional if path.startswith("args[0]")]
    wanted = [path for path, value in positional if differentiable(value)]
    wanted = wanted or [path for path, value in positional if is_number(value)]
    if not wanted:
        kinds = ", ".join(f"{path}: {_kind(value)}" for path, value in named[:6]) or "no arguments at all"
        where = "in the first argument, which is what " + first_only + " differentiates" if first_only else "at all"
        raise UsageError(
            f"there is no floating or complex array {where} ({kinds}); "
            "write check(fn, np.array([1.0, 2.0]), derivative={'jac': jac})"
        )
    return frozenset(wanted)


def _patterns(wrt: object) -> tuple[str, ...]:
    patterns = (wrt,) if isinstance(wrt, str) else tuple(wrt) if isinstance(wrt, (list, tuple, set, frozenset)) else ()
    if not patterns or not all(isinstance(pattern, str) for pattern in patterns):
        raise UsageError(
            f"wrt={wrt!r} is not understood; write a path or several, with * and ? as wildcards: "
            "wrt='args[0]', wrt=('args[0]', 'args[1]')"
        )
    return patterns


def _matching(patterns: Sequence[str], paths: Sequence[str]) -> frozenset[str]:
    wanted: set[str] = set()
    for pattern in patterns:
        body = "".join({"*": ".*", "?": "."}.get(char, re.escape(char)) for char in pattern)
        matcher = re.compile(f"(?:{body})(?:[\\[.].*)?", re.DOTALL)  # a match may stop where a structure begins
        hits = [path for path in paths if matcher.fullmatch(path)]
        if not hits:
            raise UsageError(
                f"wrt={pattern!r} matches no floating or complex array among the positional arguments; "
                f"available: {', '.join(paths) or 'none'}"
            )
        wanted.update(hits)
    return frozenset(wanted)


def _kind(value: object) -> str:
    dtype = getattr(value, "dtype", None)
    return type(value).__name__ + (f" of {dtype}" if dtype is not None else "")
