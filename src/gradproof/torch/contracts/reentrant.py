"""Backward gives the same gradient for the same cotangent, each time (R11 of the drop-in)."""

from __future__ import annotations

import torch

from gradproof import precision
from gradproof.contracts.repeatable import judged
from gradproof.program import Spot
from gradproof.result import Finding, Place, Verdict
from gradproof.torch.contracts.pulls import Gradients, largest, pull, same, spread
from gradproof.torch.contracts.subject import Subject
from gradproof.torch.torchprogram import TorchProgram

WORDS = "Backward is not reentrant, i.e., the same grad_output gives different gradients when backward runs again"


def check_repeatable(subject: Subject) -> tuple[Finding, ...]:
    """Again, the random state running on: each seam call of a program would begin with the same one. A call in between
    may make a difference, too; only then it is asked without."""
    found = _judged(subject, subject.gradients, subject.second)
    if not found or (subject.written and not subject.calls_between):
        return found
    return _judged(subject, subject.second, subject.third)


def _judged(subject: Subject, first: Gradients, second: Gradients) -> tuple[Finding, ...]:
    program = subject.program
    roundoff = precision.form_of(program).roundoff
    for leaf, before, after in zip(program.inputs, first, second, strict=True):
        gap = spread(before, after)
        rounding = roundoff * max(largest(before), largest(after)) if gap else 0.0
        found = judged(leaf.path, gap, rounding, subject.nondet_tol)
        if found is not None:
            return (found,)
    return ()


def check_reentrant(
    program: TorchProgram, cotangents: list[torch.Tensor], nondet_tol: float
) -> tuple[Gradients, tuple[Finding, ...]]:
    """In torch's words: the gradients of the first pull, and what the second one says. Both pulls get the same tensors,
    and run in one scope: two would begin with the same random state."""
    kept = [cotangent.clone() for cotangent in cotangents]
    # Copies: a backward may hand out the tensor that it writes into the next time.
    first = [None if one is None else one.clone() for one in pull(program, cotangents)]
    overwritten = any(not same(one, other) for one, other in zip(cotangents, kept, strict=True))
    second = pull(program, cotangents)
    for leaf, before, after in zip(program.inputs, first, second, strict=True):
        gap = spread(before, after)
        if gap > nondet_tol:
            sentence = f"{WORDS} (nondet_tol={nondet_tol:g}): {leaf.path} differs by up to {gap:.3g}"
            place = Place(None, Spot(leaf.path))
            return first, (Finding("nondeterministic", Verdict.WRONG, place, sentence, _hint(overwritten)),)
    return first, ()


def _hint(overwritten: bool) -> str:  # noqa: FBT001
    if overwritten:
        return "backward overwrites the grad_output it is given; work on a copy of it."
    return (
        "Look for saved tensors that backward overwrites, or unseeded random numbers; if the operation is not "
        "deterministic by nature, say how far apart two runs may be: nondet_tol=."
    )
