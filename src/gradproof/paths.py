"""Which leaves the user means by `wrt`: patterns of paths; and what else there is. Shared by the adapters."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gradproof.errors import UsageError


def matching(wrt: object, paths: Sequence[str], option: str = "wrt") -> frozenset[str]:
    """The paths that some pattern matches; a pattern that matches none is refused. `option` is whose patterns."""
    wanted: set[str] = set()
    for pattern in _patterns(wrt):
        matcher = _compiled(pattern.removesuffix(".values()"))  # how findings name what a sparse tensor stores
        hits = [path for path in paths if matcher.fullmatch(path)]
        if not hits:
            available = ", ".join(paths) or "none"
            example = f": {option}={paths[0]!r}" if paths and option == "wrt" else ""
            raise UsageError(
                f"{option}={pattern!r} matches no floating or complex leaf; available: {available}; "
                f"write one of them{example}"
            )
        wanted.update(hits)
    return frozenset(wanted)


def kind_of(value: object) -> str:
    """What an argument is, for messages: `Tensor of torch.int64`."""
    dtype = getattr(value, "dtype", None)
    return type(value).__name__ + (f" of {dtype}" if dtype is not None else "")


def kinds_of(named: Sequence[tuple[str, object]]) -> str:
    """The same of the first few arguments."""
    return ", ".join(f"{path}: {kind_of(value)}" for path, value in named[:6]) or "no arguments at all"


def _patterns(wrt: object) -> tuple[str, ...]:
    patterns = (wrt,) if isinstance(wrt, str) else tuple(wrt) if isinstance(wrt, (list, tuple, set, frozenset)) else ()
    if not patterns or not all(isinstance(pattern, str) for pattern in patterns):
        raise UsageError(
            f"wrt={wrt!r} is not understood; write a path or several, with * and ? as wildcards: "
            "wrt='args[0]', wrt=('args[0]', 'params.*.weight')"
        )
    return patterns


def _compiled(pattern: str) -> re.Pattern[str]:
    """`*` and `?` are wildcards, all else is literal; a match may stop where a subtree begins."""
    body = "".join({"*": ".*", "?": "."}.get(char, re.escape(char)) for char in pattern)
    return re.compile(f"(?:{body})(?:[\\[.].*)?", re.DOTALL)
