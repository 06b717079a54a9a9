"""What a framework's author supplies to run the scenarios: how to make arrays, and how to attach a derivative by hand.

Everything else is the same for all: a `Rule` is a function with its derivatives, written for any array namespace.
Complex cotangents and gradients in rules follow the real inner product <a, b> = Re(sum(conj(a) b)); a backend whose
framework has another convention converts them where it attaches the rule.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gradproof.cases import Call


class Feature(enum.Enum):
    """What a framework may lack without being wrong; a scenario that needs it is then left out."""

    COMPLEX = "complex numbers"
    FORWARD = "rules for both modes side by side"
    FLOAT32 = "float32"
    IN_PLACE = "arrays that a function may overwrite"
    INTEGERS = "integer arguments"
    RAISING = "functions that look at their numbers, and may raise"
    SECOND = "second derivatives"
    STRUCTURES = "dicts and lists of arrays as arguments and outputs"


@dataclass(frozen=True, slots=True)
class Rule:
    """A function and its derivatives. All take the backend first, for its namespace: `forward(b, *args)`,
    `vjp(b, w, *args)` -> a tuple with the structure of the arguments, `jvp(b, v, *args)` with a tuple v of the same
    structure. `hessp(b, p, x)` is asked for only by backends that do not differentiate `vjp` themselves."""

    name: str
    forward: Callable[..., Any]
    vjp: Callable[..., Any]
    jvp: Callable[..., Any] | None = None
    hessp: Callable[..., Any] | None = None


class Backend(Protocol):
    """One framework."""

    @property
    def name(self) -> str: ...

    @property
    def features(self) -> frozenset[Feature]: ...

    @property
    def xp(self) -> Any:
        """Its functions by NumPy's names: sin, cos, exp, log, sum, conj, real, where, zeros_like, ones_like, arange."""

    def array(self, values: NDArray[Any]) -> Any:
        """An array of the framework with these numbers, of the same shape and dtype."""

    def numbers(self, array: Any) -> NDArray[Any]:
        """The reverse."""

    def constant(self, array: Any) -> Any:
        """The same numbers, through which nothing is differentiated (`detach`, `stop_gradient`)."""

    def call(self, rule: Rule, args: tuple[Any, ...]) -> Call:
        """The rule as a function of this framework, to be called with these arguments. `Call.options` may hold what
        `gradproof.check` must be given in addition."""


class Failure(AssertionError):
    """The adapter does not do what the scenario says."""


def expect(condition: object, sentence: str) -> None:
    if not condition:
        raise Failure(sentence)


def expect_equal(got: Any, wanted: Any, what: str) -> None:
    expect(got == wanted, f"{what} is {got!r}, but must be {wanted!r}")


def expect_close(got: Any, wanted: Any, what: str, relative: float = 1e-9) -> None:
    """Arrays, number by number, relative to the largest."""
    first, second = np.asarray(got), np.asarray(wanted)
    expect_equal(first.shape, second.shape, f"the shape of {what}")
    scale = float(np.max(np.abs(second), initial=0.0)) or 1.0
    apart = np.abs(first - second)
    worst = float(np.max(apart, initial=0.0))
    expect(worst <= relative * scale, f"{what} is off by {worst:.3g}: {first!r}, but must be {second!r}")


def mapped(change: Callable[[Any], Any], value: Any) -> Any:
    """The same structure of dicts, lists and tuples, with every array changed; other leaves stay."""
    if isinstance(value, dict):
        return {key: mapped(change, part) for key, part in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value)(mapped(change, part) for part in value)
    return change(value) if isinstance(value, np.ndarray) else value
