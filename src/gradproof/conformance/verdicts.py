"""Whole checks: the right rule is RIGHT, its wrong twin is WRONG, and the leaf (and the entry) is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradproof.check import check
from gradproof.conformance import rules
from gradproof.conformance.backend import Backend, Feature, Rule, expect, expect_equal, mapped
from gradproof.conformance.rules import numbers
from gradproof.result import Result, Verdict

Scene = Callable[[Backend], None]


def checked(backend: Backend, rule: Rule, args: tuple[Any, ...], **options: Any) -> Result:
    call = backend.call(rule, mapped(backend.array, args))
    return check(call.fn, call.args, call.kwargs, **{"seed": 1, **call.options, **options})


def expect_right(result: Result) -> None:
    expect(result.verdict is Verdict.RIGHT, f"a right rule was called {result.verdict}:\n{result}")


def expect_wrong(result: Result, *paths: str) -> None:
    expect(result.verdict is Verdict.WRONG, f"a wrong rule was called {result.verdict}:\n{result}")
    blocks = [block for block in result.comparisons if block.verdict is Verdict.WRONG]
    blamed = {block.input.path for block in blocks} | {f.place.input.path for f in result.wrong if f.place.input}
    expect_equal(blamed, set(paths), "the inputs that are blamed")


def twins(right: Rule, wrong: Rule, args: tuple[Any, ...], *paths: str) -> Scene:
    def scene(backend: Backend) -> None:
        expect_right(checked(backend, right, args))
        expect_wrong(checked(backend, wrong, args), *paths)

    return scene


def one_entry(size: int, place: int) -> Scene:
    """One wrong entry among so many, and no false alarm without it."""

    def scene(backend: Backend) -> None:
        x = numbers(size)
        expect_right(checked(backend, rules.SINE, (x,)))
        result = checked(backend, rules.sine_spoiled_at(place), (x,))
        expect_wrong(result, "args[0]")
        spots = {entry.place.input for block in result.comparisons for entry in block.found}
        expect_equal({spot.index for spot in spots if spot is not None}, {(place,)}, "the entries that are blamed")

    return scene


def forward_rule(backend: Backend) -> None:
    args = (numbers(6), numbers(6, seed=1))
    result = checked(backend, rules.PRODUCT, args)
    expect_right(result)
    expect("forward" in {block.mode for block in result.comparisons}, "the forward rule was not looked at")
    wrong = checked(backend, rules.PUSHED_WRONG, args)
    expect_wrong(wrong, "args[1]")
    modes = {block.mode for block in wrong.comparisons if block.verdict is Verdict.WRONG}
    expect_equal(modes, {"forward"}, "the modes that are blamed")


def empty(backend: Backend) -> None:
    for shape in ((0,), (3, 0)):
        expect_right(checked(backend, rules.SINE, (np.zeros(shape),)))


def zero_dimensions(backend: Backend) -> None:
    args = (np.array(0.7), np.array(-1.2))
    expect_right(checked(backend, rules.PRODUCT, args))
    expect_wrong(checked(backend, rules.PRODUCT_WRONG, args), "args[1]")


def second_order(backend: Backend) -> None:
    result = checked(backend, rules.CUBE, (numbers(4),), order=2)
    expect_right(result)
    expect_equal({block.order for block in result.comparisons}, {1, 2}, "the orders that were looked at")
    wrong = checked(backend, rules.CUBE_WRONG, (numbers(4),), order=2)
    expect_wrong(wrong, "args[0]")
    orders = {block.order for block in wrong.comparisons if block.verdict is Verdict.WRONG}
    expect_equal(orders, {2}, "the orders that are blamed")


def not_linear(backend: Backend) -> None:
    result = checked(backend, rules.NOT_LINEAR, (numbers(6),))
    expect(result.verdict is Verdict.WRONG, f"a backward that takes |w| was called {result.verdict}:\n{result}")
    expect("nonlinear" in {finding.code for finding in result.findings}, f"the contract is not named:\n{result}")


def low_precision(backend: Backend) -> None:
    x = numbers(30, dtype="float32")
    expect_right(checked(backend, rules.SINE, (x,)))
    expect_wrong(checked(backend, rules.sine_spoiled_at(11), (x,)), "args[0]")


def same_seed(backend: Backend) -> None:
    """The same seed gives the same numbers."""
    first, second = (checked(backend, rules.PRODUCT, (numbers(5), numbers(5, seed=1)), seed=3) for _ in range(2))
    same = all(
        np.array_equal(one.numeric, two.numeric) and np.array_equal(one.analytic, two.analytic)
        for one, two in zip(first.comparisons, second.comparisons, strict=True)
    )
    expect(same, "two checks with the same seed gave different numbers")


X, Y = numbers(6), numbers(6, seed=1)
GRID = numbers(3, 4)
Z = numbers(5, dtype="complex128")
PARAMETERS = {"gain": [numbers(4)], "bias": numbers(4, seed=2)}
C, S = Feature.COMPLEX, Feature.STRUCTURES
MILLION = 1_000_000

# Name, what it needs, what is done.
SCENES: tuple[tuple[str, tuple[Feature, ...], Scene], ...] = (
    ("one argument", (), twins(rules.SINE, rules.sine_spoiled_at(3), (GRID,), "args[0]")),
    ("two arguments", (), twins(rules.PRODUCT, rules.PRODUCT_WRONG, (X, Y), "args[1]")),
    ("two outputs", (), twins(rules.TWO_OUTPUTS, rules.TWO_OUTPUTS_WRONG, (X, Y), "args[0]")),
    ("structures", (S,), twins(rules.LAYER, rules.LAYER_WRONG, (PARAMETERS, numbers(4, seed=3)), "args[0]['bias']")),
    ("a forward rule", (Feature.FORWARD,), forward_rule),
    ("empty arrays", (), empty),
    ("arrays of no dimension", (), zero_dimensions),
    ("complex to complex", (C,), twins(rules.SQUARE, rules.SQUARE_WRONG, (Z,), "args[0]")),
    ("complex to real", (C,), twins(rules.POWER, rules.POWER_WRONG, (Z,), "args[0]")),
    ("real to complex", (C,), twins(rules.TURN, rules.TURN_WRONG, (X,), "args[0]")),
    ("not complex-differentiable", (C,), twins(rules.MIRROR, rules.MIRROR_WRONG, (Z,), "args[0]")),
    ("second order", (Feature.SECOND,), second_order),
    ("a backward that is not linear", (), not_linear),
    ("float32", (Feature.FLOAT32,), low_precision),
    ("the same seed", (), same_seed),
    *((f"{size:,} elements", (), one_entry(size, size * 5 // 7)) for size in (1, 100, 25_600, MILLION)),
)
