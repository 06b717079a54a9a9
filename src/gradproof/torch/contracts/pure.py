"""A rule writes into nothing that it does not own: inputs, incoming gradients, saved tensors. Bit by bit.

Writing into an input is allowed where autograd is told (an operation in place, ctx.mark_dirty): then it counts on.
"""

from __future__ import annotations

from typing import Any

from gradproof.program import Spot
from gradproof.result import Finding, Place, Verdict
from gradproof.torch.contracts.subject import Subject
from gradproof.torch.graph import rule_name
from gradproof.torch.torchprogram import TorchProgram


def check_pure(subject: Subject) -> tuple[Finding, ...]:
    return check_inputs(subject.program) or _backward(subject)


def check_inputs(program: TorchProgram) -> tuple[Finding, ...]:
    """What the function itself writes into."""
    if not program.traced.overwritten:
        return ()
    leaf = program.inputs[program.traced.overwritten[0]]
    sentence = f"the function overwrites {leaf.path} without telling autograd: who uses it next gets the new numbers "
    sentence += "and the old graph"
    hint = "Work on a copy of it, or call ctx.mark_dirty and return it; leave .data and no_grad alone."
    return (Finding("impure", Verdict.WRONG, Place(None, Spot(leaf.path)), sentence, hint),)


def _backward(subject: Subject) -> tuple[Finding, ...]:
    if not subject.written:
        return ()
    first = subject.first
    found: list[tuple[Any, str]] = [*first.watch.overwritten]
    found += [(None, f"the incoming gradient of {path}") for path in first.spoiled]
    if not found:
        return ()
    node, what = found[0]
    who = "backward" if node is None else f"the backward of {rule_name(node)}"
    hint = "Write into a copy: torch hands the same tensor to others, and backward may run again."
    return (Finding("impure", Verdict.WRONG, Place(), f"{who} overwrites {what}", hint),)
