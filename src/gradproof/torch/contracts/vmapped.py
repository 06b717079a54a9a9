"""A batch gives what its rows give one by one: `torch.func.vmap` of the function and of its vjp.

Only a rule that somebody wrote can fail here: a `vmap` staticmethod, or a registered one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gradproof.program import Leaf, Spot
from gradproof.result import Finding, Place, Verdict
from gradproof.torch.batchrules import ByRules
from gradproof.torch.calls import UserCall
from gradproof.torch.contracts.subject import Elsewhere, Subject
from gradproof.torch.graph import is_operator

HINT = "Look at the vmap rule: the batch dimension may be anywhere (in_dims), and inputs without one are not batched."


def applies(subject: Subject) -> bool:
    """Whether every custom rule takes part in torch.func at all."""
    return subject.call is not None and all(_batchable(node) for node in subject.written)


def _batchable(node: Any) -> bool:
    rule = getattr(node, "_forward_cls", None)
    if rule is None or is_operator(node):
        return True  # an operator: torch finds its rule, or has none
    base = torch.autograd.Function
    separate = rule.setup_context is not base.setup_context
    return separate and (rule.generate_vmap_rule or rule.vmap is not base.vmap)


@dataclass(frozen=True, slots=True)
class Rows:
    """Which inputs have a batch dimension, and where; `words` tell the user."""

    dims: tuple[int | None, ...]
    words: str


def check_vmap(subject: Subject) -> tuple[Finding, ...]:
    call, other = subject.call, subject.elsewhere
    if call is None or other is None:
        return ()
    return _with_vjp(subject, call, other) or _values(subject, call, other)


def _with_vjp(subject: Subject, call: UserCall, other: Elsewhere) -> tuple[Finding, ...]:
    """Two rows of points and cotangents, values and gradients at once."""
    program = subject.program
    points = [point.detach() for point in program.traced.points]
    count, run = len(points), _plain(call)

    def both(*row: Tensor) -> Any:
        traced: Any = torch.func.vjp(run, *row[:count])
        values, vjp = traced
        return values, vjp(tuple(row[count:]))

    batch = _stacked([*points, *subject.cotangents], [*_detached(other.points), *other.cotangents])
    try:
        values, gradients = _by_rules(torch.func.vmap(both), batch)
    except Exception:  # noqa: BLE001  not every function has a vjp here, and not every rule a batch
        return ()
    program.tally.evaluations += 2
    program.tally.pulls += 2
    where = _first(subject, program.outputs, values, [program.traced.values, other.values])
    if where is not None:
        return (_finding(where, None, "vmap of the function"),)
    where = _first(subject, program.inputs, gradients, [subject.gradients, subject.gradients_elsewhere])
    return () if where is None else (_finding(None, where, "vmap of its vjp"),)


def _values(subject: Subject, call: UserCall, other: Elsewhere) -> tuple[Finding, ...]:
    """The function alone: the batch in front, behind, and at one input only."""
    program = subject.program
    here, there = [point.detach() for point in program.traced.points], _detached(other.points)
    rows = [Rows((0,) * len(here), "vmap of the function")]
    if any(point.dim() for point in here):
        behind = tuple(-1 if point.dim() else 0 for point in here)
        rows.append(Rows(behind, "vmap of the function along the last dimension"))
    if len(here) > 1:
        words = f"vmap of the function over {program.inputs[0].path} alone"
        rows.append(Rows((0, *(None,) * (len(here) - 1)), words))
    for row in rows:
        mixed = [one if dim is None else two for one, two, dim in zip(here, there, row.dims, strict=True)]
        expected = other.values if None not in row.dims else subject.values_at(mixed)
        pairs = zip(here, there, row.dims, strict=True)
        batch = [one if dim is None else torch.stack((one, two), dim=dim) for one, two, dim in pairs]
        values = _batched(call, row, batch)
        if values is None:
            continue
        program.tally.evaluations += 2
        where = _first(subject, program.outputs, values, [program.traced.values, expected])
        if where is not None:
            return (_finding(where, None, row.words),)
    return ()


def _batched(call: UserCall, row: Rows, batch: Sequence[Tensor]) -> tuple[Tensor, ...] | None:
    """None where there is no rule for it."""
    try:
        values: tuple[Tensor, ...] = _by_rules(torch.func.vmap(_plain(call), in_dims=row.dims), batch)
    except Exception:  # noqa: BLE001
        return None
    return values


def _by_rules(run: Callable[..., Any], batch: Sequence[Tensor]) -> Any:
    with ByRules():
        return run(*batch)


def _plain(call: UserCall) -> Callable[..., tuple[Tensor, ...]]:
    """From tensors that nobody may overwrite."""
    return lambda *at: tuple(call.one([one.clone() for one in at]))


def _first(
    subject: Subject, leaves: Sequence[Leaf], batched: Sequence[Any], looped: Sequence[Sequence[Any]]
) -> str | None:
    """The first leaf, of the outputs or of the inputs, of which a row of the batch is not what a single call gives."""
    gradients = leaves == subject.program.inputs
    for i, leaf in enumerate(leaves):
        for k, row in enumerate(looped):
            one = None if batched[i] is None else batched[i][k]
            if subject.differ_at(i, one, row[i]) if gradients else subject.differ_of(i, one, row[i]):
                return leaf.path
    return None


def _finding(output: str | None, given: str | None, words: str) -> Finding:
    place = Place(Spot(output) if output else None, Spot(given) if given else None)
    what = output if given is None else f"the gradient of {given}"
    return Finding("vmap", Verdict.WRONG, place, f"{words}: {what} is not what single calls give", HINT)


def _stacked(first: Sequence[Tensor], second: Sequence[Tensor]) -> list[Tensor]:
    return [torch.stack(pair) for pair in zip(first, second, strict=True)]


def _detached(tensors: Sequence[Tensor]) -> list[Tensor]:
    return [tensor.detach() for tensor in tensors]
