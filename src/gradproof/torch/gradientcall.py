"""The gradient of a call, which is a call again."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from gradproof.program import Array, Skipped, leaves
from gradproof.torch.batchrules import ByRules
from gradproof.torch.calls import Call, Tensors
from gradproof.torch.captured import put_back
from gradproof.torch.leaves import Layout
from gradproof.torch.modes import reverse
from gradproof.torch.state import Values
from gradproof.torch.strides import with_gaps


class GradientCall:
    """(x, w) -> J(x)^T w of another call. Rows are independent, so one reverse pass serves all rows of a batch.

    `cotangents` has one entry for each output: a tensor that requires grad is an input leaf, another tensor is fixed,
    None means no cotangent at all. Left out, there is a leaf for each output.
    """

    def __init__(self, inner: Call, cotangents: Sequence[torch.Tensor | None] | None = None) -> None:
        self._inner = inner
        self.cotangents = cotangents
        count = len(inner.outputs.leaves)
        self._kept = [i for i in range(count) if cotangents is None or _is_leaf(cotangents[i])]
        self.modules = inner.modules
        self.reading = inner.reading
        self.held, self.hooked = inner.held, inner.hooked
        self.forms = inner.forms  # its inputs come first
        self._captured = inner.forms.captured
        self._count = len(inner.inputs.leaves)
        self.inputs = _renamed(
            [(leaf.path, inner.inputs, i) for i, leaf in enumerate(inner.inputs.leaves)]
            + [(f"cotangent({inner.outputs.leaves[i].path})", self._cotangent_layout(i), i) for i in self._kept]
        )
        self.outputs = _renamed([(f"grad({leaf.path})", inner.inputs, i) for i, leaf in enumerate(inner.inputs.leaves)])
        self.skipped: tuple[Skipped, ...] = ()

    def point(self, inner: Array) -> Array:
        """Where the inner call is at its own point, and the cotangents are those that were given."""
        chosen = [one for one in self.cotangents or () if one is not None and one.requires_grad]
        point = self.inputs.vector([*(None for _ in range(self._count)), *chosen])
        point[: inner.size] = inner
        return point

    def one(self, leaves: Tensors) -> Tensors:
        return self._gradients(self._inner.one, leaves)

    def many(self, leaves: Tensors) -> Tensors:
        # A loop inside the batch would take each row out of it: in reverse, every row then costs as much as the batch.
        with ByRules():
            return self._gradients(self._inner.many, leaves)

    def _gradients(self, run: Callable[[Tensors], Tensors], leaves: Tensors) -> Tensors:
        if not self._captured:
            return self._pulled(run, leaves)
        with put_back(self._captured):  # the reverse pass needs the tensors where the evaluation had them
            return [gradient.clone() for gradient in self._pulled(run, leaves)]

    def _pulled(self, run: Callable[[Tensors], Tensors], leaves: Tensors) -> Tensors:
        outer_graph = torch.is_grad_enabled()
        with torch.enable_grad():
            arguments = self.forms.arguments(leaves[: self._count])
            points = [leaf if leaf.requires_grad else leaf.requires_grad_() for leaf in arguments]
            # Copies: the function may overwrite what it gets, and the points are needed for the reverse pass.
            values = run(self.forms.copies(points))
            cotangents = self._completed(leaves[self._count :], values)
            gradients = reverse(values, points, cotangents, create_graph=outer_graph)
            coordinates = self.forms.gradients(gradients)
        found = [
            self.forms.zeros(i, points[i]) if gradient is None else gradient for i, gradient in enumerate(coordinates)
        ]
        return values.followed_by(found) if isinstance(values, Values) else found

    def _cotangent_layout(self, i: int) -> Layout:
        """That of the outputs, but a given cotangent keeps its own dtype."""
        given = None if self.cotangents is None else self.cotangents[i]
        if given is None:
            return self._inner.outputs
        return Layout.of([("", given)] * (i + 1))

    def _completed(self, leaves: Tensors, values: Tensors) -> Sequence[torch.Tensor | None]:
        """The cotangents of all outputs: those that are leaves, and the fixed ones, once for each row of a batch."""
        if self.cotangents is None:
            return leaves
        full: list[torch.Tensor | None] = [
            None if given is None else given.detach().expand_as(value)
            for given, value in zip(self.cotangents, values, strict=True)
        ]
        for i, leaf in zip(self._kept, leaves, strict=True):
            given = self.cotangents[i]
            assert given is not None
            full[i] = leaf if given.is_contiguous() else with_gaps(leaf)
        return full


def _is_leaf(cotangent: torch.Tensor | None) -> bool:
    return cotangent is not None and cotangent.requires_grad


def _renamed(parts: Sequence[tuple[str, Layout, int]]) -> Layout:
    return Layout(
        leaves([(path, layout.leaves[i].shape, layout.leaves[i].dtype) for path, layout, i in parts]),
        tuple(layout.dtypes[i] for _, layout, i in parts),
        tuple(layout.devices[i] for _, layout, i in parts),
    )
