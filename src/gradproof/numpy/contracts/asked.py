"""The functions that the user wrote, one by one, each to be asked at any point and watched meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gradproof.contracts.side import FORWARD, REVERSE, Side
from gradproof.errors import Unsupported
from gradproof.norms import rms
from gradproof.numpy.contracts.slopes import Along, Slopes
from gradproof.numpy.derivative import ONE_OF, Written
from gradproof.numpy.numpyprogram import NumpyProgram
from gradproof.numpy.rules import Pair, Rules, is_function
from gradproof.numpy.watched import Watched
from gradproof.program import Array, Leaf
from gradproof.reference.steps import signed

# What a rule is given beside the arguments: at which place, and by what name.
VECTORS = {"vjp": (0, "its cotangent"), "jvp": (0, "its tangent"), "hessp": (1, "the vector p")}
WEIGHTS = (1, "the weights v")
MATRICES, SECOND = ("jac", "grad"), ("hess", "hessp")
# Of the vectors that a rule is given elsewhere, those at the point are twice: a result that does not depend on the
# point is another one all the same.
SHARE = 0.5


@dataclass(frozen=True, eq=False, slots=True)
class Rule:
    """`ask` gives numbers that tell two answers apart, and belong to `leaves`; `first` is what the check has got of the
    first call already, if that is kept. `slopes` are those that the answers should be."""

    name: str
    ask: Callable[[Array], Array]
    leaves: tuple[Leaf, ...]
    first: Array | None
    watched: Watched
    slopes: Slopes


def rules_of(program: NumpyProgram, generator: np.random.Generator) -> list[Rule]:
    """In the order in which a solver calls them, after the function itself."""
    along = Along(signed(generator, program.value.size), signed(generator, program.point.size) * _extent(program))
    written = program.rules.written
    named = [name for name in ONE_OF if is_function(getattr(written, name))]
    return [_rule(program, name, along) for name in named]


def _rule(program: NumpyProgram, name: str, along: Along) -> Rule:
    call, given, w, u = program.rules.call, getattr(program.rules.written, name), along.cotangent, along.tangent
    vector = VECTORS.get(name) or (WEIGHTS if name == "hess" and program.value.size != 1 else None)
    watched = Watched(given, lambda place: _name(place, vector))
    rules = Rules(Written(**{name: watched}), call)
    side = _side(program, name, w)

    def product(pair: Pair, share: float) -> Array:
        made = pair.pull(share * w[None]) if side is REVERSE else pair.push(share * u[None])
        return np.asarray(made[0] / share)

    def ask(point: Array) -> Array:
        program.tally.pulls += name != "jvp"
        program.tally.pushes += name == "jvp"
        share = 1.0 if point is program.point else SHARE
        if name in SECOND:
            return np.asarray(rules.second(point, share * w).pull(share * u[None])[0] / share**2)
        return product(rules.first(point), share)

    first = product(program.pair, 1.0) if name in MATRICES else None
    order = 2 if name in SECOND else 1
    return Rule(name, ask, side.made(program), first, watched, Slopes(program, along, side, order))


def _extent(program: NumpyProgram) -> Array:
    """How large each coordinate is, for directions in which all of them move alike."""
    sizes = np.abs(program.point)
    for leaf in program.inputs:
        part = sizes[leaf.span]
        part[part == 0] = rms(part) or 1.0
    return sizes


def _side(program: NumpyProgram, name: str, w: Array) -> Side:
    """From which a rule is asked. A matrix beside a vjp does the work of forward mode, and is kept for that."""
    if name == "jvp" or (name in MATRICES and program.rules.written.vjp is not None):
        return FORWARD
    if name in MATRICES:
        try:
            program.pair.pull(w[None])
        except Unsupported:  # an operator without its adjoint
            return FORWARD
    return REVERSE


def _name(place: int, vector: tuple[int, str] | None) -> str:
    if vector is not None and place == vector[0]:
        return vector[1]
    return f"args[{place - (vector is not None and place > vector[0])}]"
