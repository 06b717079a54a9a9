"""The whole algorithm on programs without a framework: right ones, wrong twins, and adapters that misbehave."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from programs import HandProgram, elementwise

from gradproof import Budget, Result, Settings, Verdict, check_program
from gradproof.program import Array

SIZES = [1, 2, 16, 576, 25_600, 1_000_000]


def run(program: HandProgram, **options: object) -> Result:
    options.setdefault("seed", 1)
    return check_program(program, Settings.validated(**options))  # type: ignore[arg-type]


def point(size: int) -> Array:
    return np.random.default_rng(7).standard_normal(size)


def matrix_program(rows: int = 5, columns: int = 4) -> HandProgram:
    """y = A x + sin(x).sum(), with its right Jacobian."""
    generator = np.random.default_rng(0)
    matrix = generator.standard_normal((rows, columns))
    x = generator.standard_normal(columns)
    return HandProgram(
        lambda points: points @ matrix.T + np.sin(points).sum(axis=1, keepdims=True), matrix + np.cos(x)[None, :], x
    )


@pytest.mark.parametrize("size", SIZES)
def test_a_right_derivative_is_right_at_any_size_for_a_bounded_price(size: int) -> None:
    result = run(elementwise(np.sin, np.cos, point(size)))
    assert result.verdict is Verdict.RIGHT
    assert result.ok
    assert {comparison.mode for comparison in result.comparisons} == {"reverse", "forward"}
    if size >= 25_600:
        assert result.cost.evaluations <= 40
        assert result.cost.pulls <= 6


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_one_wrong_entry_is_found_at_any_size(size: int, mode: str) -> None:
    """5 % off at one place of up to a million; within 200 evaluations where probes are used."""
    x = point(size)
    place = (2 * size) // 3
    wrong = np.cos(x)
    wrong[place] *= 1.05
    spoiled = {"pull_with" if mode == "reverse" else "push_with": lambda rows: rows * wrong}
    result = run(elementwise(np.sin, np.cos, x, **spoiled))
    assert result.verdict is Verdict.WRONG
    (finding,) = result.wrong
    assert finding.code == "mismatch"
    assert str(finding.place) == f"d y0[{place}] / d x0[{place}]"
    worst = next(c for c in result.comparisons if c.verdict is Verdict.WRONG).worst
    assert worst is not None
    assert worst.analytic == pytest.approx(1.05 * np.cos(x[place]))
    assert abs(worst.numeric - np.cos(x[place])) <= worst.bar
    if size >= 25_600:
        assert result.cost.evaluations <= 200
    assert [c.mode for c in result.comparisons if c.verdict is Verdict.WRONG] == [mode]


def test_a_dense_jacobian_and_its_twins() -> None:
    right = matrix_program()
    assert run(right).ok
    for entry in [(0, 0), (2, 3), (4, 1)]:
        jacobian = right.jacobian.copy()
        jacobian[entry] += 1e-3
        result = run(replace(right, jacobian=jacobian))
        assert result.verdict is Verdict.WRONG
        assert {str(f.place) for f in result.wrong} == {f"d y0[{entry[0]}] / d x0[{entry[1]}]"}
        assert all(c.wrong == 1 and c.entries == 20 for c in result.comparisons)


@pytest.mark.parametrize("effort", ["exhaustive", 2])
def test_a_transposed_block_of_several_leaves_is_named(effort: str | int) -> None:
    """Two inputs, two outputs; only d y1 / d x0 is wrong."""
    generator = np.random.default_rng(3)
    matrix = generator.standard_normal((12, 12))
    wrong = matrix.copy()
    wrong[6:, :6] = matrix[6:, :6].T
    shapes = {"input_shapes": ((2, 3), (6,)), "output_shapes": ((6,), (3, 2))}
    x = generator.standard_normal(12)
    assert run(HandProgram(lambda p: p @ matrix.T, matrix, x, **shapes), effort=effort).ok
    result = run(HandProgram(lambda p: p @ matrix.T, wrong, x, **shapes), effort=effort)
    assert {(c.output.path, c.input.path) for c in result.comparisons if c.verdict is Verdict.WRONG} == {("y1", "x0")}


@pytest.mark.parametrize("scale", [1e-12, 1e-6, 1.0, 1e6])
def test_the_scale_is_the_gradients_own(scale: float) -> None:
    """A tiny gradient of the opposite sign is wrong; rounding beside large entries is not."""
    x = point(20)
    assert run(elementwise(lambda p: scale * np.sin(p), lambda p: scale * np.cos(p), x)).ok
    negated = run(elementwise(lambda p: scale * np.sin(p), lambda p: -scale * np.cos(p), x))
    assert negated.verdict is Verdict.WRONG


def test_adapters_that_return_zeros_or_nan_are_caught() -> None:
    x = point(30)
    zero = run(elementwise(np.sin, np.zeros_like, x))
    assert {f.diagnosis.code for f in zero.wrong if f.diagnosis} == {"detached"}
    bad = np.cos(x)
    bad[4] = np.nan
    nan = run(elementwise(np.sin, lambda p: bad, x))
    assert {f.code for f in nan.wrong} == {"nan-gradient"}
    assert "[4]" in str(nan.wrong[0].place)


@pytest.mark.parametrize("size", [10, 30_000])
@pytest.mark.parametrize("name", ["abs", "clamp", "positive part", "ignored", "square"])
def test_a_pull_that_is_not_linear_is_called_so(size: int, name: str) -> None:
    x = point(size)
    slope = np.cos(x)
    wrongs = {
        "abs": lambda rows: np.abs(rows) * slope,
        "clamp": lambda rows: np.clip(rows, -1, 1) * slope,
        "positive part": lambda rows: np.maximum(rows, 0) * slope,
        "ignored": lambda rows: np.broadcast_to(slope, rows.shape).copy(),
        "square": lambda rows: rows * np.abs(rows) * slope,
    }
    result = run(elementwise(np.sin, np.cos, x, pull_with=wrongs[name], modes=("reverse",)))
    assert result.verdict is Verdict.WRONG
    assert "nonlinear" in {f.code for f in result.wrong}


def test_a_pull_that_changes_from_call_to_call_is_called_so() -> None:
    x = point(10)
    generator = np.random.default_rng(0)
    result = run(
        elementwise(np.sin, np.cos, x, pull_with=lambda rows: rows * np.cos(x) + 1e-3 * generator.standard_normal(10))
    )
    assert "nondeterministic" in {f.code for f in result.wrong}


def test_a_random_function_is_undecided_and_named() -> None:
    generator = np.random.default_rng(0)
    result = run(elementwise(lambda p: np.sin(p) + generator.standard_normal(p.shape), np.cos, point(5)))
    assert result.verdict is Verdict.UNDECIDED
    assert [f.code for f in result.findings] == ["random"]


@pytest.mark.parametrize("size", [20, 30_000])
def test_noise_that_hides_the_derivative_is_undecided_and_a_gross_error_still_wrong(size: int) -> None:
    """Noise of 1e-4, the same at every call: too much for 1e-5, not for a negated gradient."""

    def noisy(points: Array) -> Array:
        return np.sin(points) + 1e-4 * np.modf(1e6 * np.sin(1e17 * points))[0]

    x = point(size) + 2
    result = run(elementwise(noisy, np.cos, x))
    assert result.verdict is Verdict.UNDECIDED
    assert {f.code for f in result.findings if f.verdict is Verdict.UNDECIDED} <= {"noise", "kink", "jump"}
    assert run(elementwise(noisy, lambda p: -np.cos(p), x)).verdict is Verdict.WRONG


@pytest.mark.parametrize("size", [9, 30_000])
@pytest.mark.parametrize("slope", [-1.0, 0.0, 0.3, 1.0])
def test_valid_subgradients_pass_with_a_remark(size: int, slope: float) -> None:
    x = point(size)
    x[size // 2] = 0.0
    result = run(elementwise(np.abs, lambda p: np.where(p == 0, slope, np.sign(p)), x))
    assert result.verdict is Verdict.RIGHT
    if size == 9 or slope:  # among thousands, a subgradient in the middle of its interval goes unnoticed
        assert "kink" in {f.code for f in result.findings}


@pytest.mark.parametrize("slope", [-1.5, 2.0])
def test_a_value_outside_the_hull_of_a_kink_is_wrong(slope: float) -> None:
    x = point(9)
    x[4] = 0.0
    result = run(elementwise(np.abs, lambda p: np.where(p == 0, slope, np.sign(p)), x))
    assert result.verdict is Verdict.WRONG
    assert {str(f.place) for f in result.wrong} == {"d y0[4] / d x0[4]"}


def test_outputs_that_are_not_finite_are_undecided_but_do_not_hide_the_others() -> None:
    x = np.array([1.0, -1.0, 2.0])
    result = run(elementwise(np.log, lambda p: 1 / p, x))
    assert result.verdict is Verdict.UNDECIDED
    assert [f.code for f in result.findings if f.verdict is Verdict.UNDECIDED] == ["nan-value"]
    wrong = run(elementwise(np.log, lambda p: 2 / p, x))
    assert {str(f.place) for f in wrong.wrong} <= {"d y0[0] / d x0[0]", "d y0[2] / d x0[2]"}
    assert wrong.wrong


def test_a_mode_that_does_not_exist_is_a_remark_unless_asked_for() -> None:
    program = elementwise(np.sin, np.cos, point(4), modes=("reverse",))
    silent = run(program)
    assert silent.ok
    assert "unsupported" in {f.code for f in silent.findings}
    asked = run(program, modes="forward")
    assert asked.verdict is Verdict.UNSUPPORTED
    assert not asked.ok


def test_an_output_that_does_not_depend_on_an_input_is_right_and_costs_no_more() -> None:
    x = point(40)
    weights = np.concatenate([np.ones(20), np.zeros(20)])
    program = elementwise(
        lambda p: np.sin(p * weights) + 3.0,
        lambda p: weights * np.cos(p * weights),
        x,
        input_shapes=((20,), (20,)),
        output_shapes=((20,), (20,)),
    )
    result = run(program)
    assert result.ok
    assert result.cost.evaluations <= 4 * 40 + 5
    assert [str(f.place) for f in result.findings if f.code == "vacuous"] == ["x1"]


def test_the_audit_is_silent_where_the_check_proves_something() -> None:
    assert not [f for f in run(elementwise(np.sin, np.cos, point(10))).findings if f.code == "vacuous"]
    loose = run(elementwise(np.sin, np.cos, point(10)), tolerance=5.0)
    assert [f.code for f in loose.findings] == ["vacuous"]
    assert "negated" in loose.findings[0].sentence


def test_a_check_that_found_a_mistake_proves_something_of_that_input() -> None:
    """The other output does not depend on it, and is right."""

    def twice(slope: Callable[[Array], Array]) -> HandProgram:
        weights = np.concatenate([np.ones(10), np.zeros(10)])
        return elementwise(
            lambda p: weights * np.sin(p), lambda p: weights * slope(p), point(20), output_shapes=((10,), (10,))
        )

    assert {f.code for f in run(twice(lambda p: 1.1 * np.cos(p))).findings} == {"mismatch"}
    assert not run(twice(np.cos)).findings


@pytest.mark.parametrize("size", [12, 30_000])
def test_the_same_seed_gives_the_same_result_bit_for_bit(size: int) -> None:
    wrong = lambda p: np.cos(p) * np.where(np.arange(p.size) == 5, 1.1, 1.0)  # noqa: E731
    first, second = (run(elementwise(np.sin, wrong, point(size)), seed=9) for _ in range(2))
    assert first.seed == 9
    for one, other in zip(first.comparisons, second.comparisons, strict=True):
        assert one.numeric.tobytes() == other.numeric.tobytes()
        assert one.bar.tobytes() == other.bar.tobytes()
        assert one.found == other.found
    assert first.findings == second.findings
    assert first.power == second.power
    third = run(elementwise(np.sin, wrong, point(size)))
    assert third.verdict is first.verdict


def test_power_is_what_it_says() -> None:
    """An error above the stated power is caught, at the worst place for it."""
    for size in (50, 30_000):
        x = point(size)
        power = run(elementwise(np.sin, np.cos, x)).power
        assert power is not None
        assert 0 < power.relative < 2e-2
        smallest = int(np.argmin(np.abs(x)))
        for entry in (0, smallest):
            wrong = np.cos(x)
            wrong[entry] += 3 * power.error
            assert run(elementwise(np.sin, lambda p, w=wrong: w, x)).verdict is Verdict.WRONG


def test_budgets_are_kept_and_the_best_verdict_within_them_is_given() -> None:
    x = point(400)
    for calls in (30, 100, 3000):
        result = run(elementwise(np.sin, np.cos, x), budget=Budget(calls=calls), modes="reverse")
        assert result.cost.evaluations + result.cost.pulls <= calls
        assert result.ok
    assert any("exhaustive" in note for note in result.notes)
    starved = run(elementwise(np.sin, np.cos, x), budget=3)
    assert starved.verdict is Verdict.UNDECIDED
    assert "budget" in {f.code for f in starved.findings}
    late = run(elementwise(np.sin, np.cos, x), budget=Budget(seconds=1e-9))
    assert late.verdict is Verdict.UNDECIDED


def test_a_budget_that_ends_a_second_opinion_leaves_the_first() -> None:
    def noisy(points: Array) -> Array:
        return np.sin(points) + 1e-4 * np.modf(1e6 * np.sin(1e17 * points))[0]

    def checked(budget: int | None = None) -> Result:
        program = elementwise(noisy, np.cos, point(4_000) + 2)
        return run(program, effort=1, contracts="none", modes="reverse", budget=budget)

    whole = checked()
    calls = whole.cost.evaluations + whole.cost.pulls
    for budget in (calls - 1, 3 * calls // 4):
        result = checked(budget)
        assert result.verdict is Verdict.UNDECIDED
        assert {one.reason for one in result.comparisons} == {"noise"}


def test_empty_programs_are_right_and_say_so() -> None:
    result = run(HandProgram(lambda p: p, np.zeros((0, 0)), np.zeros(0)))
    assert result.ok
    assert any("empty" in note for note in result.notes)


def test_second_order_is_recursion() -> None:
    """x -> sin(x) . w has the gradient program (x, w) -> cos(x) w, whose Jacobian is (-sin(x) w, cos(x))."""
    x = point(6)

    def second(sign: float):  # type: ignore[no-untyped-def]
        def build(cotangent: Array) -> HandProgram:
            jacobian = np.hstack([np.diag(sign * -np.sin(x) * cotangent), np.diag(np.cos(x))])
            return HandProgram(
                lambda p: np.cos(p[:, :6]) * p[:, 6:],
                jacobian,
                np.concatenate([x, cotangent]),
                input_shapes=((6,), (6,)),
            )

        return build

    assert run(elementwise(np.sin, np.cos, x, second=second(1.0)), order=2).ok
    wrong = run(elementwise(np.sin, np.cos, x, second=second(-1.0)), order=2)
    assert wrong.verdict is Verdict.WRONG
    assert {c.order for c in wrong.comparisons if c.verdict is Verdict.WRONG} == {2}
    assert run(elementwise(np.sin, np.cos, x), order=2).verdict is Verdict.UNSUPPORTED


@pytest.mark.parametrize("size", [1, 40, 40_000])
def test_deviations_within_the_tolerance_are_right(size: int) -> None:
    """A gradient that is everywhere off by 1e-7 of itself (a float32 step inside) is right at a tolerance of 1e-5."""
    generator = np.random.default_rng(0)
    x = point(size)
    rough = 1 + 1e-7 * generator.standard_normal(size)
    result = run(elementwise(np.sin, lambda p: np.cos(p) * rough, x))
    assert result.verdict is Verdict.RIGHT


@pytest.mark.parametrize("size", [30_000, 1_000_000])
def test_a_wholly_wrong_gradient_costs_no_more_to_locate_than_a_single_entry(size: int) -> None:
    result = run(elementwise(np.sin, lambda p: -np.cos(p), point(size)), modes="reverse")
    assert result.verdict is Verdict.WRONG
    assert result.cost.evaluations <= 320
    comparison = next(c for c in result.comparisons if c.verdict is Verdict.WRONG)
    assert comparison.wrong >= 2


@pytest.mark.parametrize(("slope", "verdict"), [(0.5, Verdict.RIGHT), (-1.0, Verdict.RIGHT), (1.5, Verdict.WRONG)])
def test_kinks_everywhere(slope: float, verdict: Verdict) -> None:
    assert run(elementwise(np.abs, lambda p: np.full(p.shape, slope), np.zeros(6))).verdict is verdict


def test_a_narrow_tolerance_is_kept() -> None:
    """Eight digits can be had in double precision; an error in the seventh is then wrong, and right by default."""
    x = point(12)
    assert run(elementwise(np.exp, np.exp, x), tolerance=1e-8).ok
    wrong = np.exp(x)
    wrong[3] *= 1 + 1e-7
    assert run(elementwise(np.exp, lambda p: wrong, x), tolerance=1e-8).verdict is Verdict.WRONG
    assert run(elementwise(np.exp, lambda p: wrong, x)).ok


@pytest.mark.parametrize("size", [12, 30_000])
def test_a_large_offset_does_not_drown_the_derivative(size: int) -> None:
    x = point(size)
    assert run(elementwise(lambda p: 1e4 + np.sin(p), np.cos, x)).ok
    assert run(elementwise(lambda p: 1e4 + np.sin(p), lambda p: 1.01 * np.cos(p), x)).verdict is Verdict.WRONG


def test_linearize_is_no_mode_of_a_program_that_cannot_be_linearized() -> None:
    program = HandProgram(np.sin, np.diag(np.cos([0.5, 1.0])), np.array([0.5, 1.0]))
    result = check_program(program, Settings.validated(modes=("reverse", "linearize"), seed=1))
    assert result.verdict is Verdict.UNSUPPORTED
    assert {comparison.mode for comparison in result.comparisons} == {"reverse"}
    assert "linearize mode does not exist here: only JAX functions" in result.findings[-1].sentence


@pytest.mark.parametrize("effort", ["exhaustive", 1])
def test_a_derivative_that_is_zero_within_rounding_has_no_digits(effort: str | int) -> None:
    """The bias before a normalisation: it cancels, up to rounding."""

    def normed(points: Array) -> Array:
        shifted = points[:, :6] + 3.7 * points[:, 6:]
        return np.sin(shifted - shifted.mean(axis=1, keepdims=True))

    x = point(7)
    centred = x[:6] - x[:6].mean()
    jacobian = np.cos(centred)[:, None] * np.hstack([np.eye(6) - 1 / 6, np.zeros((6, 1))])
    for bias in (0.0, 1e-16):
        jacobian[:, 6] = bias
        result = run(HandProgram(normed, jacobian, x, input_shapes=((6,), (1,))), effort=effort)
        assert result.verdict is Verdict.RIGHT
        assert "to 0 digits" not in str(result)
        assert result.power is not None
        assert result.power.relative < 1.0
        assert "proves little about x1" in str(result)
    assert "x1, whose derivative is zero within rounding" in str(result)
    jacobian[:, 6] = 1e-3
    wrong = run(HandProgram(normed, jacobian, x, input_shapes=((6,), (1,))), effort=effort)
    assert wrong.verdict is Verdict.WRONG


def test_what_is_not_known_at_all_is_not_zero() -> None:
    """A root at zero: a bar without end is no rounding, and the power says that nothing would have been caught."""
    x = np.array([0.0, 1.0, 4.0])
    with np.errstate(divide="ignore"):
        result = run(elementwise(np.sqrt, lambda p: 0.5 / np.sqrt(p), x), modes="reverse")
    assert result.verdict is Verdict.UNDECIDED
    assert result.power is not None
    assert not np.isfinite(result.power.error)
