"""The torch adapter: derivatives in both modes, complex numbers, gradient programs, widening."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.autograd.function import once_differentiable

import gradproof
from gradproof.errors import RuleRaised, Unsupported
from gradproof.program import Array
from gradproof.torch import TorchProgram, program_of


def draw(*shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(sum(shape) + 1))


def numeric(program: TorchProgram, step: float = 1e-6) -> Array:
    eye = step * np.eye(program.point.size)
    difference: Array = (program.values(program.point + eye) - program.values(program.point - eye)).T / (2 * step)
    return difference


def jacobians(program: TorchProgram) -> tuple[Array, Array]:
    """Batched; and the first, the middle and the last row must be what they are alone."""
    pulled, pushed = program.pull(np.eye(program.value.size)), program.push(np.eye(program.point.size))
    for i in {0, len(pulled) // 2, len(pulled) - 1}:
        np.testing.assert_allclose(program.pull(np.eye(program.value.size)[i : i + 1])[0], pulled[i], atol=1e-12)
    for i in {0, len(pushed) // 2, len(pushed) - 1}:
        np.testing.assert_allclose(program.push(np.eye(program.point.size)[i : i + 1])[0], pushed[i], atol=1e-12)
    return pulled, pushed.T


REAL, COMPLEX = draw(3), draw(3, dtype=torch.complex128)
MAPS: list[tuple[str, Callable[..., Any], Any]] = [
    ("R->R", lambda x: x.sin() * x.sum(), REAL),
    ("R->C", lambda x: torch.exp(1j * x) * x.sum(), REAL),
    ("C->R", lambda z: (z * z).imag + z.abs(), COMPLEX),
    ("C->C holomorphic", lambda z: z.exp() * z, COMPLEX),
    ("C->C conjugating", lambda z: z.conj() * (2 + 1j) + z * z.real, COMPLEX),
    ("lazy conj out", lambda z: (z * z).conj(), COMPLEX),
    ("R,C->(R,C)", lambda x, z: (x.sum() * 1.0, x * z, z.abs()), (REAL, COMPLEX)),
    ("in place", lambda x: x.mul_(2).add_(1).sin() * x, REAL),
    ("unused input", lambda x, y: x * 2, (REAL, draw(2))),
    ("same twice", lambda x: (x, x), REAL),
]


@pytest.mark.parametrize(("fn", "args"), [case[1:] for case in MAPS], ids=[case[0] for case in MAPS])
def test_pull_and_push_against_differences(fn: Callable[..., Any], args: Any) -> None:
    program = program_of(fn, args)
    reference = numeric(program)
    pulled, pushed = jacobians(program)
    np.testing.assert_allclose(pulled, reference, atol=1e-7)
    np.testing.assert_allclose(pushed, reference, atol=1e-7)


def test_the_pairing_of_complex_numbers_in_closed_form() -> None:
    """z -> (2 + 3i) z multiplies (re, im) by [[2, -3], [3, 2]]; conjugation flips the sign of the second column."""
    z = torch.tensor([0.5 - 1j], dtype=torch.complex128)
    expected = np.array([[2.0, -3.0], [3.0, 2.0]])
    np.testing.assert_allclose(jacobians(program_of(lambda z: (2 + 3j) * z, z)), [expected] * 2)
    flipped = expected * [1, -1]
    np.testing.assert_allclose(jacobians(program_of(lambda z: (2 + 3j) * z.conj(), z)), [flipped] * 2)


@pytest.mark.parametrize(("fn", "args"), [case[1:] for case in MAPS], ids=[case[0] for case in MAPS])
def test_gradient_programs_up_to_order_three(fn: Callable[..., Any], args: Any) -> None:
    program = program_of(fn, args)
    rng = np.random.default_rng(3)
    for _ in range(2):
        program = program.gradient(rng.standard_normal(program.value.size))
        reference = numeric(program)
        pulled, pushed = jacobians(program)
        np.testing.assert_allclose(pulled, reference, atol=1e-6)
        np.testing.assert_allclose(pushed, reference, atol=1e-6)


def test_gradient_program_in_closed_form() -> None:
    first = program_of(lambda x: x**3, torch.tensor([2.0], dtype=torch.float64))
    second = first.gradient(np.array([5.0]))
    third = second.gradient(np.array([1.0]))
    assert [leaf.path for leaf in second.inputs] == ["args[0]", "cotangent(out)"]
    assert [leaf.path for leaf in second.outputs] == ["grad(args[0])"]
    assert [leaf.path for leaf in third.inputs] == ["args[0]", "cotangent(out)", "cotangent(grad(args[0]))"]
    assert [leaf.path for leaf in third.outputs] == ["grad(args[0])", "grad(cotangent(out))"]
    np.testing.assert_allclose(second.value, [5 * 3 * 4])
    np.testing.assert_allclose(second.pull(np.eye(1)), [[5 * 6 * 2, 3 * 4]])
    np.testing.assert_allclose(third.value, [5 * 6 * 2, 3 * 4])
    np.testing.assert_allclose(third.pull(np.eye(2)), [[30, 12, 60], [12, 0, 12]])
    assert second.tally is first.tally is third.tally
    np.testing.assert_allclose(second.values(np.array([[1.0, 2.0], [3.0, 1.0]])), [[6], [27]])


def test_a_gradient_that_is_constant_is_an_output_without_derivative() -> None:
    second = program_of(lambda x: (3 * x).detach() * 2 + x, draw(2)).gradient(np.ones(2))
    np.testing.assert_array_equal(second.value, [1, 1])
    np.testing.assert_array_equal(second.pull(np.eye(2))[:, :2], np.zeros((2, 2)))


class Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
        return 2 * g * ctx.saved_tensors[0]


class Boom(Once):
    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
        raise ZeroDivisionError("my own")


class BoomForward(Once):
    @staticmethod
    def jvp(ctx: Any, u: torch.Tensor) -> torch.Tensor:
        raise ZeroDivisionError("my own")


class OneUse(Once):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.kept = x.clone()
        return x * x

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
        kept = ctx.kept
        del ctx.kept
        return 2 * g * kept


def test_modes_that_do_not_exist_are_unsupported() -> None:
    program = program_of(Once.apply, draw(2))
    assert program.name == "Once.apply"
    for _ in range(2):
        with pytest.raises(Unsupported, match="has no jvp"):
            program.push(np.eye(2))
    second = program.gradient(np.ones(2))
    with pytest.raises(Unsupported, match="once_differentiable"):
        second.pull(np.eye(2))
    with pytest.raises(Unsupported, match="once_differentiable"):
        second.gradient(np.ones(2))
    np.testing.assert_allclose(program.pull(np.eye(2)), np.diag(2 * program.point))


def test_a_missing_mode_keeps_no_vectors() -> None:
    program, tangents = program_of(Once.apply, draw(2)), np.ones((1, 2))
    kept = weakref.ref(tangents)
    for _ in range(2):
        try:
            program.push(tangents)
        except Unsupported as missing:
            assert "has no jvp" in str(missing)  # noqa: PT017  pytest.raises would keep the frames itself
    del tangents
    assert kept() is None


def test_the_users_own_errors_propagate() -> None:
    for rows in (1, 2):
        with pytest.raises(ZeroDivisionError, match="my own"):
            program_of(Boom.apply, draw(2)).pull(np.ones((rows, 2)))
        with pytest.raises(RuleRaised, match=r"ZeroDivisionError: my own .* in jvp") as found:
            program_of(BoomForward.apply, draw(2)).push(np.ones((rows, 2)))
        assert isinstance(found.value.__cause__, ZeroDivisionError)
    with pytest.raises(KeyError, match="mine"):
        program_of(lambda x: {}["mine"], draw(2))


def test_a_graph_that_serves_only_once_is_made_anew() -> None:
    program = program_of(OneUse.apply, draw(2))
    for cotangents in (np.ones((1, 2)), np.ones((1, 2)), np.eye(2), np.eye(2)):
        np.testing.assert_allclose(program.pull(cotangents), cotangents * 2 * program.point)
    assert any("a new graph each time" in note for note in program.notes)


def test_sparse_gradients_are_made_dense() -> None:
    index = torch.tensor([0, 2, 2])
    program = program_of(lambda w: torch.nn.functional.embedding(index, w, sparse=True), draw(4, 2))
    expected = np.kron(np.eye(4)[index], np.eye(2))
    np.testing.assert_array_equal(program.pull(np.eye(6)), expected)
    np.testing.assert_array_equal(program.pull(np.eye(6)[3:4])[0], expected[3])


def test_a_function_that_needs_grad_mode() -> None:
    def slope(x: torch.Tensor) -> torch.Tensor:
        x = x if x.requires_grad else x.requires_grad_()
        return torch.autograd.grad((x**3).sum(), x, create_graph=True)[0]

    def by_mode(x: torch.Tensor) -> torch.Tensor:
        return x * (2.0 if torch.is_grad_enabled() and x.requires_grad else 3.0)

    for fn, factor in ((slope, 6 * draw(3).numpy()), (by_mode, 2.0)):
        program = program_of(fn, draw(3))
        np.testing.assert_allclose(numeric(program), np.eye(3) * factor, atol=1e-7)
        np.testing.assert_allclose(program.pull(np.eye(3)), np.eye(3) * factor, atol=1e-12)
        assert not program.batched


def test_widened() -> None:
    class Affine(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(draw(3, dtype=torch.float32))
            self.register_buffer("shift", draw(3, dtype=torch.float32))

        def forward(self, x: torch.Tensor, fixed: torch.Tensor) -> torch.Tensor:
            assert x.dtype == fixed.dtype == self.weight.dtype == self.shift.dtype
            return (x * self.weight + self.shift).exp() * fixed

    module = Affine()
    narrow = program_of(module, (draw(3, dtype=torch.float32), draw(3, dtype=torch.float32)), wrt=("args[0]", "params"))
    wide = narrow.widened()
    assert {leaf.dtype for leaf in (*wide.inputs, *wide.outputs)} == {"float64"}
    assert [leaf.path for leaf in wide.inputs] == [leaf.path for leaf in narrow.inputs]
    np.testing.assert_array_equal(wide.point, narrow.point)
    np.testing.assert_allclose(wide.value, narrow.value, rtol=1e-6)
    assert not np.array_equal(wide.value, narrow.value)
    np.testing.assert_allclose(wide.pull(np.eye(3)), numeric(wide), atol=1e-7)
    assert wide.widened() is wide
    assert wide.tally is narrow.tally
    assert module.weight.dtype == module.shift.dtype == torch.float32
    second = narrow.gradient(np.ones(3)).widened()
    np.testing.assert_allclose(second.pull(np.eye(6)), numeric(second), atol=1e-6)
    assert wide.gradient(np.ones(3)).widened().inputs[0].dtype == "float64"


def test_what_cannot_be_widened() -> None:
    with pytest.raises(Unsupported, match="does not run in float64: TypeError: float32 alone"):
        program_of(_float32_alone, draw(2, dtype=torch.float32)).widened()
    with pytest.raises(Unsupported, match="out stays float32"):
        program_of(lambda x: x.float().sin(), draw(2, dtype=torch.float32)).widened()
    complex_wide = program_of(torch.sin, draw(2, dtype=torch.complex64)).widened()
    assert complex_wide.outputs[0].dtype == "complex128"


def _float32_alone(x: torch.Tensor) -> torch.Tensor:
    if x.dtype is not torch.float32:
        raise TypeError("float32 alone")
    return x.sin()


@pytest.fixture(scope="module")
def unforwarded() -> Any:
    """A custom op with a backward and no forward rule."""
    op = torch.library.custom_op("gradproof_tests::cube", mutates_args=())(_cube)
    op.register_autograd(lambda ctx, g: 3 * ctx.saved_tensors[0] ** 2 * g, setup_context=_keep)
    return op


def _cube(x: torch.Tensor) -> torch.Tensor:
    return x**3


def _keep(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs)


@pytest.mark.parametrize("size", [3, 5000])
def test_a_custom_op_without_a_forward_rule(unforwarded: Any, size: int) -> None:
    """torch's forward mode takes it for a constant where nothing requires grad."""
    x = torch.linspace(0.5, 2, size, dtype=torch.float64)
    for fn in (unforwarded, lambda x: unforwarded(x) + x):
        result = gradproof.check(fn, x, seed=0)
        assert result.verdict is gradproof.Verdict.RIGHT
        assert {comparison.mode for comparison in result.comparisons} == {"reverse"}
    assert gradproof.check(unforwarded, x, seed=0).name == "gradproof_tests::cube"


@pytest.mark.parametrize("shift", range(1, 14))
def test_a_batch_that_mixes_up_its_rows_is_not_believed(shift: int) -> None:
    """torch (2.13) rolls a batch of scalars, of which each stays as it is. Steps along the argument leave the cotangent
    as it is, so that a row may get what belongs to another, and be right by chance."""
    x = torch.tensor(1.5 - 0.5j, dtype=torch.complex128)
    assert gradproof.check(torch.roll, (x, shift), order=2, seed=shift).ok
