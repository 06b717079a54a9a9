"""A rule writes into nothing that it does not own: inputs, incoming gradients, saved tensors. Bit by bit.

Writing into an input is allowed where autograd is told (an operation in place, ctx.mark_dirty): then it counts on.
"""

from __future__ import annotations

from typing import Any

import torch

from gradproof.program import Spot
from gradproof.result import Finding, Place, Verdict
from gradproof.torch.contracts.subject import Subject, rule_name
from gradproof.torch.contracts.watch import identical


def check_pure(subject: Subject) -> tuple[Finding, ...]:
    return _forward(subject) or _backward(subject)


def _forward(subject: Subject) -> tuple[Finding, ...]:
    """One call. A tensor with other numbers but the same node of the graph was changed behind autograd's back."""
    program, call = subject.program, subject.call
    if call is None:
        return ()
    with torch.enable_grad():
        points = [point.detach().requires_grad_() for point in program.traced.points]
        copies = call.forms.copies(points)
        before = [copy.grad_fn for copy in copies]
        program.tally.evaluations += 1
        call.one(copies)
    for leaf, point, copy, node in zip(program.inputs, points, copies, before, strict=True):
        if copy.grad_fn is node and not identical(copy, point):
            sentence = f"the function overwrites {leaf.path} without telling autograd: who uses it next gets the new "
            sentence += "numbers and the old graph"
            hint = "Work on a copy of it, or call ctx.mark_dirty and return it; leave .data and no_grad alone."
            return (Finding("impure", Verdict.WRONG, Place(None, Spot(leaf.path)), sentence, hint),)
    return ()


def _backward(subject: Subject) -> tuple[Finding, ...]:
    first = subject.first
    found: list[tuple[Any, str]] = [*first.watch.overwritten]
    found += [(None, f"the incoming gradient of {path}") for path in first.spoiled]
    if not found:
        return ()
    node, what = found[0]
    who = "backward" if node is None else f"the backward of {rule_name(node)}"
    hint = "Write into a copy: torch hands the same tensor to others, and backward may run again."
    return (Finding("impure", Verdict.WRONG, Place(), f"{who} overwrites {what}", hint),)
