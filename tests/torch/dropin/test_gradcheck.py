"""The drop-in's own promises, as twins: a right function passes, a wrong one fails with the right words and place."""

from __future__ import annotations

import inspect
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.autograd import Function

from gradproof.torch import (
    GradcheckError,
    NonDifferentiableWarning,
    UndecidedWarning,
    gradcheck,
    gradgradcheck,
)


def leaf(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(3)
    return (torch.rand(shape, dtype=torch.float64, generator=generator) + 0.5).to(dtype).requires_grad_()


def custom(forward: Callable[..., Any], backward: Callable[..., Any]) -> Callable[..., Any]:
    class Custom(Function):
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> Any:
            ctx.inputs = inputs
            ctx.needed = ctx.needs_input_grad
            return forward(*inputs)

        @staticmethod
        def backward(ctx: Any, *cotangents: Tensor) -> Any:
            return backward(ctx, *cotangents, *ctx.inputs)

    return Custom.apply


def scale(weight: Tensor, x: Tensor) -> Tensor:
    return custom(lambda w, x: w * x, lambda ctx, g, w, x: (g * x, g * w * FACTOR[0]))(weight, x)


FACTOR = [1.0]


def failure(check: Callable[..., bool], *args: Any, **options: Any) -> GradcheckError:
    """The error; and the same check returns False when asked not to raise."""
    with pytest.raises(GradcheckError) as caught:
        check(*args, **options)
    assert check(*args, raise_exception=False, **options) is False
    return caught.value


# ---- messages in full


def test_a_wrong_gradient_in_full() -> None:
    x = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, requires_grad=True)
    w = torch.tensor([1.0, 1.0, 4.0], dtype=torch.float64, requires_grad=True)
    FACTOR[0] = 1.5
    try:
        text = str(failure(gradcheck, scale, (w, x)))
    finally:
        FACTOR[0] = 1.0
    first, where, numbers, cause, following, legend = text.splitlines()
    assert first == "Jacobian mismatch for output 0 with respect to input 1,"
    assert where == "  reverse   d out[0] / d args[1][0]: 3 of 9 entries wrong"
    assert numbers.startswith("            analytic 1.50000, numeric 1.00000 ± ")
    assert numbers.endswith(", tolerance 0.0010")
    assert cause.startswith("  cause     ")
    assert "1.5" in cause
    assert following.startswith("  next      ")
    assert legend == "  where     args[1] is x"
    assert gradcheck(scale, (w, x))


def test_a_hidden_dependence_in_full() -> None:
    text = str(failure(gradcheck, lambda x: (2 * x, (3 * x).detach()), leaf(2)))
    assert text.splitlines()[0] == ("Numerical gradient for function expected to be zero: out[1] does not require grad")
    assert "d out[1][" in text
    assert gradcheck(lambda x: (2 * x, torch.ones(2)), leaf(2))


def test_backward_that_is_not_reentrant_in_full() -> None:
    fn = custom(lambda x: x * 2, lambda ctx, g, x: 2 * g * (1 + torch.rand_like(g)))
    lines = str(failure(gradcheck, fn, leaf(3))).splitlines()
    assert lines[0].startswith("Backward is not reentrant, i.e., ")
    assert "(nondet_tol=0): args[0] differs by up to " in lines[0]
    assert lines[1].startswith("  next      Look for saved tensors that backward overwrites")
    assert len(lines) == 2


def test_a_fast_failure_can_be_replayed_unless_every_entry_was_looked_at() -> None:
    fn = custom(lambda x: x * x, lambda ctx, g, x: 3 * x * g)
    small = str(failure(gradcheck, fn, leaf(60), fast_mode=True))
    assert "60 of 3,600 entries wrong" in small
    assert "replay" not in small
    assert "replay    gradproof.check(func, inputs, effort=1, seed=" in str(
        failure(gradcheck, fn, leaf(100), fast_mode=True)
    )


# ---- the verbs


