"""A zero cotangent gives zero gradients (R13 of the drop-in; the native check has `contracts.linear`)."""

from __future__ import annotations

import torch

from gradproof.program import Spot
from gradproof.result import Finding, Place, Verdict
from gradproof.torch.contracts.pulls import numbers, pull
from gradproof.torch.forms import Meaning
from gradproof.torch.torchprogram import TorchProgram


def check_zero(program: TorchProgram, meaning: Meaning) -> tuple[Finding, ...]:
    """Of stored values alone, what is nearly zero will do: torch asks no more of them."""
    gradients = pull(program, [torch.zeros_like(value) for value in program.graph.values])
    for leaf, gradient in zip(program.inputs, gradients, strict=True):
        if gradient is None:
            continue
        dense = numbers(gradient)
        if dense.count_nonzero() and not (meaning is Meaning.MASKED and torch.allclose(dense, torch.zeros_like(dense))):
            return (
                Finding(
                    "nonlinear",
                    Verdict.WRONG,
                    Place(None, Spot(leaf.path)),
                    f"backward not multiplied by grad_output: a zero grad_output gives a gradient of {leaf.path} that "
                    f"is not zero (largest entry {float(dense.abs().max()):.3g})",
                    "Every term that backward returns must be a product with grad_output.",
                ),
            )
    return ()
