"""Compiled batches of a call. Compiling costs as much as hundreds of calls, so what is compiled is kept for as long as
the user's function lives, and used again for the same function on arguments of the same form.

A kept one may be stale: the function may have looked at something that changed since. So whoever uses it holds its
first batch against a plain call, and makes a new one where they disagree. Of a derivative, of which there are no plain
calls, it is traced once more instead (`traces`).
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import numpy as np

from gradproof.batching import Runner, Way
from gradproof.jax.calls import Call, DerivedCall, UserCall
from gradproof.jax.family import Family
from gradproof.jax.leaves import Arrays, Layout
from gradproof.jax.recipes import Recipe
from gradproof.jax.traces import Sizes
from gradproof.program import Array

# Forms of arguments that are kept for each function, the last ones used.
KEPT = 4
COMPILED, BATCHED = "vmap, compiled", "vmap"
# Batches are compiled for sizes that have at most this many binary digits that count: few sizes, little to spare.
DIGITS = 4
# What takes so many seconds to compile is not compiled for yet another size, if it can be run some more times, or with
# some more rows, instead.
DEAR = 1.0
MORE = 16

# Rows, and more rows to fill the batch -> the results of all of them.
Batch = Callable[[Array, Array], Arrays]


class _Kept:
    """What is kept for one form of one function's arguments."""

    def __init__(self, call: UserCall, width: str) -> None:
        self._form = _form(call, width)
        self._fixed = [value.copy() if isinstance(value, np.ndarray) else value for value in call.fixed]
        self.family = Family(call.weakly())

    def fits(self, call: UserCall, width: str) -> bool:
        return self._form == _form(call, width) and all(map(_same, self._fixed, call.fixed))


_kept: dict[int, tuple[weakref.ref[Any], list[_Kept]]] = {}


def _find(call: UserCall, width: str) -> Family | None:
    known = _kept.get(id(call.signature.fn))
    if known is None or known[0]() is not call.signature.fn:
        return None
    return next((one.family for one in known[1] if one.fits(call, width)), None)


def _make(call: UserCall, width: str) -> Family:
    """A new one, kept in place of any that fits."""
    fn = call.signature.fn
    number = id(fn)
    try:
        made = _Kept(call, width)
        reference = weakref.ref(fn, lambda _: _kept.pop(number, None))
    except TypeError:  # no weak reference to this one: then nothing is kept
        return Family(call)
    known = _kept.get(number)
    others = known[1] if known is not None and known[0]() is fn else []
    _kept[number] = (reference, [made, *(one for one in others if not one.fits(call, width))][:KEPT])
    return made.family


class Shelf:
    """A program's way to its family: kept from an earlier check, or, from `renew` on, one of its own."""

    def __init__(self, call: Call, width: str) -> None:
        self.call = call
        self._width = width
        self._family: Family | None = None
        self.fresh = False
        self._trusted = False  # whether it has been seen that nothing is stale

    def derived(self, kind: type[DerivedCall]) -> Shelf:
        """That of a derivative of this call. What is compiled there is kept along with what is compiled here."""
        family = self.family
        family.call.learn_from(self.call)
        shelf = Shelf(kind(self.call), self._width)
        shelf._family = Family(kind(family.call), family.store.of(kind), trusted=self._trusted)
        shelf.fresh, shelf._trusted = True, self._trusted
        return shelf

    @property
    def family(self) -> Family:
        if self._family is None:
            if type(self.call) is UserCall:
                self._family = _find(self.call, self._width)
            if self._family is None:
                self.renew()
        assert self._family is not None
        return self._family

    def renew(self) -> None:
        if not self.fresh:
            self.fresh = True
            self._family = _make(self.call, self._width) if type(self.call) is UserCall else Family(self.call)

    def settled(self) -> bool:
        """Whether that is so without a trace: plain calls of a jit run what JAX keeps of it, whatever has changed."""
        known = type(self.call) is UserCall and _is_jit(self.call.signature.fn) and self.family.recipe is not None
        self._trusted = self._trusted or known
        return known

    def shows(self, recipe: Recipe | None) -> bool:
        """Whether what is compiled here does what the function does now, and nothing of that is hidden."""
        if recipe is not None and (self.family.recipe is None or not recipe.same_as(self.family.recipe)):
            self.renew()
            self.family.recipe = recipe
        self._trusted = recipe is not None
        return self._trusted

    def ways(self, name: str, batch: Batch, results: Layout, batched: Runner) -> tuple[Way, ...]:
        """The ways to run a batch. What was kept may be stale, and then a new one may be right."""

        def renewed(rows: Array, more: Array) -> Arrays:
            self.renew()
            return batch(rows, more)

        def sizes() -> Sizes:
            return self.family.sizes(name)

        again = () if self.fresh else (Compiled.way(renewed, results, sizes),)
        return (Compiled.way(batch, results, sizes), *again, Way(BATCHED, batched))


