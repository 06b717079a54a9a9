"""Right gradients that torch's checker fails or crashes on, and gradproof's must pass; and verdicts that mislead."""

from __future__ import annotations

import contextlib
import math
import time
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from twins import F64, Checker, Linear2, derived, fails, leaf, passes, square


def failed_by_torch(theirs: Checker, fn: Callable[..., Any], inputs: Any, **options: Any) -> None:
    with (
        warnings.catch_warnings(),
        contextlib.suppress(IndexError, AttributeError, RuntimeError, ValueError, TypeError),
    ):
        warnings.simplefilter("ignore")
        assert theirs.gradcheck(fn, inputs, raise_exception=False, **options) is False


# ---- outputs


@pytest.mark.parametrize(
    "fn",
    [lambda x: (torch.ones_like(x), x * x), lambda x: torch.linalg.lu(x @ x.mT + 3 * torch.eye(3, dtype=F64))],
    ids=["ones first", "lu"],
)
def test_a_constant_output_in_first_place(ours: Checker, theirs: Checker, fast: bool, fn: Any) -> None:
    if fast:
        failed_by_torch(theirs, fn, leaf(3, 3), fast_mode=True)
    passes(ours.gradcheck, fn, leaf(3, 3), fast_mode=fast)


def test_a_wrong_jvp_behind_a_constant_output_is_reported(ours: Checker, theirs: Checker, fast: bool) -> None:
    def fn(wrong: str) -> Callable[[Tensor], Any]:
        return lambda x: (torch.ones(2, dtype=F64), Linear2.apply(x, wrong))

    passes(ours.gradcheck, fn(""), leaf(3), check_forward_ad=True, fast_mode=fast)
    fails(
        ours,
        "Jacobian computed with forward mode mismatch",
        fn("forward"),
        leaf(3),
        check_forward_ad=True,
        fast_mode=fast,
    )


def test_an_empty_input_that_gives_nan(ours: Checker, fast: bool) -> None:
    x = torch.empty(5, 0, dtype=F64, requires_grad=True)
    passes(ours.gradcheck, lambda x: x.sum(), x, check_forward_ad=True, fast_mode=fast)
    # The mean of nothing is nan: an answer about it, whichever, and no crash in the report.
    assert ours.gradcheck(Tensor.mean, x, check_forward_ad=True, raise_exception=False, fast_mode=fast) in (True, False)


@pytest.mark.parametrize("extra", [None, 3.0, {"a": 1}, "text"])
def test_other_objects_among_the_outputs(ours: Checker, theirs: Checker, fast: bool, extra: Any) -> None:
    failed_by_torch(theirs, lambda x: (x * x, extra), leaf(3), fast_mode=fast)
    passes(ours.gradcheck, lambda x: (x * x, extra), leaf(3), fast_mode=fast)
    fails(ours, "Jacobian mismatch for output 0", lambda x: (extra, square(3.0)(x)), leaf(3), fast_mode=fast)


def test_a_dict_of_outputs(ours: Checker, theirs: Checker, fast: bool) -> None:
    failed_by_torch(theirs, lambda x: {"y": x * x}, leaf(3), fast_mode=fast)
    passes(ours.gradcheck, lambda x: {"y": x * x}, leaf(3), fast_mode=fast)
    fails(ours, "Jacobian mismatch", lambda x: {"y": square(3.0)(x)}, leaf(3), fast_mode=fast)


# ---- inputs


def test_lists_among_the_inputs(ours: Checker, theirs: Checker, fast: bool) -> None:
    def fn(factor: float) -> Callable[..., Tensor]:
        return lambda xs, y: square(factor)(xs[0]) * y

    inputs = [leaf(3)], leaf(3, seed=1)
    failed_by_torch(theirs, fn(2.0), inputs, fast_mode=fast)
    passes(ours.gradcheck, fn(2.0), inputs, fast_mode=fast)
    assert "args[0][0]" in str(fails(ours, "Jacobian mismatch", fn(3.0), inputs, fast_mode=fast))


def test_nothing_but_a_list(ours: Checker, theirs: Checker, fast: bool) -> None:
    inputs = ([leaf(3), leaf(3, seed=1)],)
    failed_by_torch(theirs, lambda xs: xs[0] * xs[1], inputs, fast_mode=fast)
    passes(ours.gradcheck, lambda xs: xs[0] * xs[1], inputs, fast_mode=fast)


