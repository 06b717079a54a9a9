"""Reverse passes over the traced graph, as autograd gives them: layouts, dtypes and None are kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from gradproof.reference.steps import signed
from gradproof.torch.batchrules import at_once_in_autograd
from gradproof.torch.graph import Graph
from gradproof.torch.leaves import equal
from gradproof.torch.modes import gradients_of
from gradproof.torch.sparse import opened
from gradproof.torch.state import as_called
from gradproof.torch.subclasses import plain
from gradproof.torch.torchprogram import TorchProgram

Gradients = Sequence[torch.Tensor | None]


def random_cotangents(program: TorchProgram, generator: np.random.Generator) -> list[torch.Tensor]:
    """One for each output, with signed entries of different size."""
    return program.call.outputs.tensors(signed(generator, program.value.size))


def pull(
    program: TorchProgram,
    cotangents: Sequence[torch.Tensor],
    through: Callable[[int, torch.Tensor], torch.Tensor] | None = None,
    *,
    only: int | None = None,
    batched: bool = False,
) -> Gradients:
    """The gradients of all inputs, of all outputs together or of one of them. `through` may put something between
    output i and its cotangent. If the graph turns out to serve only once, the function is traced again."""
    used = program.used
    program.tally.pulls += 1
    try:
        return _grad(program.graph, cotangents, through, only, batched=batched)
    except Exception:
        if not used:
            raise
        return _grad(program.renewed(), cotangents, through, only, batched=batched)


def pulled(
    values: Sequence[torch.Tensor], points: Sequence[torch.Tensor], cotangents: Sequence[torch.Tensor]
) -> Gradients:
    """The same through a graph that is used for this alone."""
    return _grad(Graph(points, values), cotangents, None, None, batched=False)


def numbers(gradient: torch.Tensor) -> torch.Tensor:
    """A gradient of any layout and class as an ordinary dense tensor that can be computed with."""
    dense = opened(plain(gradient))
    return dense.to(torch.complex64) if dense.dtype is torch.complex32 else dense


def same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return equal(numbers(one), numbers(other))


def close(one: torch.Tensor, other: torch.Tensor) -> bool:
    """As `torch.allclose`, which takes long to say so of equal ones."""
    return equal(one, other) or torch.allclose(one, other, equal_nan=True)


def spread(before: torch.Tensor | None, after: torch.Tensor | None) -> float:
    """How far two gradients are apart; one that is not there is zero, and NaN is like NaN alone."""
    if before is None and after is None:
        return 0.0
    one, other = (None if gradient is None else numbers(gradient) for gradient in (before, after))
    if one is not None and other is not None and equal(one, other):
        return 0.0
    difference = one - other if one is not None and other is not None else one if other is None else other
    assert difference is not None
    if not difference.numel():
        return 0.0
    gap = difference.detach().abs().nan_to_num(0.0)
    if one is not None and other is not None:
        gap = gap.masked_fill(one.isnan() != other.isnan(), torch.inf)
    return float(gap.max())


def finite(gradient: torch.Tensor | None) -> bool:
    return gradient is None or bool(numbers(gradient).isfinite().all())


def largest(gradient: torch.Tensor | None) -> float:
    if gradient is None or not gradient.numel():
        return 0.0
    return float(numbers(gradient).detach().abs().nan_to_num(0.0, posinf=0.0).max())


def _grad(
    graph: Graph,
    cotangents: Sequence[torch.Tensor],
    through: Callable[[int, torch.Tensor], torch.Tensor] | None,
    only: int | None,
    *,
    batched: bool,
) -> Gradients:
    kept = [i for i, value in enumerate(graph.values) if value.requires_grad and only in (None, i)]
    if not kept:
        return [None] * len(graph.points)
    with torch.enable_grad():
        values = [graph.values[i] if through is None else through(i, graph.values[i]) for i in kept]

    def run(given: Sequence[torch.Tensor]) -> Gradients:
        return as_called(graph.values, lambda: gradients_of(values, graph.points, given))

    given = [cotangents[i] for i in kept]
    return at_once_in_autograd(run, given) if batched else run(given)
