"""Backward takes a cotangent of any size and memory layout: torch's engine hands it whatever the next layer made. For
the drop-in, in two pulls; the native check has `contracts.linear` and `layouts`."""

from __future__ import annotations

import torch

from gradproof import precision
from gradproof.program import Spot
from gradproof.result import Finding, Place, Verdict
from gradproof.torch.contracts.pulls import Gradients, numbers, pull, same
from gradproof.torch.torchprogram import TorchProgram

# A power of two changes no digit. Half precision has no room for a large one.
LARGE, SMALL = 2.0**20, 2.0**2
# How far the gradients may be apart, relative to the largest entry: what depends on the size of a cotangent by itself
# is off by far more than a rule that loses digits at a large one (torch's matrix_exp: 1e-9).
ROUNDINGS, DIGITS = 2**14, 1e-6


def check_any_cotangent(
    program: TorchProgram, cotangents: list[torch.Tensor], gradients: Gradients, nondet_tol: float
) -> tuple[Finding, ...]:
    """`gradients` are those of the cotangents as they are; here they are larger, and not contiguous."""
    if not program.graph.any_graph:
        return ()
    roundoff = precision.form_of(program).roundoff
    factor = LARGE if roundoff <= precision.SINGLE.roundoff else SMALL
    slack = (max(ROUNDINGS * roundoff, DIGITS), nondet_tol * factor)
    found = _differs(gradients, pull(program, [_scattered(one * factor) for one in cotangents]), factor, slack)
    if found is None:
        return ()
    larger = _differs(gradients, pull(program, [one * factor for one in cotangents]), factor, slack)
    path = program.inputs[found].path
    if larger is None:
        what, hint = "its memory layout", "Call .contiguous() on grad_output before its memory is read directly."
    else:
        what, hint = "more than its size", "Look for clamp, abs, sign or a comparison applied to grad_output."
    sentence = f"backward depends on {what}: the same grad_output, {'other strides' if larger is None else 'scaled'}, "
    sentence += f"gives another gradient of {path}"
    return (
        Finding("layout" if larger is None else "nonlinear", Verdict.WRONG, Place(None, Spot(path)), sentence, hint),
    )


def _scattered(tensor: torch.Tensor) -> torch.Tensor:
    """The same numbers with the strides of a transposed tensor, and gaps between them."""
    if tensor.dim() == 0:
        return tensor
    apart = torch.stack([tensor, torch.full_like(tensor, 7.0)], dim=-1)[..., 0]
    return apart.mT.contiguous().mT if tensor.dim() > 1 and min(tensor.shape[-2:]) > 1 else apart


def _differs(gradients: Gradients, others: Gradients, factor: float, slack: tuple[float, float]) -> int | None:
    """The first input whose gradient is not `factor` times what it was; `slack` is relative and absolute."""
    for i, (gradient, other) in enumerate(zip(gradients, others, strict=True)):
        if gradient is None or other is None:
            continue
        one, two = numbers(gradient) * factor, numbers(other)
        if same(one, two) or not one.numel():
            continue
        scale = float(one.abs().max())
        if scale < float("inf") and float((one - two).abs().max()) > slack[0] * scale + slack[1]:
            return i
    return None
