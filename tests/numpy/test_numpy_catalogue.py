"""The catalogue of planted mistakes, as `vjp` written by hand for functions of NumPy arrays: same cases, same judge."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import gradproof
from gradproof import Verdict
from tests.catalogue import CASES, FUNCTIONS, Call, Case, Function, Mistake, fault


def by_hand(function: Function, mistake: Mistake | None, leaf: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The function and its vjp, from arrays to arrays; torch does the arithmetic inside."""

    def fn(*arrays: np.ndarray) -> Any:
        outputs = tuple(y.numpy() for y in function.forward(*map(torch.from_numpy, arrays)))
        return outputs if len(outputs) > 1 else outputs[0]

    def vjp(w: Any, *arrays: np.ndarray) -> Any:
        inputs = tuple(map(torch.from_numpy, arrays))
        cotangents = tuple(torch.as_tensor(one) for one in (w if isinstance(w, tuple) else (w,)))
        gradients = list(function.backward(inputs, cotangents))
        if mistake is not None:
            gradients[leaf] = mistake.apply(Call(function, inputs, cotangents, leaf))
        return tuple(g.resolve_conj().numpy() for g in gradients)

    fn.__name__ = fn.__qualname__ = function.name
    return fn, vjp


def args_of(function: Function, n: int) -> tuple[np.ndarray, ...]:
    return tuple(x.numpy() for x in function.point(n, 0))


def wrong(cases: tuple[Case, ...], n: int) -> list[object]:
    return [pytest.param(case, n, id=f"{case.name}-{n}") for case in cases if n in case.sizes]


def right(n: int) -> list[object]:
    return [pytest.param(function, n, id=f"{function.name}-{n}") for function in FUNCTIONS.values()]


@pytest.mark.parametrize(("case", "n"), wrong(CASES, 16) + wrong(CASES[1::25], 576) + wrong(CASES[::11], 25_600))
def test_a_planted_mistake_is_found_and_placed(case: Case, n: int) -> None:
    fn, vjp = by_hand(case.function, case.mistake, case.leaf)
    result = gradproof.check(fn, args_of(case.function, n), derivative={"vjp": vjp}, seed=7)
    assert fault(result, case.build(n)) == "", str(result)


@pytest.mark.parametrize(("function", "n"), right(16) + right(576)[::5] + right(25_600))
def test_a_right_twin_is_right(function: Function, n: int) -> None:
    fn, vjp = by_hand(function, None, 0)
    result = gradproof.check(fn, args_of(function, n), derivative={"vjp": vjp}, seed=7)
    assert result.verdict is Verdict.RIGHT, str(result)
