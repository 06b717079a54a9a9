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
    batched: bool = False,
) -> Gradients:
    """The gradients of all inputs. `through` may put something between output i and its cotangent. If the graph turns
    out to serve only once, the function is traced again."""
    used = program.used
    try:
        return _grad(program.graph, cotangents, through, batched)
    except Exception:
        if not used:
            raise
        return _grad(program.renewed(), cotangents, through, batched)


def numbers(gradient: torch.Tensor) -> torch.Tensor:
    """A gradient of any layout and class as an ordinary dense tensor."""
    return opened(plain(gradient))


def _grad(
    graph: Graph,
    cotangents: Sequence[torch.Tensor],
    through: Callable[[int, torch.Tensor], torch.Tensor] | None,
    batched: bool,  # noqa: FBT001  torch's own switch
) -> Gradients:
    kept = [i for i, value in enumerate(graph.values) if value.requires_grad]
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
