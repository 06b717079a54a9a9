"""Reverse passes over the traced graph, as autograd gives them: layouts, dtypes and None are kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from gradproof.reference.steps import signed
from gradproof.torch.modes import Graph
from gradproof.torch.sparse import opened
from gradproof.torch.subclasses import plain
from gradproof.torch.torchprogram import TorchProgram

Gradients = Sequence[torch.Tensor | None]


def random_cotangents(program: TorchProgram, generator: np.random.Generator) -> list[torch.Tensor]:
    """One for each output, with signed entries of different size."""
    return program.call.outputs.single(signed(generator, program.value.size))


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
    try:
        return _grad(program.graph, cotangents, through, only, batched)
    except Exception:
        if not used:
            raise
        return _grad(program.renewed(), cotangents, through, only, batched)


def numbers(gradient: torch.Tensor) -> torch.Tensor:
    """A gradient of any layout and class as an ordinary dense tensor that can be computed with."""
    dense = opened(plain(gradient))
    return dense.to(torch.complex64) if dense.dtype is torch.complex32 else dense


def same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return torch.equal(numbers(one), numbers(other))


def _grad(
    graph: Graph,
    cotangents: Sequence[torch.Tensor],
    through: Callable[[int, torch.Tensor], torch.Tensor] | None,
    only: int | None,
    batched: bool,  # noqa: FBT001  torch's own switch
) -> Gradients:
    kept = [i for i, value in enumerate(graph.values) if value.requires_grad and only in (None, i)]
    if not kept:
        return [None] * len(graph.points)
    with torch.enable_grad():
        values = [graph.values[i] if through is None else through(i, graph.values[i]) for i in kept]
    gradients: Gradients = torch.autograd.grad(
        values,
        graph.points,
        [cotangents[i] for i in kept],
        retain_graph=True,
        allow_unused=True,
        is_grads_batched=batched,
    )
    return gradients
