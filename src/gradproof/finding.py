"""What a check says, and about which place."""

from __future__ import annotations

from dataclasses import dataclass

from gradproof.program import Leaf, Spot
from gradproof.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the Jacobian: the output side, the input side, or both."""

    output: Spot | None = None
    input: Spot | None = None

    @classmethod
    def of(cls, output: Leaf, input: Leaf) -> Place:
        """A whole block."""
        return cls(Spot(output.path), Spot(input.path))

    def __str__(self) -> str:
        if self.output is None or self.input is None:
            return str(self.output or self.input or "")
        return f"d {self.output} / d {self.input}"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What kind of mistake it is, in one sentence; `explained` is the share of the squared deviation that goes away
    with it."""

    code: str
    sentence: str
    explained: float
    hint: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing worth saying. `verdict` is what it implies by itself: RIGHT for a mere remark."""

    code: str
    verdict: Verdict
    place: Place
    sentence: str
    hint: str = ""
    diagnosis: Diagnosis | None = None
