"""A function whose gradient is meant to be that of another one: straight-through and surrogate gradients."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gradproof import precision
from gradproof.errors import UsageError
from gradproof.program import Array, Leaf, Offers, Program, Tally, linearized_of, offers_of
from gradproof.unrounded import Unrounded, unrounded_of
from gradproof.wrapped import Wrapped


@dataclass(frozen=True, slots=True)
class Surrogate(Wrapped):
    """A program: the derivatives of `inner` as it claims them, on the values of `expected`, at the same point."""

    expected: Program

    def __post_init__(self) -> None:
        for what, ours, theirs in (
            ("inputs", self.inner.inputs, self.expected.inputs),
            ("outputs", self.inner.outputs, self.expected.outputs),
        ):
            if [(leaf.shape, leaf.is_complex) for leaf in ours] != [(leaf.shape, leaf.is_complex) for leaf in theirs]:
                raise UsageError(
                    f"expected_gradient_of must be a function of the same {what}: {self.inner.name} has "
                    f"{_described(ours)}, {self.expected.name} has {_described(theirs)}; write check(fn, x, "
                    "expected_gradient_of=g) with "
                    "g(x) shaped like fn(x)"
                )

    @property
    def name(self) -> str:
        return f"{self.inner.name}, by the derivative of {self.expected.name}"

    @property
    def value(self) -> Array:
        return self.expected.value

    @property
    def tally(self) -> Tally:
        ours, theirs = self.inner.tally, self.expected.tally
        return Tally(ours.evaluations + theirs.evaluations, ours.pulls + theirs.pulls, ours.pushes + theirs.pushes)

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.expected.notes + self.inner.notes))

    @property
    def offers(self) -> Offers:
        return replace(offers_of(self.inner), complex_values=offers_of(self.expected).complex_values)

    @property
    def batched(self) -> bool:
        return self.expected.batched

    def values(self, points: Array) -> Array:
        return self.expected.values(points)

    def pull(self, cotangents: Array) -> Array:
        return self.inner.pull(cotangents)

    def push(self, tangents: Array) -> Array:
        return self.inner.push(tangents)

    def repeated_value(self) -> Array:
        """It moves if either of the two does."""
        moved = self.inner.repeated_value() - self.inner.value
        return self.expected.repeated_value() + moved

    def gradient(self, cotangent: Array) -> Surrogate:
        return Surrogate(self.inner.gradient(cotangent), self.expected.gradient(cotangent))

    def widened(self) -> Surrogate:
        return Surrogate(self.inner.widened(), self.expected.widened())

    def unrounded(self) -> Unrounded[Program] | None:
        """Of both, if either casts."""
        sides = (self.inner, self.expected)
        found = [unrounded_of(one) for one in sides]
        forms = [one.form for one in found if one is not None]
        if not forms:
            return None
        ours, theirs = (
            one.widened() if smooth is None else smooth.program for one, smooth in zip(sides, found, strict=True)
        )
        return Unrounded(Surrogate(ours, theirs), min(forms, key=lambda form: precision.of(form).bits))

    def linearized(self) -> Surrogate:
        return Surrogate(linearized_of(self.inner), self.expected)


def _described(leaves: tuple[Leaf, ...]) -> str:
    return ", ".join(f"{leaf.path} {leaf.shape}" for leaf in leaves) or "none"