def test_writing_into_an_input_that_is_no_leaf(ours: Checker, theirs: Checker, fast: bool) -> None:
    x = leaf(3) * 1
    failed_by_torch(theirs, lambda x: x.mul_(2) * 1, x.clone(), fast_mode=fast)
    before = x.detach().clone()
    passes(ours.gradcheck, lambda x: x.mul_(2) * 1, x, fast_mode=fast)
    assert torch.equal(x.detach(), before)


def test_overlap_other_than_stride_zero(ours: Checker, theirs: Checker, fast: bool) -> None:
    x = torch.arange(1.0, 6.0, dtype=F64).unfold(0, 3, 1).requires_grad_()
    failed_by_torch(theirs, lambda x: 2 * x, x)
    passes(ours.gradcheck, lambda x: 2 * x, x, fast_mode=fast)
    fails(ours, "Jacobian mismatch", square(3.0), x, fast_mode=fast)


# ---- precision and scale


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_right_code_in_narrow_dtypes(ours: Checker, theirs: Checker, fast: bool, dtype: torch.dtype) -> None:
    x = leaf(4, dtype=dtype)
    failed_by_torch(theirs, torch.sin, x)
    with pytest.warns(UserWarning, match="double precision"):
        passes(ours.gradcheck, torch.sin, x, fast_mode=fast)


@pytest.mark.parametrize(
    ("fn", "at"), [(torch.square, 1e9), (torch.square, 1e12), (torch.reciprocal, 1e-5), (torch.log, 1e-7)]
)
def test_a_fixed_step_does_not_fit(ours: Checker, theirs: Checker, fast: bool, fn: Any, at: float) -> None:
    x = torch.full((2,), at, dtype=F64, requires_grad=True)
    failed_by_torch(theirs, fn, x, fast_mode=fast)
    passes(ours.gradcheck, fn, x, fast_mode=fast)


# ---- second order


def test_the_global_random_state_at_second_order(ours: Checker, theirs: Checker) -> None:
    def moved(checker: Checker) -> bool:
        state = torch.get_rng_state()
        checker.gradgradcheck(torch.sin, leaf(3))
        return not torch.equal(torch.get_rng_state(), state)

    assert moved(theirs)
    assert not moved(ours)


def test_second_order_of_a_sparse_input(ours: Checker, theirs: Checker, fast: bool) -> None:
    # The derivative in the cotangent exists and is right; torch asks for `to_dense` although the function ends in one.
    x = torch.eye(3, dtype=F64).to_sparse().requires_grad_()
    with pytest.raises(ValueError, match="to_dense"):
        theirs.gradgradcheck(lambda x: x.to_dense(masked_grad=True), x, masked=True, fast_mode=fast)
    passes(ours.gradgradcheck, lambda x: x.to_dense(masked_grad=True), x, masked=True, fast_mode=fast)


def test_a_second_order_product_of_many_factors(ours: Checker, fast: bool) -> None:
    passes(ours.gradgradcheck, lambda x: x.cumprod(0), leaf(5), fast_mode=fast)


# ---- verdicts that mislead


def test_under_no_grad(ours: Checker, theirs: Checker, fast: bool) -> None:
    with torch.no_grad():
        failed_by_torch(theirs, torch.sin, leaf(3), fast_mode=fast)
        passes(ours.gradcheck, torch.sin, leaf(3), fast_mode=fast)


def test_nan_is_not_called_a_mismatch(ours: Checker, theirs: Checker, fast: bool) -> None:
    x = torch.tensor([0.5, 0.25], dtype=F64, requires_grad=True)
    with pytest.raises(theirs.GradcheckError, match="mismatch"):
        theirs.gradcheck(torch.acosh, x, fast_mode=fast)
    error = fails(ours, "", torch.acosh, x, fast_mode=fast)
    assert "mismatch" not in str(error).splitlines()[0]
    assert "nan" in str(error).lower()


def test_dropout_is_not_called_a_mismatch(ours: Checker, theirs: Checker, fast: bool) -> None:
    dropout = torch.nn.Dropout(0.5)
    with pytest.raises(theirs.GradcheckError):
        theirs.gradcheck(dropout, leaf(16), fast_mode=fast)
    error = fails(ours, "(?i)random|determinis", dropout, leaf(16), fast_mode=fast)
    assert "mismatch" not in str(error).splitlines()[0]
    passes(ours.gradcheck, dropout.eval(), leaf(16), fast_mode=fast)


