"""The seam, for JAX: values, pull, push and gradient of a call at a point."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from gradproof.batching import ELEMENTS, Known, Lane, outside
from gradproof.errors import Unsupported
from gradproof.jax.calls import GradientCall, LinearizedCall, TangentCall, UserCall
from gradproof.jax.every import every
from gradproof.jax.families import COMPILED, Shelf
from gradproof.jax.leaves import rows_of
from gradproof.jax.modes import frameless
from gradproof.jax.runs import Plain, Runs
from gradproof.jax.scope import Scope
from gradproof.jax.widening import unrounded, widened
from gradproof.jax.words import WORDS
from gradproof.program import Array, Every, Leaf, Offers, Skipped, Tally, read_only
from gradproof.unrounded import Unrounded

# Fewer pulls or pushes than this run one by one: compiling a batch costs as much as some dozens of them. The pushes of
# a check are few, though, and each that runs alone waits for another thread.
FEW_ROWS = 16
FEW_PUSHES = 6
FEW_VALUES = 8


@dataclass(frozen=True, slots=True)
class Origin:
    """The program that another one was derived from, and how."""

    program: JaxProgram
    word: Literal["gradient", "tangent", "linearized"]


class JaxProgram:
    """Implements `gradproof.program.Program`. Single rows run as the user would run them; batches are compiled.

    `plain` is how single rows run: compiled in derivatives of derivatives, which consist of so many operations that to
    compile them one by one would take longer than all else; in float64 copies only the values, since a rule may look at
    whether it is traced. Where there is no such rule (`"familiar"`), the derivatives too.
    """

    offers = Offers(words=WORDS)

    def __init__(
        self,
        shelf: Shelf,
        name: str,
        point: Array,
        tally: Tally,
        scope: Scope,
        *,
        origin: Origin | None = None,
        plain: Plain = "eager",
    ) -> None:
        self.call = call = shelf.call
        self.name = name
        self.tally = tally
        self.scope = scope
        self.origin = origin
        self._plain = plain
        self._no_push: Unsupported | None = None
        with scope:
            self.runs = Runs(shelf, point, tally, plain, scope)
            values = self.runs.first()
            draws = scope.moved()
        self.tally.evaluations += 1
        self.inputs: tuple[Leaf, ...] = call.inputs.leaves
        self.outputs: tuple[Leaf, ...] = call.outputs.leaves
        self.skipped: tuple[Skipped, ...] = call.skipped
        value = np.empty(call.outputs.size)
        call.outputs.write_single(values, value)
        self.point = read_only(point)
        self.value = self.runs.value = read_only(value)
        self.draws = draws
        most = max(1, ELEMENTS // max(1, point.size + value.size))
        roundoff = self.roundoff = max(call.inputs.roundoff, call.outputs.roundoff)
        self.lanes = self.runs.lanes = {
            "values": Lane("values", most, roundoff, FEW_VALUES, 2 * ELEMENTS, known=Known(point, self.value)),
            "pull": Lane("pull", most, roundoff, FEW_ROWS, 2 * ELEMENTS),
            "push": Lane("push", most, roundoff, FEW_PUSHES, 2 * ELEMENTS),
        }
        if draws:
            self.runs.stay_plain()
            for lane in self.lanes.values():
                lane.refuse("the function draws random numbers from NumPy")

    def stay_plain(self) -> None:
        """From now on derivatives of single rows are taken as the user would, whatever JAX sees of the function."""
        self.runs.stay_plain()

    @property
    def raised(self) -> Exception | None:
        """What the function raised at a perturbed point, the first time."""
        return self.runs.raised

    @property
    def primals(self) -> Mapping[str, Array]:
        """By mode: the value that came along with the derivative, when it was taken as the user would."""
        return self.runs.primals

    @property
    def notes(self) -> tuple[str, ...]:
        sentences = [lane.note for lane in self.lanes.values()]
        return tuple(sentence for sentence in (*sentences, outside(self.raised)) if sentence)

    @property
    def batched(self) -> bool:
        return self.lanes["values"].works(self.point, self.value.size, self.runs.values)

    def _lane(self, name: str, rows: Array) -> Lane:
        """Rows of a function that compiles in each plain call go together as soon as there are two. A batch that is
        believed serves single rows as well: to compile something for one takes as long as for a batch."""
        lane = self.lanes[name]
        least = 1 if lane.way == COMPILED else 2
        if least <= len(rows) < lane.few and self.runs.dear:
            lane.few = least
        return lane

    def values(self, points: Array) -> Array:
        rows = rows_of(points, self.point.size)
        result = np.empty((len(rows), self.value.size))
        with self.scope:
            self._lane("values", rows).run(rows, result, self.runs.values)
        return result

    def repeated_value(self) -> Array:
        """One more plain call at the point. If the first one drew random numbers, the stream is moved on before it."""
        result = np.empty(self.value.shape)
        with self.scope:
            if self.draws:
                np.random.random()  # noqa: NPY002  the stream that the user's function would use
            self.runs.value_again(self.point, result)
        return result

    @property
    def pulled(self) -> Known | None:
        """A pull that was made by itself, as the user would."""
        return self.lanes["pull"].known

    @property
    def pushes(self) -> bool:
        """Whether one push was made by itself, maybe along with a pull: then there is a forward mode."""
        return self.lanes["push"].known is not None

    @property
    def pulls_in_batches(self) -> bool:
        """Whether the first batch was believed, because it gave for that one what the plain pull had given."""
        lane = self.lanes["pull"]
        return lane.known is not None and lane.batched is True and not lane.reason

    def pull(self, cotangents: Array) -> Array:
        rows = rows_of(cotangents, self.value.size)
        result = np.empty((len(rows), self.point.size))
        with self.scope:
            self._lane("pull", rows).run(rows, result, self.runs.pulls)
        self.lanes["pull"].remember(rows, result)
        return result

    def push(self, tangents: Array) -> Array:
        rows = rows_of(tangents, self.point.size)
        result = np.empty((len(rows), self.value.size))
        if self._no_push is not None:
            raise frameless(self._no_push)
        try:
            with self.scope:
                self._lane("push", rows).run(rows, result, self.runs.pushes)
        except Unsupported as unsupported:
            self._no_push = frameless(unsupported)
            raise
        self.lanes["push"].remember(rows, result)
        return result

    def every_pull(self, more: Array) -> Every | None:
        rows, sides = rows_of(more, self.value.size), (self.call.outputs, self.call.inputs)
        with self.scope:
            found = every(self.lanes["pull"], sides, rows, self.runs.pull_every, lambda: self.runs.pulls)
        self.tally.pulls += 0 if found is None else self.value.size + len(rows)
        return found

    def every_push(self, more: Array) -> Every | None:
        rows, sides = rows_of(more, self.point.size), (self.call.inputs, self.call.outputs)
        with self.scope:
            found = every(self.lanes["push"], sides, rows, self.runs.push_every, lambda: self.runs.pushes)
        self.tally.pushes += 0 if found is None else self.point.size + len(rows)
        return found

    def gradient(self, cotangent: Array) -> JaxProgram:
        """The program (x, w) -> J(x)^T w."""
        point = np.concatenate([self.point, np.reshape(cotangent, self.value.size)])
        return self._derived(self._gradients, f"gradient of {self.name}", point, Origin(self, "gradient"))

    def tangent(self, tangent: Array) -> JaxProgram:
        """The program (x, u) -> J(x) u: the next order where there is no reverse mode."""
        point = np.concatenate([self.point, np.reshape(tangent, self.point.size)])
        return self._derived(self._tangents, f"tangent of {self.name}", point, Origin(self, "tangent"))

    # A cotangent is a part of the point: what is compiled for one serves for all.

    @cached_property
    def _gradients(self) -> Shelf:
        return self.runs.shelf.derived(GradientCall)

    @cached_property
    def _tangents(self) -> Shelf:
        return self.runs.shelf.derived(TangentCall)

    def linearized(self) -> JaxProgram:
        """The same program with `jax.linearize` for its forward mode."""
        return self._linearized

    @cached_property
    def _linearized(self) -> JaxProgram:
        origin = Origin(self, "linearized")
        shelf = self.runs.shelf.derived(LinearizedCall)
        plain: Plain = "eager" if self._plain == "familiar" else self._plain
        return JaxProgram(shelf, self.name, self.point, self.tally, self.scope, origin=origin, plain=plain)

    def _derived(self, shelf: Shelf, name: str, point: Array, origin: Origin) -> JaxProgram:
        return JaxProgram(shelf, name, point, self.tally, self.scope, origin=origin, plain="compiled")

    def of(self, call: UserCall, scope: Scope) -> JaxProgram:
        """Another call at the same point: a float64 copy of this one."""
        shelf = Shelf(call, scope.form)
        return JaxProgram(shelf, self.name, self.point, self.tally, scope, plain="values compiled")

    def widened(self) -> JaxProgram:
        return self._widened

    @cached_property
    def _widened(self) -> JaxProgram:
        return widened(self)

    def unrounded(self) -> Unrounded[JaxProgram] | None:
        return self._unrounded

    @cached_property
    def _unrounded(self) -> Unrounded[JaxProgram] | None:
        return unrounded(self)
