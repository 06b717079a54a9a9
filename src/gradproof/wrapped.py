"""A program around another one: what it does not change, it passes on."""

from __future__ import annotations

from dataclasses import dataclass

from gradproof.program import Array, Leaf, Program, Skipped, Tally, rule_of


@dataclass(frozen=True, slots=True)
class Wrapped:
    """The part of a program that is that of `inner`."""

    inner: Program

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def inputs(self) -> tuple[Leaf, ...]:
        return self.inner.inputs

    @property
    def outputs(self) -> tuple[Leaf, ...]:
        return self.inner.outputs

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        return self.inner.skipped

    @property
    def point(self) -> Array:
        return self.inner.point

    @property
    def value(self) -> Array:
        return self.inner.value

    @property
    def notes(self) -> tuple[str, ...]:
        return self.inner.notes

    @property
    def batched(self) -> bool:
        return self.inner.batched

    @property
    def tally(self) -> Tally:
        return self.inner.tally

    @property
    def rule(self) -> Program:
        return rule_of(self.inner)
