"""R12: a gradient looks like its input: layout, sparse dimensions, device, size and dtype."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from gradproof.program import Spot
from gradproof.result import Finding, Place, Verdict
from gradproof.torch.dropin.contracts.pulls import Gradients
from gradproof.torch.dropin.options import Options
from gradproof.torch.modes import Graph, nodes
from gradproof.torch.torchprogram import TorchProgram

_SPARSE = (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)


def check_attributes(program: TorchProgram, gradients: Gradients) -> tuple[Finding, ...]:
    """Of one pull. A dense gradient is welcome for any input."""
    for leaf, given, gradient in zip(program.inputs, program.graph.points, gradients, strict=True):
        wrong = "" if gradient is None else _difference(gradient, given)
        if wrong:
            return (Finding("attributes", Verdict.WRONG, Place(None, Spot(leaf.path)), f"{wrong} (of {leaf.path})"),)
    return ()


def _difference(gradient: torch.Tensor, given: torch.Tensor) -> str:
    if gradient.layout is not torch.strided:
        if gradient.layout is not given.layout:
            return f"grad is incorrect layout ({gradient.layout} is not {given.layout})"
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


def check_returned(program: TorchProgram, options: Options) -> tuple[Finding, ...]:
    """What custom Functions return from backward. The engine casts it to the input's dtype and sums it to the input's
    size without a word, so each Function is asked on its own, with zeros for its cotangents. Some authors count on the
    sum, PyTorch's own among them, so it is only warned of."""
    with torch.no_grad():
        for node in _python_nodes(program.graph):
            for returned in _returned(node):
                looks = f"returned by {node.name()} for input {returned.index} of forward"
                if returned.size:
                    text = f"Analytical gradient has incorrect size: {returned.size}, {looks}; the engine sums it"
                    warnings.warn(text, UserWarning, stacklevel=5)
                if returned.dtype and options.check_grad_dtypes:
                    hint = "Return what forward's input looks like; the engine hides the difference by a cast."
                    sentence = f"Gradient has dtype mismatch: {returned.dtype}, {looks}"
                    return (Finding("returned", Verdict.WRONG, Place(), sentence, hint),)
    return ()


@dataclass(frozen=True, slots=True)
class Returned:
    """How a returned gradient differs from an input of forward; empty where it does not."""

    index: int
    size: str
    dtype: str


def _returned(node: Any) -> Iterator[Returned]:
    cotangents = [torch.zeros(meta.shape, dtype=meta.dtype, device=meta.device) for meta in node._input_metadata]
    try:
        returned = node.apply(*cotangents)
    except Exception:  # noqa: BLE001  in the engine's own calls it did not; what it cannot do with zeros is not asked here
        return
    returned = returned if isinstance(returned, tuple) else (returned,)
    for index, (gradient, edge) in enumerate(zip(returned, node.next_functions, strict=False)):
        expected = _metadata(edge)
        if isinstance(gradient, torch.Tensor) and expected is not None:
            sizes, dtypes = (tuple(gradient.shape), tuple(expected.shape)), (gradient.dtype, expected.dtype)
            strided = gradient.layout is torch.strided
            yield Returned(
                index,
                f"{sizes[0]}, expected {sizes[1]}" if strided and sizes[0] != sizes[1] else "",
                f"{dtypes[0]}, expected {dtypes[1]}" if dtypes[0] is not dtypes[1] else "",
            )


def _metadata(edge: tuple[Any, int]) -> Any:
    node, slot = edge
    metadata = () if node is None else node._input_metadata
    return metadata[slot] if slot < len(metadata) else None


def _python_nodes(graph: Graph) -> Iterator[Any]:
    """The nodes of custom Functions."""
    return (node for node in nodes(graph.values) if isinstance(node, torch.autograd.function.BackwardCFunction))
