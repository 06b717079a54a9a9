"""check_jvp and check_vjp: a derivative that the caller wrote, held against the function."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from gradproof.errors import OutputsChanged, Unsupported, first_line
from gradproof.jax.adapter import signature_of, traced
from gradproof.jax.calls import Pushed, Reversed, Signature, UserCall
from gradproof.jax.dropin.judge import CheckFailed, judge
from gradproof.jax.dropin.options import Given, Options
from gradproof.jax.leaves import Arrays, conjugated
from gradproof.jax.selection import everything


def check_jvp(
    f: Callable[..., Any],
    f_jvp: Callable[..., Any],
    args: Sequence[Any],
    atol: Given = None,
    rtol: Given = None,
    eps: float | None = None,
    err_msg: str = "",
) -> None:
    """Raise an AssertionError unless `f_jvp(args, tangents)` gives the value of `f` and the right tangents."""
    __tracebackhide__ = True
    signature = signature_of(f, tuple(args), {}, everything)
    program = traced(signature, functools.partial(GivenPush, f_jvp))
    judge(program, ["forward"], Options(atol, rtol, eps), err_msg)


def check_vjp(
    f: Callable[..., Any],
    f_vjp: Callable[..., Any],
    args: Sequence[Any],
    atol: Given = None,
    rtol: Given = None,
    eps: float | None = None,
    err_msg: str = "",
) -> None:
    """Raise an AssertionError unless `f_vjp(*args)` gives the value of `f` and a function with the right gradients."""
    __tracebackhide__ = True
    signature = signature_of(f, tuple(args), {}, everything)
    program = traced(signature, functools.partial(GivenPull, f_vjp))
    judge(program, ["reverse"], Options(atol, rtol, eps), err_msg)


class GivenPush(UserCall):
    """A call whose forward mode is the caller's."""

    def __init__(self, f_jvp: Callable[..., Any], signature: Signature) -> None:
        super().__init__(signature)
        self._f_jvp = f_jvp

    def forward(self, arrays: Arrays, tangents: Arrays) -> Pushed:
        args, moved = self.arguments(arrays)[0], self.tangents(tangents)[0]
        values, pushed = self._f_jvp(args, moved)
        return Pushed(_like_result(self, values, "value"), _like_result(self, pushed, "tangent"))

    def reverse(self, arrays: Arrays) -> Reversed:
        raise Unsupported(f"only a forward rule of {len(arrays)} arrays was given")


class GivenPull(UserCall):
    """A call whose reverse mode is the caller's."""

    def __init__(self, f_vjp: Callable[..., Any], signature: Signature) -> None:
        super().__init__(signature)
        self._f_vjp = f_vjp

    def reverse(self, arrays: Arrays) -> Reversed:
        (args, kwargs, *_) = self.arguments(arrays)
        values, transposed = self._f_vjp(*args)

        def pull(cotangents: Arrays) -> Arrays:
            given = transposed(self.structured_result(conjugated(cotangents)))
            try:
                gradients = self.leaves_of_arguments((tuple(given), kwargs))
            except ValueError as error:
                raise CheckFailed(
                    f"f_vjp's function returns {first_line(error)} of the arguments; return one gradient for each"
                ) from error
            return conjugated(gradients)

        return Reversed(_like_result(self, values, "value"), pull)

    def forward(self, arrays: Arrays, tangents: Arrays) -> Pushed:
        raise Unsupported(f"only a reverse rule of {len(arrays)} arrays was given, and {len(tangents)} tangents")


def _like_result(call: UserCall, result: Any, what: str) -> Arrays:
    try:
        return call.leaves_of_result(result)
    except OutputsChanged as changed:
        raise CheckFailed(
            f"the {what} that the rule returns is not like the function's: {changed.kind} {changed.after} instead of "
            f"{changed.before}"
        ) from changed
