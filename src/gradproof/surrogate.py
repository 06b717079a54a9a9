"""A function whose gradient is meant to be that of another one: straight-through and surrogate gradients."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gradproof.errors import UsageError
from gradproof.program import Array, Leaf, Offers, Program, Skipped, Tally, linearized_of, offers_of, rule_of


@dataclass(frozen=True, slots=True)
class Surrogate:
    """A program: the derivatives of `fn` as it claims them, on the values of `expected`, at the same point."""

    fn: Program
    expected: Program

    def __post_init__(self) -> None:
        for what, ours, theirs in (
            ("inputs", self.fn.inputs, self.expected.inputs),
            ("outputs", self.fn.outputs, self.expected.outputs),
        ):
            if [(leaf.shape, leaf.is_complex) for leaf in ours] != [(leaf.shape, leaf.is_complex) for leaf in theirs]:
                raise UsageError(
                    f"expected_gradient_of must be a function of the same {what}: {self.fn.name} has {_described(ours)}"
                    f", {self.expected.name} has {_described(theirs)}; write check(fn, x, expected_gradient_of=g) with "
                    "g(x) shaped like fn(x)"
                )

    @property
    def name(self) -> str:
        return f"{self.fn.name}, by the derivative of {self.expected.name}"

    @property
    def inputs(self) -> tuple[Leaf, ...]:
        return self.fn.inputs

    @property
    def outputs(self) -> tuple[Leaf, ...]:
        return self.fn.outputs

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        return self.fn.skipped

    @property
    def point(self) -> Array:
        return self.fn.point

    @property
    def value(self) -> Array:
        return self.expected.value

    @property
    def tally(self) -> Tally:
        ours, theirs = self.fn.tally, self.expected.tally
        return Tally(ours.evaluations + theirs.evaluations, ours.pulls + theirs.pulls, ours.pushes + theirs.pushes)

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.expected.notes + self.fn.notes))

    @property
    def rule(self) -> Program:
        return rule_of(self.fn)

    @property
    def offers(self) -> Offers:
        return replace(offers_of(self.fn), complex_values=offers_of(self.expected).complex_values)

    @property
    def batched(self) -> bool:
        return self.expected.batched

    def values(self, points: Array) -> Array:
        return self.expected.values(points)

    def pull(self, cotangents: Array) -> Array:
        return self.fn.pull(cotangents)

    def push(self, tangents: Array) -> Array:
        return self.fn.push(tangents)

    def repeated_value(self) -> Array:
        """It moves if either of the two does."""
        moved = self.fn.repeated_value() - self.fn.value
        return self.expected.repeated_value() + moved

    def gradient(self, cotangent: Array) -> Surrogate:
        return Surrogate(self.fn.gradient(cotangent), self.expected.gradient(cotangent))

    def widened(self) -> Surrogate:
        return Surrogate(self.fn.widened(), self.expected.widened())

    def linearized(self) -> Surrogate:
        return Surrogate(linearized_of(self.fn), self.expected)


def _described(leaves: tuple[Leaf, ...]) -> str:
    return ", ".join(f"{leaf.path} {leaf.shape}" for leaf in leaves) or "none"
