"""The gradient of an input is the same whether or not the other inputs require grad."""

from __future__ import annotations

import torch

from gradproof import precision
from gradproof.program import Spot
from gradproof.result import Finding, Place, Verdict
from gradproof.torch.dropin.contracts.pulls import Gradients, numbers, same
from gradproof.torch.dropin.options import Options
from gradproof.torch.torchprogram import TorchProgram

# Each input alone costs a call of the function; of more inputs than this, only these first ones are tried.
TRIED = 4


def check_subsets(
    program: TorchProgram, cotangents: list[torch.Tensor], gradients: Gradients, options: Options
) -> tuple[Finding, ...]:
    if len(program.inputs) < 2:
        return ()
    for i in range(min(len(program.inputs), TRIED)):
        expected = gradients[i]
        alone = None if expected is None else _gradient_alone(program, cotangents, i)
        if expected is None or alone is None:
            continue
        roundoff = precision.coarsest(program.inputs + program.outputs).roundoff
        one, two = numbers(expected), numbers(alone)
        if same(one, two):
            continue
        if float((one - two).abs().max()) <= options.nondet_tol + 2**14 * roundoff * float(one.abs().max()):
            continue
        path = program.inputs[i].path
        sentence = f"backward gives another gradient of {path} when no other input requires grad"
        hint = "Look for ctx.needs_input_grad in backward, and for what forward saves."
        return (Finding("subset", Verdict.WRONG, Place(None, Spot(path)), sentence, hint),)
    return ()


def _gradient_alone(program: TorchProgram, cotangents: list[torch.Tensor], which: int) -> torch.Tensor | None:
    """None where the function does not run that way, or is another function then: that is its own choice."""
    with torch.enable_grad():
        points = [point.detach() for point in program.graph.points]
        points[which] = points[which].requires_grad_()
        try:
            values = program.call.one(program.call.forms.copies(points))
        except Exception:  # noqa: BLE001
            return None
        if not all(same(value, other) for value, other in zip(values, program.graph.values, strict=True)):
            return None
        kept = [i for i, value in enumerate(values) if value.requires_grad]
        if not kept:
            return None
        given = [cotangents[i] for i in kept]
        (gradient,) = torch.autograd.grad([values[i] for i in kept], [points[which]], given, allow_unused=True)
    return gradient
