"""A function and its backward read the entries of a tensor, not its memory: strides, gaps and offsets do not matter.

torch hands on whatever the neighbours made: the cotangent of a sum is expanded with stride 0, that of a transposition
is transposed. A kernel that reads memory as if it were contiguous is right only for contiguous tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gradproof.program import Spot
from gradproof.result import Finding, Place, Verdict
from gradproof.torch.calls import UserCall
from gradproof.torch.contracts.pulls import Gradients, finite, largest, pull, pulled
from gradproof.torch.contracts.subject import Subject
from gradproof.torch.strides import expanded, with_gaps

Arrange = Callable[[Tensor], Tensor]
FORWARD = "Call .contiguous() on the arguments before their memory is read directly."
VALUE, GRADIENT = "function gives another value", "backward gives another gradient"
BACKWARD = "Call .contiguous() on grad_output before its memory is read directly."


def check_layout(subject: Subject) -> tuple[Finding, ...]:
    """Inputs and cotangents together; only who fails that is looked at more closely. Random numbers like a tensor are
    drawn in the order of its memory: a function that draws is another one for inputs in other memory."""
    if subject.program.draws:
        return _cotangents(subject)
    return () if _holds(subject) else _cotangents(subject) or _inputs(subject)


def transposed(tensor: Tensor) -> Tensor:
    return tensor.mT.contiguous().mT if tensor.dim() > 1 else tensor


def with_offset(tensor: Tensor) -> Tensor:
    room = torch.empty(tensor.numel() + 3, dtype=tensor.dtype, device=tensor.device)
    room[:3] = 7.0
    view = room[3:].view(tensor.shape)
    return view.copy_(tensor)


def channels_last(tensor: Tensor) -> Tensor:
    return tensor.contiguous(memory_format=torch.channels_last) if tensor.dim() == 4 else tensor


def contiguous(tensor: Tensor) -> Tensor:
    return tensor.contiguous()


def scattered(tensor: Tensor) -> Tensor:
    """All at once: an offset, gaps, and transposed strides."""
    if tensor.dim() == 0:
        return with_offset(tensor)
    moved = tensor.movedim(0, -1) if tensor.dim() > 1 else tensor
    gaps = moved.new_full((*moved.shape, 2), 7.0)[..., 1].copy_(moved)
    return gaps.movedim(-1, 0) if tensor.dim() > 1 else gaps


ALONE: dict[str, Arrange] = {
    "transposed in memory": transposed,
    "sliced, with gaps in memory": with_gaps,
    "with a storage offset": with_offset,
    "in channels-last order": channels_last,
    "contiguous": contiguous,
    "scattered in memory": scattered,
}


@dataclass(frozen=True, slots=True)
class Trial:
    """`reference` and `other` have the same numbers in different memory."""

    name: str
    reference: Arrange
    other: Arrange


def _trials(tensors: Sequence[Tensor]) -> Iterator[Trial]:
    """The first changes everything at once; what it overlooks nobody will see."""
    yield Trial("scattered in memory", lambda tensor: tensor, scattered)
    if any(tensor.dim() == 4 for tensor in tensors):
        yield Trial("in channels-last order", lambda tensor: tensor, channels_last)
    if any(max(tensor.shape, default=1) > 1 for tensor in tensors):
        yield Trial("expanded (stride 0)", lambda tensor: expanded(tensor).contiguous(), expanded)


def _holds(subject: Subject) -> bool:
    call, traced = subject.call, subject.program.traced
    if call is None or traced.writes or subject.reach == "point":
        return False
    try:
        trials = _trials([*traced.points, *subject.cotangents])
        return not any(_together(subject, call, trial) for trial in trials)
    except Exception:  # noqa: BLE001  who raises it, and whether it may, is seen more closely
        return False


def _together(subject: Subject, call: UserCall, trial: Trial) -> bool:
    """Whether anything differs, or may do so unseen."""
    made = subject.repeated if trial.other is expanded else subject.here
    if made is None:
        return True
    expected = subject.gradients if made is subject.here else subject.gradients_repeated
    if made is not subject.here and not _tells(subject, made.values, expected):
        return True
    points = [trial.other(point.detach()) for point in made.points]
    values, gradients = _run(subject, call, points, [trial.other(one) for one in made.cotangents])
    return subject.any_differs(made.values, values) or subject.first_differing(expected, gradients) is not None


def _tells(subject: Subject, values: Sequence[Tensor], gradients: Gradients) -> bool:
    """Whether a difference would show at another point: NaN is like any other NaN, and zero remains zero."""
    if not all(map(finite, (*values, *gradients))):
        return False
    sizes = [(largest(one), largest(here)) for one, here in zip(gradients, subject.gradients, strict=True)]
    return all(size > subject.slack * here for size, here in sizes if here)


def _named(trial: Trial, differs: Callable[[Arrange], bool]) -> str:
    """Which single change is enough."""
    if trial.other is not scattered:
        return trial.name
    return next((name for name, arrange in ALONE.items() if differs(arrange)), trial.name)


def _cotangents(subject: Subject) -> tuple[Finding, ...]:
    program = subject.program

    def pulled_as(arrange: Arrange) -> Gradients:
        return pull(program, [arrange(one) for one in subject.cotangents])

    for trial in _trials(subject.cotangents):
        reference = subject.gradients if trial.other is not expanded else pulled_as(trial.reference)
        try:
            i = subject.first_differing(reference, pulled_as(trial.other))
        except Exception as error:  # noqa: BLE001  it did not, for the same numbers
            sentence = f"backward raises {type(error).__name__} when the incoming gradient is {trial.name}"
            return (Finding("layout", Verdict.WRONG, Place(), sentence, BACKWARD),)
        if i is not None:
            name = _named(trial, lambda a: subject.first_differing(subject.gradients, pulled_as(a)) is not None)
            path = program.inputs[i].path
            sentence = f"backward gives another gradient of {path} when the incoming gradient is {name}: the entries "
            return (_finding(path, sentence + "are the same, only the memory differs", BACKWARD),)
    return ()


def _inputs(subject: Subject) -> tuple[Finding, ...]:
    call, points = subject.call, [point.detach() for point in subject.program.traced.points]
    if call is None or subject.program.traced.writes:
        return ()
    for trial in _trials(points):
        if trial.other is expanded and subject.reach == "point":
            continue  # other numbers
        found = _tried(subject, call, points, trial)
        if found is None:
            continue
        what, which = found

        def differs(arrange: Arrange, alone: int = which) -> bool:
            return _tried(subject, call, points, Trial("", lambda tensor: tensor, arrange), alone) is not None

        path = subject.program.inputs[which].path
        sentence = f"the {what} when {path} is {_named(trial, differs)}: its entries are the same, only the memory "
        return (_finding(path, sentence + "differs", FORWARD),)
    return ()


def _tried(
    subject: Subject, call: UserCall, points: Sequence[Tensor], trial: Trial, alone: int | None = None
) -> tuple[str, int] | None:
    """A function that refuses a layout says so to its user."""
    try:
        return _differing(subject, call, points, trial, alone)
    except Exception:  # noqa: BLE001
        return None


def _differing(
    subject: Subject, call: UserCall, points: Sequence[Tensor], trial: Trial, alone: int | None
) -> tuple[str, int] | None:
    """All inputs together (or one alone) in other memory: what differs, and which input is to blame."""
    if trial.other is expanded:
        first = _run(subject, call, [trial.reference(point) for point in points], subject.cotangents)
    else:
        first = subject.program.traced.values, subject.gradients
    moved = [(trial.other if alone in (None, i) else trial.reference)(point) for i, point in enumerate(points)]
    what = _apart(subject, first, _run(subject, call, moved, subject.cotangents))
    if not what:
        return None
    if trial.other is expanded:
        # Equal rows make a matrix singular, and equal numbers tie: what a rounding changes there, other memory may.
        nudged = [_nudged(trial.reference(point)) for point in points]
        if _apart(subject, first, _run(subject, call, nudged, subject.cotangents)) in (VALUE, what):
            return None
    if alone is None and len(points) > 1:
        blamed = (i for i in range(len(points)) if _tried(subject, call, points, trial, i) is not None)
        return what, next(blamed, 0)
    return what, alone or 0


def _apart(
    subject: Subject, first: tuple[Sequence[Tensor], Gradients], second: tuple[Sequence[Tensor], Gradients]
) -> str:
    """What differs, if anything does."""
    if subject.any_differs(first[0], second[0]):
        return VALUE
    return GRADIENT if subject.first_differing(first[1], second[1]) is not None else ""


def _nudged(tensor: Tensor) -> Tensor:
    """Every number another by a rounding or two, neighbours by different ones."""
    count = torch.arange(tensor.numel(), device=tensor.device).reshape(tensor.shape)
    return tensor * (1 + (count % 5 - 2).to(tensor.dtype) * torch.finfo(tensor.dtype).eps)


def _run(
    subject: Subject, call: UserCall, points: Sequence[Tensor], cotangents: Sequence[Tensor]
) -> tuple[Sequence[Tensor], Gradients]:
    """Values and gradients at these very tensors."""
    with torch.enable_grad():
        leaves = [point.detach().requires_grad_() for point in points]
        values = call.as_given(leaves)
    subject.program.tally.evaluations += 1
    subject.program.tally.pulls += 1
    return values, pulled(values, leaves, cotangents)


def _finding(path: str, sentence: str, hint: str) -> Finding:
    return Finding("layout", Verdict.WRONG, Place(None, Spot(path)), sentence, hint)
