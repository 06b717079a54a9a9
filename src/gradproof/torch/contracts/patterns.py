"""A sparse argument that means all its entries (`masked=False`) is the same whether a zero is stored or not, and so is
its gradient (R8 of the drop-in).

Where some entries are not stored, the comparison with the numeric side tells. Where all happen to be, a rule that
hands nothing to the others looks right: so one is made zero, and left out.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gradproof.program import Spot
from gradproof.result import Finding, Place, Verdict
from gradproof.torch.contracts.pulls import Gradients, pulled, same
from gradproof.torch.contracts.subject import Subject
from gradproof.torch.sparse import Everywhere, stored

HINT = "Use to_dense(masked_grad=False) in the function, or pass masked=True if what is not stored is no input."


def check_patterns(subject: Subject) -> tuple[Finding, ...]:
    program = subject.program
    for i, form in program.call.forms.by_input.items():
        if not isinstance(form, Everywhere) or not _stores_all(form.tensor):
            continue
        kept, left_out = (_gradients(subject, i, tensor) for tensor in _with_and_without(form.tensor))
        if kept is None or left_out is None or not _same_values(kept[0], left_out[0]):
            continue  # the function looks at the pattern itself, or does not run there: that is its own choice
        if subject.differ_at(i, kept[1][i], left_out[1][i]):
            sentence = (
                f"Jacobian mismatch for output 0 with respect to input {i}: backward drops the gradient of entries of "
                f"{form.path} that are not stored"
            )
            return (Finding("layout", Verdict.WRONG, Place(None, Spot(form.path)), sentence, HINT),)
    return ()


def _stores_all(tensor: Tensor) -> bool:
    """Of those layouts from which an entry can be taken: not of blocks, nor of several matrices."""
    plain = tensor.layout in (torch.sparse_csr, torch.sparse_csc) and tensor.dim() == 2
    if not plain and not (tensor.layout is torch.sparse_coo and tensor.is_coalesced()):
        return False
    return stored(tensor).numel() == tensor.numel() > 0


def _with_and_without(tensor: Tensor) -> tuple[Tensor, Tensor]:
    """The tensor with its smallest entry zero: once stored, once not."""
    coordinates = tensor if tensor.layout is torch.sparse_coo else tensor.to_sparse(layout=torch.sparse_coo).coalesce()
    values = coordinates._values()
    smallest = int(values.abs().reshape(len(values), -1).sum(1).argmin())
    zero = coordinates.clone()
    stored(zero)[smallest] = 0
    others = torch.arange(len(values), device=values.device) != smallest
    without = torch.sparse_coo_tensor(
        coordinates._indices()[:, others], values[others], tensor.shape, is_coalesced=True, check_invariants=False
    )
    if tensor.layout is torch.sparse_coo:
        return zero, without
    return zero.to_sparse(layout=tensor.layout), without.to_sparse(layout=tensor.layout)


def _gradients(subject: Subject, which: int, tensor: Tensor) -> tuple[list[Tensor], Gradients] | None:
    """The values there, and the gradients of all inputs."""
    points = [point.detach().requires_grad_() for point in subject.program.traced.points]
    points[which] = tensor.requires_grad_()
    try:
        values = list(subject.values_at(points))
        subject.program.tally.pulls += 1
        gradients = pulled(values, points, subject.cotangents)
    except Exception:  # noqa: BLE001  zero may lie outside of its domain
        return None
    return values, subject.program.call.forms.gradients(gradients)


def _same_values(values: list[Tensor], others: list[Tensor]) -> bool:
    return all(same(one, other) for one, other in zip(values, others, strict=True))
