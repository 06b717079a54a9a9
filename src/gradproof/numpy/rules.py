"""First and second derivatives as the user wrote them, at any point."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradproof.errors import UsageError
from gradproof.numpy.calls import Arguments, Call, shaped
from gradproof.numpy.derivative import Written
from gradproof.numpy.leaves import Layout, coordinates
from gradproof.numpy.linear import Dense, Functions, Linear, Sparse
from gradproof.numpy.matrices import is_operator, matrix_of
from gradproof.program import Array, Stored


@dataclass(frozen=True, eq=False, slots=True)
class Pair:
    """What is multiplied by in either mode, and the modes that somebody wrote: a matrix needs looking at once."""

    reverse: Linear
    forward: Linear
    modes: tuple[str, ...]

    def pull(self, cotangents: Array) -> Array:
        return self.reverse.pull(cotangents)

    def push(self, tangents: Array) -> Array:
        return self.forward.push(tangents)

    @property
    def stored(self) -> Stored | None:
        return self.reverse.stored if isinstance(self.reverse, Sparse) else None


@dataclass(frozen=True, slots=True)
class Rules:
    written: Written
    call: Call

    def first(self, point: Array) -> Pair:
        """The Jacobian at a point."""
        written, call = self.written, self.call
        pulled = None if written.vjp is None else self._vjp(point)
        pushed = None if written.jvp is None else self._jvp(point)
        functions = Functions(pulled, pushed, call.outputs.layout.size, call.inputs.size)
        if written.matrix is None:
            modes = ("reverse",) * (pulled is not None) + ("forward",) * (pushed is not None)
            return Pair(functions, functions, modes)
        matrix = self._matrix(call.arguments(point.copy()))
        if pulled is not None:
            return Pair(functions, matrix, ("reverse", "forward"))
        if pushed is not None:
            return Pair(matrix, functions, ("reverse", "forward"))
        return Pair(matrix, matrix, ("reverse", "forward") if isinstance(matrix, Functions) else ("reverse",))

    def _matrix(self, arguments: Arguments) -> Linear:
        call, name = self.call, "grad" if self.written.jac is None else "jac"
        outputs = call.outputs
        if name == "grad" and outputs.layout.size != 1:
            raise UsageError(f"grad is for functions with one output, this one has {outputs.layout.size}; write jac")
        given = self.written.matrix
        value = given(*arguments[0], **arguments[1]) if is_function(given) else given
        return matrix_of(_returned(value, name), name, (outputs.layout, outputs.parts), (call.inputs, call.gradients))

    def _vjp(self, point: Array) -> Callable[[Array], Array]:
        call, given = self.call, self.written.vjp

        def pulled(cotangent: Array) -> Array:
            args, kwargs = call.arguments(point.copy())
            value = given(call.outputs.built(cotangent), *args, **kwargs)
            return _joined(call.gradients(_returned(value, "vjp"), "vjp"), call.inputs, "vjp")

        return pulled

    def _jvp(self, point: Array) -> Callable[[Array], Array]:
        call, given = self.call, self.written.jvp

        def pushed(tangent: Array) -> Array:
            args, kwargs = call.arguments(point.copy())
            value = given(call.tangents(tangent), *args, **kwargs)
            return _joined(call.outputs.parts(_returned(value, "jvp"), "jvp"), call.outputs.layout, "jvp")

        return pushed

    def second(self, point: Array, cotangent: Array) -> Pair:
        """The derivative of J(x)^T w with respect to x: the Hessians of the outputs, weighted by the cotangent."""
        written, call = self.written, self.call
        if any(leaf.is_complex for leaf in call.inputs.leaves + call.outputs.layout.leaves):
            raise UsageError("hess and hessp are for real functions; check grad as a function with a jac of its own")
        several = call.outputs.layout.size != 1
        products = None if written.hessp is None else self._hessp(point, cotangent)
        if written.hess is None:
            functions = Functions(products, products, call.inputs.size, call.inputs.size)
            return Pair(functions, functions, ("reverse",))  # a Hessian is symmetric: one mode tells all
        (x, *rest), kwargs = call.arguments(point.copy())
        given = written.hess
        weights = (call.outputs.built(cotangent),) if several else ()
        value = given(x, *weights, *rest, **kwargs) if is_function(given) else given
        side = (call.inputs, call.gradients)
        matrix = _scaled(
            matrix_of(_returned(value, "hess"), "hess", side, side), 1.0 if several else float(cotangent[0])
        )
        if products is None:
            return Pair(matrix, matrix, ("reverse",))
        return Pair(matrix, Functions(None, products, call.inputs.size, call.inputs.size), ("reverse", "forward"))

    def _hessp(self, point: Array, cotangent: Array) -> Callable[[Array], Array]:
        call, given = self.call, self.written.hessp
        if call.outputs.layout.size != 1:
            raise UsageError("hessp is for functions with one output; write hess(x, v), the sum of v[i] times Hessians")

        def multiplied(vector: Array) -> Array:
            (x, *rest), kwargs = call.arguments(point.copy())
            value = given(x, call.tangents(vector), *rest, **kwargs)
            return float(cotangent[0]) * _joined(
                call.gradients(_returned(value, "hessp"), "hessp"), call.inputs, "hessp"
            )

        return multiplied


def is_function(given: Any) -> bool:
    """An operator may be called too, but that is a product."""
    return callable(given) and not is_operator(given)


def _returned(value: Any, what: str) -> Any:
    """None stands for zeros in a part of a structure; as the whole of it, a return was forgotten."""
    if value is None:
        raise UsageError(
            f"{what} returned None: does it lack its return statement? Where the derivative is zero, return zeros"
        )
    return value


def _joined(parts: list[Any], layout: Layout, what: str) -> Array:
    result = np.empty(layout.size)
    for leaf, part in zip(layout.leaves, parts, strict=True):
        fitting = shaped(part, leaf.shape, f"{what} for {leaf.path}")
        if fitting is not None and np.iscomplexobj(fitting) and not leaf.is_complex and np.imag(fitting).any():
            raise UsageError(f"{what} for {leaf.path} is complex, but {leaf.path} is real; return the real part")
        result[leaf.span] = 0.0 if fitting is None else coordinates(fitting, leaf)
    return result


def _scaled(matrix: Linear, factor: float) -> Linear:
    if factor == 1.0:
        return matrix
    if isinstance(matrix, Dense):
        return Dense(factor * matrix.matrix)
    if isinstance(matrix, Sparse):
        stored = Stored(matrix.stored.outputs, matrix.stored.inputs, factor * matrix.stored.values)
        return Sparse(stored, matrix.rows, matrix.columns)
    return Functions(
        lambda row: factor * matrix.pull(row[None])[0],
        lambda row: factor * matrix.push(row[None])[0],
        matrix.rows if isinstance(matrix, Functions) else 0,
        matrix.columns if isinstance(matrix, Functions) else 0,
    )
