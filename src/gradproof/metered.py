"""A program that keeps to a budget: the core counts and stops; adapters need not know."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from gradproof.errors import BudgetSpent
from gradproof.precision import Precision, coarsest
from gradproof.program import (
    Array,
    ComplexArray,
    Every,
    Leaf,
    Offers,
    Program,
    alone_of,
    draws_of,
    linearized_of,
    offers_of,
    pulled_of,
)
from gradproof.settings import Budget
from gradproof.sizes import terms_of_gradient
from gradproof.unrounded import Unrounded, unrounded_of
from gradproof.wrapped import Wrapped


@dataclass(frozen=True, slots=True)
class Metered(Wrapped):
    """Passes everything on to `inner`, and raises BudgetSpent instead of a call that would exceed the budget."""

    budget: Budget
    started: float = field(default_factory=time.perf_counter)
    terms: tuple[float, ...] = ()  # see `sizes`

    # As `inner` has them, which never change, and are asked for all the time.
    inputs: tuple[Leaf, ...] = field(init=False)
    outputs: tuple[Leaf, ...] = field(init=False)
    point: Array = field(init=False)
    value: Array = field(init=False)
    form: Precision = field(init=False)  # see `precision`

    def __post_init__(self) -> None:
        for name in ("inputs", "outputs", "point", "value"):
            object.__setattr__(self, name, getattr(self.inner, name))
        object.__setattr__(self, "form", coarsest(self.inputs + self.outputs))

    @property
    def alone(self) -> int:
        return alone_of(self.inner)

    @property
    def draws(self) -> bool:
        return draws_of(self.inner)

    @property
    def pulled_alone(self) -> tuple[Array, Array] | None:
        return pulled_of(self.inner)

    @property
    def pushes(self) -> bool:
        """Whether forward mode has been seen to exist; an adapter may know (`pushes`)."""
        return bool(getattr(self.inner, "pushes", False))

    @property
    def offers(self) -> Offers:
        offered = offers_of(self.inner)
        inner = offered.complex_values
        if inner is None:
            return offered

        def complex_values(points: ComplexArray) -> ComplexArray:
            self.reserve(len(points))
            return inner(points)

        return replace(offered, complex_values=complex_values)

    def values(self, points: Array) -> Array:
        self.reserve(len(points))
        return self.inner.values(points)

    def pull(self, cotangents: Array) -> Array:
        self.reserve(len(cotangents))
        return self.inner.pull(cotangents)

    def push(self, tangents: Array) -> Array:
        self.reserve(len(tangents))
        return self.inner.push(tangents)

    def every_pull(self, more: Array) -> Every | None:
        return self._every("every_pull", self.inner.value.size, more)

    def every_push(self, more: Array) -> Every | None:
        return self._every("every_push", self.inner.point.size, more)

    def _every(self, name: str, count: int, more: Array) -> Every | None:
        found: Callable[[Array], Every | None] | None = getattr(self.inner, name, None)
        if found is None:
            return None
        self.reserve(count + len(more))
        return found(more)

    def repeated_value(self) -> Array:
        self.reserve(2)
        return self.inner.repeated_value()

    def gradient(self, cotangent: Array) -> Metered:
        terms = terms_of_gradient(self, cotangent)
        return Metered(self.inner.gradient(cotangent), self.budget, self.started, terms)

    def linearized(self) -> Metered:
        return Metered(linearized_of(self.inner), self.budget, self.started, self.terms)

    def widened(self) -> Metered:
        wide = self.inner.widened()
        return self if wide is self.inner else Metered(wide, self.budget, self.started, self.terms)

    def unrounded(self) -> Unrounded[Metered] | None:
        found = unrounded_of(self.inner)
        if found is None:
            return None
        return Unrounded(Metered(found.program, self.budget, self.started, self.terms), found.form)

    def around(self, wrap: Callable[[Program], Program]) -> Metered:
        """The same with something around the program inside."""
        return Metered(wrap(self.inner), self.budget, self.started, self.terms)

    def made_of(self, terms: tuple[float, ...]) -> Metered:
        """The same program, known to be made of terms that are at least so large (see `sizes`)."""
        larger = tuple(map(max, self.terms, terms)) if self.terms else terms
        return Metered(self.inner, self.budget, self.started, larger).rounding_to(self.form)

    def rounding_to(self, form: Precision) -> Metered:
        """The same program, known to round to this format inside."""
        if form.bits >= self.form.bits:
            return self
        coarser = replace(self)
        object.__setattr__(coarser, "form", form)
        return coarser

    def affords(self, calls: int) -> bool:
        """Whether this many more calls fit; seconds are judged by what has been spent so far."""
        return self._calls_left() >= calls and self._seconds_left() > 0

    def reserve(self, rows: int) -> None:
        limited = self.budget.calls is not None or self.budget.seconds is not None
        if limited and not self.affords(rows):
            more = f"{rows} more call{'s' * (rows != 1)}"
            raise BudgetSpent(f"the budget ({describe(self.budget)}) does not allow {more}")

    def _calls_left(self) -> float:
        if self.budget.calls is None:
            return float("inf")
        tally = self.inner.tally
        return self.budget.calls - (tally.evaluations + tally.pulls + tally.pushes)

    def _seconds_left(self) -> float:
        if self.budget.seconds is None:
            return float("inf")
        return self.budget.seconds - (time.perf_counter() - self.started)


def describe(budget: Budget) -> str:
    parts = []
    if budget.calls is not None:
        parts.append(f"{budget.calls} call{'s' * (budget.calls != 1)}")
    if budget.seconds is not None:
        parts.append(f"{budget.seconds:g} s")
    return " and ".join(parts) or "none"
