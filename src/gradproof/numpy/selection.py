"""Which arguments to differentiate: path patterns, and the default."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradproof.errors import UsageError
from gradproof.numpy.leaves import differentiable, is_number
from gradproof.paths import kinds_of, matching


def chosen(named: Sequence[tuple[str, Any]], wrt: object, first_only: str) -> frozenset[str]:
    """The paths to differentiate. By default all arrays among the positional arguments or, where the derivative is that
    of SciPy's `fun(x, *args)` (`first_only` names it), those of the first."""
    positional = [(path, value) for path, value in named if path.startswith("args")]
    if wrt is not None:
        return matching(wrt, [path for path, value in positional if is_number(value)])
    if first_only:
        positional = [(path, value) for path, value in positional if path.startswith("args[0]")]
    wanted = [path for path, value in positional if differentiable(value)]
    wanted = wanted or [path for path, value in positional if is_number(value)]
    if not wanted:
        where = "in the first argument, which is what " + first_only + " differentiates" if first_only else "at all"
        raise UsageError(
            f"there is no floating or complex array {where} ({kinds_of(named)}); "
            "write check(fn, np.array([1.0, 2.0]), derivative={'jac': jac})"
        )
    return frozenset(wanted)
