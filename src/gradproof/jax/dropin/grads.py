"""check_grads: JAX's signature, gradproof's engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradproof.errors import UsageError
from gradproof.jax.adapter import signature_of, traced
from gradproof.jax.dropin.judge import judge
from gradproof.jax.dropin.options import SEED, Given, Options
from gradproof.jax.jaxprogram import JaxProgram
from gradproof.jax.selection import everything
from gradproof.reference.steps import signed

# JAX's word to the core's; "lin" is the forward mode of another program.
MODES = {"rev": "reverse", "fwd": "forward"}
KNOWN = ("fwd", "rev", "lin")


def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int,
    modes: str | Sequence[str] = ("fwd", "rev"),
    atol: Given = None,
    rtol: Given = None,
    eps: float | None = None,
) -> None:
    """Raise an AssertionError unless the derivatives of `f` at `args`, up to `order`, are right.

    The arguments mean what they mean in `jax.test_util.check_grads`, but every entry of the Jacobian is looked at (or
    signed probes of all of them, where it is large). `atol`, `rtol` and `eps` left out are chosen for the arguments.
    See docs/jax.md for what differs.
    """
    __tracebackhide__ = True
    program = traced(signature_of(f, tuple(args), {}, everything))
    _check(program, order, _named(modes), Options(atol, rtol, eps))


def _named(modes: str | Sequence[str]) -> tuple[str, ...]:
    given = (modes,) if isinstance(modes, str) else tuple(modes)
    named = tuple(mode for mode in KNOWN if any(mode in one for one in given))
    if not named:
        raise UsageError(f"modes={modes!r} is not understood; write modes=['fwd', 'rev'], or 'lin'")
    return named


def _check(program: JaxProgram, order: int, modes: tuple[str, ...], options: Options) -> None:
    """All modes of one order, and of the next the derivatives of each mode's derivative."""
    __tracebackhide__ = True
    plain = [core for word, core in MODES.items() if word in modes]
    if plain:
        judge(program, plain, options)
    if "lin" in modes:
        judge(program.linearized(), ["forward"], options)
    if order > 1:
        generator = np.random.default_rng(SEED)
        if "rev" in modes:
            _check(program.gradient(signed(generator, program.value.size)), order - 1, modes, options)
        if "fwd" in modes:
            _check(program.tangent(signed(generator, program.point.size)), order - 1, modes, options)
        if "lin" in modes:
            _check(program.linearized().tangent(signed(generator, program.point.size)), order - 1, modes, options)
