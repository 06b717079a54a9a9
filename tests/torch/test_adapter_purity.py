"""The torch adapter: nothing leaks, batches are believed only after a cross-check, work is counted."""

from __future__ import annotations

import gc
import warnings
import weakref
from typing import Any

import numpy as np
import pytest
import torch

import gradproof
from gradproof.batching import agree
from gradproof.errors import Unsupported
from gradproof.torch import program_of
from gradproof.verdict import Verdict


def draw(*shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(sum(shape) + 1))


def world() -> tuple[Any, ...]:
    numpy_state = np.random.get_state(legacy=False)  # noqa: NPY002
    return (
        torch.get_rng_state().tolist(),
        numpy_state["state"]["key"].tolist(),
        numpy_state["state"]["pos"],
        numpy_state["has_gauss"],
        numpy_state["gauss"],
        torch.get_default_dtype(),
        torch.is_grad_enabled(),
    )


class Stop(BaseException):
    """Like KeyboardInterrupt: not an Exception."""


class Disturbing:
    """A function that disturbs all global state on each call, and fails on demand."""

    def __init__(self) -> None:
        self.error: BaseException | None = None

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        torch.rand(3)
        np.random.randn()  # noqa: NPY002
        torch.set_default_dtype(torch.float64)
        y = x.mul_(2).sin()
        torch.set_grad_enabled(False)
        if self.error is not None:
            raise self.error
        return y


@pytest.mark.parametrize("pending_normals", [0, 1, 2])
@pytest.mark.parametrize("error", [None, ValueError("no"), KeyboardInterrupt(), Stop()])
@pytest.mark.parametrize("grad", [True, False])
def test_the_world_is_left_as_it_was(pending_normals: int, error: BaseException | None, grad: bool) -> None:
    np.random.randn(2 + pending_normals)  # noqa: NPY002  an odd number leaves a second normal pending
    x = draw(3)
    before = x.clone()
    with torch.set_grad_enabled(grad):
        state = world()
        fn = Disturbing()
        program = program_of(fn, x)
        assert world() == state
        for act in (
            lambda: program.values(np.ones((1, 3))),
            lambda: program.values(np.ones((3, 3))),
            lambda: program.pull(np.ones((2, 3))),
            lambda: program.push(np.ones((2, 3))),
            lambda: program.gradient(np.ones(3)).pull(np.ones((2, 3))),
            lambda: program_of(fn, x),
        ):
            fn.error = error
            try:
                act()
            except (ValueError, KeyboardInterrupt, Stop) as raised:
                assert raised is error  # noqa: PT017
            except Unsupported as missing:  # forward mode
                assert missing.__cause__ is error  # noqa: PT017
            fn.error = None
            assert world() == state
    assert torch.equal(x, before)


def test_inside_inference_mode() -> None:
    with torch.inference_mode():
        program = program_of(lambda x, c: x * c, (draw(2), draw(2)), wrt="args[0]")
        np.testing.assert_allclose(program.pull(np.eye(2)), np.diag(draw(2).numpy()))
        assert torch.is_inference_mode_enabled()
    assert torch.is_grad_enabled()


def test_no_call_ever_sees_the_users_own_memory() -> None:
    x, fixed, array = draw(3), draw(3), np.ones(3)
    copies = x.clone(), fixed.clone(), array.copy()

    def fn(x: torch.Tensor, fixed: torch.Tensor, array: np.ndarray[Any, Any]) -> torch.Tensor:
        y = x * fixed.clone() * float(array[0])
        x.zero_()
        fixed.zero_()
        array[:] = 0
        return y

    program = program_of(fn, (x, fixed, array), wrt="args[0]")
    rows = np.ones((4, 3))
    for _ in range(2):
        np.testing.assert_allclose(program.values(rows.copy()), np.repeat(fixed[None].numpy(), 4, axis=0))
        np.testing.assert_allclose(program.pull(np.eye(3)), np.diag(fixed.numpy()))
    assert (rows == 1).all()
    assert torch.equal(x, copies[0])
    assert torch.equal(fixed, copies[1])
    assert np.array_equal(array, copies[2])


