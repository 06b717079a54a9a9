"""A batch of cotangents, or of tangents, gives what they give one by one (R15 and R16 of the drop-in)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch.autograd import forward_ad

from gradproof.errors import GradcheckError
from gradproof.program import Spot
from gradproof.quiet import QUIET
from gradproof.reference.steps import signed
from gradproof.result import Finding, Place, Verdict
from gradproof.torch.batchrules import at_once_in_autograd
from gradproof.torch.contracts.pulls import Gradients, close, numbers, pull, random_cotangents
from gradproof.torch.torchprogram import TorchProgram
from gradproof.torch.turns import duals_in_turn

REVERSE = "gradcheck or gradgradcheck failed while testing batched gradient computation"
FORWARD = "gradcheck failed while testing batched gradient computation with forward-mode AD"


# The rows of a first batch are these multiples of one: exact, so that what they give alone is known from that one.
MULTIPLES = (1.0, -2.0)


def check_batched_pull(
    program: TorchProgram, cotangents: Sequence[torch.Tensor], gradients: Gradients, generator: np.random.Generator
) -> tuple[Finding, ...]:
    """Two cotangents for all outputs as one batch; `gradients` are those of `cotangents`. Where that raises, each
    output by itself; where it differs, two that have nothing to do with each other, looped as well."""
    if not program.graph.any_graph:
        return ()
    rows = [[factor * one for one in cotangents] for factor in MULTIPLES]
    looped = [[None if one is None else factor * numbers(one) for one in gradients] for factor in MULTIPLES]
    try:
        if _first_differing(program, rows, looped, None) is None:
            return ()
        return _compared(program, [random_cotangents(program, generator) for _ in rows], None)
    except RuntimeError:
        for output in range(len(program.outputs)):
            try:
                findings = _compared(program, rows, output)
            except RuntimeError as error:
                raise GradcheckError(_raised(REVERSE, error, "check_batched_grad=False")) from error
            if findings:
                return findings
    return ()


def _compared(program: TorchProgram, rows: Sequence[Sequence[torch.Tensor]], only: int | None) -> tuple[Finding, ...]:
    i = _first_differing(program, rows, [pull(program, row, only=only) for row in rows], only)
    if i is None:
        return ()
    path = program.inputs[i].path
    hint = "Look for operations in backward that mix the rows of a batch, or write a vmap rule."
    return (Finding("vmap", Verdict.WRONG, Place(None, Spot(path)), _differs(REVERSE, path), hint),)


def _first_differing(
    program: TorchProgram, rows: Sequence[Sequence[torch.Tensor]], looped: Sequence[Gradients], only: int | None
) -> int | None:
    """The first input whose gradients are others in a batch."""
    batch = [torch.stack(column) for column in zip(*rows, strict=True)]
    with QUIET:
        batched = pull(program, batch, only=only, batched=True)
    inputs = range(len(program.inputs))
    return next((i for i in inputs if not _agree(batched[i], [row[i] for row in looped])), None)


def check_batched_push(program: TorchProgram, generator: np.random.Generator) -> tuple[Finding, ...]:
    """For each input two tangents, as one batch and looped."""
    with torch.enable_grad():
        points = [point.detach() for point in program.graph.points]
        for i, leaf in enumerate(program.inputs):
            drawn = program.call.inputs.tensors(signed(generator, program.point.size))
            tangent = program.call.forms.arguments(drawn)[i]

            def push(row: Sequence[torch.Tensor], i: int = i) -> tuple[torch.Tensor, ...]:
                return _push(program, points, i, row[0])

            alone = push([tangent])
            tangents = [factor * tangent for factor in MULTIPLES]
            try:
                batched = at_once_in_autograd(push, [torch.stack(tangents)])
            except RuntimeError as error:
                raise GradcheckError(_raised(FORWARD, error, "check_batched_forward_grad=False")) from error
            for k, output in enumerate(program.outputs):
                if _agree(batched[k], [factor * alone[k] for factor in MULTIPLES]):
                    continue
                if not _agree(batched[k], [push([tangent])[k] for tangent in tangents]):
                    place = Place.of(output, leaf)
                    hint = "Look for operations in jvp that mix the rows of a batch, or write a vmap rule."
                    return (Finding("vmap", Verdict.WRONG, place, _differs(FORWARD, output.path), hint),)
    return ()


@duals_in_turn
def _push(
    program: TorchProgram, points: Sequence[torch.Tensor], which: int, tangent: torch.Tensor
) -> tuple[torch.Tensor, ...]:
    with forward_ad.dual_level():
        leaves = program.call.forms.copies(points)
        leaves[which] = forward_ad.make_dual(leaves[which], tangent)  # type: ignore[no-untyped-call]
        unpacked = [forward_ad.unpack_dual(value) for value in program.run_dual(leaves)]  # type: ignore[no-untyped-call]
        return tuple(torch.zeros_like(one.primal) if one.tangent is None else one.tangent for one in unpacked)


def _agree(batched: torch.Tensor | None, looped: Sequence[torch.Tensor | None]) -> bool:
    for row, alone in enumerate(looped):
        together = None if batched is None else numbers(batched)[row]
        single = None if alone is None else numbers(alone)
        if together is None or single is None:
            other = single if together is None else together
            if other is not None and other.count_nonzero():
                return False
        elif not close(together, single):
            return False
    return True


def _raised(words: str, error: RuntimeError, switch: str) -> str:
    return (
        f"While computing batched gradients, got: {error}\n{words}.\n"
        f"  next      Make the rule run under torch.vmap, or leave this check out: {switch}"
    )


def _differs(words: str, path: str) -> str:
    return f"{words}: {path} differs from what single calls give"
