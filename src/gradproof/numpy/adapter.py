"""`program_with`: a NumPy function and its hand-written derivatives at a point, as a `Program`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

from gradproof.errors import NoDerivative, UsageError
from gradproof.names import name_of
from gradproof.numpy.calls import Call
from gradproof.numpy.derivative import Written, written
from gradproof.numpy.leaves import is_number
from gradproof.numpy.numpyprogram import NumpyProgram
from gradproof.numpy.selection import chosen
from gradproof.numpy.tree import flatten
from gradproof.program import Tally


def owns(fn: Callable[..., Any], args: Any, kwargs: Mapping[str, Any]) -> bool:  # noqa: ARG001  the adapters' protocol
    """Any floating array or number among the positional arguments."""
    found: list[tuple[str, Any]] = []
    flatten(args, "", found)
    return any(is_number(value) for _, value in found)


def program_of(
    fn: Callable[..., Any], args: Any, kwargs: Mapping[str, Any], wrt: str | Sequence[str] | None = None
) -> NoReturn:
    """NumPy does not differentiate by itself."""
    del args, kwargs, wrt
    raise NoDerivative(
        f"{name_of(fn)} is given NumPy arrays or plain numbers, which carry no derivative; pass the one you wrote: "
        "gradproof.check(fn, x, derivative={'jac': jac}), or vjp, jvp, grad, hess, hessp; a function of JAX or torch "
        f"differentiates itself when it is given their arrays: gradproof.check(fn, {_array_for(fn)})"
    )


def program_with(
    fn: Callable[..., Any], args: Any, kwargs: Mapping[str, Any], wrt: str | Sequence[str] | None, derivative: Any
) -> NumpyProgram:
    given = written(derivative)
    name = name_of(fn)
    if given.jac is True:
        fn, given = _taken_apart(fn, given)
    positional = tuple(args) if type(args) in (tuple, list) else (args,)
    found: list[tuple[str, Any]] = []
    tree = flatten((positional, dict(kwargs)), "", found)
    assert tree is not None
    named = [(("args" if path.startswith("[0]") else "kwargs") + path[3:], value) for path, value in found]
    return NumpyProgram(Call(fn, tree, named, chosen(named, wrt, given.first_only)), given, name, Tally())


def _taken_apart(fn: Callable[..., Any], given: Written) -> tuple[Callable[..., Any], Written]:
    """`jac=True`: the function returns both, as SciPy's `minimize` would have it."""

    def part(index: int, *args: Any, **kwargs: Any) -> Any:
        both = fn(*args, **kwargs)
        if not isinstance(both, (tuple, list)) or len(both) != 2:
            raise UsageError(f"jac=True means that the function returns (value, jac), but it returned {type(both)}")
        return both[index]

    return functools.partial(part, 0), replace(given, jac=functools.partial(part, 1))


def _array_for(fn: Any) -> str:
    """How the point is written for the framework that a function comes from."""
    home = str(getattr(fn, "__module__", "")).partition(".")[0]
    return "torch.tensor(x)" if home == "torch" else "jnp.asarray(x)"
