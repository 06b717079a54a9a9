"""A cotangent that is not there acts like zeros, and so does a tangent that is not there (R14 of the drop-in)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch.autograd import forward_ad

from gradproof.errors import GradcheckError
from gradproof.program import Spot
from gradproof.reference.steps import signed
from gradproof.result import Finding, Place, Verdict
from gradproof.torch.contracts.pulls import Gradients, close, numbers, pull
from gradproof.torch.contracts.subject import Subject
from gradproof.torch.torchprogram import TorchProgram
from gradproof.torch.turns import duals_in_turn

# Of more outputs, or inputs, than this only so many are left out in turn.
MOST = 4
# What an absent gradient may be instead: zero but for rounding.
ROUNDING = 1e-12
HINT = "In backward, treat a grad_output that is None as zeros, or leave ctx.set_materialize_grads(True) on."


class _Undefined(torch.autograd.Function):
    """The identity, whose backward passes nothing on."""

    @staticmethod
    def forward(ctx: Any, value: torch.Tensor) -> torch.Tensor:  # noqa: ARG004
        return value.view_as(value)

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> None:  # noqa: ARG004
        return None


def check_undefined(subject: Subject) -> tuple[Finding, ...]:
    """Cotangents, and tangents if there is a forward mode to speak of."""
    try:
        found = check_undefined_cotangents(subject.program, subject.cotangents, MOST)
    except GradcheckError as refused:
        cause = refused.__cause__
        sentence = f"{str(refused).splitlines()[0]} ({type(cause).__name__}: {cause})"
        return (Finding("undefined", Verdict.WRONG, Place(), sentence, HINT),)
    if found and not subject.finite:
        return ()  # what is NaN or infinite already stays so at zero, and has been told
    if found or not subject.forward or len(subject.program.inputs) < 2:
        return found
    return check_undefined_tangents(subject.program, subject.generator, MOST)


def check_undefined_cotangents(
    program: TorchProgram, cotangents: list[torch.Tensor], most: int | None = None
) -> tuple[Finding, ...]:
    """All cotangents undefined together; then each alone, beside the others, against zeros in its place."""
    values = program.traced.values
    kept = [i for i, value in enumerate(values) if value.requires_grad]
    none: Gradients = [None] * len(program.inputs)
    trials: list[tuple[list[int], Gradients | None]] = [(kept, none)] if kept else []
    if len(kept) > 1:
        trials += [([i], None) for i in kept[:most]]
    for missing, zeros in trials:
        expected = zeros if zeros is not None else _with_zeros(program, cotangents, missing[0])
        found = _compare(program, cotangents, missing, expected)
        if found:
            return found
    return ()


def _with_zeros(program: TorchProgram, cotangents: list[torch.Tensor], missing: int) -> Gradients:
    given = [torch.zeros_like(one) if i == missing else one for i, one in enumerate(cotangents)]
    return pull(program, given)


def _compare(
    program: TorchProgram, cotangents: list[torch.Tensor], missing: list[int], expected: Gradients
) -> tuple[Finding, ...]:
    def through(index: int, value: torch.Tensor) -> torch.Tensor:
        undefined: torch.Tensor = _Undefined.apply(value) if index in missing else value  # type: ignore[no-untyped-call]
        return undefined

    which = ", ".join(program.outputs[i].path for i in missing)
    try:
        gradients = pull(program, cotangents, through)
    except Exception as error:
        raise GradcheckError(
            f"Expected backward function to handle undefined output grads: it raised {type(error).__name__} when the "
            f"grad_output of {which} was undefined.\n  next      {HINT}"
        ) from error
    for leaf, gradient, wanted in zip(program.inputs, gradients, expected, strict=True):
        if not _same(gradient, wanted):
            return (
                Finding(
                    "undefined",
                    Verdict.WRONG,
                    Place(None, Spot(leaf.path)),
                    "Expected all input grads to be undefined or zero when all output grads are undefined or zero"
                    if wanted is None
                    else "Expected backward function to handle undefined output grads as zeros: the gradient of "
                    f"{leaf.path} is another one when the grad_output of {which} is undefined",
                    HINT,
                ),
            )
    return ()


def _same(gradient: torch.Tensor | None, wanted: torch.Tensor | None) -> bool:
    gradient, wanted = (None if one is None else numbers(one) for one in (gradient, wanted))
    if gradient is None or wanted is None:
        other = wanted if gradient is None else gradient
        return other is None or not other.numel() or float(other.abs().max()) <= ROUNDING
    return close(gradient, wanted)


@duals_in_turn
def check_undefined_tangents(
    program: TorchProgram, generator: np.random.Generator, most: int | None = None
) -> tuple[Finding, ...]:
    """For each input: all others have random tangents, and its own is once zeros, once absent."""
    with torch.enable_grad(), forward_ad.dual_level():
        forms = program.call.forms
        points = [point.detach() for point in program.traced.points]
        tangents = forms.arguments(program.call.inputs.tensors(signed(generator, program.point.size)))
        for missing, leaf in enumerate(program.inputs[:most]):
            zeros, absent = (
                _tangents(program, points, tangents, missing, kind)
                for kind in (torch.zeros_like(tangents[missing]), None)
            )
            for output, one, other in zip(program.outputs, zeros, absent, strict=True):
                if not _same(other, one):
                    return (
                        Finding(
                            "undefined",
                            Verdict.WRONG,
                            Place.of(output, leaf),
                            f"Mismatch in tangent values for {output.path} when the tangent of {leaf.path} is "
                            "undefined: it must act like zeros",
                            "In jvp, treat a tangent that is None as zeros.",
                        ),
                    )
    return ()


def _tangents(
    program: TorchProgram,
    points: list[torch.Tensor],
    tangents: Sequence[torch.Tensor],
    missing: int,
    stand_in: torch.Tensor | None,
) -> list[torch.Tensor | None]:
    leaves = program.call.forms.copies(points)
    for i, tangent in enumerate(tangents):
        given = stand_in if i == missing else tangent
        if given is not None:
            leaves[i] = forward_ad.make_dual(leaves[i], given.clone())  # type: ignore[no-untyped-call]
    values = program.run_dual(leaves)
    return [forward_ad.unpack_dual(value).tangent for value in values]  # type: ignore[no-untyped-call]
