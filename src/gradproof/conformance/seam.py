"""The program that an adapter makes: its layout, its batches, one mode against the other, what it leaves alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from gradproof.adapters import program_of
from gradproof.conformance import rules
from gradproof.conformance.backend import (
    Backend,
    Feature,
    Rule,
    expect,
    expect_close,
    expect_equal,
    mapped,
)
from gradproof.conformance.rules import numbers
from gradproof.conformance.verdicts import Scene, checked, expect_right
from gradproof.errors import Unsupported, UsageError
from gradproof.program import Array, Program
from gradproof.reference.steps import signed
from gradproof.result import Verdict
from gradproof.streams import NumpyStream

X, Y = numbers(2, 3), numbers(2, 3, seed=1)
Z = numbers(4, dtype="complex128")
PARAMETERS = {"gain": [numbers(4)], "bias": numbers(4, seed=2)}


def made(backend: Backend, rule: Rule, args: tuple[Any, ...]) -> Program:
    call = backend.call(rule, mapped(backend.array, args))
    return program_of(call.fn, call.args, call.kwargs, call.options.get("wrt"), call.options.get("derivative"))


def rows(count: int, size: int) -> Array:
    generator = np.random.default_rng(count)
    return np.stack([signed(generator, size) for _ in range(count)])


def layout(backend: Backend) -> None:
    program = made(backend, rules.TWO_OUTPUTS, (X, Y))
    expect_equal([leaf.path for leaf in program.inputs], ["args[0]", "args[1]"], "the paths of the inputs")
    expect_equal([leaf.path for leaf in program.outputs], ["out[0]", "out[1]"], "the paths of the outputs")
    for leaf in program.inputs + program.outputs:
        expect_equal(leaf.shape, (2, 3), f"the shape of {leaf.path}")
        expect_equal(leaf.dtype, "float64", f"the dtype of {leaf.path}")
    expect_equal([leaf.start for leaf in program.inputs], [0, 6], "where the inputs start")
    expect_close(program.point, np.concatenate([X.ravel(), Y.ravel()]), "the point", 0.0)
    expect_close(program.value, np.concatenate([(X * Y).ravel(), np.sin(X).ravel()]), "the value", 1e-12)
    for vector in (program.point, program.value):
        expect(not vector.flags.writeable, "point and value must be read-only")


def complex_layout(backend: Backend) -> None:
    """Pairs of real and imaginary part, element by element."""
    program = made(backend, rules.SQUARE, (Z,))
    expect_equal(program.inputs[0].dtype, "complex128", "the dtype of the input")
    expect_close(program.point, Z.view(np.float64), "the point", 0.0)
    expect_close(program.value, (Z * Z).view(np.float64), "the value", 1e-12)


def structure_layout(backend: Backend) -> None:
    program = made(backend, rules.LAYER, (PARAMETERS, numbers(4, seed=3)))
    inputs, outputs = ({leaf.path for leaf in side} for side in (program.inputs, program.outputs))
    expect_equal(inputs, {"args[0]['gain'][0]", "args[0]['bias']", "args[1]"}, "the paths of the inputs")
    expect_equal(outputs, {"out['y']", "out['s']"}, "the paths of the outputs")


def batches(backend: Backend) -> None:
    """Any number of rows at once gives what they give one by one, and what the rule says."""
    program = made(backend, rules.PRODUCT, (X, Y))
    size, count = program.point.size, program.value.size
    points = program.point + 0.01 * rows(40, size)
    values = program.values(points.copy())
    expect_close(values, points[:, :6] * np.sin(points[:, 6:]), "a batch of values", 1e-12)
    expect_close(values, np.vstack([program.values(row[None].copy()) for row in points]), "a batch of values", 1e-12)
    cotangents = rows(40, count)
    pulled = program.pull(cotangents.copy())
    wanted = np.hstack([cotangents * np.sin(Y.ravel()), cotangents * (X * np.cos(Y)).ravel()])
    expect_close(pulled, wanted, "a batch of pulls", 1e-12)
    expect_close(pulled, np.vstack([program.pull(row[None].copy()) for row in cotangents]), "a batch of pulls", 1e-12)
    expect_equal(program.values(points[:0]).shape, (0, count), "the shape of no values")
    expect_equal(program.pull(cotangents[:0]).shape, (0, size), "the shape of no pulls")


def adjoint(backend: Backend) -> None:
    """<w, push(u)> = <pull(w), u>, and batches of pushes are what they are one by one."""
    program = made(backend, rules.TWO_OUTPUTS, (X, Y))
    tangents, cotangents = rows(40, program.point.size), rows(40, program.value.size)
    pushed = program.push(tangents.copy())
    expect_close(pushed, np.vstack([program.push(row[None].copy()) for row in tangents]), "a batch of pushes", 1e-12)
    expect_close(
        np.sum(cotangents * pushed, axis=1), np.sum(program.pull(cotangents) * tangents, axis=1), "<w, J u>", 1e-12
    )


def complex_adjoint(backend: Backend) -> None:
    """Pulls are gradients of the real inner product, whatever the framework's own convention is."""
    program = made(backend, rules.MIRROR, (Z,))
    cotangent, step = rows(1, 8), 2.0**-14 * rows(1, 8)
    change = program.values(program.point + step) - program.values(program.point - step)
    expect_close(program.pull(cotangent) @ step[0], change @ cotangent[0] / 2, "<J^T w, u>", 1e-6)


