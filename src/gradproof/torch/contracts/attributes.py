"""A gradient looks like its input: layout, sparse dimensions, device, size and dtype (R12 of the drop-in).

The engine hides what a custom rule returns: it casts to the input's dtype and sums to the input's size, without a word.
So what each rule returns is looked at before that.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gradproof import precision
from gradproof.program import Spot
from gradproof.result import Finding, Place, Verdict
from gradproof.torch.contracts.pulls import Gradients
from gradproof.torch.contracts.subject import Subject
from gradproof.torch.contracts.watch import Looks, looks_of
from gradproof.torch.graph import Graph, name_of, rule_name
from gradproof.torch.leaves import dtype_name
from gradproof.torch.torchprogram import TorchProgram

_SPARSE = (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)
SOME = "Only some optimizers take sparse gradients of dense parameters; return gradient.to_dense() for the others."
HINT = "Return a gradient that looks like forward's input; the engine hides the difference by a cast."


def check_attributes(subject: Subject) -> tuple[Finding, ...]:
    """Of the first pull: what came out of the engine, and what went in. A dtype that is coarser than the input's has
    cost digits; another one, or another size, is mended by the engine and only remarked on. A sparse gradient of a
    dense input is right: torch's own embeddings give it on demand."""
    inputs, given = subject.program.inputs, subject.program.traced.points
    sparse = [i for i, one in enumerate(subject.gradients) if one is not None and _is_sparse_of_dense(one, given[i])]
    dense = [one.to_dense() if one is not None and i in sparse else one for i, one in enumerate(subject.gradients)]
    found = check_looks(subject.program, dense)
    remarks = [
        Finding("attributes", Verdict.RIGHT, Place(None, Spot(path)), f"the gradient of {path} is sparse", SOME)
        for path in [inputs[i].path for i in sparse if subject.written]
    ]
    for node, looks in () if found or subject.large else subject.first.watch.returned.items():
        for returned in _mended(node, looks):
            what = f"{rule_name(node)} returns a gradient for input {returned.index} of forward"
            sentence = f"{what} that is {returned.dtype or returned.size}"
            verdict = Verdict.WRONG if returned.coarser else Verdict.RIGHT
            mended = "; the engine casts it" if returned.dtype else "; the engine sums it"
            remarks.append(Finding("attributes", verdict, Place(), sentence + mended, HINT))
    remarks.sort(key=lambda finding: finding.verdict is Verdict.RIGHT)
    return found or tuple(remarks[:1])


def _is_sparse_of_dense(gradient: Tensor, given: Tensor) -> bool:
    return gradient.layout is torch.sparse_coo and given.layout is torch.strided


def check_looks(program: TorchProgram, gradients: Gradients) -> tuple[Finding, ...]:
    """Of one pull. A dense gradient is welcome for any input."""
    for leaf, given, gradient in zip(program.inputs, program.traced.points, gradients, strict=True):
        wrong = "" if gradient is None else _difference(gradient, given)
        if wrong:
            return (Finding("attributes", Verdict.WRONG, Place(None, Spot(leaf.path)), f"{wrong} (of {leaf.path})"),)
    return ()


def _difference(gradient: Tensor, given: Tensor) -> str:
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


def check_returned(program: TorchProgram) -> tuple[Finding, ...]:
    """For the drop-in, with zeros for cotangents: gradients of another dtype. Some authors count on the sum, PyTorch's
    own among them, so another size is only warned of."""
    found: list[Finding] = []
    with torch.no_grad():
        for node in _python_nodes(program.traced):
            for returned in _mended(node, _returned_for_zeros(node)):
                looks = f"returned by {name_of(node)} for input {returned.index} of forward"
                if returned.size:
                    text = f"Analytical gradient has incorrect size: {returned.size}, {looks}; the engine sums it"
                    warnings.warn(text, UserWarning, stacklevel=5)
                if returned.dtype:
                    sentence = f"Gradient has dtype mismatch: {returned.dtype}, {looks}"
                    found.append(Finding("attributes", Verdict.WRONG, Place(), sentence, HINT))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Returned:
    """How a returned gradient differs from an input of forward; empty where it does not."""

    index: int
    size: str
    dtype: str
    coarser: bool


def _returned_for_zeros(node: Any) -> tuple[Looks | None, ...]:
    """What a rule returns when it is asked by itself."""
    cotangents = [torch.zeros(meta.shape, dtype=meta.dtype, device=meta.device) for meta in node._input_metadata]
    try:
        return looks_of(node.apply(*cotangents))
    except Exception:  # noqa: BLE001  in the engine's own calls it did not; what it cannot do by itself is not asked here
        return ()


def _mended(node: Any, looks: Sequence[Looks | None]) -> Iterator[Returned]:
    """What the engine has to cast or to sum."""
    for index, gradient, edge in _edges(node, looks):
        expected = _metadata(edge)
        if gradient is not None and expected is not None:
            got, wanted = dtype_name(gradient.dtype), dtype_name(expected.dtype)
            sizes = tuple(gradient.shape), tuple(expected.shape)
            size = (
                f"{sizes[0]}, expected {sizes[1]}" if gradient.layout is torch.strided and sizes[0] != sizes[1] else ""
            )
            dtype = f"{gradient.dtype}, expected {expected.dtype}" if got != wanted else ""
            coarser = precision.of(got).roundoff > precision.of(wanted).roundoff
            if size or dtype:
                yield Returned(index, size, dtype, coarser)


def _edges(node: Any, returned: Sequence[Looks | None]) -> Iterator[tuple[int, Looks | None, Any]]:
    """Each returned gradient with its place among forward's inputs and its edge. Inputs that are no tensors have no
    edge, and None for a gradient; where that does not tell which they are, nothing is said."""
    numbered = list(enumerate(returned))
    if len(numbered) != len(node.next_functions):
        numbered = [(i, gradient) for i, gradient in numbered if gradient is not None]
    if len(numbered) == len(node.next_functions):
        yield from ((i, gradient, edge) for (i, gradient), edge in zip(numbered, node.next_functions, strict=True))


def _metadata(edge: tuple[Any, int]) -> Any:
    node, slot = edge
    metadata = () if node is None else node._input_metadata
    return metadata[slot] if slot < len(metadata) else None


def _python_nodes(graph: Graph) -> Iterator[Any]:
    """The nodes of custom Functions."""
    return (node for node in graph.nodes if isinstance(node, torch.autograd.function.BackwardCFunction))