@pytest.mark.parametrize("ours", [gradcheck, gradgradcheck])
def test_the_signature_is_torchs(ours: Callable[..., bool]) -> None:
    theirs = inspect.signature(getattr(torch.autograd, ours.__name__))
    got = inspect.signature(ours)
    assert list(got.parameters) == list(theirs.parameters)
    assert [p.kind for p in got.parameters.values()] == [p.kind for p in theirs.parameters.values()]


def test_the_older_spelling_of_masked() -> None:
    sparse = torch.tensor([0.0, 1.0, 2.0], dtype=torch.float64).to_sparse().requires_grad_()
    with pytest.warns(FutureWarning, match="older spelling"):
        assert gradcheck(lambda s: s.to_dense(), sparse, check_sparse_nnz=True)
    with pytest.warns(FutureWarning), pytest.raises(ValueError, match="contradicts"):
        gradcheck(lambda s: s.to_dense(), sparse, check_sparse_nnz=True, masked=False)


@pytest.mark.parametrize("fast", [False, True])
def test_left_out_tolerances_shrink_with_the_gradient(fast: bool) -> None:
    wrong = custom(lambda x: 1e-6 * x * x, lambda ctx, g, x: -2e-6 * x * g)
    assert gradcheck(lambda x: 1e-6 * x * x, leaf(3), fast_mode=fast)
    failure(gradcheck, wrong, leaf(3), fast_mode=fast)
    assert gradcheck(wrong, leaf(3), atol=1e-5, fast_mode=fast)  # given, it means what it means to torch


@pytest.mark.parametrize("fast", [False, True])
def test_second_order(fast: bool) -> None:
    class Wrong(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, g: Tensor) -> Tensor:
            ctx.save_for_backward(x, g)
            return 3 * x**2 * g

        @staticmethod
        def backward(ctx: Any, h: Tensor) -> Any:
            x, g = ctx.saved_tensors
            return 5 * x * g * h, 3 * x**2 * h

    wrong = custom(lambda x: x**3, lambda ctx, g, x: Wrong.apply(x, g))
    assert gradgradcheck(torch.sin, leaf(3), fast_mode=fast, check_fwd_over_rev=True)
    assert gradcheck(wrong, leaf(3), fast_mode=fast)  # its first derivative is right
    assert "Jacobian mismatch for output 0 with respect to input 0" in str(
        failure(gradgradcheck, wrong, leaf(3), fast_mode=fast)
    )


def test_given_cotangents_may_be_fixed_and_of_another_dtype() -> None:
    fixed = torch.ones(3, dtype=torch.float32)
    assert gradgradcheck(torch.sin, leaf(3), (fixed,))
    assert gradgradcheck(torch.sin, leaf(3), gen_non_contig_grad_outputs=True)


def test_the_users_random_numbers_stay_what_they_were() -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    gradgradcheck(torch.sin, leaf(3))
    gradcheck(torch.sin, leaf(3), check_forward_ad=True, check_batched_grad=True, fast_mode=True)
    assert torch.equal(before, torch.get_rng_state())


def test_every_process_draws_the_same_unless_it_is_seeded() -> None:
    """Torch itself starts each with another seed."""

    def drawn(line: str) -> str:
        code = f"import torch; from gradproof.torch.dropin.options import seed; {line}; print(seed())"
        return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()

    assert drawn("pass") == drawn("pass")
    assert drawn("torch.manual_seed(7)") == "7"


# ---- contracts


def as_strided(ctx: Any, g: Tensor, x: Tensor) -> Tensor:
    return 2 * torch.as_strided(g, x.shape, x.stride(), g.storage_offset())


