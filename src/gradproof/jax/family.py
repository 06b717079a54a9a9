"""What is compiled of one call."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp

from gradproof.jax.calls import Call
from gradproof.jax.leaves import Arrays, units_and
from gradproof.jax.recipes import Recipe
from gradproof.jax.traces import Kept, Sizes, Store

Run = Callable[..., Any]


class Family:
    """One call and what was compiled for it; `recipe` is what that did at the time, if all of it could be seen.

    `store` is where what is compiled for derivatives of the call is kept. If there is one already, this is such a
    derivative, and what it has compiled itself is there too: `trusted`, if that cannot be stale.
    """

    def __init__(self, call: Call, store: Store | None = None, *, trusted: bool = False) -> None:
        self.call = call
        self.recipe: Recipe | None = None
        self.apart = False  # whether `one_each` has failed: a mode may not exist
        self.store = store or Store()
        self._keeps = store is not None
        self._trusted = trusted

    def sizes(self, name: str) -> Sizes:
        return self.store.sizes.setdefault(name, {})

    def _compiled(self, name: str, run: Run, options: dict[str, Any] | None = None) -> Run:
        jitted = jax.jit(run, compiler_options=options)
        return Kept(name, jitted, self.store, trusted=self._trusted) if self._keeps else jitted

    def _quickly(self, name: str, run: Run) -> Run:
        """Compiled in half the time, for what is small: one row that runs once or twice in a check."""
        # The name of the option is that of XLA's compiler for processors.
        return self._compiled(name, run, {"xla_backend_optimization_level": 0} if _on_cpu() else None)

    @cached_property
    def one(self) -> Any:
        call = self.call
        return self._quickly("one", lambda xs: tuple(call.run(xs)))

    @cached_property
    def values(self) -> Run:
        call = self.call
        return self._compiled("values", jax.vmap(lambda xs: tuple(call.run(xs))))

    @cached_property
    def pull(self) -> Run:
        """Rows are last in what this gives: else XLA computes what they have in common anew for each of them."""
        call = self.call
        return self._compiled(
            "pull", jax.vmap(lambda xs, ws: tuple(call.reverse(xs).pull(ws)), in_axes=(None, 0), out_axes=-1)
        )

    @cached_property
    def push(self) -> Run:
        """The same."""
        call = self.call
        return self._compiled(
            "push", jax.vmap(lambda xs, us: tuple(call.forward(xs, us).tangents), in_axes=(None, 0), out_axes=-1)
        )

    @cached_property
    def pull_side_by_side(self) -> Run:
        """All rows in one matrix (N, k): to put together the parts of all leaves is quicker compiled."""
        call = self.call
        return self._compiled("pull_side_by_side", lambda xs, ws: _side_by_side(call, xs, ws))

    @cached_property
    def pull_every(self) -> Run:
        """All unit cotangents, and then these, side by side: (N, M + k)."""
        call = self.call
        return self._compiled("pull_every", lambda xs, ws: _side_by_side(call, xs, units_and(ws)))

    @cached_property
    def push_below(self) -> Run:
        """All rows in one matrix (k, M)."""
        call = self.call
        return self._compiled("push_below", lambda xs, us: _below(call, xs, us))

    @cached_property
    def push_every(self) -> Run:
        """All unit tangents, and then these, one below the other: (N + k, M)."""
        call = self.call
        return self._compiled("push_every", lambda xs, us: _below(call, xs, units_and(us)))

    @cached_property
    def one_pull(self) -> Run:
        """The value comes along."""

        def pull(xs: Arrays, ws: Arrays) -> tuple[Arrays, Arrays]:
            found = self.call.reverse(xs)
            return tuple(found.values), tuple(found.pull(ws))

        return self._quickly("one_pull", pull)

    @cached_property
    def one_push(self) -> Run:
        """The same."""

        def push(xs: Arrays, us: Arrays) -> tuple[Arrays, Arrays]:
            found = self.call.forward(xs, us)
            return tuple(found.values), tuple(found.tangents)

        return self._quickly("one_push", push)

    @cached_property
    def one_each(self) -> Run:
        """Both, by mode: two programs take nearly twice as long to compile."""

        def each(xs: Arrays, ws: Arrays, us: Arrays) -> dict[str, tuple[Arrays, Arrays]]:
            back, ahead = self.call.reverse(xs), self.call.forward(xs, us)
            return {
                "reverse": (tuple(back.values), tuple(back.pull(ws))),
                "forward": (tuple(ahead.values), tuple(ahead.tangents)),
            }

        return self._quickly("one_each", each)


def _side_by_side(call: Call, xs: Arrays, ws: Arrays) -> Any:
    found = jax.vmap(lambda one: tuple(call.reverse(xs).pull(one)), out_axes=-1)(ws)
    return jnp.concatenate([one.reshape(-1, one.shape[-1]) for one in found])


def _below(call: Call, xs: Arrays, us: Arrays) -> Any:
    found = jax.vmap(lambda one: tuple(call.forward(xs, one).tangents))(us)
    return jnp.concatenate([one.reshape(len(one), -1) for one in found], axis=1)


def _on_cpu() -> bool:
    return bool(jax.default_backend() == "cpu")
