"""The two sides from which a derivative can be asked: what a rule is given, what it makes of it, and in which words.

Backward makes gradients of the inputs from cotangents of the outputs; a forward rule makes derivatives of the outputs
from tangents of the inputs. Both must be linear, so what holds one to it serves the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gradproof.program import Array, Every, Leaf, Program, Spot, pull_every, push_every
from gradproof.result import Place


@dataclass(frozen=True, slots=True)
class Side:
    """`vector` is what the rule is given, at the `ends` of the program, called `letter` for short and `incoming` where
    it arrives; it makes a `result`. `code` is that of a rule which is not linear."""

    mode: str
    code: str
    vector: str
    ends: str
    letter: str
    incoming: str
    rule: str
    result: str
    given: Callable[[Program], tuple[Leaf, ...]]
    made: Callable[[Program], tuple[Leaf, ...]]
    run: Callable[[Program, Array], Array]  # rows in, rows out
    every: Callable[[Program, Array], Every]  # all unit vectors, and some more rows
    place: Callable[[Spot], Place]  # of a number that was made
    spot: Callable[[Place], Spot | None]  # and back

    def size(self, program: Program) -> int:
        """How many numbers the rule is given."""
        return sum(leaf.size for leaf in self.given(program))


REVERSE = Side(
    mode="reverse",
    code="nonlinear",
    vector="cotangent",
    ends="outputs",
    letter="g",
    incoming="incoming gradient",
    rule="backward",
    result="gradient",
    given=lambda program: program.outputs,
    made=lambda program: program.inputs,
    run=lambda program, rows: program.pull(rows),
    every=pull_every,
    place=lambda spot: Place(None, spot),
    spot=lambda place: place.input,
)
FORWARD = Side(
    mode="forward",
    code="nonlinear-forward",
    vector="tangent",
    ends="inputs",
    letter="u",
    incoming="incoming tangent",
    rule="the forward rule",
    result="derivative",
    given=lambda program: program.inputs,
    made=lambda program: program.outputs,
    run=lambda program, rows: program.push(rows),
    every=push_every,
    place=lambda spot: Place(spot, None),
    spot=lambda place: place.output,
)
SIDES = (REVERSE, FORWARD)


def side_of(mode: str) -> Side:
    """Linearisation is a forward mode, too."""
    return REVERSE if mode == REVERSE.mode else FORWARD