@dataclass(frozen=True, slots=True)
class Compiled(Way):
    """Batches are compiled for few sizes: copies of the first row fill them up, or a guest, who is not the last."""

    batch: Batch
    results: Layout
    sizes: Callable[[], Sizes]

    @classmethod
    def way(cls, batch: Batch, results: Layout, sizes: Callable[[], Sizes]) -> Compiled:
        def run(rows: Array, into: Array) -> None:
            most = _most(len(rows), sizes())
            for start in range(0, len(rows), most):
                piece = rows[start : start + most]
                results.write(_timed(batch, piece, _filling(piece, 0, sizes()), sizes), into[start : start + most])

        return cls(COMPILED, run, batch, results, sizes)

    def beside(self, guests: Array, rows: Array, into: Array) -> Array:
        head = guests[1:2]  # then it fills the batch up as well, and is the last
        inner = np.concatenate([head, rows]) if len(head) else rows
        more = _filling(inner, 2, self.sizes())
        more[0] = guests[0]
        arrays = _timed(self.batch, inner, more, self.sizes)
        results = np.empty((len(inner), into.shape[1])) if len(head) else into
        self.results.write(arrays, results)
        if len(head):
            into[:] = results[1:]
        found = np.empty((len(guests), self.results.size))
        for target, place in zip(found, (len(inner), 0, -1), strict=False):
            self.results.write_single([np.asarray(array)[place] for array in arrays], target)
        return found


def _timed(batch: Batch, rows: Array, more: Array, sizes: Callable[[], Sizes]) -> Arrays:
    """The first time, what is waited for is the compiler: results of JAX are promises."""
    started = time.perf_counter()
    found = batch(rows, more)
    sizes().setdefault(len(rows) + len(more), time.perf_counter() - started)
    return found


def _most(rows: int, sizes: Sizes) -> int:
    """How many rows at a time."""
    known = max(sizes, default=0)
    return known if _is_dear(sizes) and known < rows <= MORE * known else max(1, rows)


def _filling(rows: Array, least: int, sizes: Sizes) -> Array:
    """Copies of the first row, up to a size that may have been compiled already."""
    grain = 1 << max(3, len(rows).bit_length() - DIGITS)
    size = len(rows) + least + (-len(rows) - least) % grain
    if size not in sizes and _is_dear(sizes):
        size = min((one for one in sizes if size <= one <= MORE * size), default=size)
    return np.repeat(rows[:1], size - len(rows), axis=0)


def _is_dear(sizes: Sizes) -> bool:
    return max(sizes.values(), default=-1.0) > DEAR


def _is_jit(fn: Any) -> bool:
    while type(fn) is partial and not (fn.args or fn.keywords):
        fn = fn.func
    return type(fn) is _JIT


_JIT = type(jax.jit(lambda: ()))


def _form(call: UserCall, width: str) -> object:
    return width, call.signature.tree, tuple((leaf.path, leaf.shape, leaf.dtype) for leaf in call.inputs.leaves)


def _same(kept: Any, given: Any) -> bool:
    if kept is given:
        return True
    if type(kept) is not type(given):
        return False
    if isinstance(kept, (np.ndarray, jax.Array)):
        alike = (kept.shape, kept.dtype) == (given.shape, given.dtype)
        return alike and kept.dtype.kind in "biufc" and np.array_equal(np.asarray(kept), np.asarray(given))
    return isinstance(kept, (bool, int, float, complex, str, bytes)) and kept == given
