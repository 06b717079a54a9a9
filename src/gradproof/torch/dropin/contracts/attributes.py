"""R12: a gradient looks like its input: layout, sparse dimensions, device, size and dtype."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from gradproof.program import Spot
from gradproof.result import Finding, Place, Verdict
from gradproof.torch.dropin.contracts.pulls import Gradients
from gradproof.torch.modes import Graph
from gradproof.torch.torchprogram import TorchProgram

_SPARSE = (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)


def check_attributes(
    program: TorchProgram, inputs: Sequence[torch.Tensor], gradients: Gradients
) -> tuple[Finding, ...]:
    """Of one pull. A dense gradient is welcome for any input."""
    for leaf, given, gradient in zip(program.inputs, inputs, gradients, strict=True):
        wrong = "" if gradient is None else _difference(gradient, given)
        if wrong:
            return (Finding("attributes", Verdict.WRONG, Place(None, Spot(leaf.path)), f"{wrong} (of {leaf.path})"),)
    return ()


def _difference(gradient: torch.Tensor, given: torch.Tensor) -> str:
    if gradient.layout is not torch.strided:
        if gradient.layout is not given.layout:
            return f"grad is incorrect layout: {gradient.layout}, expected {given.layout} or torch.strided"
        if gradient.layout in _SPARSE:
            kind = str(gradient.layout).removeprefix("torch.").removesuffix("_coo")
            for name in ("sparse_dim", "dense_dim"):
                got, wanted = getattr(gradient, name)(), getattr(given, name)()
                if got != wanted:
                    return f"grad is {kind} tensor, but has incorrect {name}: {got}, expected {wanted}"
    for name, word in (("dtype", "type"), ("device", "device"), ("shape", "size")):
        got, wanted = getattr(gradient, name), getattr(given, name)
        if got != wanted:
            return f"grad is incorrect {word}: {got}, expected {wanted}"
    return ""


def check_dtypes(program: TorchProgram) -> tuple[Finding, ...]:
    """The dtypes that custom Functions return from backward. The engine casts them to the inputs' silently, so each
    Function is asked on its own, with zeros for its cotangents."""
    with program.scope, torch.no_grad():
        for node in _python_nodes(program.graph):
            wrong = _wrong_dtype(node)
            if wrong:
                hint = (
                    "Make backward compute in the dtype of forward's input; the engine hides the difference by a cast."
                )
                return (Finding("dtype", Verdict.WRONG, Place(), wrong, hint),)
    return ()


def _wrong_dtype(node: Any) -> str:
    cotangents = [torch.zeros(meta.shape, dtype=meta.dtype, device=meta.device) for meta in node._input_metadata]
    returned = node.apply(*cotangents)
    returned = returned if isinstance(returned, tuple) else (returned,)
    wanted = [_dtype_after(edge) for edge in node.next_functions]
    for index, (gradient, dtype) in enumerate(zip(returned, wanted, strict=False)):
        if isinstance(gradient, torch.Tensor) and dtype is not None and gradient.dtype is not dtype:
            return (
                f"Gradient has dtype mismatch: {node.name()} returns {gradient.dtype} for input {index} of forward, "
                f"which is {dtype}"
            )
    return ""


def _dtype_after(edge: tuple[Any, int]) -> torch.dtype | None:
    node, slot = edge
    metadata = () if node is None else node._input_metadata
    return metadata[slot].dtype if slot < len(metadata) else None


def _python_nodes(graph: Graph) -> Iterator[Any]:
    """The nodes of custom Functions."""
    waiting: list[Any] = [value.grad_fn for value in graph.values if value.grad_fn is not None]
    seen = set(waiting)
    while waiting:
        node = waiting.pop()
        if isinstance(node, torch.autograd.function.BackwardCFunction):
            yield node
        for further, _ in node.next_functions:
            if further is not None and further not in seen:
                seen.add(further)
                waiting.append(further)
