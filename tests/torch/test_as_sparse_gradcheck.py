"""`as_sparse_gradcheck` around a gradcheck of dense tensors: torch's own, which must never see a sparse one."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from gradproof.torch.dropin.sparse import as_sparse_gradcheck

pytestmark = pytest.mark.filterwarnings("ignore:Sparse")
LAYOUTS = {
    "coo": lambda x: x.to_sparse(),
    "hybrid": lambda x: x.to_sparse(1),
    "csr": lambda x: x.to_sparse_csr(),
    "csc": lambda x: x.to_sparse_csc(),
    "bsr": lambda x: x.to_sparse_bsr((2, 2)),
    "bsc": lambda x: x.to_sparse_bsc((1, 2)),
}
every_layout = pytest.mark.parametrize("convert", LAYOUTS.values(), ids=LAYOUTS.keys())
both = pytest.mark.parametrize("masked", [True, False])
CHECKS = {"first": gradcheck, "second": gradgradcheck}
both_orders = pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS.keys())


def dense(dtype: torch.dtype = torch.float64) -> Tensor:
    x = torch.randn(4, 6, dtype=dtype, generator=torch.Generator().manual_seed(2))
    x[:2, :2] = x[2:, 2:] = 0
    return x


def uncoalesced() -> Tensor:
    values = torch.tensor([1.0, 2.0, -3.0], dtype=torch.float64)
    return torch.sparse_coo_tensor([[0, 2, 0], [1, 3, 1]], values, (4, 6), check_invariants=True)


class Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.to_dense() * 2

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        return g * 2.5


@every_layout
@both
@both_orders
def test_right_and_wrong(convert: Callable[[Tensor], Tensor], masked: bool, check: Any) -> None:
    x = convert(dense()).requires_grad_()
    sparse_check = as_sparse_gradcheck(check)
    assert sparse_check(lambda x: x.to_dense(), x, masked=masked)
    assert sparse_check(lambda x: x.to_dense(masked_grad=False) ** 2, (x,), masked=masked)
    assert sparse_check(lambda x: x * 3, [x], masked=masked)  # and a sparse tensor comes out
    assert not as_sparse_gradcheck(gradcheck)(Wrong.apply, x, masked=masked, raise_exception=False)
    with pytest.raises(RuntimeError, match="Jacobian mismatch for output 0 with respect to input 0"):
        as_sparse_gradcheck(gradcheck)(Wrong.apply, x, masked=masked)


@both
@both_orders
def test_a_value_that_is_stored_twice(masked: bool, check: Any) -> None:
    x = uncoalesced().requires_grad_()
    assert as_sparse_gradcheck(check)(lambda x: x.to_dense() ** 3, x, masked=masked)
    assert not as_sparse_gradcheck(gradcheck)(Wrong.apply, x, masked=masked, raise_exception=False)


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x.to_sparse_csr(),
        lambda x: x.to_sparse_csc(),
        lambda x: x.to_sparse(1),
        lambda x: x.to_sparse(layout=torch.sparse_bsr, blocksize=(2, 2)),
        lambda x: x.sparse_mask(dense().to_sparse()),
        lambda x: (x.to_sparse(), x.sum(), [x]),
    ],
)
def test_sparse_outputs_of_a_dense_input(fn: Any) -> None:
    x = dense().requires_grad_()
    assert as_sparse_gradcheck(gradcheck)(lambda x: _first_level(fn(x)), x)
    assert as_sparse_gradcheck(gradgradcheck)(lambda x: _first_level(fn(x)), x)


def _first_level(result: Any) -> Any:
    return result[:2] if isinstance(result, tuple) else result


def test_conversions_between_layouts() -> None:
    for name in ("coo", "csr", "csc"):
        x = LAYOUTS[name](dense()).requires_grad_()
        for fn in (lambda x: x.to_sparse_csr(), lambda x: x.to_sparse_csc(), lambda x: x.to_sparse_coo()):
            assert as_sparse_gradcheck(gradcheck)(fn, x)
            assert as_sparse_gradcheck(gradcheck)(fn, x, masked=True)


def test_masked_outputs_get_masked_cotangents() -> None:
    """At the zeros of x, the slope of `to_sparse` is lost when gradients of unstored entries are: masked=True."""
    x = dense().requires_grad_()
    sparse_check = as_sparse_gradcheck(gradcheck)
    assert sparse_check(lambda x: x.to_sparse(), x)
    assert sparse_check(lambda x: x.to_sparse(), x, masked=False)
    assert not sparse_check(lambda x: x.to_sparse(), x, masked=True, raise_exception=False)


def test_masked_may_be_bound_by_partial() -> None:
    x = dense().requires_grad_()
    bound = as_sparse_gradcheck(functools.partial(gradcheck, masked=True, raise_exception=False, atol=1e-6))
    assert not bound(lambda x: x.to_sparse(), x)
    assert bound(lambda x: x.to_sparse(), x, masked=False)
    outside = functools.partial(as_sparse_gradcheck(gradcheck), masked=True, raise_exception=False)
    assert not outside(lambda x: x.to_sparse(), x)


def test_what_the_inner_check_and_the_function_see() -> None:
    x, y = dense().to_sparse().requires_grad_(), dense().to_sparse_csr()
    index, number = torch.tensor([0, 1]), 2.0
    before = x.detach().clone()
    seen: list[Any] = []

    def spy(func: Any, inputs: Any, **options: Any) -> str:
        seen.append(inputs)
        assert options == {"eps": 1e-5}
        assert type(inputs) is tuple
        assert inputs[0].layout is torch.strided
        assert inputs[0].requires_grad
        assert inputs[0].is_leaf
        assert inputs[1] is y
        assert inputs[2] is index
        assert inputs[3] is number
        assert inputs[4] is None
        result = func(*inputs)
        assert [part if part is None else part.layout for part in result] == [torch.strided, None]
        with torch.no_grad():
            inputs[0].fill_(5.0)
        return "the answer of the inner check"

    def func(a: Tensor, b: Tensor, i: Tensor, n: float, nothing: None) -> Any:
        assert a.layout is torch.sparse_coo
        assert a.requires_grad
        assert b is y
        return [a * n, nothing]

    for masked, size in ((True, 12), (False, 24)):
        answer = as_sparse_gradcheck(spy)(func, [x, y, index, number, None], masked=masked, eps=1e-5)
        assert answer == "the answer of the inner check"
        assert seen[-1][0].numel() == size
    assert torch.equal(x.detach().to_dense(), before.to_dense())
    assert x.grad is None


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_several_inputs(dtype: torch.dtype) -> None:
    a, b = dense(dtype).to_sparse().requires_grad_(), dense(dtype).t().contiguous().requires_grad_()
    for masked in (True, False):
        assert as_sparse_gradcheck(gradcheck)(torch.sparse.mm, (a, b), masked=masked)
        assert as_sparse_gradcheck(gradgradcheck)(torch.sparse.mm, (a, b), masked=masked)


@pytest.mark.parametrize("name", ["coo", "csr"])
def test_undefined_cotangents(name: str) -> None:
    """Of the other layouts torch 2.13 cannot add two gradients."""
    x = LAYOUTS[name](dense()).requires_grad_()
    assert as_sparse_gradcheck(gradcheck)(lambda x: (x.to_dense(), (x * 2)), x, check_undefined_grad=True)