def test_what_the_function_returned_is_copied_at_once() -> None:
    shared = torch.zeros(2, dtype=torch.float64)

    def fn(x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            shared.copy_(x * float(x[0]))
        return shared

    program = program_of(fn, draw(2))
    values = program.values(np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]))
    np.testing.assert_array_equal(values, [[1, 1], [4, 4], [9, 9]])
    values[:] = 7
    assert not (shared == 7).any()


def test_a_function_that_looks_at_the_storage_of_its_input() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        assert x.sum().item() > -1e9  # cannot be batched
        return torch.as_strided(x, (2,), (2,), 0) * 2

    rows = np.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(program_of(fn, draw(4)).values(rows), 2 * rows[:, ::2])


@pytest.mark.parametrize("factor", [1.0, 1.01])
def test_a_function_that_reads_the_memory_around_its_input(factor: float) -> None:
    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return 3 * x

        @staticmethod
        def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
            return 3 * factor * g

    around = draw(20)
    before = around.clone()
    x = around[5:15]
    result = gradproof.check(
        lambda x, offset=0: Scaled.apply(x.as_strided((2, 3), (3, 1), offset)) * x[0], x, {"offset": 12}, seed=0
    )
    assert result.verdict is (Verdict.RIGHT if factor == 1 else Verdict.WRONG)
    # 12 to 17 of the memory are 7 to 12 of the input, which ends at 9.
    wrong = {entry.place.input.index for one in result.comparisons for entry in one.found}
    assert wrong == (set() if factor == 1 else {(7,), (8,), (9,)})
    assert torch.equal(around, before)
    with pytest.raises(RuntimeError, match="out of bounds for storage") as raised:
        gradproof.check(lambda x: x.as_strided((2, 3), (3, 1), 17), x)
    assert raised.value.__context__ is None  # one error, the one of the user's own call


def test_randomness_from_numpy_starts_anew_with_each_batch() -> None:
    program = program_of(lambda x: x + np.random.rand(), draw(2))  # noqa: NPY002
    rows = np.zeros((3, 2))
    first = program.values(rows)
    np.testing.assert_array_equal(program.values(rows), first)
    assert len(np.unique(first)) == 3
    assert not program.batched
    assert not np.array_equal(program.repeated_value(), program.value)


def test_point_and_value_are_read_only_and_private() -> None:
    x = draw(3)
    program = program_of(torch.sin, x)
    point = program.point.copy()
    x.zero_()
    np.testing.assert_array_equal(program.point, point)
    for array in (program.point, program.value):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        program.values(program.point[None])
        program.pull(program.value[None])


def test_module_with_batch_norm_and_dropout() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3), torch.nn.Dropout(0.5)).double()
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    program = program_of(module, draw(4, 2))
    rows = program.point + 1e-6 * np.eye(program.point.size)[:3]
    np.testing.assert_array_equal(program.values(rows), program.values(rows))
    program.pull(np.ones((2, program.value.size)))
    after = module.state_dict()
    assert all(torch.equal(after[name], tensor) for name, tensor in before.items())
    assert module.training
    assert all(parameter.grad is None for parameter in module.parameters())
    # The same mask at the start of every seam call, another one in the second of two calls.
    np.testing.assert_array_equal(program.values(program.point[None])[0], program.value)
    assert not np.array_equal(program.repeated_value(), program.value)
    module.eval()
    steady = program_of(module, draw(4, 2))
    np.testing.assert_array_equal(steady.repeated_value(), steady.value)
    assert steady.batched
    assert not module.training


