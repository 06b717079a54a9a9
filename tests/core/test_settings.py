"""Options are validated once, early, and a refusal shows what was passed and a call that works."""

from __future__ import annotations

import numpy as np
import pytest

from gradproof.agreement import entry_tolerance
from gradproof.errors import UsageError
from gradproof.settings import Budget, Settings, Tolerance


def test_defaults() -> None:
    settings = Settings.validated()
    assert (settings.modes, settings.order, settings.effort, settings.tolerance) == (None, 1, "auto", None)
    assert settings.budget == Budget(calls=None, seconds=None)


@pytest.mark.parametrize(
    ("modes", "expected"),
    [
        (None, None),
        ("reverse", ("reverse",)),
        ("forward", ("forward",)),
        (["forward", "reverse"], ("reverse", "forward")),
        (("forward", "forward"), ("forward",)),
    ],
)
def test_modes_are_put_in_order(modes: str | list[str] | None, expected: tuple[str, ...] | None) -> None:
    assert Settings.validated(modes=modes).modes == expected


@pytest.mark.parametrize("modes", ["backward", (), "", ["reverse", "sideways"]])
def test_modes_that_do_not_exist(modes: str | list[str]) -> None:
    with pytest.raises(UsageError, match=r"modes=.*write modes='reverse'"):
        Settings.validated(modes=modes)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_orders(order: int) -> None:
    assert Settings.validated(order=order).order == order


@pytest.mark.parametrize("order", [0, -1, 1.5, True, "2", None])
def test_orders_that_do_not_exist(order: object) -> None:
    with pytest.raises(UsageError, match=r"order=.*write order=1"):
        Settings.validated(order=order)  # type: ignore[arg-type]


@pytest.mark.parametrize(("order", "lowest"), [(1, 1), (2, 1), (3, 3)])
def test_lowest_orders(order: int, lowest: int) -> None:
    assert Settings.validated(order=order, lowest=lowest).lowest == lowest


@pytest.mark.parametrize("lowest", [0, 3, True, "2", None])
def test_lowest_orders_that_leave_nothing(lowest: object) -> None:
    with pytest.raises(UsageError, match=r"lowest=.* with order=2 leaves nothing to check; write order=2, lowest=2"):
        Settings.validated(order=2, lowest=lowest)  # type: ignore[arg-type]


@pytest.mark.parametrize("effort", ["auto", "exhaustive", 1, 20])
def test_efforts(effort: object) -> None:
    assert Settings.validated(effort=effort).effort == effort  # type: ignore[arg-type]


@pytest.mark.parametrize("effort", ["fast", 0, -3, True, 2.0, None])
def test_efforts_that_do_not_exist(effort: object) -> None:
    with pytest.raises(UsageError, match=r"effort=.*write effort='auto'"):
        Settings.validated(effort=effort)  # type: ignore[arg-type]


def test_a_number_is_a_relative_tolerance() -> None:
    assert Settings.validated(tolerance=1e-3).tolerance == Tolerance(relative=1e-3, absolute=0.0)
    both = Tolerance(relative=1e-3, absolute=1e-9)
    assert Settings.validated(tolerance=both).tolerance is both


@pytest.mark.parametrize("tolerance", ["tight", True, (1e-3, 1e-5)])
def test_tolerances_that_are_no_number(tolerance: object) -> None:
    with pytest.raises(UsageError, match=r"tolerance=.*write tolerance=1e-4"):
        Settings.validated(tolerance=tolerance)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [-1e-9, float("inf"), float("nan"), "1e-3"])
def test_tolerances_that_accept_everything_or_nothing(value: float) -> None:
    with pytest.raises(UsageError, match="relative tolerance must be a finite number"):
        Tolerance(relative=value)
    with pytest.raises(UsageError, match="absolute tolerance must be a finite number"):
        Tolerance(relative=0.0, absolute=value)


def test_a_seed_left_out_is_fresh_and_a_given_one_is_kept() -> None:
    assert len({Settings.validated().seed for _ in range(8)}) > 1
    assert Settings.validated(seed=7).seed == 7
    assert Settings.validated(seed=0).seed == 0


@pytest.mark.parametrize("seed", [-1, 1.0, True, "7"])
def test_seeds_that_cannot_be_replayed(seed: object) -> None:
    with pytest.raises(UsageError, match=r"seed=.*such as seed=1"):
        Settings.validated(seed=seed)  # type: ignore[arg-type]


def test_a_whole_number_is_a_budget_of_calls() -> None:
    assert Settings.validated(budget=50).budget == Budget(calls=50)
    assert Settings.validated(budget=Budget(seconds=0.5)).budget == Budget(seconds=0.5)


@pytest.mark.parametrize("budget", [2.5, "10 s", True])
def test_budgets_that_are_ambiguous(budget: object) -> None:
    with pytest.raises(UsageError, match=r"budget=.*Budget\(calls=200\)"):
        Settings.validated(budget=budget)  # type: ignore[arg-type]


@pytest.mark.parametrize("calls", [0, -5, 1.5, True])
def test_budgets_without_a_whole_call(calls: int) -> None:
    with pytest.raises(UsageError, match="whole number of calls"):
        Budget(calls=calls)


@pytest.mark.parametrize("seconds", [0, -1.0, float("nan")])
def test_budgets_without_time(seconds: float) -> None:
    with pytest.raises(UsageError, match="seconds > 0"):
        Budget(seconds=seconds)


def test_settings_do_not_change() -> None:
    settings = Settings.validated()
    with pytest.raises(AttributeError):
        settings.order = 2  # type: ignore[misc]


def test_the_part_of_a_block_in_a_tolerance() -> None:
    plain, torch_like = Tolerance(relative=1e-3), Tolerance(relative=1e-3, block=1e-5, ceiling=1e-5)
    assert (plain.of_block, plain.finest) == (1e-3, 1e-3)
    assert (torch_like.of_block, torch_like.finest) == (1e-5, 1e-5)
    assert Tolerance(relative=1e-3, absolute=1e-5, block=0.0).finest == 1e-3
    numeric = np.array([0.0, 1.0, 100.0])
    np.testing.assert_allclose(entry_tolerance(numeric, 2.0, plain), [2e-3, 2e-3, 1e-1])
    np.testing.assert_allclose(entry_tolerance(numeric, 0.5, torch_like), [5e-6, 1e-3, 1e-1])
    np.testing.assert_allclose(entry_tolerance(numeric, 50.0, torch_like), [1e-5, 1e-3, 1e-1])


@pytest.mark.parametrize("step", [None, 1e-6, 1])
def test_steps(step: float | None) -> None:
    assert Settings.validated(step=step).step == step


@pytest.mark.parametrize("step", [0, -1e-6, float("inf"), float("nan"), True, "1e-6"])
def test_steps_that_do_not_exist(step: object) -> None:
    with pytest.raises(UsageError, match=r"step=.*such as step=1e-6"):
        Settings.validated(step=step)  # type: ignore[arg-type]
