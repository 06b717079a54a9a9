"""How the rows of a program are run: one by one, compiled together, or together without compiling."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache, partial
from typing import Literal

import jax
import numpy as np

from gradproof.batching import Lane, Work, agree
from gradproof.errors import OutputsChanged, Unsupported
from gradproof.jax.calls import Reversed
from gradproof.jax.families import COMPILED, Shelf
from gradproof.jax.family import Family
from gradproof.jax.leaves import Arrays, Layout, as_array, handed_over, in_flight, rows_first
from gradproof.jax.recipes import Recipe, compiles_anew
from gradproof.jax.scope import Scope
from gradproof.program import Array, Every, Tally, read_only, with_units

# `"familiar"`: at the point eagerly; elsewhere, and derivatives, compiled, if JAX sees all that the function does; or
# where a plain call is dear, once a compiled batch has been believed.
Plain = Literal["eager", "familiar", "values compiled", "compiled"]
Mode = Literal["reverse", "forward"]
LANES = {"reverse": "pull", "forward": "push"}
OTHER: dict[str, Mode] = {"reverse": "forward", "forward": "reverse"}

# Up to so many numbers, unit vectors are handed over: to make them where they are used takes longer to compile.
HANDED_OVER = 2**16
# Up to so many numbers of inputs and outputs, a row costs less than another program to compile, or to call.
SMALL = 2**13


class Runs:
    """A call at a point. All methods run inside of the program's scope, and write their results into an array.

    `plain` is how single rows run: as the user would run them, or compiled. `value`, once it is known, is what a
    derivative must bring along.
    """

    def __init__(self, shelf: Shelf, point: Array, tally: Tally, plain: Plain, scope: Scope) -> None:
        self.call = call = shelf.call
        self.inputs = call.inputs
        self.shelf = shelf
        self.point: Arrays = call.inputs.plain(point)
        self.raised: Exception | None = None  # by the function, at a perturbed point
        self.value: Array | None = None
        self.primals: dict[str, Array] = {}  # by mode: the value that came along with the derivative
        self.lanes: Mapping[str, Lane] = {}  # of the program, once it has them
        self._tally = tally
        self._scope = scope
        self._arrays: Arrays | None = None
        self._plain: Plain = plain
        self._brought: dict[str, Family] = {}  # by mode: what has been seen to bring the value along

    @cached_property
    def outputs(self) -> Layout:
        """Known after the first call."""
        return self.call.outputs

    @property
    def values(self) -> Work:
        ways = self.shelf.ways("values", self.values_compiled, self.outputs, self.values_batched)
        return Work(ways, self.values_each, self._scope)

    @property
    def pulls(self) -> Work:
        ways = self.shelf.ways("pull", self.pull_compiled, self.inputs, self.pull_batched)
        return Work(ways, self.pull_each, self._scope)

    @property
    def pushes(self) -> Work:
        ways = self.shelf.ways("push", self.push_compiled, self.outputs, self.push_batched)
        return Work(ways, self.push_each, self._scope)

    # Values.

    @property
    def arrays(self) -> Arrays:
        """The point, as the user's function expects it. Nobody can write into arrays of JAX: they serve until the
        function gives them away (`donate_argnums`)."""
        if self._arrays is None or any(one.is_deleted() for one in self._arrays):
            self._arrays = handed_over(self.point)
        return self._arrays

    def first(self) -> Arrays:
        return self._one(self.point, lambda: self.arrays)

    def one(self, plain: Arrays) -> Arrays:
        """At another point."""
        way: Plain = "compiled" if self._compiles("values") else self._plain
        return self._one(plain, lambda: [as_array(one) for one in plain], way)

    def _one(self, plain: Arrays, arrays: Callable[[], Arrays], way: Plain | None = None) -> Arrays:
        if (way or self._plain) in ("values compiled", "compiled"):
            try:
                family = self.shelf.family
                values: Arrays = family.one(plain)
                self.call.learn_from(family.call)
            except Unsupported:
                raise
            except Exception:  # noqa: BLE001  whatever it is, it need not happen in a plain call
                self._plain = "eager"
            else:
                return values
        return self.call.run(arrays())

    def stay_plain(self) -> None:
        """The function does something that tracing hides."""
        self._plain = "eager"

    def _compiles(self, lane: str) -> bool:
        """Whether a single row runs compiled where it need not be as the user would run it."""
        if self._plain != "familiar":
            return self._plain == "compiled"
        return self._familiar or (self.lanes[lane].way == COMPILED and self._anew)

    @property
    def dear(self) -> bool:
        """What is made anew in each plain call, such as the body of a loop, is compiled anew in each."""
        return self._plain == "familiar" and not self._familiar and self._anew

    @cached_property
    def _anew(self) -> bool:
        return compiles_anew(self.call.run, self.point)

    @cached_property
    def _familiar(self) -> bool:
        return self.shelf.settled() or self.shelf.shows(Recipe.of(self.call.run, self.point))

    def _derivative(self, mode: Mode, row: Arrays, eager: Callable[[], Arrays]) -> Arrays:
        """Of a single row."""
        if self._compiles(LANES[mode]):
            family = self.shelf.family
            try:
                values, found = self._compiled(family, mode, row)
            except Unsupported:
                raise
            except Exception:  # noqa: BLE001  whatever it is, it need not happen in a plain call
                self._plain = "eager"
            else:
                # The point is always the same one, and so is what this brings along: to look once is enough.
                if self._plain == "compiled" or self._brought.get(mode) is family or self._brings_value(values):
                    self._brought[mode] = family
                    return found
                self._plain = "eager"
        return eager()

    def _compiled(self, family: Family, mode: Mode, row: Arrays) -> tuple[Arrays, Arrays]:
        """Value and derivative. Of a small function, what the other mode makes of a row comes along."""
        small = self.inputs.size + self.outputs.size <= SMALL
        if small and self._plain == "familiar" and self._familiar and not family.apart:
            try:
                return self._each(family, mode, row)
            except Exception:  # noqa: BLE001  this mode may exist nevertheless
                family.apart = True
        found: tuple[Arrays, Arrays] = (family.one_pull if mode == "reverse" else family.one_push)(self.point, row)
        return found

    def _each(self, family: Family, mode: Mode, row: Arrays) -> tuple[Arrays, Arrays]:
        sides, other = {"reverse": self.outputs, "forward": self.inputs}, OTHER[mode]
        beside = _beside(sides[other].size)
        rows = {mode: row, other: sides[other].plain(beside)}
        found = family.one_each(self.point, rows["reverse"], rows["forward"])
        values, derivative = found[other]
        if self.lanes[LANES[other]].known is None and self._brings_value(values):
            result = np.empty((1, sides[mode].size))
            sides[mode].write_single(derivative, result[0])
            self.lanes[LANES[other]].remember(beside[None], result)
            self._tally.pulls += other == "reverse"
            self._tally.pushes += other == "forward"
        one: tuple[Arrays, Arrays] = found[mode]
        return one

    def _brings_value(self, values: Arrays) -> bool:
        assert self.value is not None
        brought = np.empty(self.value.shape)
        self.outputs.write_single(values, brought)
        return agree(brought, self.value, max(self.inputs.roundoff, self.outputs.roundoff))

    def values_each(self, rows: Array, into: Array) -> None:
        for row, plain, target in zip(rows, self.inputs.singles(rows), into, strict=True):
            self._write(partial(self.one, plain), row, target)

    def value_again(self, point: Array, into: Array) -> None:
        """One more plain call at the point."""
        self._write(self.first, point, into)

    def _write(self, run: Callable[[], Arrays], row: Array, target: Array) -> None:
        try:
            self.outputs.write_single(run(), target)
        except OutputsChanged as changed:
            changed.nearby = row.copy()
            raise
        except Exception as error:  # noqa: BLE001  whatever it is, the step left the domain
            self.raised = self.raised or error
            target[:] = np.nan
        self._tally.evaluations += 1

    def values_compiled(self, rows: Array, more: Array) -> Arrays:
        self._tally.evaluations += len(rows)
        values: Arrays = self.shelf.family.values(tuple(self.inputs.arrays(rows, more)))
        return values

    def values_batched(self, rows: Array, into: Array) -> None:
        run: Callable[..., Arrays] = jax.vmap(lambda *xs: tuple(self.call.run(xs)))
        self.outputs.write(run(*self.inputs.arrays(rows)), into)
        self._tally.evaluations += len(rows)

    # Reverse mode.

    @cached_property
    def _reversed(self) -> Reversed:
        found = self.call.reverse(self.arrays)
        self._note_primal("reverse", found.values)
        return found

    def pull_each(self, rows: Array, into: Array) -> None:
        for some, targets in in_flight(self.outputs.singles(rows), into):
            found = [self._pull_one(cotangents) for cotangents in some]
            for one, target in zip(found, targets, strict=True):
                self.inputs.write_single(one, target)
            self._tally.pulls += len(found)

    def _pull_one(self, cotangents: Arrays) -> Arrays:
        return self._derivative(
            "reverse", cotangents, lambda: self._reversed.pull([as_array(one) for one in cotangents])
        )

    def pull_compiled(self, rows: Array, more: Array) -> Arrays:
        self._tally.pulls += len(rows)
        return rows_first(self.shelf.family.pull(self.point, tuple(self.outputs.arrays(rows, more))))

    def pull_every(self, more: Array) -> Every:
        outputs, family = self.outputs, self.shelf.family
        if outputs.size**2 <= HANDED_OVER:
            found = family.pull_side_by_side(self.point, tuple(outputs.arrays(with_units(more))))
        else:
            found = family.pull_every(self.point, tuple(outputs.arrays(more)))
        columns = np.asarray(found, dtype=np.float64)
        return Every(columns[:, : outputs.size], columns[:, outputs.size :].T)

    def pull_batched(self, rows: Array, into: Array) -> None:
        pull: Callable[..., Arrays] = jax.vmap(lambda *ws: tuple(self._reversed.pull(ws)))
        self.inputs.write(pull(*self.outputs.arrays(rows)), into)
        self._tally.pulls += len(rows)

    # Forward mode.

    def push_each(self, rows: Array, into: Array) -> None:
        for some, targets in in_flight(self.inputs.singles(rows), into):
            found = [self._push_one(tangents) for tangents in some]
            for one, target in zip(found, targets, strict=True):
                self.outputs.write_single(one, target)
            self._tally.pushes += len(found)

    def _push_one(self, tangents: Arrays) -> Arrays:
        return self._derivative("forward", tangents, lambda: self._push_eager([as_array(one) for one in tangents]))

    def _push_eager(self, tangents: Arrays) -> Arrays:
        pushed = self.call.forward(self.arrays, tangents)
        self._note_primal("forward", pushed.values)
        return pushed.tangents

    def push_compiled(self, rows: Array, more: Array) -> Arrays:
        self._tally.pushes += len(rows)
        return rows_first(self.shelf.family.push(self.point, tuple(self.inputs.arrays(rows, more))))

    def push_every(self, more: Array) -> Every:
        inputs, family = self.inputs, self.shelf.family
        if inputs.size**2 <= HANDED_OVER:
            found = family.push_below(self.point, tuple(inputs.arrays(with_units(more))))
        else:
            found = family.push_every(self.point, tuple(inputs.arrays(more)))
        rows = np.asarray(found, dtype=np.float64)
        return Every(rows[: inputs.size], rows[inputs.size :])

    def push_batched(self, rows: Array, into: Array) -> None:
        push: Callable[..., Arrays] = jax.vmap(lambda *us: tuple(self.call.forward(self.arrays, us).tangents))
        self.outputs.write(push(*self.inputs.arrays(rows)), into)
        self._tally.pushes += len(rows)

    def _note_primal(self, mode: str, values: Arrays) -> None:
        if mode not in self.primals:
            self.primals[mode] = np.empty(self.outputs.size)
            self.outputs.write_single(values, self.primals[mode])


@lru_cache(maxsize=16)
def _beside(size: int) -> Array:
    """A row to take along: signed, and no two numbers of it alike."""
    generator = np.random.default_rng(0)
    return read_only(generator.uniform(0.5, 1.5, size) * generator.choice([-1.0, 1.0], size))
