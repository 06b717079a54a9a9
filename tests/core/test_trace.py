"""Traces: one derivative at steps over many decades, recorded only when asked for, and changing no verdict."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from programs import HandProgram, elementwise

from gradproof.check import check_program
from gradproof.errors import UsageError
from gradproof.picture import Trace
from gradproof.precision import BRAIN, DOUBLE, HALF, SINGLE
from gradproof.reference.decades import exponents
from gradproof.result import Result
from gradproof.settings import Budget, Settings


def traced(program: object, **options: object) -> Result:
    return check_program(program, Settings.validated(**{"seed": 1, "detail": "plots", **options}))  # type: ignore[arg-type]


def only(result: Result) -> Trace:
    (found,) = result.traces
    return found


def order(trace: Trace) -> float:
    """The slope of the remainder in a log-log plot, over the steps where it is neither rounding nor far away."""
    steps, remainders = np.array(trace.steps), np.array(trace.remainders)
    clear = (remainders > 30 * trace.rounding) & (steps < 0.05)
    return float(np.polyfit(np.log(steps[clear]), np.log(remainders[clear]), 1)[0])


def sine(factor: float) -> HandProgram:
    return elementwise(np.sin, lambda x: factor * np.cos(x), [0.3, 0.9, 1.4])


def test_nothing_is_recorded_unless_asked_for() -> None:
    assert check_program(sine(1.0), Settings.validated(seed=1)).traces == ()


@pytest.mark.parametrize("factor", [1.0, 1.3])
def test_asking_for_plots_changes_no_verdict_and_costs_34_evaluations(factor: float) -> None:
    plain, plots = traced(sine(factor), detail="summary"), traced(sine(factor))
    assert (plots.verdict, plots.findings) == (plain.verdict, plain.findings)
    assert plots.cost.evaluations - plain.cost.evaluations == 34
    assert (plots.cost.pulls, plots.cost.pushes) == (plain.cost.pulls, plain.cost.pushes)


def test_a_right_derivative_leaves_a_remainder_of_second_order_and_a_wrong_one_of_first() -> None:
    assert order(only(traced(sine(1.0)))) == pytest.approx(2.0, abs=0.05)
    assert order(only(traced(sine(1.3)))) == pytest.approx(1.0, abs=0.05)


def test_the_slopes_are_within_their_error_bars_over_nine_decades() -> None:
    trace = only(traced(sine(1.3)))
    assert trace.steps[-1] / trace.steps[0] > 1e9
    assert trace.subject == "d y0[0] / d x0[0]"
    assert trace.analytic == pytest.approx(1.3 * np.cos(0.3))
    assert (np.abs(np.array(trace.slopes) - np.cos(0.3)) <= np.array(trace.bars)).all()
    assert min(trace.bars) < 1e-9
    assert list(trace.steps) == sorted(trace.steps)


def test_the_worst_entry_is_the_subject() -> None:
    jacobian = np.array([[1.0, 2.0], [3.0, 4.0]])
    claimed = jacobian + np.array([[0, 0], [0.5, 0]])
    trace = only(traced(HandProgram(lambda x: x @ jacobian.T, claimed, [1.0, 2.0])))
    assert (trace.subject, trace.analytic, trace.numeric) == ("d y0[1] / d x0[0]", 3.5, pytest.approx(3.0))


def test_without_a_wrong_entry_the_largest_is() -> None:
    jacobian = np.array([[1.0, 2.0], [3.0, -4.0]])
    trace = only(traced(HandProgram(lambda x: x @ jacobian.T, jacobian, [1.0, 2.0])))
    assert trace.subject == "d y0[1] / d x0[1]"


def test_a_kink_at_the_point_is_the_subject_and_marked() -> None:
    trace = only(traced(elementwise(np.abs, np.sign, [5.0, 0.0])))
    assert (trace.subject, trace.kinks, trace.spread) == ("d y0[1] / d x0[1]", (0.0,), 1.0)
    assert set(trace.right) == {1.0}
    assert set(trace.left) == {-1.0}


@pytest.mark.parametrize("distance", [1e-5, 3e-4, 0.01, 0.05])
def test_a_kink_nearby_is_marked_at_its_distance(distance: float) -> None:
    bent = elementwise(lambda x: np.abs(x - 1 - distance) + np.sin(x), lambda x: np.cos(x) - 1, [1.0])
    assert only(traced(bent)).kinks == (pytest.approx(distance, rel=0.2),)


@pytest.mark.parametrize("point", [1e-6, 0.01, 1.0, 30.0])
@pytest.mark.parametrize("function", ["exp", "tanh", "wave", "fourth"])
def test_a_smooth_function_has_no_kinks(function: str, point: float) -> None:
    smooth = {
        "exp": (np.exp, np.exp),
        "tanh": (np.tanh, lambda x: 1 / np.cosh(x) ** 2),
        "wave": (lambda x: np.sin(50 * x), lambda x: 50 * np.cos(50 * x)),
        "fourth": (lambda x: x**4, lambda x: 4 * x**3),
    }[function]
    assert only(traced(elementwise(*smooth, [point]))).kinks == ()


def test_steps_that_leave_the_domain_are_gaps() -> None:
    trace = only(traced(elementwise(np.log, lambda x: 1 / x, [0.5])))
    assert np.isnan(trace.left[-1])
    assert np.isnan(trace.slopes[-1])
    assert np.isfinite(trace.bars[-3])


def test_after_probes_a_combination_of_all_entries_is_traced() -> None:
    point = np.linspace(0.5, 1.5, 5000)
    result = traced(elementwise(np.exp, np.exp, point), effort=2)
    trace = only(result)
    assert trace.subject == "a random combination of all entries"
    assert abs(trace.numeric - trace.analytic) <= trace.bar
    assert order(trace) == pytest.approx(2.0, abs=0.1)


def test_after_probes_the_entry_that_was_found_is_traced() -> None:
    point = np.linspace(0.5, 1.5, 5000)
    off = np.where(np.arange(5000) == 1234, 1.05, 1.0)
    trace = only(traced(elementwise(np.exp, lambda x: off * np.exp(x), point), effort=2))
    assert trace.subject == "d y0[1234] / d x0[1234]"


def test_the_imaginary_part_of_a_complex_entry_finds_its_coordinate() -> None:
    matrix = np.array([[1.0, 2.0, 0, 0], [3.0, 4.0, 0, 0], [0, 0, 5.0, 6.0], [0, 0, 7.0, 8.0]])
    program = HandProgram(
        lambda x: x @ matrix.T,
        matrix,
        np.ones(4),
        input_shapes=((2,),),
        output_shapes=((2,),),
        dtype="complex128",
    )
    assert only(traced(program)).subject == "d y0[1].imag / d x0[1].imag"
    assert only(traced(program)).slopes[8] == pytest.approx(8.0)


def test_no_budget_no_trace_but_the_same_verdict() -> None:
    calls = traced(sine(1.0), detail="summary").cost
    exact = Budget(calls=calls.evaluations + calls.pulls + calls.pushes + 10)
    result = traced(sine(1.0), budget=exact)
    assert (result.traces, result.ok) == ((), True)


def test_the_smallest_step_stays_above_rounding() -> None:
    assert {one.name: (exponents(one)[0], exponents(one)[-1]) for one in (DOUBLE, SINGLE, HALF, BRAIN)} == {
        "float64": (2, -30),
        "float32": (2, -14),
        "float16": (2, -3),
        "bfloat16": (2, 0),
    }


def test_a_detail_that_does_not_exist() -> None:
    with pytest.raises(UsageError, match=r"detail='all'.*write detail='summary'"):
        Settings.validated(detail="all")  # type: ignore[arg-type]
    assert replace(Settings.validated(seed=1), detail="plots") == Settings.validated(seed=1, detail="plots")
