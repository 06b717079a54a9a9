"""Casts to narrower formats inside a function: find them in what was traced of it, or leave them out.

Every operation of JAX is a primitive that Python code binds to its operands, also while that is traced. Where casts are
left out, all that is narrow becomes float64 there. JAX keeps what it has traced, for the same context; a context of our
own makes sure that what was traced here serves nobody else.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import jax
import numpy as np
from jax.extend import core

from gradproof.jax.recipes import bodies, operations
from gradproof.jax.scope import Scope
from gradproof.precision import of

WIDER = {
    np.dtype(jax.numpy.bfloat16): np.dtype(np.float64),
    np.dtype(np.float16): np.dtype(np.float64),
    np.dtype(np.float32): np.dtype(np.float64),
    np.dtype(np.complex64): np.dtype(np.complex128),
}
FORMATS = frozenset(WIDER) | frozenset(WIDER.values())
# Bits that are read as a number are those of its format: random numbers are made so.
BITS = "bitcast_convert_type"


def narrowest(jaxpr: Any) -> str:
    """The coarsest format that something finer is cast to, by name; empty if there is none."""
    found = [name for eqn in operations(jaxpr) for name in _cast_to(eqn)]
    return min(found, key=lambda name: of(name).bits, default="")


def _cast_to(eqn: Any) -> list[str]:
    finest = max((_digits(one) for one in eqn.invars), default=0)
    return [one.aval.dtype.name for one in eqn.outvars if 0 < _digits(one) < finest]


def _digits(variable: Any) -> int:
    dtype = getattr(variable.aval, "dtype", None)
    return of(dtype.name).bits if dtype in FORMATS else 0


def can_be_left_out() -> bool:
    """JAX has such contexts since 0.7."""
    return hasattr(jax, "make_user_context")


class WithoutCasts(Scope):
    """In this thread, whatever would be of a narrower format, but not of fewer bits than `least`, is float64."""

    __slots__ = ("_bits",)

    def __init__(self, least: int) -> None:
        super().__init__("on")
        self._bits = least

    @property
    def form(self) -> str:
        return f"{self.width}, without casts to {self._bits} bits"

    def changes(self) -> list[AbstractContextManager[Any]]:
        return [*super().changes(), _widening, _least()(self._bits)]


@functools.cache
def _least() -> Any:
    """Made when it is needed: JAX then traces everything anew that was traced before."""
    return jax.make_user_context(None)  # type: ignore[no-untyped-call]


class _Widening(AbstractContextManager[None]):
    """Puts itself in place of `bind` as long as somebody needs it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._plain: Callable[..., Any] = core.Primitive.bind

    def __enter__(self) -> None:
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._plain = plain = core.Primitive.bind

                def bind(primitive: Any, *args: Any, **params: Any) -> Any:
                    return _bound(plain, primitive, args, params)

                core.Primitive.bind = bind  # type: ignore[assignment, method-assign]

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                core.Primitive.bind = self._plain  # type: ignore[method-assign]


_widening = _Widening()


def _bound(plain: Callable[..., Any], primitive: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    least = _least().value  # that of this thread
    if least is None or primitive.name == BITS or bodies(params):  # bodies were traced for what they are given
        return plain(primitive, *args, **params)
    params = {name: _wider(value, least) if isinstance(value, np.dtype) else value for name, value in params.items()}
    if primitive is not jax.lax.convert_element_type_p:
        args = tuple(_widened(one, least) for one in args)
    return plain(primitive, *args, **params)


def _widened(array: Any, least: int) -> Any:
    dtype = getattr(array, "dtype", None)
    wider = _wider(dtype, least)
    return array if wider is dtype else jax.lax.convert_element_type(array, wider)


def _wider(dtype: Any, least: int) -> Any:
    return WIDER[dtype] if dtype in WIDER and of(dtype.name).bits >= least else dtype
