"""The gradient of an input is the same whether or not the other inputs require grad."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from gradproof.errors import Unsupported, first_line, where
from gradproof.program import Spot
from gradproof.result import Finding, Place, Verdict
from gradproof.torch.contracts.pulls import Gradients, pulled, same
from gradproof.torch.contracts.subject import Subject

# Each subset costs a call of the function; of more inputs than this, so many are drawn.
MOST = 6
# The drop-in takes the first ones.
TRIED = 4
# What a gradient that is None then counts as.
Missing = Literal["wrong", "allowed"]
HINT = "Look for ctx.needs_input_grad in backward, and for what forward saves."


def check_subsets(subject: Subject) -> tuple[Finding, ...]:
    """Every input alone, and all but one."""
    count = _exchangeable(subject)
    chosen = [int(i) for i in subject.generator.permutation(count)[:MOST]] if count > MOST else list(range(count))
    everything = range(count)
    subsets: list[tuple[int, ...]] = [(i,) for i in chosen]
    subsets += [tuple(k for k in everything if k != i) for i in chosen if count > 2]
    for subset in subsets if count > 1 else ():
        found = _compared(subject, subset)
        if found is not None:
            return (found,)
    return ()


def check_each_alone(subject: Subject) -> tuple[Finding, ...]:
    """For the drop-in: the first inputs alone; a gradient that is missing then is the function's own choice. Operators
    of torch's own are not in question."""
    count = _exchangeable(subject)
    for i in range(min(count, TRIED) if count > 1 and subject.written else 0):
        found = _compared(subject, (i,), missing="allowed")
        if found is not None:
            return (found,)
    return ()


def _exchangeable(subject: Subject) -> int:
    """How many inputs there are to choose from. What the function reaches past its arguments requires grad for it,
    whatever it is called with."""
    return 0 if subject.program.call.forms.captured else len(subject.program.inputs)


def _compared(subject: Subject, subset: Sequence[int], missing: Missing = "wrong") -> Finding | None:
    if all(subject.gradients[i] is None for i in subset):
        return None
    try:
        alone = _gradients(subject, subset)
    except Unsupported:
        raise
    except Exception as error:  # noqa: BLE001  whatever it is, with all inputs backward has not raised it
        path = subject.program.inputs[subset[0]].path
        when = f"only {path} requires grad" if len(subset) == 1 else _left_out(subject, subset)
        sentence = f"backward raises when {when}: {type(error).__name__}: {first_line(error)}{where(error)}"
        return Finding("subset", Verdict.WRONG, Place(None, Spot(path)), sentence, HINT)
    for i, gradient in zip(subset, alone or (), strict=False):
        if not subject.differ_at(i, subject.gradients[i], gradient) or (gradient is None and missing == "allowed"):
            continue
        path = subject.program.inputs[i].path
        when = "no other input requires grad" if len(subset) == 1 else _left_out(subject, subset)
        what = "no gradient" if gradient is None else "another gradient"
        sentence = f"backward gives {what} of {path} when {when}"
        return Finding("subset", Verdict.WRONG, Place(None, Spot(path)), sentence, HINT)
    return None


def _left_out(subject: Subject, subset: Sequence[int]) -> str:
    first = next(leaf for k, leaf in enumerate(subject.program.inputs) if k not in subset)
    return f"{first.path} does not require grad"


def _gradients(subject: Subject, subset: Sequence[int]) -> Gradients | None:
    """None where the function does not run that way, or is another function then: that is its own choice."""
    program = subject.program
    points = [point.detach() for point in program.traced.points]
    for i in subset:
        points[i].requires_grad_()
    try:
        values = subject.values_at(points)
    except Exception:  # noqa: BLE001
        return None
    if not all(same(value, other) for value, other in zip(values, program.traced.values, strict=True)):
        return None
    if not any(value.requires_grad for value in values):
        return None
    program.tally.pulls += 1
    return pulled(values, [points[i] for i in subset], subject.cotangents)
