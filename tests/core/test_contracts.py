"""Contracts that know no framework, on programs made by hand: wrong ones are caught, their right twins are silent."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from programs import HandProgram

from gradproof import Settings, UsageError, Verdict, check_program
from gradproof.program import Array
from gradproof.result import Result
from gradproof.settings import CONTRACTS

POINT = np.array([0.7, -1.2, 0.4])
MATRIX = np.array([[1.0, 2.0, 0.5], [-1.0, 0.3, 2.0], [0.2, 0.1, -1.0]])
EFFORTS = pytest.mark.parametrize("effort", ["exhaustive", 2])


def linear(**changes: Any) -> HandProgram:
    return HandProgram(lambda rows: rows @ MATRIX.T, MATRIX, POINT, **changes)


def judged(program: Any, **options: Any) -> Result:
    return check_program(program, Settings.validated(seed=3, **options))


def codes(result: Result) -> list[str]:
    return [finding.code for finding in result.wrong]


# ---- linear


@EFFORTS
@pytest.mark.parametrize("spoil", [np.abs, lambda g: np.clip(g, -1, 1), lambda g: np.where(np.abs(g) < 1e-2, 0, g)])
def test_a_pull_that_is_not_linear(spoil: Any, effort: Any) -> None:
    wrong = linear(pull_with=lambda rows: spoil(rows) @ MATRIX, modes=("reverse",))
    assert "nonlinear" in codes(judged(wrong, effort=effort))
    assert "nonlinear" not in codes(judged(wrong, effort=effort, contracts="none"))
    assert judged(linear(), effort=effort).ok


@EFFORTS
@pytest.mark.parametrize(("size", "found"), [(2.0**-130, []), (2.0**-110, ["nonlinear", "nonlinear-forward"])])
def test_what_is_too_small_for_the_format_may_become_zero(size: float, found: list[str], effort: Any) -> None:
    def flushed(rows: Array) -> Array:
        """As a processor does: down to 2^-126, or by mistake to 2^-108."""
        return np.where(np.abs(rows) < size * 4, 0.0, rows)

    tiny = HandProgram(
        lambda rows: rows @ MATRIX.T * size,
        MATRIX * size,
        POINT,
        pull_with=lambda rows: flushed(rows @ MATRIX * size),
        push_with=lambda rows: flushed(rows @ MATRIX.T * size),
        dtype="float32",
    )
    said = set(codes(judged(tiny, effort=effort)))
    assert said & {"nonlinear", "nonlinear-forward"} == set(found)


# ---- adjoint


@EFFORTS
@pytest.mark.parametrize(
    "push", [lambda rows: rows @ MATRIX.T * (1 + 1e-6), lambda rows: rows @ (MATRIX + 1e-7 * np.eye(3)).T]
)
def test_modes_that_disagree_within_the_tolerance(push: Any, effort: Any) -> None:
    result = judged(linear(push_with=push), effort=effort)
    assert codes(result) == ["adjoint"]
    assert result.verdict is Verdict.WRONG
    assert all(comparison.verdict is Verdict.RIGHT for comparison in result.comparisons)
    assert judged(linear(push_with=push), effort=effort, contracts=("linear",)).ok
    assert judged(linear(), effort=effort).ok


@EFFORTS
def test_rounding_is_no_disagreement(effort: Any) -> None:
    assert judged(linear(push_with=lambda rows: rows @ MATRIX.T * (1 + 1e-13)), effort=effort).ok


@EFFORTS
def test_a_rule_that_magnifies_its_rounding_is_held_to_what_it_can_do(effort: Any) -> None:
    """The terms are 1e10 times as large as their sum; so are their roundings. What is off by more is still seen."""

    def push(rows: Any) -> Any:
        exact = rows @ MATRIX.T
        large = exact * 1e10 / 3.0
        return (large + exact) - large

    assert judged(linear(push_with=push), effort=effort).ok
    assert codes(judged(linear(push_with=lambda rows: push(rows) * (1 + 9e-6)), effort=effort)) == ["adjoint"]


@EFFORTS
def test_a_wrong_mode_is_a_mismatch_and_nothing_else(effort: Any) -> None:
    result = judged(linear(push_with=lambda rows: rows @ MATRIX.T * 1.1), effort=effort)
    assert set(codes(result)) == {"mismatch"}


# ---- repeatable


def test_a_pull_that_is_never_the_same() -> None:
    count, generator = itertools.count(), np.random.default_rng(0)
    counting = linear(pull_with=lambda rows: rows @ MATRIX * (1 + 1e-8 * next(count)), modes=("reverse",))
    drawing = linear(pull_with=lambda rows: rows @ MATRIX + 1e-8 * generator.normal(size=3), modes=("reverse",))
    for program in (counting, drawing):
        assert codes(judged(program)) == ["nondeterministic"]
    assert judged(linear(modes=("reverse",))).ok


def test_a_spread_within_nondet_tol_is_reported() -> None:
    generator = np.random.default_rng(0)
    drawing = linear(pull_with=lambda rows: rows @ MATRIX + 1e-4 * generator.uniform(size=3), modes=("reverse",))
    result = judged(drawing, nondet_tol=1e-3)
    assert result.ok, str(result)
    (remark,) = (finding for finding in result.findings if finding.code == "nondeterministic")
    assert "within nondet_tol=0.001" in remark.sentence


# ---- symmetric


def quadratic(hessian: Array) -> HandProgram:
    """b . x, whose gradient claims to be b + H x, seen at zero: there it is right whatever H is."""
    slope = np.array([1.0, 2.0, -1.0])
    second = HandProgram(
        lambda rows: rows[:, 3:4] * (slope + rows[:, :3] @ hessian.T),
        np.hstack([hessian, slope[:, None]]),
        np.array([0.0, 0.0, 0.0, 1.0]),
    )

    def at(cotangent: Array) -> HandProgram:
        scale = float(np.ravel(cotangent)[0])
        second.point = np.array([0.0, 0.0, 0.0, scale])
        second.jacobian = np.hstack([scale * hessian, slope[:, None]])
        second.value = second.values(second.point[None].copy())[0]
        return second

    return HandProgram(lambda rows: rows @ slope[:, None], slope[None], np.zeros(3), second=at)


@EFFORTS
@pytest.mark.parametrize("part", [MATRIX, np.triu(MATRIX)])
def test_second_derivatives_that_are_not_symmetric(part: Array, effort: Any) -> None:
    result = judged(quadratic(part), order=2, effort=effort)
    assert codes(result) == ["asymmetric"], str(result)
    assert judged(quadratic(part), order=2, effort=effort, contracts=("linear", "adjoint")).ok
    assert judged(quadratic(part + part.T), order=2, effort=effort).ok


def test_the_entry_is_named() -> None:
    hessian = np.eye(3)
    hessian[0, 2] = 0.5
    (finding,) = judged(quadratic(hessian), order=2, effort="exhaustive").wrong
    assert "d² / d x0[2] d x0[0]" in finding.sentence or "d² / d x0[0] d x0[2]" in finding.sentence


# ---- choosing


def test_contracts_are_chosen_by_name() -> None:
    assert Settings.validated().contracts == CONTRACTS
    assert Settings.validated(contracts="none").contracts == ()
    assert Settings.validated(contracts="pure").contracts == ("pure",)
    assert Settings.validated(contracts=["pure", "linear"]).contracts == ("linear", "pure")


@pytest.mark.parametrize("contracts", ["everything", ("linear", "colour"), None, 3, True])
def test_a_contract_that_does_not_exist(contracts: Any) -> None:
    with pytest.raises(UsageError, match="linear, adjoint, repeatable") as raised:
        Settings.validated(contracts=contracts)
    assert repr(contracts) in str(raised.value)


@pytest.mark.parametrize("nondet_tol", [-1.0, float("inf"), float("nan"), "much", None, True])
def test_a_nondet_tol_that_is_no_distance(nondet_tol: Any) -> None:
    with pytest.raises(UsageError, match="nondet_tol=1e-8"):
        Settings.validated(nondet_tol=nondet_tol)
