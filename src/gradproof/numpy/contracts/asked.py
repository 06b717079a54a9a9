"""The functions that the user wrote, one by one, each to be asked at any point and watched meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradproof.contracts.side import FORWARD, REVERSE, Side
from gradproof.errors import Unsupported
from gradproof.numpy.derivative import ONE_OF, Written
from gradproof.numpy.numpyprogram import NumpyProgram
from gradproof.numpy.rules import Pair, Rules, is_function
from gradproof.numpy.tree import flatten
from gradproof.program import Array, Leaf
from gradproof.reference.steps import signed

# What a rule is given beside the arguments: at which place, and by what name.
VECTORS = {"vjp": (0, "its cotangent"), "jvp": (0, "its tangent"), "hessp": (1, "the vector p")}
WEIGHTS = (1, "the weights v")
MATRICES, SECOND = ("jac", "grad"), ("hess", "hessp")


@dataclass(frozen=True, eq=False, slots=True)
class Rule:
    """`ask` gives numbers that tell two answers apart, and belong to `leaves`; `first` is what the check has got of the
    first call already, if that is kept. `overwritten` names what the rule has written into so far."""

    name: str
    ask: Callable[[Array], Array]
    leaves: tuple[Leaf, ...]
    first: Array | None
    overwritten: list[str]


def rules_of(program: NumpyProgram, generator: np.random.Generator) -> list[Rule]:
    """In the order in which a solver calls them, after the function itself."""
    w, u = signed(generator, program.value.size), signed(generator, program.point.size)
    written = program.rules.written
    named = [name for name in ONE_OF if is_function(getattr(written, name))]
    return [_rule(program, name, w, u) for name in named]


def _rule(program: NumpyProgram, name: str, w: Array, u: Array) -> Rule:
    call, given, overwritten = program.rules.call, getattr(program.rules.written, name), list[str]()
    vector = VECTORS.get(name) or (WEIGHTS if name == "hess" and program.value.size != 1 else None)
    rules = Rules(Written(**{name: _watched(given, vector, overwritten)}), call)
    side = _side(program, name, w)

    def product(pair: Pair) -> Array:
        return np.asarray(pair.pull(w[None])[0] if side is REVERSE else pair.push(u[None])[0])

    def ask(point: Array) -> Array:
        program.tally.pulls += name != "jvp"
        program.tally.pushes += name == "jvp"
        return rules.second(point, w).pull(u[None])[0] if name in SECOND else product(rules.first(point))

    first = product(program.pair) if name in MATRICES else None
    return Rule(name, ask, side.made(program), first, overwritten)


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


def _watched(given: Any, vector: tuple[int, str] | None, overwritten: list[str]) -> Callable[..., Any]:
    """The same function; what it writes into, of what it is given, is noted."""

    def called(*args: Any, **kwargs: Any) -> Any:
        found: list[tuple[str, Any]] = []
        for place, value in enumerate(args):
            flatten(value, _name(place, vector), found)
        flatten(kwargs, "kwargs", found)
        kept = [(path, value, value.tobytes()) for path, value in found if isinstance(value, np.ndarray)]
        result = given(*args, **kwargs)
        overwritten.extend(path for path, value, before in kept if value.tobytes() != before)
        return result

    return called


def _name(place: int, vector: tuple[int, str] | None) -> str:
    if vector is not None and place == vector[0]:
        return vector[1]
    return f"args[{place - (vector is not None and place > vector[0])}]"
