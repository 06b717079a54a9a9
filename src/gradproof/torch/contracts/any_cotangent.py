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
# Cotangents that are nearly the same, and how many times what that changes is more than rounding.
NEARBY, TREMBLING = (1 + 2.0**-20, 1 + 2.0**-30, 1 + 2.0**-45), 16.0


def check_any_cotangent(
    program: TorchProgram, cotangents: list[torch.Tensor], gradients: Gradients, nondet_tol: float
) -> tuple[Finding, ...]:
    """`gradients` are those of the cotangents as they are; here they are larger, and not contiguous."""
    if not program.graph.any_graph:
        return ()
    roundoff = precision.form_of(program).roundoff
    factor = LARGE if roundoff <= precision.SINGLE.roundoff else SMALL
    slack = (max(ROUNDINGS * roundoff, DIGITS), nondet_tol)
    apart = _apart(gradients, pull(program, [_scattered(one * factor) for one in cotangents]), factor, slack)
    if not any(apart):
        return ()
    # Of terms that cancel rounding may be left, which is another for cotangents that are nearly the same.
    large = [one * factor for one in cotangents]
    larger = pull(program, large)
    for near in NEARBY:
        trembling = _apart(larger, pull(program, [one * near for one in large]), near, (0.0, 0.0))
        apart = [a if a * factor > TREMBLING * b else 0.0 for a, b in zip(apart, trembling, strict=True)]
    found = next((i for i, one in enumerate(apart) if one), None)
    if found is None:
        return ()
    scaled = _apart(gradients, larger, factor, slack)[found] > 0
    path = program.inputs[found].path
    if not scaled:
        what, hint = "its memory layout", "Call .contiguous() on grad_output before its memory is read directly."
    else:
        what, hint = "more than its size", "Look for clamp, abs, sign or a comparison applied to grad_output."
    sentence = f"backward depends on {what}: the same grad_output, {'scaled' if scaled else 'other strides'}, "
    sentence += f"gives another gradient of {path}"
    return (Finding("nonlinear" if scaled else "layout", Verdict.WRONG, Place(None, Spot(path)), sentence, hint),)


def _scattered(tensor: torch.Tensor) -> torch.Tensor:
    """The same numbers with the strides of a transposed tensor, and gaps between them."""
    if tensor.dim() == 0:
        return tensor
    apart = torch.stack([tensor, torch.full_like(tensor, 7.0)], dim=-1)[..., 0]
    return apart.mT.contiguous().mT if tensor.dim() > 1 and min(tensor.shape[-2:]) > 1 else apart


def _apart(gradients: Gradients, others: Gradients, factor: float, slack: tuple[float, float]) -> list[float]:
    """For each input, how far its gradient is from a `factor`th of the other; 0 within the `slack`, which is relative
    and absolute."""
    result = [0.0] * len(gradients)
    for i, (gradient, other) in enumerate(zip(gradients, others, strict=True)):
        if gradient is None or other is None:
            continue
        one, two = numbers(gradient) * factor, numbers(other)
        if same(one, two) or not one.numel():
            continue
        scale, apart = float(one.abs().max()) / factor, float((one - two).abs().max()) / factor
        if scale < float("inf") and apart > slack[0] * scale + slack[1]:
            result[i] = apart
    return result
