"""`as_sparse_gradcheck` (R9): functions on and to sparse tensors, through their values."""

from __future__ import annotations

import functools
from typing import Any

import pytest
import torch
from torch import Tensor
from twins import F64, Checker, hooked, leaf

LAYOUTS = {
    "coo": Tensor.to_sparse,
    "csr": Tensor.to_sparse_csr,
    "csc": Tensor.to_sparse_csc,
    "bsr": lambda x: x.to_sparse_bsr((2, 2)),
    "bsc": lambda x: x.to_sparse_bsc((2, 2)),
}
# The block at the top right is empty, so that no layout stores it.
DENSE = torch.tensor([[1.0, 0, 0, 0], [0, 2, 0, 0], [0, 3, 0, 0], [4, 0, 0, 0.5]], dtype=F64)


@pytest.fixture(params=LAYOUTS)
def x(request: pytest.FixtureRequest) -> Tensor:
    return LAYOUTS[request.param](DENSE).requires_grad_()


@pytest.fixture(params=[True, False], ids=["masked", "unmasked"])
def masked(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def identity(x: Tensor) -> Tensor:
    return x


@pytest.mark.parametrize("fn", [Tensor.to_dense, Tensor.sum, identity, Tensor.to_sparse, Tensor.values])
def test_right_functions_pass(checker: Checker, fast: bool, x: Tensor, masked: bool, fn: Any) -> None:
    check = checker.as_sparse_gradcheck(checker.gradcheck)
    assert check(fn, x, masked=masked, fast_mode=fast) is True


def test_wrong_functions_fail(checker: Checker, fast: bool, x: Tensor, masked: bool) -> None:
    check = checker.as_sparse_gradcheck(checker.gradcheck)
    wrong = hooked(lambda g: g * 2, lambda x: x.to_dense(masked_grad=masked))
    if fast:
        assert check(wrong, x, masked=masked, raise_exception=False, fast_mode=True) is False
        return
    with pytest.raises(checker.GradcheckError, match="Jacobian mismatch for output 0 with respect to input 0"):
        check(wrong, x, masked=masked)


def test_the_example_of_torchs_documentation(checker: Checker) -> None:
    check = checker.as_sparse_gradcheck(checker.gradcheck)
    x = torch.tensor([[0, 1], [2, 3]], dtype=F64).to_sparse_coo().requires_grad_(True)
    assert check(lambda x: x.to_sparse_csr(), x) is True


def test_a_partial_of_gradcheck(checker: Checker, x: Tensor) -> None:
    check = checker.as_sparse_gradcheck(functools.partial(checker.gradcheck, raise_exception=False, masked=True))
    assert check(lambda x: x.to_dense(), x, masked=True) is True
    assert check(hooked(lambda g: g * 2, Tensor.to_dense), x, masked=True) is False


def test_dense_inputs_that_become_sparse(checker: Checker, fast: bool, masked: bool) -> None:
    check = checker.as_sparse_gradcheck(checker.gradcheck)
    full = leaf(2, 3, 2)
    for dim in (1, 2, 3):
        assert check(lambda x, dim=dim: x.to_sparse(dim), full, masked=masked, fast_mode=fast) is True
    mask = torch.tensor([[1, 0, 1], [0, 1, 0]], dtype=torch.bool).to_sparse()
    assert check(lambda x: x.sparse_mask(mask), leaf(2, 3), masked=masked, fast_mode=fast) is True
    wrong = hooked(lambda g: g * 2)
    assert (
        check(lambda x: wrong(x).to_sparse(), leaf(2, 3), masked=masked, fast_mode=fast, raise_exception=False) is False
    )


def test_sparse_and_other_arguments(checker: Checker, fast: bool, masked: bool) -> None:
    check = checker.as_sparse_gradcheck(checker.gradcheck)
    x = DENSE.to_sparse().requires_grad_()

    def fn(n: int, x: Tensor, word: str, y: Tensor) -> tuple[Tensor, Tensor]:
        assert word == "a"
        return x.to_dense(masked_grad=masked) * n, y.sin()

    assert check(fn, (2, x, "a", leaf(2)), masked=masked, fast_mode=fast) is True


def test_uncoalesced(checker: Checker, fast: bool) -> None:
    check = checker.as_sparse_gradcheck(checker.gradcheck)
    indices = torch.tensor([[0, 0, 1, 0], [1, 1, 0, 2]])
    x = torch.sparse_coo_tensor(indices, torch.tensor([1.0, 2, 3, 4], dtype=F64), (2, 3)).requires_grad_()
    assert check(lambda x: x.coalesce(), x, masked=True, fast_mode=fast) is True
    assert check(lambda x: x.to_dense(), x, masked=True, fast_mode=fast) is True


def test_hybrid(checker: Checker, fast: bool, masked: bool) -> None:
    check = checker.as_sparse_gradcheck(checker.gradcheck)
    indices = torch.tensor([[0, 1, 2, 2], [0, 0, 0, 3]])
    values = torch.arange(1.0, 9.0, dtype=F64).reshape(4, 2)
    x = torch.sparse_coo_tensor(indices, values, (3, 4, 2), is_coalesced=True).requires_grad_()
    assert check(identity, x, masked=masked, fast_mode=fast) is True
    assert check(lambda x: x.to_dense(masked_grad=masked), x, masked=masked, fast_mode=fast) is True


def test_batched_csr(checker: Checker, fast: bool) -> None:
    check = checker.as_sparse_gradcheck(checker.gradcheck)
    x = torch.stack([DENSE, 2 * DENSE]).to_sparse_csr().requires_grad_()
    assert check(lambda x: x.values(), x, masked=True, fast_mode=fast) is True


def test_second_order(checker: Checker, fast: bool, masked: bool) -> None:
    # From dense to sparse: autograd itself cannot differentiate twice through the making of a sparse tensor.
    check = checker.as_sparse_gradcheck(checker.gradgradcheck)
    for fn in (Tensor.to_sparse, Tensor.to_sparse_csr, lambda x: x.to_sparse(1)):
        assert check(lambda x, fn=fn: fn(x**3), leaf(2, 2), masked=masked, fast_mode=fast) is True
    wrong = hooked(lambda g: g * g.detach())
    assert check(lambda x: wrong(x * x).to_sparse(), leaf(2, 2), fast_mode=fast, raise_exception=False) is False


def test_the_given_tensors_stay_as_they_are(checker: Checker, x: Tensor, masked: bool) -> None:
    before = x.detach().to_dense().clone()
    checker.as_sparse_gradcheck(checker.gradcheck)(lambda x: x.to_dense(masked_grad=masked), x, masked=masked)
    assert torch.equal(x.detach().to_dense(), before)
    assert x.requires_grad
    assert x.grad is None
