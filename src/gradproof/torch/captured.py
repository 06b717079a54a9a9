"""Inputs that the function reaches past its arguments: `lambda *params: module(x)` with the module's own parameters.

Copies would leave such a function unmoved. So the user's own tensor is the leaf: it is moved in place for each
evaluation, and put back before anybody can see it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from gradproof.torch.sparse import masked


@dataclass(slots=True)
class Captured:
    """A form, see `forms`. `depth` counts the evaluations that are under way inside each other."""

    path: str
    tensor: Tensor
    kept: Tensor = field(init=False)
    depth: int = 0

    def __post_init__(self) -> None:
        self.kept = self.tensor.detach().clone()

    @property
    def coordinates(self) -> Tensor:
        return self.kept

    def argument(self, coordinates: Tensor) -> Tensor:
        self.tensor.data.copy_(coordinates)
        return self.tensor

    def leaf(self) -> Tensor:
        return self.tensor

    def copy(self, leaf: Tensor) -> Tensor:
        return leaf

    def gradient(self, gradient: Tensor) -> Tensor:
        return masked(gradient)


@contextmanager
def put_back(captured: Sequence[Captured]) -> Iterator[None]:
    """On the way out of the outermost evaluation the tensors are what they were."""
    for one in captured:
        one.depth += 1
    try:
        yield
    finally:
        for one in captured:
            one.depth -= 1
            if one.depth == 0:
                one.tensor.data.copy_(one.kept)


def captured_paths(graph: Sequence[Any], originals: Sequence[tuple[str, Tensor]]) -> frozenset[str]:
    """The user's own tensors that the graph of these nodes leads to. It should lead to copies of them."""
    reached = set(graph)
    variables = {id(node.variable) for node in reached if hasattr(node, "variable")}
    return frozenset(path for path, tensor in originals if id(tensor) in variables or tensor.grad_fn in reached)
