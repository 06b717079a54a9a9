"""Sparse inputs in all layouts, masked and not (R8), and mkldnn inputs (R10)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from twins import F64, Checker, fails, hooked, leaf, passes

NOT_DOUBLE = "Input #0 requires gradient and is not a double precision"
MISMATCH = "Jacobian mismatch for output 0 with respect to input 0"
# The block at the top right is empty, so that no layout stores it.
DENSE = torch.tensor([[1.0, 0, 0, 0], [0, 2, 0, 0], [0, 3, 0, 0], [4, 0, 0, 0.5]], dtype=F64)
LAYOUTS = {
    "coo": Tensor.to_sparse,
    "csr": Tensor.to_sparse_csr,
    "csc": Tensor.to_sparse_csc,
    "bsr": lambda x: x.to_sparse_bsr((2, 2)),
    "bsc": lambda x: x.to_sparse_bsc((2, 2)),
}


@pytest.fixture(params=LAYOUTS)
def layout(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[True, False], ids=["masked", "unmasked"])
def masked(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def sparse(layout: str, dense: Tensor = DENSE) -> Tensor:
    return LAYOUTS[layout](dense).requires_grad_()


def uncoalesced() -> Tensor:
    indices = torch.tensor([[0, 0, 1, 0], [1, 1, 0, 2]])
    values = torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=F64)
    x = torch.sparse_coo_tensor(indices, values, (2, 3), is_coalesced=False)
    assert not x.is_coalesced()
    return x.requires_grad_()


# ---- R8


def test_to_dense_with_the_gradient_that_was_asked_for(checker: Checker, fast: bool, layout: str, masked: bool) -> None:
    x = sparse(layout)
    passes(checker.gradcheck, lambda x: x.to_dense(masked_grad=masked), x, masked=masked, fast_mode=fast)
    doubled = hooked(lambda g: g * 2, lambda x: x.to_dense(masked_grad=masked))
    fails(checker, MISMATCH, doubled, x, masked=masked, fast_mode=fast)


def test_unmasked_means_that_unspecified_entries_count(checker: Checker, fast: bool, layout: str) -> None:
    x = sparse(layout)
    passes(checker.gradcheck, lambda x: x.to_dense(masked_grad=True), x, masked=True, fast_mode=fast)
    if checker.name == "gradproof" or not fast:  # torch's fast mode does not look there
        fails(checker, MISMATCH, lambda x: x.to_dense(masked_grad=True), x, masked=False, fast_mode=fast)


def test_unmasked_is_the_default(checker: Checker) -> None:
    passes(checker.gradcheck, lambda x: x.to_dense(masked_grad=False), sparse("coo"))
    fails(checker, MISMATCH, lambda x: x.to_dense(masked_grad=True), sparse("coo"))


def test_sums(checker: Checker, fast: bool, layout: str, masked: bool) -> None:
    full = torch.arange(1.0, 17.0, dtype=F64).reshape(4, 4)
    passes(checker.gradcheck, torch.sum, sparse(layout, full), masked=masked, fast_mode=fast)


def test_one_wrong_entry(checker: Checker, fast: bool, layout: str) -> None:
    weight = torch.ones(4, 4, dtype=F64)
    weight[3, 0] = 1.5

    def fn(x: Tensor) -> Tensor:
        return hooked(lambda g: g * weight, lambda x: x.to_dense(masked_grad=True))(x)

    fails(checker, MISMATCH, fn, sparse(layout), masked=True, fast_mode=fast)
    weight[3, 0], weight[0, 3] = 1.0, 1.5  # not stored in any of the layouts
    passes(checker.gradcheck, fn, sparse(layout), masked=True, fast_mode=fast)


def test_uncoalesced_coo(checker: Checker, fast: bool, masked: bool) -> None:
    passes(checker.gradcheck, lambda x: x.to_dense(masked_grad=masked), uncoalesced(), masked=masked, fast_mode=fast)
    wrong = hooked(lambda g: g * 1.5, lambda x: x.to_dense(masked_grad=masked))
    fails(checker, MISMATCH, wrong, uncoalesced(), masked=masked, fast_mode=fast)


def test_hybrid_coo(checker: Checker, fast: bool, masked: bool) -> None:
    indices = torch.tensor([[0, 1, 2, 2], [0, 0, 0, 3]])
    values = torch.arange(1.0, 9.0, dtype=F64).reshape(4, 2)
    x = torch.sparse_coo_tensor(indices, values, (3, 4, 2), is_coalesced=True).requires_grad_()
    passes(checker.gradcheck, lambda x: x.to_dense(masked_grad=masked), x, masked=masked, fast_mode=fast)
    wrong = hooked(lambda g: g * 1.5, lambda x: x.to_dense(masked_grad=masked))
    fails(checker, MISMATCH, wrong, x, masked=masked, fast_mode=fast)


def test_empty_values(checker: Checker, fast: bool, masked: bool) -> None:
    indices = torch.tensor([[0, 1, 2, 2], [0, 0, 0, 3]])
    x = torch.sparse_coo_tensor(indices, torch.empty(4, 0, dtype=F64), (3, 4, 0)).requires_grad_()
    passes(checker.gradcheck, lambda x: x.to_dense(masked_grad=masked), x, masked=masked, fast_mode=fast)


def test_complex_sparse(checker: Checker, fast: bool, masked: bool) -> None:
    x = sparse("coo", DENSE * (1 + 2j))
    passes(checker.gradcheck, lambda x: x.to_dense(masked_grad=masked) ** 2, x, masked=masked, fast_mode=fast)
    wrong = hooked(lambda g: g * 1j, lambda x: x.to_dense(masked_grad=masked))
    fails(checker, "part of complex outputs only", wrong, x, masked=masked, fast_mode=fast)


@pytest.mark.parametrize("kind", ["coo", "csr"])
def test_products(checker: Checker, fast: bool, kind: str, masked: bool) -> None:
    product: Callable[..., Any] = torch.sparse.mm if masked else torch.mm
    y = leaf(4, 3)
    passes(checker.gradcheck, product, (sparse(kind), y), masked=masked, fast_mode=fast)


def test_dense_and_sparse_together(checker: Checker, fast: bool) -> None:
    y = leaf(4, 4)
    passes(checker.gradcheck, lambda y, x: y * x.to_dense(), (y, sparse("coo")), masked=True, fast_mode=fast)
    words = "Jacobian mismatch for output 0 with respect to input 1"
    wrong = hooked(lambda g: g * 2, Tensor.to_dense)
    fails(checker, words, lambda y, x: y.sin() + wrong(x), (y, sparse("coo")), masked=True, fast_mode=fast)


def test_a_sparse_tensor_that_does_not_require_grad_goes_through(checker: Checker, fast: bool, layout: str) -> None:
    fixed = sparse(layout).detach()

    def fn(y: Tensor, x: Tensor) -> Tensor:
        assert x.layout == fixed.layout
        assert not x.requires_grad
        return y * x.to_dense()

    passes(checker.gradcheck, fn, (leaf(4, 4), fixed), fast_mode=fast)


def test_float32_sparse(checker: Checker, fast: bool) -> None:
    x = torch.tensor([0.5, 0.0, 0.25, 1.0]).to_sparse().requires_grad_()
    with pytest.warns(UserWarning, match=NOT_DOUBLE):
        passes(checker.gradcheck, Tensor.to_dense, x, masked=True, atol=0.1, fast_mode=fast)
    with pytest.warns(UserWarning, match=NOT_DOUBLE):
        fails(checker, "", Tensor.to_dense, x, masked=False, fast_mode=fast)
    right = lambda x: x.to_dense(masked_grad=False)  # noqa: E731
    with pytest.warns(UserWarning, match=NOT_DOUBLE):
        passes(checker.gradcheck, right, x, masked=False, atol=0.1, fast_mode=fast)


@pytest.mark.parametrize("dtype", [torch.float32, F64])
@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc])
@pytest.mark.filterwarnings("ignore:Input #0", "ignore:Sparse")
def test_a_masked_rule_is_wrong_also_where_every_entry_happens_to_be_stored(
    ours: Checker, fast: bool, layout: torch.layout, dtype: torch.dtype
) -> None:
    x = leaf(3, 4).detach().to(dtype).to_sparse(layout=layout).requires_grad_()
    assert ours.gradcheck(Tensor.to_dense, x, masked=True, fast_mode=fast)
    fails(ours, "drops the gradient of entries of args.0. that are not stored", Tensor.to_dense, x, fast_mode=fast)
    assert ours.gradcheck(lambda x: x.to_dense(masked_grad=False).sin(), x, fast_mode=fast)
    # Zero is outside of its domain; the numbers have to do.
    assert ours.gradcheck(lambda x: 1 / x.to_dense(masked_grad=False), x, fast_mode=fast)


def test_the_path_of_a_sparse_entry(ours: Checker, fast: bool) -> None:
    weight = torch.ones(4, 4, dtype=F64)
    weight[2, 1] = 3.0
    fn = hooked(lambda g: g * weight, Tensor.to_dense)
    assert "args[0]" in str(fails(ours, MISMATCH, fn, sparse("coo"), masked=True, fast_mode=fast))


# ---- R10


@pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="needs mkldnn")
def test_mkldnn_inputs(checker: Checker, fast: bool) -> None:
    x = torch.tensor([0.5, 0.25, 1.0, 2.0])
    y = x.clone().to_mkldnn().requires_grad_()
    added = lambda x, y: x + y.to_dense()  # noqa: E731
    with pytest.warns(UserWarning, match=NOT_DOUBLE):
        passes(checker.gradcheck, added, (x.clone().requires_grad_(), y), atol=0.1, fast_mode=fast)
    wrong = hooked(lambda g: g * 3, Tensor.to_dense)
    with pytest.warns(UserWarning, match=NOT_DOUBLE):
        fails(checker, MISMATCH, wrong, y, atol=0.1, rtol=0.1, fast_mode=fast)