def missing_mode(backend: Backend) -> None:
    """A mode that nobody wrote is Unsupported; if it exists all the same it is right."""
    program = made(backend, rules.LOGARITHM, (np.abs(X),))
    try:
        pushed = program.push(np.ones((1, 6)))
    except Unsupported as missing:
        expect(str(missing), "Unsupported must say why")
    else:
        expect_close(pushed[0], 1 / np.abs(X).ravel(), "the push", 1e-12)


def tally(backend: Backend) -> None:
    """What an adapter spends to make sure of a batch counts as well, so there may be a few more."""
    program = made(backend, rules.SINE, (X,))
    before = (program.tally.evaluations, program.tally.pulls)
    program.values(program.point + 0.01 * rows(5, 6))
    program.pull(rows(3, 6))
    spent = (program.tally.evaluations - before[0], program.tally.pulls - before[1])
    expect(5 <= spent[0] <= 10 and 3 <= spent[1] <= 6, f"five values and three pulls were counted as {spent}")


def repeatable(backend: Backend) -> None:
    program = made(backend, rules.PRODUCT, (X, Y))
    expect_close(program.repeated_value(), program.value, "the value at the second time", 1e-14)


def gradient_program(backend: Backend) -> None:
    """(x, w) -> J(x)^T w: its leaves, its value, and its own derivatives."""
    x = numbers(4)
    program = made(backend, rules.CUBE, (x,)).gradient(np.array([1.0]))
    expect_equal([leaf.path for leaf in program.inputs], ["args[0]", "cotangent(out)"], "the inputs of the gradient")
    expect_equal([leaf.path for leaf in program.outputs], ["grad(args[0])"], "the outputs of the gradient")
    expect_close(program.value, 3 * x**2, "the gradient", 1e-12)
    point = program.point.copy()
    point[:4] *= 1.5
    expect_close(program.values(point[None])[0], 3 * (1.5 * x) ** 2, "the gradient elsewhere", 1e-12)
    cotangent = rows(1, 4)
    wanted = np.append(6 * x * cotangent[0], np.sum(3 * x**2 * cotangent[0]))
    expect_close(program.pull(cotangent)[0], wanted, "a pull of the gradient", 1e-12)


def widened(backend: Backend) -> None:
    program = made(backend, rules.SINE, (X.astype(np.float32),))
    expect_equal(program.inputs[0].dtype, "float32", "the dtype of a float32 argument")
    try:
        wide = program.widened()
    except Unsupported as missing:
        expect(str(missing), "Unsupported must say why")
        return
    expect_equal(wide.inputs[0].dtype, "float64", "the dtype of the widened argument")
    expect_close(wide.value, np.sin(X.astype(np.float32).astype(np.float64)).ravel(), "the widened value", 1e-12)


def domain(backend: Backend) -> None:
    """A step out of the domain is a row of NaN, and no other row suffers."""
    program = made(backend, rules.LOGARITHM, (np.abs(X),))
    points = np.vstack([program.point, -program.point, program.point])
    values = program.values(points.copy())
    expect(np.isnan(values[1]).all(), "values outside of the domain must be NaN")
    expect_close(values[[0, 2]], np.log(points[[0, 2]]), "values beside a row that left the domain", 1e-12)