def depends_on_subset(ctx: Any, g: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    factor = 1 if all(ctx.needs_input_grad) else 2
    return factor * g * b, factor * g * a


def overwrite(ctx: Any, g: Tensor, x: Tensor) -> Tensor:
    gradient = 2 * g
    g.zero_()
    return gradient


BROKEN: dict[str, tuple[Callable[..., Any], Callable[..., Any], int, dict[str, Any], str]] = {
    "memory layout": (lambda x: x * 2, as_strided, 1, {}, "memory layout"),
    "large cotangents": (lambda x: x * 2, lambda ctx, g, x: 2 * g.clamp(-500, 500), 1, {}, "not linear"),
    "huge cotangents": (lambda x: x * 2, lambda ctx, g, x: 2 * g.clamp(-1e5, 1e5), 1, {}, "more than its size"),
    "subset": (lambda a, b: a * b, depends_on_subset, 2, {}, "no other input requires grad"),
    "overwritten": (lambda x: x * 2, overwrite, 1, {}, "overwrites the grad_output"),
    "constant added": (
        lambda x: x * 2,
        lambda ctx, g, x: 2 * g + 1e-6,
        1,
        {"atol": 0.1},
        "not multiplied by grad_output",
    ),
    "dtype": (lambda x: x * 2, lambda ctx, g, x: (2 * g).float(), 1, {"check_grad_dtypes": True}, "dtype mismatch"),
    "layout": (lambda x: x * 2, lambda ctx, g, x: (2 * g).to_sparse(), 1, {}, "incorrect layout"),
}


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_contract_is_named(name: str, fast: bool) -> None:
    forward, backward, count, options, words = BROKEN[name]
    right = {1: lambda ctx, g, x: 2 * g, 2: lambda ctx, g, a, b: (g * b, g * a)}[count]
    inputs = tuple(leaf(3, 4) for _ in range(count))
    assert gradcheck(custom(forward, right), inputs, fast_mode=fast, **options)
    assert words in str(failure(gradcheck, custom(forward, backward), inputs, fast_mode=fast, **options))


def test_an_undefined_cotangent_acts_like_zeros() -> None:
    class Pair(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, careful: bool) -> tuple[Tensor, Tensor]:
            ctx.set_materialize_grads(False)
            ctx.careful = careful
            return x * 2, x * 3

        @staticmethod
        def backward(ctx: Any, a: Tensor | None, b: Tensor | None) -> Any:
            if a is None and b is None:
                return None, None
            if a is None or b is None:
                one = 3 * b if a is None else 2 * a  # type: ignore[operator]
                return (one if ctx.careful else one * 1.5), None
            return 2 * a + 3 * b, None

    assert gradcheck(Pair.apply, (leaf(3), True))
    with pytest.warns(UserWarning, match="undefined gradient support"):
        text = str(failure(gradcheck, Pair.apply, (leaf(3), False)))
    assert text.startswith("Expected backward function to handle undefined output grads as zeros")
    assert "out[0]" in text
    assert gradcheck(Pair.apply, (leaf(3), False), check_undefined_grad=False)


# ---- doubt


def test_a_kink_with_a_valid_subgradient_is_a_warning() -> None:
    at_zero = torch.tensor([1.0, 0.0], dtype=torch.float64, requires_grad=True)
    with pytest.warns(NonDifferentiableWarning, match=r"args\[0\]\[1\]"):
        assert gradcheck(torch.relu, at_zero)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert gradcheck(torch.relu, leaf(2))


def test_what_cannot_be_told_but_agrees_is_a_warning() -> None:
    x = torch.tensor([1e-7, 1.0, 1e8], dtype=torch.float64, requires_grad=True)
    with pytest.warns(UndecidedWarning):
        assert gradcheck(torch.log, x)
    failure(gradcheck, custom(torch.log, lambda ctx, g, x: 1.1 * g / x), x)


def test_a_doubt_names_the_tolerance_that_it_passes_by() -> None:
    """Of a gradient that is zero nothing is left of the tolerance of a block; torch's own does not shrink."""
    noisy = custom(lambda x: 4e-9 * torch.sin(1e16 * x), lambda ctx, g, x: 0 * g)
    x = torch.tensor([0.3, -1.2, 0.7], dtype=torch.float64, requires_grad=True)
    with pytest.warns(UndecidedWarning, match="within torch's own atol=1e-05 and rtol=0.001") as seen:
        assert gradcheck(noisy, x)
    assert "pass a wider atol= or rtol=" in str(seen[0].message)
    with pytest.warns(UndecidedWarning, match="the tolerance is 1e-06. The function's own noise") as seen:
        assert gradcheck(noisy, x, atol=1e-6)


def test_a_single_precision_input_is_judged_and_named() -> None:
    wrong = custom(torch.sin, lambda ctx, g, x: 1.01 * g * x.cos())
    with pytest.warns(UserWarning, match="Input #0 requires gradient and is not a double precision floating point"):
        assert gradcheck(torch.sin, leaf(3, dtype=torch.float32))
    with pytest.warns(UserWarning, match="float32"):
        failure(gradcheck, wrong, leaf(3, dtype=torch.float32))


# ---- how the function is called


@pytest.mark.parametrize("fast", [False, True])
def test_an_input_keeps_its_strides(fast: bool) -> None:
    strides = set()

    def kernel(contiguous: bool) -> Callable[[Tensor], Tensor]:
        def backward(ctx: Any, g: Tensor, x: Tensor) -> Tensor:
            return 2 * g if contiguous or x.is_contiguous() else 3 * g

        def forward(x: Tensor) -> Tensor:
            strides.add(x.stride())
            return x * 2

        return custom(forward, backward)

    x = leaf(3, 4).detach().T.requires_grad_()
    assert gradcheck(kernel(contiguous=True), x, fast_mode=fast)
    assert strides == {(1, 4)}
    assert "mismatch" in str(failure(gradcheck, kernel(contiguous=False), x, fast_mode=fast))
    gapped = leaf(6).detach()[::2].requires_grad_()
    assert gradcheck(kernel(contiguous=True), gapped, fast_mode=fast)
    failure(gradcheck, kernel(contiguous=False), gapped, fast_mode=fast)


@pytest.mark.parametrize("fast", [False, True])
def test_a_tensor_that_the_function_reaches_past_its_arguments(fast: bool) -> None:
    weight, x = leaf(2, 2), leaf(2).detach()
    before = weight.detach().clone()

    def closure(factor: float) -> Callable[..., Tensor]:
        double = custom(lambda w: w * 2, lambda ctx, g, w: factor * g)
        return lambda _: double(weight) @ x

    assert gradcheck(closure(2.0), weight, fast_mode=fast)
    assert "args[0]" in str(failure(gradcheck, closure(3.0), weight, fast_mode=fast))
    assert gradgradcheck(lambda _: (weight.sin() @ x).exp(), weight, fast_mode=fast)
    assert torch.equal(weight.detach(), before)


# ---- what is raised


def test_an_output_that_changes_its_shape_names_the_index() -> None:
    def fn(x: Tensor) -> Tensor:
        return torch.cat([x, x]) if bool(x[1] > 1) else x

    x = torch.tensor([0.5, 1.0], dtype=torch.float64, requires_grad=True)
    with pytest.raises(AssertionError, match=r"same shape when inputs are perturbed on index args\[0\]\[1\]"):
        gradcheck(fn, x)


def test_what_autograd_raises_comes_out() -> None:
    def no_forward_mode(x: Tensor) -> Tensor:
        return custom(lambda x: x * 2, lambda ctx, g, x: 2 * g)(x)

    assert gradcheck(no_forward_mode, leaf(3))
    with pytest.raises(RuntimeError, match="jvp") as caught:
        gradcheck(no_forward_mode, leaf(3), check_forward_ad=True, raise_exception=False)
    assert not isinstance(caught.value, GradcheckError)
    with pytest.raises(RuntimeError, match="leaf Variable"):
        gradcheck(lambda x: x.mul_(2), leaf(3), raise_exception=False)


def test_numbers_are_validated() -> None:
    for option in ("eps", "atol", "rtol", "nondet_tol"):
        with pytest.raises(ValueError, match=option):
            gradcheck(torch.sin, leaf(2), **{option: float("nan")})
    assert gradcheck(torch.sin, leaf(2), eps=np.float64(1e-6), atol=np.float32(1e-5))
