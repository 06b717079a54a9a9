"""What the user's function returned the first time: which leaves are coordinates, which are skipped."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from gradproof.errors import OutputsChanged
from gradproof.jax.leaves import Arrays, Layout, as_array, differentiable, is_number
from gradproof.jax.tree import flatten, rebuild
from gradproof.program import Skipped


class Outputs:
    """The structure and the leaves of a first result; later ones must look like it."""

    def __init__(self, result: Any) -> None:
        found: list[tuple[str, Any]] = []
        self._tree = flatten(result, "out", found)
        reasons = [_reason_to_skip(value) for _, value in found]
        self._kept = [i for i, reason in enumerate(reasons) if reason is None]
        # In place of what is skipped; integers have the zeros that JAX wants as their cotangents.
        self._others = [None if reason is None else no_tangent(found[i][1]) for i, reason in enumerate(reasons)]
        self.layout = Layout.of([(found[i][0], as_array(found[i][1])) for i in self._kept])
        self.skipped = tuple(Skipped(found[i][0], reason) for i, reason in enumerate(reasons) if reason is not None)

    def leaves_of(self, result: Any) -> Arrays:
        """The kept leaves of another result, as arrays."""
        named: list[tuple[str, Any]] = []
        if flatten(result, "out", named) != self._tree:
            raise OutputsChanged.structure(self.layout.leaves, self.skipped, (path for path, _ in named))
        kept = [as_array(named[i][1]) for i in self._kept]
        for leaf, dtype, value in zip(self.layout.leaves, self.layout.dtypes, kept, strict=True):
            if value.shape != leaf.shape or value.dtype != dtype:
                kind = "dtype" if value.shape == leaf.shape else "shape"
                raise OutputsChanged(
                    f"{leaf.path} has shape {leaf.shape} {leaf.dtype} at the point but shape {tuple(value.shape)} "
                    f"{value.dtype.name} at a nearby point; a function can be checked only if its output keeps its "
                    "shape and dtype: pad it, or return a fixed part of it",
                    kind,
                    leaf.dtype if kind == "dtype" else str(leaf.shape),
                    value.dtype.name if kind == "dtype" else str(tuple(value.shape)),
                )
        return kept

    def rebuilt(self, values: Arrays) -> Any:
        """The first result with other values in place of the kept leaves."""
        parts = self._others.copy()
        for i, value in zip(self._kept, values, strict=True):
            parts[i] = value
        return rebuild(self._tree, iter(parts))


def no_tangent(value: Any) -> Any:
    """What stands in a structure of tangents where there is none."""
    if isinstance(value, (jax.Array, np.ndarray, np.generic, bool, int, float, complex)):
        return np.zeros(np.shape(value), jax.dtypes.float0)
    return value


def _reason_to_skip(value: object) -> str | None:
    if differentiable(value) or is_number(value):
        return None
    if isinstance(value, (jax.Array, np.ndarray, np.generic)):
        return f"{value.dtype} has no derivative"
    return f"{type(value).__name__}, not an array"