def _moody(b: Backend, x: Any) -> Any:
    if not np.all(b.numbers(x) > 0):
        raise ValueError("only positive numbers")
    return b.xp.log(x)


MOODY = Rule("moody", _moody, rules.LOGARITHM.vjp)


def raising(backend: Backend) -> None:
    """Nearby an exception is a row of NaN; at the point itself it reaches the user."""
    program = made(backend, MOODY, (np.abs(X),))
    values = program.values(np.vstack([program.point, -program.point]))
    expect(np.isnan(values[1]).all() and np.isfinite(values[0]).all(), "a row that raises must be NaN, and only that")
    try:
        made(backend, MOODY, (-np.abs(X),))
    except ValueError as error:
        expect("only positive numbers" in str(error), f"another error than the function's: {error!r}")
    else:
        expect(condition=False, sentence="what the function raises at the point must reach the user")


def _overwriting(b: Backend, x: Any, y: Any) -> Any:
    result = x * b.xp.sin(y)
    x[...] = 0.0
    y[...] = 0.0
    return result


def unharmed(backend: Backend) -> None:
    """Arguments, and NumPy's random stream, are as they were: also when the function overwrites what it is given."""
    in_place = Feature.IN_PLACE in backend.features
    rule = Rule("overwriting", _overwriting, rules.PRODUCT.vjp) if in_place else rules.PRODUCT
    args = tuple(backend.array(one) for one in (X, Y))
    stream = NumpyStream()
    call = backend.call(rule, args)
    program_of(call.fn, call.args, call.kwargs, None, call.options.get("derivative")).values(np.ones((3, 12)))
    # Its adapter may have it that such a function is not pure; here only the arguments matter.
    expect_right(checked(backend, rule, (X, Y), contracts="linear"))
    for mine, before in zip(args, (X, Y), strict=True):
        expect(np.array_equal(backend.numbers(mine), before), "an argument was changed")
    expect(not stream.moved(), "NumPy's random stream was moved")


def chosen(backend: Backend) -> None:
    rule = replace(rules.PRODUCT, jvp=None)  # how it names the others is between it and its adapter
    result = checked(backend, rule, (X, Y), wrt="args[1]")
    expect_right(result)
    expect_equal({block.input.path for block in result.comparisons}, {"args[1]"}, "what wrt='args[1]' looks at")
    try:
        checked(backend, rule, (X, Y), wrt="args[7]")
    except UsageError as error:
        expect("args[0]" in str(error), f"the message must name what there is: {error}")
    else:
        expect(condition=False, sentence="wrt='args[7]' names nothing, and must be a UsageError")


def _taken_back(_b: Backend, w: Any, _x: Any, k: Any) -> Any:
    return w * k, None


TAKEN = Rule("taken", lambda _, x, k: x * k, _taken_back)


def integers(backend: Backend) -> None:
    result = checked(backend, TAKEN, (X, np.array(3)))
    expect(result.verdict is Verdict.RIGHT, f"an integer argument:\n{result}")
    expect_equal({block.input.path for block in result.comparisons}, {"args[0]"}, "what has a derivative")


SCENES: tuple[tuple[str, tuple[Feature, ...], Scene], ...] = (
    ("layout", (), layout),
    ("layout of complex numbers", (Feature.COMPLEX,), complex_layout),
    ("layout of structures", (Feature.STRUCTURES,), structure_layout),
    ("batches equal loops", (), batches),
    ("pull is the adjoint of push", (), adjoint),
    ("pull of complex numbers", (Feature.COMPLEX,), complex_adjoint),
    ("a mode that nobody wrote", (), missing_mode),
    ("work is counted", (), tally),
    ("the same value again", (), repeatable),
    ("the gradient is a program", (Feature.SECOND,), gradient_program),
    ("float32 widened", (Feature.FLOAT32,), widened),
    ("steps out of the domain", (), domain),
    ("functions that raise", (Feature.RAISING,), raising),
    ("nothing is changed", (), unharmed),
    ("some of the inputs", (), chosen),
    ("integers", (Feature.INTEGERS,), integers),
)
