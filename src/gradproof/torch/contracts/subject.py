"""What the contracts share: one program, one cotangent, its gradients, and the rules that people wrote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch

from gradproof import precision
from gradproof.batching import Known
from gradproof.contracts.suite import Reach
from gradproof.sizes import negligible, size_of, terms_of_gradient
from gradproof.torch.calls import UserCall
from gradproof.torch.contracts.pulls import Gradients, finite, largest, pull, pulled, random_cotangents, spread
from gradproof.torch.contracts.watch import Watch
from gradproof.torch.graph import Graph
from gradproof.torch.leaves import identical
from gradproof.torch.state import as_called
from gradproof.torch.strides import expanded
from gradproof.torch.torchprogram import TorchProgram

# How much closer to zero another point is, at the first input; a factor keeps most domains, symmetries and zeros.
ELSEWHERE = 2.0**-5
# Whoever checks more entries than this pays for every pull. A rule that is wrong in these ways is so at any size.
LARGE = 2**18


@dataclass(frozen=True, eq=False, slots=True)
class Elsewhere:
    """A call, mostly at another point, with another cotangent."""

    points: Sequence[torch.Tensor]
    values: Sequence[torch.Tensor]
    cotangents: Sequence[torch.Tensor]


@dataclass(frozen=True, eq=False, slots=True)
class First:
    """The first pull: its gradients, what was seen of custom rules, and the outputs whose cotangents it spoiled."""

    gradients: Gradients
    watch: Watch
    spoiled: list[str]


@dataclass(eq=False)
class Subject:
    """Everything is made once, when the first contract asks for it. Numbers count as equal when they are `slack` apart
    relative to the largest, and `nondet_tol` beyond that."""

    program: TorchProgram
    generator: np.random.Generator
    slack: float
    nondet_tol: float = 0.0
    reach: Reach = "anywhere"

    @cached_property
    def cotangents(self) -> list[torch.Tensor]:
        known = self._known
        return (
            self.program.call.outputs.tensors(known.row) if known else random_cotangents(self.program, self.generator)
        )

    @cached_property
    def _known(self) -> Known | None:
        """A pull that was made already serves for one of two, where only torch's own rules have a part in it."""
        return None if self.written or self.call is None else self.program.known

    @property
    def written(self) -> tuple[Any, ...]:
        return self.program.traced.written

    @property
    def gradients(self) -> Gradients:
        return self.first.gradients

    @cached_property
    def first(self) -> First:
        """A pull under watch. Copies of all: what a later pull writes into must not be what it is compared with."""
        used, graph = self.program.used, self.program.graph
        try:
            return self._watched(graph)
        except Exception:
            if not used:
                raise
            return self._watched(self.program.renewed())

    def _watched(self, graph: Graph) -> First:
        return as_called(graph.values, lambda: self._watched_as_called(graph))

    def _watched_as_called(self, graph: Graph) -> First:
        self.program.tally.pulls += 1
        if not self.written:
            return First(pulled(graph.values, graph.points, self.cotangents), Watch(()), [])
        given = [cotangent.clone() for cotangent in self.cotangents]
        watch = Watch(graph.written, self.program.call.modules[:1])
        with watch:
            gradients = pulled(graph.values, graph.points, given)
        paths = [leaf.path for leaf in self.program.outputs]
        spoiled = [p for p, one, kept in zip(paths, given, self.cotangents, strict=True) if not identical(one, kept)]
        return First([None if one is None else one.detach().clone() for one in gradients], watch, spoiled)

    @property
    def finite(self) -> bool:
        return all(map(finite, self.gradients))

    @property
    def calls_between(self) -> bool:
        """Whether the function is called at another point between the first pull and the second."""
        return bool(self.written) and not self.large

    @cached_property
    def second(self) -> Gradients:
        """Of the same cotangents again. Where there are custom rules, a call at another point has come between."""
        if self._known:
            return self.program.call.inputs.tensors(self._known.result)
        if self.calls_between:
            _ = self.between
        return [None if one is None else one.detach().clone() for one in pull(self.program, self.cotangents)]

    @cached_property
    def third(self) -> Gradients:
        """Once more, at once: for those who doubt the second."""
        _ = self.second
        return pull(self.program, self.cotangents)

    @property
    def large(self) -> bool:
        return self.program.point.size + self.program.value.size > LARGE

    @property
    def forward(self) -> bool:
        """Whether forward mode exists, as far as the check has found out."""
        return self.program.tally.pushes > 0

    @property
    def call(self) -> UserCall | None:
        """None where the arguments are no plain dense tensors that can be exchanged for others."""
        call = self.program.call
        return call if isinstance(call, UserCall) and not call.forms.by_input else None

    def values_at(self, points: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
        """A call as the user would make it."""
        self.program.tally.evaluations += 1
        with torch.enable_grad():
            return self.program.call.one(self.program.call.forms.copies(points))

    @cached_property
    def here(self) -> Elsewhere:
        return Elsewhere(self.program.traced.points, self.program.traced.values, self.cotangents)

    @property
    def between(self) -> Elsewhere | None:
        """The call that comes between the first pull and the second."""
        return self.repeated or self.elsewhere

    @cached_property
    def elsewhere(self) -> Elsewhere | None:
        """None where the function does not run there, must not, or has no such point."""
        if self.call is None or self.reach == "point":
            return None
        points = [point.requires_grad_() for point in self._points_elsewhere()]
        try:
            return Elsewhere(points, self.values_at(points), random_cotangents(self.program, self.generator))
        except Exception:  # noqa: BLE001  the point may lie outside of its domain
            return None

    @cached_property
    def repeated(self) -> Elsewhere | None:
        """The same with numbers that repeat along a dimension, so that they can be had with a stride of 0 as well: one
        call serves two contracts. None also where calls are not alike, or nothing can repeat."""
        call, traced = self.call, self.program.traced
        if call is None or self.reach == "point" or self.program.draws or traced.writes:
            return None
        if all(max(one.shape, default=1) < 2 for one in (*traced.points, *self.cotangents)):
            return None
        points = [expanded(point).contiguous().requires_grad_() for point in self._points_elsewhere()]
        self.program.tally.evaluations += 1
        try:
            with torch.enable_grad():
                return Elsewhere(points, call.as_given(points), [expanded(one).contiguous() for one in self.cotangents])
        except Exception:  # noqa: BLE001  rows that are alike may lie outside of its domain
            return None

    def _points_elsewhere(self) -> list[torch.Tensor]:
        points = enumerate(self.program.traced.points)
        return [point.detach() * (1.0 - ELSEWHERE / (i + 1)) for i, point in points]

    @cached_property
    def gradients_elsewhere(self) -> Gradients:
        return self._gradients_of(self.elsewhere)

    @cached_property
    def gradients_repeated(self) -> Gradients:
        return self._gradients_of(self.repeated)

    def _gradients_of(self, made: Elsewhere | None) -> Gradients:
        assert made is not None
        self.program.tally.pulls += 1
        return pulled(made.values, made.points, made.cotangents)

    def differ(self, one: torch.Tensor | None, other: torch.Tensor | None) -> bool:
        gap = spread(one, other)
        return gap > 0 and gap > self.slack * max(largest(one), largest(other)) + self.nondet_tol

    def any_differs(self, values: Sequence[torch.Tensor], others: Sequence[torch.Tensor]) -> bool:
        """The same of any output."""
        return any(self.differ_of(i, *pair) for i, pair in enumerate(zip(values, others, strict=True)))

    def differ_of(self, i: int, one: torch.Tensor | None, other: torch.Tensor | None) -> bool:
        """The same of one output, which may be nothing but the rounding of larger numbers."""
        if not self.differ(one, other):
            return False
        return spread(one, other) > negligible(self.program) * size_of(self.program, self.program.outputs[i])

    def first_differing(self, gradients: Gradients, others: Gradients) -> int | None:
        """The first input whose gradients differ."""
        pairs = enumerate(zip(gradients, others, strict=True))
        return next((i for i, (one, other) in pairs if self.differ_at(i, one, other)), None)

    def differ_at(self, i: int, one: torch.Tensor | None, other: torch.Tensor | None) -> bool:
        """The same of gradients of one input, which may be nothing but the rounding of terms that cancel."""
        return self.differ(one, other) and spread(one, other) > self._rounding[i]

    @cached_property
    def _rounding(self) -> tuple[float, ...]:
        """How large it is, for each input."""
        terms = terms_of_gradient(self.program, np.ones(self.program.value.size))
        return tuple(negligible(self.program) * one for one in terms)


def slack_for(program: TorchProgram, relative: float) -> float:
    """The tolerance for the numbers, but some roundings at least."""
    return max(relative, 64 * precision.form_of(program).roundoff)
