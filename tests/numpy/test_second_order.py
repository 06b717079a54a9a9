"""What is said of `hess` and `hessp`, and of a `jac` below them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.optimize import rosen, rosen_der, rosen_hess

from gradproof import Result, Verdict
from gradproof.numpy import check_problem

X = np.array([1.3, 0.7, 0.8, 1.9, 1.2])


def checked(change: Callable[[np.ndarray], np.ndarray], name: str = "hess", jac: Any = rosen_der) -> Result:
    """With the Hessian changed in some way."""
    given = {
        "hess": lambda x: change(rosen_hess(x)),
        "hessp": lambda x, p: change(rosen_hess(x)) @ p,
    }
    return check_problem(rosen, X, jac=jac, **{name: given[name]}, seed=1)


def scaled(place: Any, factor: float) -> Callable[[np.ndarray], np.ndarray]:
    def change(matrix: np.ndarray) -> np.ndarray:
        matrix = matrix.copy()
        matrix[place] *= factor
        return matrix

    return change


def diagonal(matrix: np.ndarray) -> np.ndarray:
    return np.diag(np.diag(matrix))


@pytest.mark.parametrize("name", ["hess", "hessp"])
def test_the_rule_that_is_wrong_is_named(name: str) -> None:
    assert checked(np.asarray, name).verdict is Verdict.RIGHT
    (one,) = checked(scaled((2, 1), 1.1), name).wrong
    assert one.hint == f"Look at how {name} treats this index."
    assert one.diagnosis is not None
    assert one.diagnosis.sentence.startswith("the Hessian is wrong only at ")
    (some,) = checked(scaled(([0, 1, 4, 3], [1, 2, 3, 3]), np.pi), name).wrong
    assert some.hint.startswith(f"Look at how {name} computes the derivative with respect to args[0]")


def test_a_wrong_jac_comes_before_what_follows_from_it() -> None:
    def jac(x: np.ndarray) -> np.ndarray:
        return rosen_der(x) * [1, 1, 1, -1, 1]

    result = checked(np.asarray, jac=jac)
    first, second = result.wrong
    assert first.hint == "Look at how jac treats this index."
    assert second.diagnosis is None
    assert second.hint.startswith("Mend order 1 first")
    text = str(result)
    assert text.index("d out / d args[0][3]") < text.index("(order 2)")


HALVES: dict[str, tuple[Callable[[np.ndarray], np.ndarray], str]] = {
    "lower": (np.tril, "one triangle of the Hessian of args[0] is empty"),
    "upper": (np.triu, "one triangle of the Hessian of args[0] is empty"),
    "half": (lambda h: (h + diagonal(h)) / 2, "off its diagonal the Hessian of args[0] is 1/2 of what it should be"),
    "twice": (lambda h: 2 * h - diagonal(h), "off its diagonal the Hessian of args[0] is 2 times what it should be"),
}


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("name", ["hess", "hessp"])
def test_a_triangle_of_a_hessian(half: str, name: str) -> None:
    change, sentence = HALVES[half]
    (found,) = checked(change, name).wrong
    assert found.diagnosis is not None
    assert found.diagnosis.sentence.startswith(sentence)


def test_other_mistakes_of_a_hessian_are_no_triangles() -> None:
    for change in (lambda h: 2 * h, diagonal, lambda h: np.tril(h) * 1.1, scaled((0, 1), 0.5)):
        codes = {one.diagnosis.code for one in checked(change).wrong if one.diagnosis is not None}
        assert not {"hessian-triangle", "hessian-off-diagonal"} & codes


def test_at_a_minimum_the_first_derivative_is_what_little_is_known_of() -> None:
    at_minimum = check_problem(rosen, np.ones(5), jac=rosen_der, hess=rosen_hess, seed=1)
    (remark,) = [one for one in at_minimum.findings if one.code == "vacuous"]
    assert remark.sentence.startswith("this check proves little about the first derivative: a zeroed")
    assert not str(remark.place)
    assert not [one for one in checked(np.asarray).findings if one.code == "vacuous"]