def test_training_flags_are_restored() -> None:
    class Switching(torch.nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.eval()
            return super().forward(x)

    module = Switching(2, 2).double()
    program_of(module, draw(2)).values(np.ones((2, 8)))
    assert module.training


class NoVmap(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
        return g * ctx.saved_tensors[0].cos()


class WithVmap(torch.autograd.Function):
    factor = 1.0

    @staticmethod
    def forward(x: torch.Tensor) -> torch.Tensor:
        return x.sin()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
        return g * ctx.saved_tensors[0].cos()

    @classmethod
    def vmap(cls, info: Any, in_dims: Any, x: torch.Tensor) -> Any:
        return x.sin() * cls.factor, in_dims[0]


class WrongVmap(WithVmap):
    factor = 1.001


class MixedRows(WithVmap):
    @classmethod
    def vmap(cls, info: Any, in_dims: Any, x: torch.Tensor) -> Any:
        return x.sin().flip(0), in_dims[0]


def branching(x: torch.Tensor) -> torch.Tensor:
    return x.sin() if x.sum().item() > -1e9 else x


@pytest.mark.parametrize(
    ("fn", "batched", "reason"),
    [
        (torch.sin, True, ""),
        (WithVmap.apply, True, ""),
        (NoVmap.apply, False, "setup_context"),
        (branching, False, "item()"),
        (WrongVmap.apply, False, "disagrees with a single call"),
        (MixedRows.apply, False, "disagrees with a single call"),
    ],
)
@pytest.mark.parametrize("ask_first", [True, False])
def test_a_batch_is_believed_only_after_a_cross_check(fn: Any, batched: bool, reason: str, ask_first: bool) -> None:
    program = program_of(fn, draw(4))
    rows = np.random.default_rng(1).standard_normal((7, 4))
    if ask_first:
        assert program.batched == batched
    np.testing.assert_allclose(program.values(rows), np.sin(rows), rtol=1e-14)
    assert program.batched == batched
    (note,) = program.notes
    assert note == "values: vmap" if batched else note.startswith("values: one by one, because") and reason in note


class BackwardWithoutBatch(NoVmap):
    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
        return g * ctx.saved_tensors[0].cos() if float(g.sum()) > -1e9 else g


class BackwardThatOverwrites(NoVmap):
    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
        return g.mul_(ctx.saved_tensors[0].cos())


@pytest.mark.parametrize(
    ("fn", "how"),
    [
        (NoVmap.apply, "pull: batched"),
        (BackwardThatOverwrites.apply, "pull: batched"),
        (BackwardWithoutBatch.apply, "pull: one by one, because"),
    ],
)
def test_batched_pull_and_its_fall_back(fn: Any, how: str) -> None:
    program = program_of(fn, draw(3))
    cotangents = np.random.default_rng(2).standard_normal((8, 3))
    kept = cotangents.copy()
    for _ in range(2):
        np.testing.assert_allclose(program.pull(cotangents), cotangents * np.cos(program.point), rtol=1e-14)
    np.testing.assert_array_equal(cotangents, kept)
    assert program.notes[0].startswith(how)


def test_pushes_through_a_gradient_without_a_batching_rule_are_batched_at_the_point() -> None:
    arguments = (draw(2, 3), draw(2, 4), draw(2, 3, 4))
    gradient = program_of(torch.nn.functional.bilinear, arguments).gradient(np.linspace(-1.0, 1.5, 4))
    tangents = np.random.default_rng(2).standard_normal((9, gradient.point.size))
    alone = np.concatenate([gradient.push(row[None]) for row in tangents])
    np.testing.assert_allclose(gradient.push(tangents), alone, rtol=1e-12, atol=1e-12)
    assert "push: vmap of the tangents" in gradient.notes


def test_work_is_counted_in_rows() -> None:
    program = program_of(torch.sin, draw(4))
    tally = program.tally
    assert (tally.evaluations, tally.pulls, tally.pushes) == (1, 0, 0)
    program.values(np.zeros((40, 4)))  # and the point, to compare with its known value
    assert tally.evaluations == 1 + 40 + 1
    program.values(np.zeros((40, 4)))
    program.values(np.zeros((1, 4)))  # few rows run as the user's own call did, with a graph
    assert tally.evaluations == 42 + 41
    program.pull(np.zeros((8, 4)))
    program.push(np.zeros((9, 4)))
    assert (tally.pulls, tally.pushes) == (8 + 1, 9 + 1)
    program.pull(np.zeros((3, 4)))  # too few for a batch
    assert tally.pulls == 9 + 3
    looped = program_of(branching, draw(4))
    looped.values(np.zeros((8, 4)))  # and the point, to see that no_grad changes nothing
    assert looped.tally.evaluations == 1 + 8 + 1


def test_the_count_is_that_of_real_calls() -> None:
    calls = 0

    def counted(x: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += 1
        return x * float(x.detach()[0])

    program = program_of(counted, draw(2))
    program.values(np.ones((1, 2)))
    program.values(np.ones((40, 2)))
    assert program.tally.evaluations == calls - 1  # but for the batch that was refused by vmap before its first row


def test_a_row_outside_the_domain_is_nan() -> None:
    def fn(x: torch.Tensor) -> Any:
        if float(x.detach()[0]) < 0:
            raise ValueError("negative")
        return x.sqrt(), torch.complex(x, x)

    program = program_of(fn, torch.ones(1, dtype=torch.float64))
    values = program.values(np.array([[4.0], [-1.0], [9.0]]))
    np.testing.assert_array_equal(np.isnan(values), [[False] * 3, [True] * 3, [False] * 3])
    np.testing.assert_array_equal(values[2], [3, 9, 9])
    assert "fn raised ValueError('negative') at a perturbed point" in program.notes


def test_a_failing_batch_costs_only_that_batch() -> None:
    program = program_of(torch.linalg.cholesky, torch.eye(2, dtype=torch.float64))
    assert program.batched
    rows = np.array([[1.0, 0, 0, 1], [-1, 0, 0, 1], [4, 0, 0, 4]] * 11)
    values = program.values(rows)
    assert np.isnan(values[1]).all()
    np.testing.assert_array_equal(values[2], [2, 0, 0, 2])
    assert program.batched
    for _ in range(2):
        program.values(rows)
    assert not program.batched


def test_large_rows_are_run_in_chunks() -> None:
    program = program_of(lambda x: x.sum(0), draw(64, 1024))
    rows = np.random.default_rng(0).standard_normal((33, 64 * 1024))
    np.testing.assert_allclose(program.values(rows), rows.reshape(33, 64, 1024).sum(1), atol=1e-12)
    assert program.batched
    big = program_of(torch.sin, torch.zeros(2**20, dtype=torch.float64))
    assert not big.batched
    assert big.tally.evaluations == 1


def test_warnings_of_vmap_are_not_the_users() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        program = program_of(torch.special.airy_ai, draw(3))
        program.values(np.ones((3, 3)))


def test_no_rows() -> None:
    program = program_of(torch.sin, draw(3))
    assert program.values(np.empty((0, 3))).shape == (0, 3)
    assert program.pull(np.empty((0, 3))).shape == (0, 3)
    assert program.push(np.empty((0, 3))).shape == (0, 3)
    with pytest.raises(ValueError, match=r"rows of 3 coordinates"):
        program.values(np.zeros(3))


def test_agreement() -> None:
    nan, inf = np.nan, np.inf
    one = np.array([1.0, nan, inf])
    assert agree(one + 1e-15, one, 1e-16)
    assert not agree(one + 1e-13, one, 1e-16)
    assert not agree(np.array([1.0, 1.0, inf]), one, 1e-16)
    assert not agree(np.array([1.0, nan, -inf]), one, 1e-16)
    assert not agree(np.array([nan]), np.array([1.0]), 1e-16)


def test_a_pending_normal_of_numpy_is_not_taken_for_randomness() -> None:
    np.random.seed(0)  # noqa: NPY002
    np.random.randn()  # noqa: NPY002  a second normal is pending now
    assert program_of(torch.sin, draw(4)).batched


def test_a_program_ends_with_its_last_user() -> None:
    """Tensors of a million entries must not wait for the collector of cycles."""
    program = program_of(torch.sin, (torch.randn(8, dtype=torch.float64, requires_grad=True),))
    program.values(np.repeat(program.point[None], 40, axis=0))
    program.pull(np.eye(8))
    program.push(np.eye(8))
    still_there = weakref.ref(program)
    gc.disable()
    try:
        del program
        assert still_there() is None
    finally:
        gc.enable()


def test_random_numbers_that_only_other_points_draw_are_put_back() -> None:
    """The call at the point draws none, so that no call by itself is looked after; the check as a whole is."""
    x = draw(3).requires_grad_()

    def fn(given: torch.Tensor) -> torch.Tensor:
        moved = not torch.equal(given.detach(), x.detach())
        return given.sin() + (0.0 * float(torch.rand(1)) * np.random.random() if moved else 0.0)  # noqa: NPY002

    before = world()
    assert gradproof.check(fn, x, seed=0).ok
    assert world() == before
