"""What is asked of the arguments before anything is checked (R1, R2, R17, R18, R25), and the signatures."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from twins import F64, Checker, fails, leaf, passes, square

NO_GRAD = "at least one input tensor to require gradient"
NOT_DOUBLE = "requires gradient and is not a double precision floating point"


# ---- signatures


@pytest.mark.parametrize("name", ["gradcheck", "gradgradcheck"])
def test_parameters_have_torchs_names_order_and_kind(ours: Checker, theirs: Checker, name: str) -> None:
    mine = list(inspect.signature(getattr(ours, name)).parameters.values())
    known = list(inspect.signature(getattr(theirs, name)).parameters.values())
    both = [p for p in mine if p.name != "check_sparse_nnz"]
    assert [(p.name, p.kind) for p in both] == [(p.name, p.kind) for p in known]
    scales = ("eps", "atol", "rtol")
    defaults = [(p.name, p.default) for p in known if p.name not in scales]
    assert [(p.name, p.default) for p in both if p.name not in scales] == defaults


@pytest.mark.parametrize(
    "name", ["get_numerical_jacobian", "get_analytical_jacobian", "get_numerical_jacobian_wrt_specific_input"]
)
def test_the_jacobian_functions_have_torchs_parameters(ours: Checker, theirs: Checker, name: str) -> None:
    mine = inspect.signature(getattr(ours, name)).parameters.values()
    known = inspect.signature(getattr(theirs, name)).parameters.values()
    assert [(p.name, p.default) for p in mine] == [(p.name, p.default) for p in known]


def test_the_error_is_a_runtime_error(checker: Checker) -> None:
    assert issubclass(checker.GradcheckError, RuntimeError)


def test_an_unknown_keyword_is_a_type_error(checker: Checker) -> None:
    with pytest.raises(TypeError, match="epsilon"):
        checker.gradcheck(torch.sin, leaf(2), epsilon=1e-6)


# ---- R1: something to differentiate


@pytest.mark.parametrize("inputs", [(torch.ones(2, dtype=F64),), (torch.ones(2, dtype=F64), 3), (), (torch.arange(3),)])
def test_nothing_requires_grad(checker: Checker, fast: bool, inputs: Any) -> None:
    for raises in (True, False):
        with pytest.raises(ValueError, match=NO_GRAD):
            checker.gradcheck(lambda *x: x[0], inputs, raise_exception=raises, fast_mode=fast)


def test_gradgradcheck_needs_an_input_that_requires_grad_too(checker: Checker) -> None:
    x = torch.ones(2, dtype=F64)
    with pytest.raises((ValueError, RuntimeError)):
        checker.gradgradcheck(torch.sin, x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64, torch.bfloat16, torch.float16])
def test_a_narrow_input_is_named(checker: Checker, fast: bool, dtype: torch.dtype) -> None:
    x = torch.ones(1, dtype=dtype, requires_grad=True)
    with pytest.warns(UserWarning, match=f"Input #1 {NOT_DOUBLE}") as caught:
        passes(checker.gradcheck, lambda n, x: x * 1, (3, x), atol=10.0, fast_mode=fast)
    if checker.name == "gradproof":
        assert not any("likely fail" in str(w.message) for w in caught), (
            "it must say how the gradient is judged instead"
        )


def test_a_double_input_raises_no_warning(checker: Checker, fast: bool) -> None:
    for x in (leaf(2), leaf(2, dtype=torch.complex128)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            passes(checker.gradcheck, lambda x, y: x * 2, (x, torch.ones(2)), fast_mode=fast)


# ---- R1: overlapping inputs


def test_stride_zero_is_refused(checker: Checker, fast: bool) -> None:
    x = torch.ones(1, dtype=F64, requires_grad=True).expand(2, 2)
    for raises in (True, False):
        with pytest.raises(RuntimeError, match="The 1th input has a dimension with stride 0") as caught:
            checker.gradcheck(lambda n, x: x * 2, (1, x), raise_exception=raises, fast_mode=fast)
        assert not isinstance(caught.value, checker.GradcheckError)
    passes(checker.gradcheck, lambda n, x: x * 2, (1, x.detach().contiguous().requires_grad_()), fast_mode=fast)


def test_stride_zero_is_fine_where_nothing_overlaps_or_nothing_is_differentiated(checker: Checker, fast: bool) -> None:
    passes(checker.gradcheck, torch.sin, leaf(3, 1).expand(3, 1), fast_mode=fast)
    fixed = torch.ones(1, dtype=F64).expand(3)
    passes(checker.gradcheck, torch.mul, (leaf(3), fixed), fast_mode=fast)


# ---- R1: outputs that cannot be judged


@pytest.mark.parametrize("convert", [Tensor.to_sparse, Tensor.to_sparse_csr])
def test_a_sparse_output_asks_for_to_dense(checker: Checker, fast: bool, convert: Any) -> None:
    for raises in (True, False):
        with pytest.raises(ValueError, match=r"Sparse output is not supported at gradcheck yet.*to_dense"):
            checker.gradcheck(convert, leaf(2, 2), raise_exception=raises, fast_mode=fast)


@pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="needs mkldnn")
def test_an_mkldnn_output_asks_for_to_dense(checker: Checker, fast: bool) -> None:
    x = leaf(2, 2, dtype=torch.float32)
    for raises in (True, False):
        with (
            pytest.warns(UserWarning, match=NOT_DOUBLE),
            pytest.raises(ValueError, match=r"MKLDNN output is not supported at gradcheck yet.*to_dense"),
        ):
            checker.gradcheck(Tensor.to_mkldnn, x, raise_exception=raises, fast_mode=fast)


# ---- R2: all kinds of arguments


def test_other_objects_go_through_unchanged(checker: Checker, fast: bool) -> None:
    index, fixed, size, thing = torch.tensor([2, 0]), torch.ones(3, dtype=F64), torch.Size([3]), object()

    def fn(*given: Any) -> Tensor:
        x, n, nothing, word, flag, shape, at, other, anything = given
        assert (n, nothing, word, flag, shape) == (2, None, "up", True, size)
        assert anything is thing
        assert not other.requires_grad
        assert torch.equal(other, torch.ones(3, dtype=F64))
        assert torch.equal(at, torch.tensor([2, 0]))
        assert at.dtype is torch.int64
        return (x.reshape(shape) ** n * other)[at]

    for container in (tuple, list):
        passes(
            checker.gradcheck,
            fn,
            container((leaf(3), 2, None, "up", True, size, index, fixed, thing)),
            fast_mode=fast,
        )


def test_inputs_are_counted_among_the_differentiable_ones(checker: Checker, fast: bool) -> None:
    def fn(n: int, x: Tensor, nothing: None, y: Tensor) -> Tensor:
        return x.sin() + square(3.0)(y) * n

    error = fails(
        checker,
        "Jacobian mismatch for output 0 with respect to input 1",
        fn,
        (1, leaf(2), None, leaf(2, seed=1)),
        fast_mode=fast,
    )
    if checker.name == "gradproof":
        assert "args[3]" in str(error)  # below torch's line the real argument is named


# ---- R17: which modes


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"check_backward_ad": False}, "Expected at least one of"),
        ({"check_backward_ad": False, "check_forward_ad": True, "check_batched_grad": True}, "check_batched_grad=True"),
        ({"check_batched_forward_grad": True}, "check_batched_forward_grad=True"),
    ],
)
def test_contradicting_options(checker: Checker, fast: bool, options: dict[str, bool], words: str) -> None:
    for raises in (True, False):
        with pytest.raises(AssertionError, match=words):
            checker.gradcheck(torch.sin, leaf(2), raise_exception=raises, fast_mode=fast, **options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"check_rev_over_rev": False}, "Expected at least one of"),
        ({"check_rev_over_rev": False, "check_fwd_over_rev": True}, "check_undefined_grad=True"),
        (
            {
                "check_rev_over_rev": False,
                "check_fwd_over_rev": True,
                "check_undefined_grad": False,
                "check_batched_grad": True,
            },
            "check_batched_grad=True",
        ),
    ],
)
def test_contradicting_options_at_second_order(checker: Checker, options: dict[str, bool], words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        checker.gradgradcheck(torch.sin, leaf(2), **options)


# ---- R18: raise_exception=False


def test_what_the_function_raises_comes_out(checker: Checker, fast: bool) -> None:
    class Mine(Exception):
        pass

    def broken(x: Tensor) -> Tensor:
        raise Mine("not about gradients")

    with pytest.raises(Mine, match="not about gradients"):
        checker.gradcheck(broken, leaf(2), raise_exception=False, fast_mode=fast)


def test_what_backward_raises_comes_out(checker: Checker, fast: bool) -> None:
    def broken(g: Tensor) -> Tensor:
        raise RuntimeError("backward is broken")

    def fn(x: Tensor) -> Tensor:
        y = x * 2
        if y.requires_grad:
            y.register_hook(broken)
        return y

    with pytest.raises(RuntimeError, match="backward is broken") as caught:
        checker.gradcheck(fn, leaf(2), raise_exception=False, fast_mode=fast)
    assert not isinstance(caught.value, checker.GradcheckError)


# ---- R25: the older spelling of masked


def test_check_sparse_nnz_is_masked(ours: Checker, fast: bool) -> None:
    x = torch.eye(3, dtype=F64).to_sparse().requires_grad_()
    with pytest.warns((DeprecationWarning, FutureWarning), match="check_sparse_nnz"):
        passes(ours.gradcheck, Tensor.to_dense, x, check_sparse_nnz=True, fast_mode=fast)
    with pytest.warns((DeprecationWarning, FutureWarning), match="check_sparse_nnz"):
        assert (
            ours.gradcheck(Tensor.to_dense, x, check_sparse_nnz=False, raise_exception=False, fast_mode=fast) is False
        )
    with pytest.warns((DeprecationWarning, FutureWarning)), pytest.raises(ValueError, match="check_sparse_nnz"):
        ours.gradcheck(Tensor.to_dense, x, check_sparse_nnz=True, masked=False, fast_mode=fast)


# ---- bad input


@pytest.mark.parametrize("option", ["eps", "atol", "rtol", "nondet_tol"])
@pytest.mark.parametrize("value", [-1.0, float("nan")])
def test_a_meaningless_number_is_refused(ours: Checker, option: str, value: float) -> None:
    with pytest.raises(ValueError, match=option):
        ours.gradcheck(torch.sin, leaf(2), **{option: value})


def test_a_step_of_zero_is_refused(ours: Checker) -> None:
    with pytest.raises(ValueError, match="eps"):
        ours.gradcheck(torch.sin, leaf(2), eps=0.0)


def test_a_function_that_cannot_be_called_is_refused(checker: Checker) -> None:
    with pytest.raises((TypeError, ValueError), match="callable"):
        checker.gradcheck(3, leaf(2))


def test_a_wrong_number_of_arguments_is_the_functions_own_error(checker: Checker) -> None:
    with pytest.raises(TypeError, match="argument"):
        checker.gradcheck(lambda x: x, (leaf(2), leaf(2)), raise_exception=False)


def test_numbers_of_numpy_are_numbers(checker: Checker) -> None:
    passes(checker.gradcheck, torch.sin, leaf(2), eps=np.float64(1e-6), atol=np.float32(1e-5), rtol=1)
