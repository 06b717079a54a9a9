"""The program (x, w) -> J(x)^T w, whose function is the user's first derivative and whose derivative the second."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import numpy as np

from gradproof.errors import Unsupported
from gradproof.numpy.linear import Dense, Linear
from gradproof.numpy.purity import preserved
from gradproof.numpy.rules import Pair, Rules
from gradproof.program import Array, Leaf, Offers, Program, Skipped, Stored, Tally, leaves


class GradientProgram:
    """Implements `gradproof.program.Program`. A call of the first derivative counts as an evaluation."""

    def __init__(self, rules: Rules, name: str, point: Array, cotangent: Array, tally: Tally) -> None:
        self._rules = rules
        self._size = point.size
        self.name = f"gradient of {name}"
        self.tally = tally
        self.point = np.concatenate([point, cotangent])
        self.point.flags.writeable = False
        inputs, outputs = rules.call.inputs.leaves, rules.call.outputs.layout.leaves
        described = [(leaf.path, leaf.shape, leaf.dtype) for leaf in inputs]
        described += [(f"cotangent({leaf.path})", leaf.shape, leaf.dtype) for leaf in outputs]
        self.inputs: tuple[Leaf, ...] = leaves(described)
        self.outputs: tuple[Leaf, ...] = leaves([(f"grad({leaf.path})", leaf.shape, leaf.dtype) for leaf in inputs])
        self.skipped: tuple[Skipped, ...] = ()
        self.notes: tuple[str, ...] = ()
        self.batched = False
        with preserved():
            self.value = self._evaluated(self.point)
            pair = rules.first(point)
            # One output without a matrix: its gradient is the matrix.
            self._first: Linear = Dense(pair.pull(np.eye(1))) if rules.written.matrix is None else pair
            self._second: Pair = rules.second(point, cotangent)
        self._jacobian = pair.stored
        self.value.flags.writeable = False

    @property
    def offers(self) -> Offers:
        return Offers(
            modes=self._second.modes,
            stored=None if self._second.stored is None else self._stored,
            words=(*self._rules.written.second_words, *self._hessian),
        )

    @property
    def _hessian(self) -> Iterator[tuple[str, str]]:
        """What the gradient of an input is here."""
        paths = [leaf.path for leaf in self._rules.call.inputs.leaves]
        for path in paths:
            name = "the Hessian" if len(paths) == 1 else f"the Hessian with respect to {path}"
            yield f"the gradient of {path} ", f"{name} "
            yield f"the cotangent of grad({path}) ", f"{name} "

    def _stored(self) -> Stored:
        """The Hessian and, with respect to the cotangent, the columns of J^T."""
        hessian = self._second.stored
        assert hessian is not None
        jacobian = self._jacobian
        if jacobian is None:
            rows = self._first.pull(np.eye(self.point.size - self._size))
            j, i = (axis.astype(np.intp) for axis in np.nonzero(rows))
            jacobian = Stored(j, i, rows[j, i])
        return Stored(
            np.concatenate([hessian.outputs, jacobian.inputs]),
            np.concatenate([hessian.inputs, jacobian.outputs + self._size]),
            np.concatenate([hessian.values, jacobian.values]),
        )

    def _evaluated(self, row: Array) -> Array:
        x, w = row[: self._size], row[None, self._size :]
        return np.asarray(self._rules.first(x).pull(np.ascontiguousarray(w))[0])

    def values(self, points: Array) -> Array:
        result = np.full((len(points), self.value.size), np.nan)
        with preserved():
            for row, target in zip(points, result, strict=True):
                with suppress(Exception):  # whatever it is, the step left the domain
                    target[:] = self._evaluated(row)
        self.tally.evaluations += len(points)
        return result

    def repeated_value(self) -> Array:
        self.tally.evaluations += 2
        with preserved():
            self._evaluated(self.point)
            return self._evaluated(self.point)

    def pull(self, cotangents: Array) -> Array:
        self.tally.pulls += len(cotangents)
        rows = np.ascontiguousarray(cotangents, dtype=np.float64)
        return np.hstack([self._second.pull(rows), self._first.push(rows)])

    def push(self, tangents: Array) -> Array:
        self.tally.pushes += len(tangents)
        along, weights = tangents[:, : self._size], tangents[:, self._size :]
        return self._second.push(np.ascontiguousarray(along)) + self._first.pull(np.ascontiguousarray(weights))

    def gradient(self, cotangent: Array) -> Program:
        raise Unsupported(f"no derivative of the Hessian was given for the {cotangent.size} parts of the gradient")

    def widened(self) -> Program:
        wide = self._rules.call.widened()
        if wide is None:
            raise Unsupported("its arguments are in double already")
        try:
            with preserved():
                wide.run(wide.arguments(wide.point()))
            rules = Rules(self._rules.written, wide)
            return GradientProgram(rules, self.name, wide.point(), self.point[self._size :], self.tally)
        except Exception as error:
            raise Unsupported(f"it does not run in float64 ({error})") from error
