"""`program_of`: a function of JAX arrays at a point, as a `Program`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from gradproof import around
from gradproof.around import After, Before
from gradproof.errors import UsageError
from gradproof.jax.calls import Signature, UserCall
from gradproof.jax.families import Shelf
from gradproof.jax.jaxprogram import JaxProgram
from gradproof.jax.scope import Scope, ambient
from gradproof.jax.selection import chosen
from gradproof.jax.tree import flatten, is_structure
from gradproof.names import name_of
from gradproof.program import Tally

_WIDE = (np.float64, np.complex128)


def owns(fn: Callable[..., Any], args: Any, kwargs: Mapping[str, Any]) -> bool:
    """A JAX array anywhere among the arguments, or inside fn if that is a structure, such as an Equinox module."""
    if isinstance(args, jax.Array) or (type(args) in (tuple, list) and any(isinstance(x, jax.Array) for x in args)):
        return True
    found: list[tuple[str, Any]] = []
    flatten((args, dict(kwargs), fn), "", found)
    return any(isinstance(value, jax.Array) for _, value in found)


def program_of(
    fn: Callable[..., Any],
    args: Any,
    kwargs: dict[str, Any] | None = None,
    wrt: str | Sequence[str] | None = None,
) -> JaxProgram:
    """`args`: one array, a tuple or list of positional arguments, or any other structure as the only argument."""
    positional = tuple(args) if type(args) in (tuple, list) else (args,)
    return traced(signature_of(fn, positional, dict(kwargs or {}), lambda named: chosen(named, wrt)))


def composed(fn: Callable[..., Any], before: Before | None, after: After | None) -> Callable[..., Any]:
    """A module with parameters of its own would lose them."""
    if is_structure(fn):
        raise UsageError(
            f"fn is a {type(fn).__name__} with arrays inside; with output_map= or randomness= pass it as an argument: "
            "gradproof.check(lambda model, x: model(x), (model, x), ...)"
        )
    return around.composed(fn, before, after)


def signature_of(
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    choose: Callable[[Sequence[tuple[str, Any]]], frozenset[str]],
) -> Signature:
    if not callable(fn):
        raise UsageError(f"fn must be callable, got {type(fn).__name__}: gradproof.check(jnp.sin, x)")
    found: list[tuple[str, Any]] = []
    own = (fn,) if is_structure(fn) else ()
    tree = flatten((args, kwargs, *own), "", found)
    named = tuple((_path(path), value) for path, value in found)
    return Signature(fn, tree, named, choose(named))


def traced(signature: Signature, call_of: Callable[[Signature], UserCall] = UserCall) -> JaxProgram:
    """At the point where the arguments are, in the precision that the user works in."""
    # A 64-bit array can only have been made in 64-bit mode, and only means something there.
    wide = any(isinstance(value, jax.Array) and value.dtype in _WIDE for _, value in signature.named)
    scope = Scope("on" if wide else ambient())
    with scope:
        call = call_of(signature)
        point = np.empty(call.inputs.size)
        call.inputs.write_single([array for _, array in call.start], point)
    return JaxProgram(Shelf(call, scope.form), name_of(signature.fn), point, Tally(), scope, plain="familiar")


def _path(path: str) -> str:
    """`[0][1]['w']` of (args, kwargs, fn) is args[1]['w'] to the user."""
    return ("args", "kwargs", "params")[int(path[1])] + path[3:]
