"""R11: backward gives the same gradient for the same cotangent, each time, and leaves the cotangent alone."""

from __future__ import annotations

import torch

from gradproof.program import Spot
from gradproof.result import Finding, Place, Verdict
from gradproof.torch.dropin.contracts.pulls import Gradients, numbers, pull, same
from gradproof.torch.dropin.options import Options
from gradproof.torch.torchprogram import TorchProgram

WORDS = "Backward is not reentrant, i.e., the same grad_output gives different gradients when backward runs again"


def check_reentrant(
    program: TorchProgram, cotangents: list[torch.Tensor], options: Options
) -> tuple[Gradients, tuple[Finding, ...]]:
    """The gradients of the first pull, and what the second one says. Both pulls get the same tensors, and run in one
    scope: two would begin with the same random state."""
    kept = [cotangent.clone() for cotangent in cotangents]
    first = pull(program, cotangents)
    overwritten = any(not same(one, other) for one, other in zip(cotangents, kept, strict=True))
    second = pull(program, cotangents)
    for leaf, before, after in zip(program.inputs, first, second, strict=True):
        spread = _spread(before, after)
        if spread > options.nondet_tol:
            sentence = f"{WORDS} (nondet_tol={options.nondet_tol:g}): {leaf.path} differs by up to {spread:.3g}"
            return first, (
                Finding("reentrant", Verdict.WRONG, Place(None, Spot(leaf.path)), sentence, _hint(overwritten)),
            )
    return first, ()


def _spread(before: torch.Tensor | None, after: torch.Tensor | None) -> float:
    if before is None and after is None:
        return 0.0
    one, other = (None if gradient is None else numbers(gradient) for gradient in (before, after))
    if one is not None and other is not None and same(one, other):
        return 0.0
    difference = one - other if one is not None and other is not None else one if other is None else other
    assert difference is not None
    return float(difference.abs().nan_to_num(0.0).max()) if difference.numel() else 0.0


def _hint(overwritten: bool) -> str:  # noqa: FBT001
    if overwritten:
        return "backward overwrites the grad_output it is given; work on a copy of it."
    return (
        "Look for saved tensors that backward overwrites, or unseeded random numbers; if the operation is not "
        "deterministic by nature, say how far apart two runs may be: nondet_tol=."
    )