def test_the_report_shows_where(ours: Checker, fast: bool) -> None:
    def backward(g: Tensor, x: Tensor) -> Tensor:
        gradient = 2 * x * g
        gradient[137] *= 1.5
        return gradient

    assert "args[0][137]" in str(fails(ours, "Jacobian", derived(lambda x: x * x, backward), leaf(300), fast_mode=fast))


def test_a_failing_fast_check_is_fast(ours: Checker) -> None:
    started = time.perf_counter()
    with pytest.raises(ours.GradcheckError, match="Jacobian mismatch"):
        ours.gradcheck(square(3.0), leaf(10_000), fast_mode=True)
    assert time.perf_counter() - started < 20  # torch: about a minute and 6 GB


# ---- forward mode


def test_forward_mode_with_retain_grad(ours: Checker, fast: bool) -> None:
    def fn(x: Tensor) -> Tensor:
        y = x * 2
        if y.requires_grad:
            y.retain_grad()
        return y.sin()

    passes(ours.gradcheck, fn, leaf(3), check_forward_ad=True, fast_mode=fast)


def test_forward_mode_through_an_addition_to_its_own_transpose(ours: Checker, fast: bool) -> None:
    def fn(x: Tensor) -> Tensor:
        y = x.clone()
        y += y.mT.clone()
        return y.mT.mul_(2)

    passes(ours.gradcheck, fn, leaf(3, 3), check_forward_ad=True, fast_mode=fast)


def test_batched_gradients_of_a_backward_that_prints(ours: Checker, fast: bool, capsys: Any) -> None:
    fn = derived(lambda x: x * 2, lambda g, x: (print("shape", tuple(g.shape)), 2 * g)[1])  # noqa: T201
    passes(ours.gradcheck, fn, leaf(3), check_batched_grad=True, fast_mode=fast)
    assert "shape" in capsys.readouterr().out


def test_slow_and_fast_agree_on_complex_functions(ours: Checker) -> None:
    z = (0.01 * leaf(2, dtype=torch.complex128).detach()).requires_grad_()
    for fast in (False, True):
        passes(ours.gradcheck, lambda z: 1.0 / torch.linalg.vector_norm(z), z, fast_mode=fast)
        assert math.isfinite(z.detach().abs().sum().item())


class _Cubed(torch.autograd.Function):
    """x**3 with a gradient that is right, whose own derivative is not."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, cotangent: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        return _Tripled.apply(x, cotangent)  # type: ignore[no-untyped-call]


class _Tripled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, cotangent: Tensor) -> Tensor:
        ctx.save_for_backward(x, cotangent)
        return 3 * x**2 * cotangent

    @staticmethod
    def backward(ctx: Any, further: Tensor) -> Any:
        x, cotangent = ctx.saved_tensors
        return 5 * x * cotangent * further, 3 * x**2 * further


def _attention(cubed: Callable[[Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    def attend(x: Tensor, packed: Tensor) -> Tensor:
        query, key, value = (x @ weight.mT for weight in packed.split(2))
        return torch.softmax(query @ key.mT / math.sqrt(2), -1) @ value + cubed(packed[4, 0])

    return attend


def test_second_derivatives_of_saturated_attention(ours: Checker, theirs: Checker, fast: bool) -> None:
    """Weights of 1 up to rounding: the derivatives by what they come from are rounding of terms that cancel, and stand
    in one leaf with others of size 100."""
    generator = torch.Generator().manual_seed(2)
    torch.rand(18, generator=generator, dtype=F64)
    x = (18 * torch.rand(3, 2, generator=generator, dtype=F64) - 9).requires_grad_()
    packed = (18 * torch.rand(6, 2, generator=generator, dtype=F64) - 9).requires_grad_()
    for checker in (ours, theirs):
        passes(checker.gradgradcheck, _attention(lambda x: x**3), (x, packed), fast_mode=fast)
    wrong = _attention(_Cubed.apply)
    passes(ours.gradcheck, wrong, (x, packed), fast_mode=fast)
    fails(ours, "Jacobian mismatch", wrong, (x, packed), check=ours.gradgradcheck, fast_mode=fast)
