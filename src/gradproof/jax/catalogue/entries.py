"""One function of the catalogue, and how its arguments are drawn."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any

import jax.numpy as jnp
import numpy as np

Draw = Callable[[np.random.Generator], Any]


@dataclass(frozen=True, slots=True)
class Entry:
    """`run` is the call to check; without one it is the function of that name. `wrt`, `tolerance`: as in
    `gradproof.check`, where they are given."""

    name: str
    draws: tuple[Draw, ...]
    run: Callable[..., Any] | None = None
    wrt: str = ""
    tolerance: float = 0.0

    @property
    def options(self) -> dict[str, Any]:
        given = {"wrt": self.wrt, "tolerance": self.tolerance}
        return {name: value for name, value in given.items() if value}

    @property
    def known(self) -> bool:
        """Whether this release of JAX has the function: later ones have more."""
        try:
            self._named()
        except AttributeError:
            return False
        return True

    def function(self) -> Callable[..., Any]:
        return self._named() if self.run is None else self.run

    def _named(self) -> Callable[..., Any]:
        path = self.name.partition("(")[0].split(".")
        names: list[str] = []
        while True:
            try:
                module: Any = importlib.import_module(".".join(path))
            except ModuleNotFoundError:
                names.insert(0, path.pop())
            else:
                function: Callable[..., Any] = reduce(getattr, names, module)
                return function


def named(package: str, names: str, *draws: Draw, suffix: str = "") -> Iterator[Entry]:
    """Several functions of a package that take the same arguments."""
    for name in names.split():
        yield Entry(f"{package}.{name}{suffix}", draws)


def array(value: Any, dtype: str) -> Any:
    """A drawn argument as JAX gets it: floating ones in the precision asked for, others as they are."""
    if isinstance(value, list):
        return [array(one, dtype) for one in value]
    if not isinstance(value, np.ndarray):
        return value
    if value.dtype.kind == "c":
        return jnp.asarray(value, "complex128" if dtype == "float64" else "complex64")
    return jnp.asarray(value, dtype) if value.dtype.kind == "f" else jnp.asarray(value)


def normal(*shape: int) -> Draw:
    return lambda generator: generator.standard_normal(shape)


def uniform(low: float, high: float, *shape: int) -> Draw:
    return lambda generator: generator.uniform(low, high, shape)


def apart(*shape: int, away: float = 0.0) -> Draw:
    """All numbers at least 0.2 apart from each other, none nearer than 0.1 to `away` plus a multiple of 0.2."""

    def draw(generator: np.random.Generator) -> Any:
        count = int(np.prod(shape))
        steps = generator.permutation(count) - count // 2
        return (away + 0.1 + 0.2 * steps).reshape(shape)

    return draw


def between_integers(*shape: int) -> Draw:
    """Far from every integer and half-integer."""
    return lambda generator: generator.integers(-3, 3, shape) + generator.choice([0.2, 0.3, 0.7, 0.8], shape)


def complex_normal(*shape: int) -> Draw:
    return lambda generator: generator.standard_normal(shape) + 1j * generator.standard_normal(shape)


def right_half(*shape: int) -> Draw:
    """Complex numbers far from the negative real axis, where logarithms and powers jump."""
    return lambda generator: generator.uniform(0.5, 1.5, shape) + 1j * generator.uniform(-0.8, 0.8, shape)


def integers(high: int, *shape: int) -> Draw:
    return lambda generator: generator.integers(0, high, shape).astype(np.int32)


def fixed(value: Any) -> Draw:
    return lambda _: value


def spread_matrix(n: int, *batch: int) -> Draw:
    """Well conditioned, nothing special."""
    return lambda generator: generator.standard_normal((*batch, n, n)) / 2 + 2 * np.eye(n)


def positive_matrix(n: int) -> Draw:
    """Symmetric, with eigenvalues that are positive and apart."""

    def draw(generator: np.random.Generator) -> Any:
        basis, _ = np.linalg.qr(generator.standard_normal((n, n)))
        return basis @ np.diag(1.0 + np.arange(n)) @ basis.T

    return draw


def triangular_matrix(n: int) -> Draw:
    return lambda generator: np.tril(generator.standard_normal((n, n)) / 2) + 2 * np.eye(n)


# What most functions are given.
REAL = normal(2, 3)
POSITIVE = uniform(0.5, 2.5, 2, 3)
UNIT = uniform(-0.9, 0.9, 2, 3)
PROBABILITY = uniform(0.1, 0.9, 2, 3)
ABOVE_ONE = uniform(1.2, 3.0, 2, 3)
APART = apart(2, 3)
COMPLEX = complex_normal(2, 3)
RIGHT_HALF = right_half(2, 3)
VECTOR = normal(5)
MATRIX = normal(3, 4)
