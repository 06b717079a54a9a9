"""The seam, for hand-written derivatives: values, pull, push and gradient of a call at a point."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np

from gradproof.errors import OutputsChanged, Unsupported, UsageError
from gradproof.numpy.calls import Call
from gradproof.numpy.derivative import Written
from gradproof.numpy.gradientprogram import GradientProgram
from gradproof.numpy.leaves import Layout
from gradproof.numpy.purity import preserved
from gradproof.numpy.rules import Pair, Rules
from gradproof.numpy.watched import Snapshot
from gradproof.program import Array, ComplexArray, Leaf, Offers, Skipped, Tally, read_only


class NumpyProgram:
    """Implements `gradproof.program.Program`. A matrix that the user computes counts as one pull."""

    def __init__(self, call: Call, written: Written, name: str, tally: Tally) -> None:
        self._call, self._written = call, written
        self.name = name
        self.tally = tally
        self.point = read_only(call.point())
        self.inputs: tuple[Leaf, ...] = call.inputs.leaves
        arguments = call.arguments(self.point.copy())
        differentiated = {leaf.path for leaf in self.inputs}
        given = Snapshot([one for one in call.named(arguments) if one[0] in differentiated])
        with preserved():
            leaves = call.run(arguments)
        # What the function has written into, of what is differentiated; another array may be there to be filled.
        self.overwritten = given.changed()
        self.outputs: tuple[Leaf, ...] = call.outputs.layout.leaves
        self.skipped: tuple[Skipped, ...] = call.outputs.skipped
        value = np.empty(call.outputs.layout.size)
        call.outputs.layout.write(leaves, value)
        self.value = read_only(value)
        self.batched = False
        self._raised: Exception | None = None
        self._pair: Pair | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        if self._raised is None:
            return ()
        return (f"fn raised {type(self._raised).__name__}({str(self._raised)!r}) at a perturbed point",)

    @property
    def rules(self) -> Rules:
        return Rules(self._written, self._call)

    @property
    def pair(self) -> Pair:
        """The Jacobian at the point."""
        if self._pair is None:
            with preserved():
                self._pair = self.rules.first(self.point)
            self.tally.pulls += self._written.matrix is not None
        return self._pair

    @property
    def offers(self) -> Offers:
        stored = self.pair.stored
        layouts = (self._call.inputs, self._call.outputs.layout)
        return Offers(
            modes=self.pair.modes,
            order=self._written.order,
            stored=None if stored is None else lambda: stored,
            complex_values=self.complex_values if all(map(_all_double, layouts)) else None,
            words=self._written.words,
        )

    def values(self, points: Array) -> Array:
        result = np.empty((len(points), self.value.size))
        with preserved():
            for row, target in zip(points, result, strict=True):
                self._evaluate(row, target)
        self.tally.evaluations += len(points)
        return result

    def _evaluate(self, row: Array, target: Array) -> None:
        try:
            self._call.outputs.layout.write(self._call.run(self._call.arguments(np.ascontiguousarray(row))), target)
        except OutputsChanged as changed:
            changed.nearby = row.copy()
            raise
        except Exception as error:  # noqa: BLE001  whatever it is, the step left the domain
            self._raised = self._raised or error
            target[:] = np.nan

    def complex_values(self, points: ComplexArray) -> ComplexArray:
        """NaN where the function does not take complex numbers."""
        result = np.full((len(points), self.value.size), np.nan + 0j)
        with preserved(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a cast discards the imaginary part shows in the numbers
            for row, target in zip(points, result, strict=True):
                try:
                    leaves = self._call.run(self._call.complex_arguments(row.copy()))
                except Exception:  # noqa: BLE001  it is made for real numbers
                    break
                for leaf, value in zip(self.outputs, leaves, strict=True):
                    target[leaf.span] = np.asarray(value).reshape(-1)
        self.tally.evaluations += len(points)
        return result

    def repeated_value(self) -> Array:
        result = np.empty(self.value.size)
        with preserved():
            first = self._call.fixed()
            self._call.run(self._call.arguments(self.point.copy(), first))
            second = self._call.fixed(running=first)
            self._call.outputs.layout.write(self._call.run(self._call.arguments(self.point.copy(), second)), result)
        self.tally.evaluations += 2
        return result

    def pull(self, cotangents: Array) -> Array:
        return self._multiplied(self.pair.pull, cotangents, "reverse")

    def push(self, tangents: Array) -> Array:
        return self._multiplied(self.pair.push, tangents, "forward")

    def _multiplied(self, product: Callable[[Array], Array], rows: Array, mode: str) -> Array:
        if mode not in self.pair.modes and self._written.matrix is None:
            raise Unsupported("no vjp was given" if mode == "reverse" else "no jvp was given")
        with preserved():
            result = product(np.ascontiguousarray(rows, dtype=np.float64))
        if self._written.matrix is None or mode in self.pair.modes[1:]:
            if mode == "reverse":
                self.tally.pulls += len(rows)
            else:
                self.tally.pushes += len(rows)
        return result

    def gradient(self, cotangent: Array) -> GradientProgram:
        if self._written.order < 2:
            raise Unsupported("no hess or hessp was given")
        if self._written.matrix is None and self.value.size > 1:
            raise UsageError(
                "the hess of a function with several outputs needs its jac; write {'jac': ..., 'hess': ...}"
            )
        # Of one output the Hessian itself, in the numbers that its author would print.
        weights = np.ones(1) if self.value.size == 1 else np.array(cotangent, dtype=np.float64)
        return GradientProgram(self.rules, self.name, self.point, weights, self.tally)

    def widened(self) -> NumpyProgram:
        wide = self._call.widened()
        if wide is None:
            raise Unsupported("its arguments are in double already")
        try:
            return NumpyProgram(wide, self._written, self.name, self.tally)
        except Exception as error:
            raise Unsupported(f"it does not run in float64 ({error})") from error


def _all_double(layout: Layout) -> bool:
    return all(leaf.dtype == "float64" for leaf in layout.leaves)
