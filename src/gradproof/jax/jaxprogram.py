"""The seam, for JAX: values, pull, push and gradient of a call at a point."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import jax
import numpy as np

from gradproof.batching import ELEMENTS, FEW, FEW_VALUES, Known, Lane, Work, agree
from gradproof.errors import OutputsChanged, Unsupported, first_line
from gradproof.jax.calls import (
    Call,
    GradientCall,
    LinearizedCall,
    Reversed,
    TangentCall,
    UserCall,
    refuse_other_outputs,
)
from gradproof.jax.families import Family, Shelf, padded
from gradproof.jax.leaves import Arrays, rows_of
from gradproof.jax.modes import unsupported_in_double
from gradproof.jax.scope import Scope
from gradproof.program import Array, Leaf, Skipped, Tally, read_only

Plain = Literal["eager", "compiled"]


@dataclass(frozen=True, slots=True)
class Origin:
    """The program that another one was derived from, and how."""

    program: JaxProgram
    word: Literal["gradient", "tangent", "linearized"]

    def family(self) -> Family:
        family: Family = getattr(self.program.shelf.family, self.word)
        return family


class JaxProgram:
    """Implements `gradproof.program.Program`. Single rows run as the user would run them; batches are compiled.

    `plain` is how single calls run: "compiled" for the copy in float64, which nobody but us would call.
    """

    def __init__(
        self,
        call: Call,
        name: str,
        point: Array,
        tally: Tally,
        scope: Scope,
        *,
        origin: Origin | None = None,
        plain: Plain = "eager",
    ) -> None:
        self.call = call
        self.name = name
        self.tally = tally
        self.scope = scope
        self._origin = origin
        self._plain: Plain = plain
        self.shelf = Shelf(call, scope.width, None if origin is None else origin.family)
        self.raised: Exception | None = None  # by the function, at a perturbed point
        self.primals: dict[str, Array] = {}  # by mode: the value that came along with the derivative
        self._no_push: Unsupported | None = None
        with scope:
            self._arrays: Arrays = call.inputs.single(point)
            values = self._one(self._arrays)
            draws = scope.moved()
        self.tally.evaluations += 1
        self.inputs: tuple[Leaf, ...] = call.inputs.leaves
        self.outputs: tuple[Leaf, ...] = call.outputs.leaves
        self.skipped: tuple[Skipped, ...] = call.skipped
        value = np.empty(call.outputs.size)
        call.outputs.write_single(values, value)
        self.point = read_only(point)
        self.value = read_only(value)
        self._draws = draws
        most = max(1, ELEMENTS // max(1, point.size + value.size))
        roundoff = self._roundoff = max(call.inputs.roundoff, call.outputs.roundoff)
        few = FEW_VALUES if origin is None else FEW  # a gradient costs as much as several calls
        self._lanes = {
            "values": Lane("values", most, roundoff, few, known=Known(point, self.value)),
            "pull": Lane("pull", most, roundoff),
            "push": Lane("push", most, roundoff),
        }
        if draws:
            for lane in self._lanes.values():
                lane.refuse("the function draws random numbers from NumPy")

    @property
    def notes(self) -> tuple[str, ...]:
        sentences = [lane.note for lane in self._lanes.values()]
        if (raised := self.raised) is not None:
            sentences.append(f"fn raised {type(raised).__name__}({first_line(raised)!r}) at a perturbed point")
        return tuple(sentence for sentence in sentences if sentence)

    @property
    def batched(self) -> bool:
        lane = self._lanes["values"]
        if lane.batched is None and lane.most > 1:
            # The rows differ a little, so that a batch that mixes its rows up is caught.
            rows = self.point * (1 + np.arange(FEW)[:, None] * 2.0**-12)
            with self.scope:
                lane.tried(rows, np.empty((FEW, self.value.size)), self._evaluation)
        return bool(lane.batched)

    def values(self, points: Array) -> Array:
        rows = rows_of(points, self.point.size)
        result = np.empty((len(rows), self.value.size))
        with self.scope:
            self._lanes["values"].run(rows, result, self._evaluation)
        return result

    def repeated_value(self) -> Array:
        """One more plain call at the point. If the first one drew random numbers, the stream is moved on before it."""
        result = np.empty((1, self.value.size))
        with self.scope:
            if self._draws:
                np.random.random()  # noqa: NPY002  the stream that the user's function would use
            self._values_each(self.point[None], result)
        return result.reshape(self.value.shape)

    def pull(self, cotangents: Array) -> Array:
        rows = rows_of(cotangents, self.value.size)
        result = np.empty((len(rows), self.point.size))
        with self.scope:
            self._note_primal("reverse", self._reversed.values)
            work = Work(self.shelf.ways(self._pull_compiled, self._pull_batched), self._pull_each, self.scope)
            self._lanes["pull"].run(rows, result, work)
        self._lanes["pull"].remember(rows, result)
        return result

    def push(self, tangents: Array) -> Array:
        rows = rows_of(tangents, self.point.size)
        result = np.empty((len(rows), self.value.size))
        if self._no_push is not None:
            raise self._no_push
        try:
            with self.scope:
                work = Work(self.shelf.ways(self._push_compiled, self._push_batched), self._push_each, self.scope)
                self._lanes["push"].run(rows, result, work)
        except Unsupported as unsupported:
            self._no_push = unsupported
            raise
        self._lanes["push"].remember(rows, result)
        return result

    def gradient(self, cotangent: Array) -> JaxProgram:
        """The program (x, w) -> J(x)^T w."""
        point = np.concatenate([self.point, np.reshape(cotangent, self.value.size)])
        return self._derived(GradientCall(self.call), f"gradient of {self.name}", point, Origin(self, "gradient"))

    def tangent(self, tangent: Array) -> JaxProgram:
        """The program (x, u) -> J(x) u: the next order where there is no reverse mode."""
        point = np.concatenate([self.point, np.reshape(tangent, self.point.size)])
        return self._derived(TangentCall(self.call), f"tangent of {self.name}", point, Origin(self, "tangent"))

    def linearized(self) -> JaxProgram:
        """The same program with `jax.linearize` for its forward mode."""
        return self._linearized

    @cached_property
    def _linearized(self) -> JaxProgram:
        return self._derived(LinearizedCall(self.call), self.name, self.point, Origin(self, "linearized"))

    def _derived(self, call: Call, name: str, point: Array, origin: Origin) -> JaxProgram:
        return JaxProgram(call, name, point, self.tally, self.scope, origin=origin, plain=self._plain)

    def widened(self) -> JaxProgram:
        return self._widened

    @cached_property
    def _widened(self) -> JaxProgram:
        if self._origin is not None:
            return self._derived_widened(self._origin)
        assert isinstance(self.call, UserCall)
        scope = Scope("on")
        with scope:
            call = self.call.widened()
        if call is None:
            return self
        wide = self._in_double(call, scope)
        if not wide.shelf.fresh and not agree(wide.value, self.value, max(call.inputs.roundoff, self._roundoff)):
            wide.shelf.renew()  # what was kept is stale
            wide = self._in_double(call, scope)
        return wide

    def _in_double(self, call: UserCall, scope: Scope) -> JaxProgram:
        with unsupported_in_double():
            wide = JaxProgram(call, self.name, self.point, self.tally, scope, plain="compiled")
        refuse_other_outputs(self.outputs, wide.outputs)
        return wide

    def _derived_widened(self, origin: Origin) -> JaxProgram:
        wide = origin.program.widened()
        if wide is origin.program:
            return self
        with unsupported_in_double():
            if origin.word == "linearized":
                return wide.linearized()
            direction = self.point[origin.program.point.size :]
            return wide.gradient(direction) if origin.word == "gradient" else wide.tangent(direction)

    # Values.

    def _one(self, arrays: Arrays) -> Arrays:
        if self._plain == "compiled":
            try:
                values: Arrays = self.shelf.family.one(tuple(arrays))
            except Exception:  # noqa: BLE001  whatever it is, it need not happen in a plain call
                self._plain = "eager"
            else:
                self.call.learn_from(self.shelf.family.call)
                return values
        return self.call.run(arrays)

    @property
    def _evaluation(self) -> Work:
        return Work(self.shelf.ways(self._values_compiled, self._values_batched), self._values_each, self.scope)

    def _values_each(self, rows: Array, into: Array) -> None:
        for row, target in zip(rows, into, strict=True):
            try:
                self.call.outputs.write_single(self._one(self.call.inputs.single(row)), target)
            except OutputsChanged as changed:
                changed.nearby = row.copy()
                raise
            except Exception as error:  # noqa: BLE001  whatever it is, the step left the domain
                self.raised = self.raised or error
                target[:] = np.nan
        self.tally.evaluations += len(rows)

    def _values_compiled(self, rows: Array, into: Array) -> None:
        self.call.outputs.write(self.shelf.family.values(tuple(padded(self.call.inputs, rows))), into)
        self.tally.evaluations += len(rows)

    def _values_batched(self, rows: Array, into: Array) -> None:
        run: Callable[..., Arrays] = jax.vmap(lambda *xs: tuple(self.call.run(xs)))
        self.call.outputs.write(run(*self.call.inputs.arrays(rows)), into)
        self.tally.evaluations += len(rows)

    # Reverse mode.

    @cached_property
    def _reversed(self) -> Reversed:
        return self.call.reverse(self._arrays)

    def _pull_each(self, rows: Array, into: Array) -> None:
        for row, target in zip(rows, into, strict=True):
            self.call.inputs.write_single(self._reversed.pull(self.call.outputs.single(row)), target)
            self.tally.pulls += 1

    def _pull_compiled(self, rows: Array, into: Array) -> None:
        pulled = self.shelf.family.pull(tuple(self._arrays), tuple(padded(self.call.outputs, rows)))
        self.call.inputs.write(pulled, into)
        self.tally.pulls += len(rows)

    def _pull_batched(self, rows: Array, into: Array) -> None:
        pull: Callable[..., Arrays] = jax.vmap(lambda *ws: tuple(self._reversed.pull(ws)))
        self.call.inputs.write(pull(*self.call.outputs.arrays(rows)), into)
        self.tally.pulls += len(rows)

    # Forward mode.

    def _push_each(self, rows: Array, into: Array) -> None:
        for row, target in zip(rows, into, strict=True):
            pushed = self.call.forward(self._arrays, self.call.inputs.single(row))
            self._note_primal("forward", pushed.values)
            self.call.outputs.write_single(pushed.tangents, target)
            self.tally.pushes += 1

    def _push_compiled(self, rows: Array, into: Array) -> None:
        pushed = self.shelf.family.push(tuple(self._arrays), tuple(padded(self.call.inputs, rows)))
        self.call.outputs.write(pushed, into)
        self.tally.pushes += len(rows)

    def _push_batched(self, rows: Array, into: Array) -> None:
        push: Callable[..., Arrays] = jax.vmap(lambda *us: tuple(self.call.forward(self._arrays, us).tangents))
        self.call.outputs.write(push(*self.call.inputs.arrays(rows)), into)
        self.tally.pushes += len(rows)

    def _note_primal(self, mode: str, values: Arrays) -> None:
        if mode not in self.primals:
            self.primals[mode] = np.empty(self.value.size)
            self.call.outputs.write_single(values, self.primals[mode])
