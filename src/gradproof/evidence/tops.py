"""Where the entries of a Jacobian are largest: read once, since it may be most of what a check has to read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gradproof.program import Array, Leaf


@dataclass(frozen=True, eq=False, slots=True)
class Tops:
    """A Jacobian (N, M), and the sizes of its entries; the largest one by each input (N,), for each leaf of outputs;
    and that of each output (M,)."""

    jacobian: Array
    size: Array
    inputs: dict[str, Array]
    outputs: Array

    @classmethod
    def of(cls, jacobian: Array, outputs: Sequence[Leaf]) -> Tops:
        size = np.abs(jacobian)
        inputs = {output.path: size[:, output.span].max(axis=1, initial=0.0) for output in outputs}
        return cls(jacobian, size, inputs, size.max(axis=0, initial=0.0))

    def of_inputs(self) -> Array:
        """Over all outputs (N,)."""
        return np.asarray(np.maximum.reduce(list(self.inputs.values())))

    def largest(self, leaf: Leaf, output: Leaf) -> tuple[int, int] | None:
        """Input and output of the largest entry of a block; None if all are zero."""
        if not (leaf.size and output.size):
            return None
        i = leaf.start + int(self.inputs[output.path][leaf.span].argmax())
        j = output.start + int(self.size[i, output.span].argmax())
        return (i, j) if self.size[i, j] else None
