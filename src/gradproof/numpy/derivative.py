"""What the user wrote by hand, as given in `derivative=`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gradproof.errors import UsageError
from gradproof.numpy.words import WORDS


@dataclass(frozen=True, slots=True)
class Jac:
    """`jac(x, *args)`: dense, `scipy.sparse`, or a `LinearOperator`; or such a matrix itself, where it is constant; or
    True, where `fun` returns (value, jac)."""

    given: Any


@dataclass(frozen=True, slots=True)
class Grad:
    """`grad(x, *args)`: the gradient of a function that returns one number."""

    given: Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Vjp:
    """`vjp(w, *args)`: J^T w, in the structure of the arguments."""

    given: Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Jvp:
    """`jvp(v, *args)`: J v, in the structure of the outputs."""

    given: Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Hess:
    """`hess(x, *args)` of a function that returns one number; of one that returns several `hess(x, v, *args)`, the sum
    of their Hessians with the weights v. Dense, sparse, an operator, or a constant matrix."""

    given: Any


@dataclass(frozen=True, slots=True)
class Hessp:
    """`hessp(x, p, *args)`: the Hessian times p."""

    given: Callable[..., Any]


One = Jac | Grad | Vjp | Jvp | Hess | Hessp
ONE_OF: dict[str, type[One]] = {"jac": Jac, "grad": Grad, "vjp": Vjp, "jvp": Jvp, "hess": Hess, "hessp": Hessp}
EXAMPLE = "write derivative={'jac': jac}, or derivative=gradproof.numpy.Jac(jac)"


@dataclass(frozen=True, slots=True)
class Written:
    """All that was given, each at most once; None where nothing was."""

    jac: Any = None
    grad: Any = None
    vjp: Any = None
    jvp: Any = None
    hess: Any = None
    hessp: Any = None

    @property
    def first_only(self) -> str:
        """The name of a derivative that is with respect to the first argument, or nothing."""
        named = (name for name in ("jac", "grad", "hess", "hessp") if getattr(self, name) is not None)
        return next(named, "")

    @property
    def words(self) -> tuple[tuple[str, str], ...]:
        """Those of NumPy, and what does the work of "backward" and of "the forward rule"."""
        matrix = "grad" if self.jac is None else "jac"
        reverse = matrix if self.vjp is None else "vjp"
        forward = matrix if self.jvp is None else "jvp"
        return (*WORDS, ("backward", reverse), ("the forward rule", forward))

    @property
    def second_words(self) -> tuple[tuple[str, str], ...]:
        reverse = "hessp" if self.hess is None else "hess"
        return (*WORDS, ("backward", reverse), ("the forward rule", "hessp"))

    @property
    def matrix(self) -> Any:
        return self.grad if self.jac is None else self.jac

    @property
    def order(self) -> int:
        return 1 if self.hess is None and self.hessp is None else 2


def written(derivative: Any) -> Written:
    """Read a dict of names, one of the objects above, or several of them."""
    given: dict[str, Any] = {}
    for name, value in _pairs(derivative):
        if name not in ONE_OF:
            raise UsageError(f"derivative has no {name!r}; it may have {', '.join(ONE_OF)}: {EXAMPLE}")
        if name in given:
            raise UsageError(f"{name} was given twice in derivative={derivative!r}; check the second in its own call")
        if value is not None:
            given[name] = value
    for name in ("grad", "vjp", "jvp", "hessp"):
        if name in given and not callable(given[name]):
            raise UsageError(f"{name} must be a function, got {type(given[name]).__name__}: {EXAMPLE}")
    _compatible(given)
    return Written(**given)


def _pairs(derivative: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(derivative, Mapping):
        yield from ((str(name), _bare(value)) for name, value in derivative.items())
    elif isinstance(derivative, One):
        yield type(derivative).__name__.lower(), derivative.given
    elif isinstance(derivative, (tuple, list)) and derivative:
        for one in derivative:
            yield from _pairs(one)
    else:
        raise UsageError(f"derivative={derivative!r} does not say what it is; {EXAMPLE}")


def _bare(value: Any) -> Any:
    return value.given if isinstance(value, One) else value


def _compatible(given: Mapping[str, Any]) -> None:
    first = [name for name in ("jac", "grad", "vjp", "jvp") if name in given]
    if not first:
        raise UsageError(
            f"derivative has {', '.join(given) or 'nothing'}, but no first derivative: hess and hessp are held against "
            "differences of the gradient; write derivative={'jac': jac, 'hess': hess}"
        )
    if first == ["jvp"] and ("hess" in given or "hessp" in given):
        raise UsageError("hess and hessp are held against differences of the gradient, not given by jvp; add jac")
    if "jac" in first and "grad" in first:
        raise UsageError("jac and grad are the same thing for a function with one output; give one of them")
    if len(first) > 2:
        raise UsageError(f"{', '.join(first)} are three claims about two modes; check {first[0]} in a call of its own")
