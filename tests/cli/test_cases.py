"""`@gradproof.case`: names, parameters, seeds, and what is said about mistakes."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import gradproof
from gradproof.cases import MARK, Recipe


def recipe(function: Any) -> Recipe:
    found = getattr(function, MARK)
    assert isinstance(found, Recipe)
    return found


def names(function: Any) -> list[str]:
    return [case.name for case in recipe(function).cases()]


def test_a_plain_case() -> None:
    @gradproof.case
    def sine() -> Any:
        return np.sin, 1.0

    (case,) = recipe(sine).cases()
    assert case.name == "sine"
    assert case.make(0) == gradproof.Call(np.sin, 1.0)
    assert sine() == (np.sin, 1.0)  # still the function that it was


def test_every_combination_of_parameters_and_seeds_in_order() -> None:
    @gradproof.case(params={"n": [1, 8], "kind": ("a b", int)}, seeds=2, order=2)
    def both(n: int, kind: Any, seed: int) -> Any:
        return np.sin, (n, kind, seed), {"scale": 2}

    assert names(both)[:5] == [
        "both[n=1,kind=ab,seed=0]",
        "both[n=1,kind=ab,seed=1]",
        "both[n=1,kind=int,seed=0]",
        "both[n=1,kind=int,seed=1]",
        "both[n=8,kind=ab,seed=0]",
    ]
    calls = [case.make(99) for case in recipe(both).cases()]
    assert [call.args for call in calls][:2] == [(1, "a b", 0), (1, "a b", 1)]
    assert all(call.options == {"order": 2} and call.kwargs == {"scale": 2} for call in calls)


def test_without_seeds_the_run_gives_one() -> None:
    @gradproof.case
    def drawn(rng: np.random.Generator, seed: int) -> Any:
        return np.sin, (rng.standard_normal(), seed)

    (case,) = recipe(drawn).cases()
    assert case.make(5) == case.make(5)
    assert case.make(5).args != case.make(6).args
    assert case.make(5).args[1] == 5


def test_given_seeds() -> None:
    @gradproof.case(seeds=(7, 11))
    def drawn(seed: int) -> Any:
        return np.sin, seed

    assert names(drawn) == ["drawn[seed=7]", "drawn[seed=11]"]
    assert [case.make(0).args for case in recipe(drawn).cases()] == [7, 11]


def test_values_without_a_name_are_counted() -> None:
    @gradproof.case(params={"fn": [object(), object()], "m": [[1, 2], [1, 2]]})
    def odd(fn: Any, m: Any) -> Any:
        return np.sin, (fn, m)

    assert names(odd)[0] == "odd[fn=fn0,m=m0]"
    assert len(set(names(odd))) == 4


def test_no_two_names_are_alike() -> None:
    @gradproof.case(params={"n": [1, "1", "n0"]}, seeds=(7, 7))
    def odd(n: Any, seed: int) -> Any:
        return np.sin, (n, seed)

    assert names(odd) == ["odd[n=n0,seed=7]", "odd[n=n1,seed=7]", "odd[n=n2,seed=7]"]


def test_the_options_of_a_returned_call_win() -> None:
    @gradproof.case(order=2, tolerance=1e-3)
    def called() -> Any:
        return gradproof.Call(np.sin, (1.0,), options={"order": 1})

    (case,) = recipe(called).cases()
    assert case.make(0).options == {"order": 1, "tolerance": 1e-3}


def test_what_a_case_may_not_return() -> None:
    for returned in (None, np.sin, (1.0, np.sin), (np.sin,), (np.sin, 1, {}, 4)):
        function = gradproof.case(lambda returned=returned: returned)
        (case,) = recipe(function).cases()
        with pytest.raises(gradproof.UsageError, match=r"return fn, \(x, y\)"):
            case.make(0)


def unknown(n: int) -> Any:
    return np.sin, n


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, r"takes 'n', which nobody fills in; write @gradproof.case\(params=\{'n'"),
        ({"params": {"n": "ab"}}, "params=.* is not understood; write params="),
        ({"params": 3}, "params=3 is not understood"),
        ({"params": {"n": [1], "m": [2]}}, r"does not take 'm', which params gives; write def unknown\(n, m\)"),
        ({"params": {"n": [1]}, "seeds": 2}, r"takes neither seed nor rng; write def unknown\(n, rng\)"),
        ({"params": {"n": [1]}, "seeds": "many"}, "seeds='many' is not understood; write seeds=3"),
        ({"params": {"n": [1]}, "seeds": (-1,)}, "seeds="),
        ({"params": {"n": [1]}, "seeds": True}, "seeds=True"),
        (
            {"params": {"n": []}},
            r"unknown would never run: params=\{'n': \[\]\} has no value; write params=\{'n': \[1, 8",
        ),
        ({"params": {"n": [1]}, "seeds": 0}, "seeds=0 asks for no case at all; write seeds=3"),
        ({"params": {"n": [1]}, "seeds": -2}, "seeds=-2 asks for no case at all; write seeds=3"),
        ({"params": {"n": [1]}, "seeds": []}, r"seeds=\[\] asks for no case at all; write seeds=3"),
        ({"params": {"n": [1]}, "seed": 3}, r"no option 'seed'; write seeds=\(3,\)"),
    ],
)
def test_a_mistake_is_named_when_the_file_is_read(options: dict[str, Any], words: str) -> None:
    with pytest.raises(gradproof.UsageError, match=words):
        gradproof.case(**options)(unknown)


def test_a_method_is_no_case() -> None:
    """Nobody would find it: cases are what the module itself holds."""
    with pytest.raises(
        gradproof.UsageError, match=r"Rules\.sine is a method, and cases are plain functions; write def si"
    ):

        class Rules:
            @gradproof.case
            def sine(self) -> Any:
                return np.sin, np.ones(2)

    def sine() -> Any:
        return np.sin, np.ones(2)

    assert [case.name for case in recipe(gradproof.case(sine)).cases()] == ["sine"]


@pytest.mark.parametrize("given", [functools.partial(unknown, 3), dict, 7])
def test_what_is_no_function_is_no_case(given: Any) -> None:
    with pytest.raises(gradproof.UsageError, match=r"marks functions, not .*; write def NAME\(\): return fn, args"):
        gradproof.case(given)


def test_what_takes_any_arguments_needs_none() -> None:
    @gradproof.case
    def any_number(*args: Any, **kwargs: Any) -> Any:
        return np.sin, np.ones(2)

    assert [case.name for case in recipe(any_number).cases()] == ["any_number"]
