"""A batch of cotangents, or of tangents, gives what they give one by one (R15 and R16 of the drop-in)."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch.autograd import forward_ad

from gradproof.errors import GradcheckError
from gradproof.program import Spot
from gradproof.reference.steps import signed
from gradproof.result import Finding, Place, Verdict
from gradproof.torch.contracts.pulls import numbers, pull, random_cotangents
from gradproof.torch.torchprogram import TorchProgram

REVERSE = "gradcheck or gradgradcheck failed while testing batched gradient computation"
FORWARD = "gradcheck failed while testing batched gradient computation with forward-mode AD"


def check_batched_pull(program: TorchProgram, generator: np.random.Generator) -> tuple[Finding, ...]:
    """Two cotangents for all outputs, looped and as one batch; where that raises, for each output by itself."""
    if not any(value.requires_grad for value in program.graph.values):
        return ()
    rows = [random_cotangents(program, generator) for _ in range(2)]
    try:
        return _compared(program, rows, None)
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
    looped = [pull(program, row, only=only) for row in rows]
    batch = [torch.stack(column) for column in zip(*rows, strict=True)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        batched = pull(program, batch, only=only, batched=True)
    for i, leaf in enumerate(program.inputs):
        if not _agree(batched[i], [row[i] for row in looped]):
            hint = "Look for operations in backward that mix the rows of a batch, or write a vmap rule."
            return (Finding("vmap", Verdict.WRONG, Place(None, Spot(leaf.path)), _differs(REVERSE, leaf.path), hint),)
    return ()


def check_batched_push(program: TorchProgram, generator: np.random.Generator) -> tuple[Finding, ...]:
    """For each input two tangents, looped and as one batch."""
    with torch.enable_grad():
        points = [point.detach() for point in program.graph.points]
        for i, leaf in enumerate(program.inputs):
            drawn = [program.call.inputs.single(signed(generator, program.point.size)) for _ in range(2)]
            tangents = [program.call.forms.arguments(row)[i] for row in drawn]

            def push(tangent: torch.Tensor, i: int = i) -> tuple[torch.Tensor, ...]:
                return _push(program, points, i, tangent)

            looped = [push(tangent) for tangent in tangents]
            try:
                batched = _vmap()(push)(torch.stack(tangents))
            except RuntimeError as error:
                raise GradcheckError(_raised(FORWARD, error, "check_batched_forward_grad=False")) from error
            for output, together, *alone in zip(program.outputs, batched, *looped, strict=True):
                if not _agree(together, alone):
                    place = Place(Spot(output.path), Spot(leaf.path))
                    hint = "Look for operations in jvp that mix the rows of a batch, or write a vmap rule."
                    return (Finding("vmap", Verdict.WRONG, place, _differs(FORWARD, output.path), hint),)
    return ()


def _push(
    program: TorchProgram, points: Sequence[torch.Tensor], which: int, tangent: torch.Tensor
) -> tuple[torch.Tensor, ...]:
    with forward_ad.dual_level():
        leaves = program.call.forms.copies(points)
        leaves[which] = forward_ad.make_dual(leaves[which], tangent)  # type: ignore[no-untyped-call]
        unpacked = [forward_ad.unpack_dual(value) for value in program.run_dual(leaves)]  # type: ignore[no-untyped-call]
        return tuple(torch.zeros_like(one.primal) if one.tangent is None else one.tangent for one in unpacked)


def _vmap() -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The batching that autograd itself uses for `is_grads_batched`; it takes custom Functions without a vmap rule.
    `torch.vmap` where a future torch no longer has it."""
    try:
        found: Callable[[Callable[..., Any]], Callable[..., Any]] = importlib.import_module(
            "torch._vmap_internals"
        )._vmap
    except (ImportError, AttributeError):
        return torch.vmap
    return found


def _agree(batched: torch.Tensor | None, looped: Sequence[torch.Tensor | None]) -> bool:
    for row, alone in enumerate(looped):
        together = None if batched is None else numbers(batched)[row]
        single = None if alone is None else numbers(alone)
        if together is None or single is None:
            other = single if together is None else together
            if other is not None and other.count_nonzero():
                return False
        elif not torch.allclose(together, single, equal_nan=True):
            return False
    return True


def _raised(words: str, error: RuntimeError, switch: str) -> str:
    return (
        f"While computing batched gradients, got: {error}\n{words}.\n"
        f"  next      Make the rule run under torch.vmap, or leave this check out: {switch}"
    )


def _differs(words: str, path: str) -> str:
    return f"{words}: {path} differs from what single calls give"
