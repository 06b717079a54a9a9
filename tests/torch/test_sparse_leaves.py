"""Sparse arguments are leaves: what is differentiated, what fn sees, and who is told to be wrong."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import gradproof
from gradproof import Result, Settings, Verdict
from gradproof.check import check_program
from gradproof.torch import program_of
from gradproof.torch.forms import Meaning

pytestmark = pytest.mark.filterwarnings("ignore:Sparse")
RIGHT, WRONG, UNSUPPORTED = Verdict.RIGHT, Verdict.WRONG, Verdict.UNSUPPORTED
MASKED, ALL = Meaning.MASKED, Meaning.ALL


def dense(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """With entries away from zero, and about half of them zero: in each 2 x 2 block either all or none."""
    generator = torch.Generator().manual_seed(3)
    values = torch.randn(shape, dtype=dtype, generator=generator)
    keep = torch.zeros(shape, dtype=torch.bool)
    keep[..., :2, 2:4] = keep[..., 2:4, :2] = keep[..., 2:4, 4:6] = True
    return torch.where(keep, values + values.sgn(), 0)


def coo(dtype: torch.dtype = torch.float64) -> Tensor:
    return dense(4, 6, dtype=dtype).to_sparse()


def uncoalesced(dtype: torch.dtype = torch.float64) -> Tensor:
    values = torch.tensor([0.5, -2.0, 1.5, 3.0], dtype=dtype)
    return torch.sparse_coo_tensor([[2, 0, 2, 1], [3, 1, 3, 0]], values, (4, 6), check_invariants=True)


def hybrid(dtype: torch.dtype = torch.float64) -> Tensor:
    return dense(4, 6, dtype=dtype)[..., None].mul(torch.tensor([1.0, -2.0], dtype=dtype)).to_sparse(2)


def compressed(layout: torch.layout, block: tuple[int, int] | None = None) -> Callable[..., Tensor]:
    def make(dtype: torch.dtype = torch.float64) -> Tensor:
        return dense(4, 6, dtype=dtype).to_sparse(layout=layout, blocksize=block)

    return make


def batched(dtype: torch.dtype = torch.float64) -> Tensor:
    return dense(2, 4, 6, dtype=dtype).to_sparse_csr()


def hybrid_csr(dtype: torch.dtype = torch.float64) -> Tensor:
    return hybrid(dtype).to_dense().to_sparse(layout=torch.sparse_csr, dense_dim=1)


MAKERS: dict[str, Callable[..., Tensor]] = {
    "coo": coo,
    "uncoalesced": uncoalesced,
    "hybrid": hybrid,
    "csr": compressed(torch.sparse_csr),
    "csc": compressed(torch.sparse_csc),
    "bsr": compressed(torch.sparse_bsr, (2, 2)),
    "bsc": compressed(torch.sparse_bsc, (2, 1)),
    "hybrid csr": hybrid_csr,
}
every_kind = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())


def stored(tensor: Tensor) -> Tensor:
    return tensor._values() if tensor.layout is torch.sparse_coo else tensor.values()


def run(fn: Any, *args: Any, meaning: Meaning = MASKED, order: int = 1, wrt: str | None = None) -> Result:
    settings = Settings.validated(modes=None, order=order, effort="auto", tolerance=None, seed=1, budget=None)
    return check_program(program_of(fn, args, wrt=wrt, meaning=meaning), settings)


def square(x: Tensor) -> Tensor:
    """Right in both meanings."""
    return x.to_dense(masked_grad=False) ** 2


def forgetful(x: Tensor) -> Tensor:
    """Its gradient is masked."""
    return x.to_dense(masked_grad=True) ** 2


class Slip(torch.autograd.Function):
    """The square of the dense tensor, with a gradient that is wrong at one entry, or nowhere; twice differentiable."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, at: tuple[int, ...] | None) -> Tensor:
        ctx.save_for_backward(x)
        ctx.at = at
        return x.to_dense() ** 2

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        (x,) = ctx.saved_tensors
        gradient = 2 * x.to_dense(masked_grad=False) * g
        if ctx.at is not None:
            factor = torch.ones(x.shape, dtype=torch.float64)
            factor[ctx.at] = 1.25
            gradient = gradient * factor
        return gradient, None


@every_kind
@pytest.mark.parametrize("order", [1, 2])
def test_a_right_function_is_right_in_both_meanings(make: Callable[..., Tensor], order: int) -> None:
    for meaning in Meaning:
        for fn in (square, lambda x: x.sum() ** 3, lambda x: Slip.apply(x, None)):
            result = run(fn, make(), meaning=meaning, order=order)
            assert result.verdict is RIGHT, result


@every_kind
def test_a_masked_gradient_is_right_only_in_the_masked_meaning(make: Callable[..., Tensor]) -> None:
    x = make()
    assert run(forgetful, x, order=2).verdict is RIGHT
    # The square has slope zero where nothing is stored; a shift shows that the gradient is missing there.
    shifted = run(lambda x: (x.to_dense(masked_grad=True) + 1) ** 2, x, meaning=ALL)
    assert shifted.verdict is WRONG
    (comparison,) = [comparison for comparison in shifted.comparisons if comparison.mode == "reverse"]
    worst = comparison.worst
    assert worst is not None
    assert worst.analytic == 0
    assert worst.numeric == pytest.approx(2)
    assert worst.place.input is not None
    assert x.to_dense()[worst.place.input.index] == 0
    assert run(lambda x: (x.to_dense(masked_grad=False) + 1) ** 2, x, meaning=ALL, order=2).verdict is RIGHT


@pytest.mark.parametrize(
    ("name", "at", "masked", "every"),
    [
        ("coo", (2, 1), "args[0].values()[5]", "args[0][2, 1]"),
        ("hybrid", (2, 1, 1), "args[0].values()[5, 1]", "args[0][2, 1, 1]"),
        ("csr", (2, 1), "args[0].values()[5]", "args[0][2, 1]"),
        ("csc", (2, 1), "args[0].values()[2]", "args[0][2, 1]"),
        ("bsr", (2, 1), "args[0].values()[1, 0, 1]", "args[0][2, 1]"),
        ("bsc", (2, 1), "args[0].values()[1, 0, 0]", "args[0][2, 1]"),
        ("hybrid csr", (2, 1, 1), "args[0].values()[5, 1]", "args[0][2, 1, 1]"),
    ],
)
def test_one_wrong_entry_is_named(name: str, at: tuple[int, ...], masked: str, every: str) -> None:
    for meaning, expected in ((MASKED, masked), (ALL, every)):
        result = run(lambda x: Slip.apply(x, at), MAKERS[name](), meaning=meaning)
        assert result.verdict is WRONG
        (comparison,) = [c for c in result.comparisons if c.verdict is WRONG]
        assert comparison.wrong == 1
        assert comparison.worst is not None
        assert str(comparison.worst.place.input) == expected
        assert expected in str(result)


def test_a_value_that_is_stored_twice_is_two_coordinates() -> None:
    x = uncoalesced()
    program = program_of(square, x)
    np.testing.assert_array_equal(program.point, [0.5, -2.0, 1.5, 3.0])
    whole = program.pull(np.ones((1, 24)))[0]
    np.testing.assert_allclose(whole, [4.0, -4.0, 4.0, 6.0])  # twice the sum 0.5 + 1.5, at both places
    result = run(lambda x: Slip.apply(x, (2, 3)), x)
    (comparison,) = [c for c in result.comparisons if c.verdict is WRONG]
    assert {str(entry.place.input) for entry in comparison.found} == {"args[0].values()[0]", "args[0].values()[2]"}
    whole = program_of(square, x, meaning=ALL)
    assert whole.inputs[0].shape == (4, 6)
    assert whole.point.reshape(4, 6)[2, 3] == 2.0


@every_kind
def test_coordinates_and_what_fn_sees(make: Callable[..., Tensor]) -> None:
    x = make()
    seen: list[Tensor] = []

    def fn(x: Tensor) -> Tensor:
        seen.append(x.detach())
        return x.to_dense(masked_grad=False)

    program = program_of(fn, x)
    (leaf,) = program.inputs
    assert (leaf.path, leaf.shape) == ("args[0].values()", tuple(stored(x).shape))
    np.testing.assert_array_equal(program.point, stored(x).numpy().ravel())
    moved = np.arange(program.point.size) + 1.0
    values = program.values(moved[None])
    assert all(one.layout is x.layout and one.shape == x.shape and one._nnz() == x._nnz() for one in seen)
    np.testing.assert_array_equal(values[0], seen[-1].to_dense().numpy().ravel())
    np.testing.assert_array_equal(stored(seen[-1]).numpy().ravel(), moved)
    seen.clear()
    program = program_of(fn, x, meaning=ALL)
    (leaf,) = program.inputs
    assert (leaf.path, leaf.shape) == ("args[0]", tuple(x.shape))
    np.testing.assert_array_equal(program.point, x.to_dense().numpy().ravel())
    assert seen[0]._nnz() == x._nnz()
    moved = np.arange(program.point.size) + 1.0
    np.testing.assert_array_equal(program.values(moved[None])[0], moved)
    assert seen[-1].layout is x.layout
    assert stored(seen[-1]).numel() == x.numel()


class Overwriting(torch.autograd.Function):
    """Twice x, and x is spoilt."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        result = 2 * x.to_dense()
        stored(x.detach()).fill_(7.0)
        if x.layout is torch.sparse_coo:
            x.detach()._indices().zero_()
        return result

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        return 2 * g


@every_kind
@pytest.mark.parametrize("meaning", list(Meaning))
def test_the_users_tensor_is_left_alone(make: Callable[..., Tensor], meaning: Meaning) -> None:
    x = make().requires_grad_()
    before = x.detach().clone()

    assert run(Overwriting.apply, x, meaning=meaning).verdict is RIGHT
    assert x.requires_grad
    assert x.is_leaf
    assert x.grad is None
    assert x.layout is before.layout
    assert torch.equal(stored(x.detach()), stored(before))
    assert torch.equal(x.detach().to_dense(), before.to_dense())
    if x.layout is torch.sparse_coo:
        assert x.is_coalesced() == before.is_coalesced()


def test_an_exception_leaves_the_tensor_alone() -> None:
    x = coo()
    before = x.clone()

    def failing(x: Tensor) -> Tensor:
        stored(x).zero_()
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        run(failing, x)
    assert torch.equal(x.to_dense(), before.to_dense())


@every_kind
@pytest.mark.parametrize("dtype", [torch.float32, torch.complex128, torch.complex64])
def test_other_dtypes(make: Callable[..., Tensor], dtype: torch.dtype) -> None:
    x = make(dtype)
    for meaning in Meaning:
        assert run(square, x, meaning=meaning).verdict is RIGHT
        result = run(lambda x: Slip.apply(x, None) + x.to_dense().detach(), x, meaning=meaning)
        assert result.verdict is WRONG
    program = program_of(square, x)
    assert program.inputs[0].dtype == str(dtype).removeprefix("torch.")


def test_the_complex_gradient_is_the_conjugate_one() -> None:
    x = coo(torch.complex128)
    assert run(lambda x: torch.view_as_real(x.to_dense().conj() ** 2), x, order=2).verdict is RIGHT
    unmasked = run(lambda x: torch.view_as_real(x.to_dense(masked_grad=False).conj() ** 2), x, meaning=ALL, order=2)
    assert unmasked.verdict is UNSUPPORTED  # right once; torch 2.13 cannot differentiate that gradient
    assert all(comparison.verdict is RIGHT for comparison in unmasked.comparisons)
    result = run(lambda x: Slip.apply(x, None), x)  # 2 x g, where 2 conj(x) g is right
    assert result.verdict is WRONG
    assert "args[0].values()" in str(result)


@pytest.mark.parametrize("name", MAKERS)
def test_nothing_is_stored(name: str) -> None:
    x = MAKERS[name]()
    empty = torch.zeros(x.shape, dtype=x.dtype)
    block = {torch.sparse_bsr: (2, 2), torch.sparse_bsc: (2, 1)}.get(x.layout)
    if x.layout is torch.sparse_coo:
        empty = empty.to_sparse(2)
    else:
        empty = empty.to_sparse(layout=x.layout, blocksize=block, dense_dim=x.dense_dim())
    result = run(square, empty)
    assert result.verdict is RIGHT
    assert any("no entries" in note for note in result.notes)
    moved = run(lambda x: (x.to_dense(masked_grad=False) + 1) ** 2, empty, meaning=ALL, order=2)
    assert moved.verdict is RIGHT
    assert run(lambda x: (x.to_dense() + 1) ** 2, empty, meaning=ALL).verdict is WRONG


@pytest.mark.parametrize("meaning", list(Meaning))
def test_batches_of_matrices(meaning: Meaning) -> None:
    """What torch 2.13 can do with them."""
    x = batched()
    assert program_of(lambda x: x.sum(), x).inputs[0].shape == tuple(x.values().shape)
    assert run(lambda x: x.sum() ** 3, x, meaning=meaning, order=2).verdict is RIGHT
    assert run(lambda x: Slip.apply(x, None), x, meaning=meaning).verdict is RIGHT
    result = run(lambda x: Slip.apply(x, (1, 2, 1)), x, meaning=meaning)
    (comparison,) = [c for c in result.comparisons if c.verdict is WRONG]
    assert comparison.worst is not None
    place = {MASKED: "args[0].values()[1, 5]", ALL: "args[0][1, 2, 1]"}[meaning]
    assert str(comparison.worst.place.input) == place


@pytest.mark.parametrize(
    ("name", "fn", "meaning", "verdict"),
    [
        ("coo", lambda x, b: x @ b, ALL, RIGHT),
        ("csr", lambda x, b: x @ b, ALL, RIGHT),
        ("coo", torch.sparse.mm, MASKED, RIGHT),
        ("csr", torch.sparse.mm, MASKED, RIGHT),
        ("coo", torch.sparse.mm, ALL, WRONG),  # its gradient is masked
        ("coo", lambda x, b: (torch.sparse.sum(x, 1), b.sum()), MASKED, RIGHT),
        ("coo", lambda x, b: (x * x).coalesce() * b[0, 0], MASKED, RIGHT),
        ("csr", lambda x, b: (x * x) * b[0, 0], ALL, RIGHT),
    ],
)
def test_operators_of_torch_with_dense_arguments_beside(name: str, fn: Any, meaning: Meaning, verdict: Verdict) -> None:
    b = torch.randn(6, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    result = run(fn, MAKERS[name](), b, meaning=meaning)
    assert result.verdict is verdict, result
    wrong = {comparison.input.path for comparison in result.comparisons if comparison.verdict is WRONG}
    assert wrong == (set() if verdict is RIGHT else {"args[0]"})


class DetachedOnce(torch.autograd.Function):
    """x^3 of the stored values; the gradient is right, but does not know that it depends on x."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.to_dense() ** 3

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        return 3 * ctx.saved_tensors[0].detach().to_dense() ** 2 * g


@every_kind
def test_a_wrong_second_derivative_is_found(make: Callable[..., Tensor]) -> None:
    x = make()
    assert run(DetachedOnce.apply, x).verdict is RIGHT
    result = run(DetachedOnce.apply, x, order=2)
    assert result.verdict is WRONG
    assert {c.input.path for c in result.comparisons if c.verdict is WRONG} == {"args[0].values()"}
    assert {c.order for c in result.comparisons if c.verdict is WRONG} == {2}


def test_third_order() -> None:
    for name in ("coo", "csr", "bsr"):
        assert run(lambda x: x.to_dense(masked_grad=False) ** 4, MAKERS[name](), order=3).verdict is RIGHT


def test_a_gradient_of_another_pattern_is_looked_up() -> None:
    class Partial(torch.autograd.Function):
        """The sum of two entries, with a gradient that stores just those, and one more that x does not."""

        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.shape = x.shape
            return x.to_dense()[0, 2] + 3 * x.to_dense()[2, 1]

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            at = torch.tensor([[0, 0, 2], [0, 2, 1]])
            return torch.sparse_coo_tensor(at, torch.stack([9 * g, g, 3 * g]), ctx.shape, check_invariants=False)

    assert run(Partial.apply, coo()).verdict is RIGHT
    assert run(Partial.apply, coo(), meaning=ALL).verdict is WRONG  # the one more is wrong there
    for make in (compressed(torch.sparse_csr), compressed(torch.sparse_bsr, (2, 2))):
        result = run(Partial.apply, make())  # of another layout than the input, but its numbers are right
        assert [finding.code for finding in result.wrong] == ["attributes"]
        assert {comparison.verdict for comparison in result.comparisons} == {RIGHT}


def test_a_stored_zero_has_a_second_derivative() -> None:
    """The gradient 2 x w drops it from its own pattern."""
    for make in MAKERS.values():
        x = make()
        stored(x)[0] = 0
        for meaning in Meaning:
            assert run(square, x, meaning=meaning, order=2).verdict is RIGHT


def test_a_large_tensor_is_never_made_dense() -> None:
    """Its dense form would take 8 TB."""
    size = 10**6
    at = torch.tensor([[5, 70_000, 999_999], [123_456, 2, 77]])
    values = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
    x = torch.sparse_coo_tensor(at, values, (size, size), check_invariants=True)
    assert run(lambda x: (x * x).coalesce().values(), x).verdict is RIGHT
    twice = torch.sparse_coo_tensor(at[:, [0, 1, 1]], values, (size, size), check_invariants=True)
    assert run(lambda x: x.coalesce().values() ** 2, twice).verdict is RIGHT


@pytest.mark.parametrize(
    ("fn", "verdict"),
    [
        (lambda x: x.to_sparse(), RIGHT),
        (lambda x: (x * 2).to_sparse_csr(), RIGHT),
        (lambda x: x.to_sparse(layout=torch.sparse_bsr, blocksize=(2, 2)), RIGHT),
        (lambda x: Slip.apply(x, (0, 2)).to_sparse(), WRONG),
    ],
)
def test_sparse_outputs_of_dense_arguments(fn: Any, verdict: Verdict) -> None:
    """Entries that the output does not store at this point are zero by chance, and have a derivative too."""
    x = dense(4, 6)
    assert run(fn, x).verdict is verdict
    x[0, 0] = 0.5
    assert run(fn, x).verdict is verdict


@pytest.mark.parametrize("meaning", list(Meaning))
def test_sparse_outputs_of_sparse_arguments(meaning: Meaning) -> None:
    for make in (coo, uncoalesced, compressed(torch.sparse_csr), compressed(torch.sparse_bsc, (2, 1))):
        assert run(lambda x: x * 3, make(), meaning=meaning, order=2).verdict is RIGHT
    assert run(lambda x: Slip.apply(x, (0, 2)).to_sparse(), coo(), meaning=meaning).verdict is WRONG


def test_fixed_sparse_arguments_pass_through() -> None:
    fixed, x = coo(), torch.randn(6, 2, dtype=torch.float64).requires_grad_()
    before = fixed.clone()
    seen: list[Tensor] = []

    def fn(a: Tensor, x: Tensor) -> Tensor:
        seen.append(a)
        result = a.to_dense() @ x
        a._values().zero_()
        return result

    result = run(fn, fixed, x)
    assert result.verdict is RIGHT
    assert {comparison.input.path for comparison in result.comparisons} == {"args[1]"}
    assert all(a is not fixed and a.layout is torch.sparse_coo and not a.requires_grad for a in seen)
    assert torch.equal(fixed.to_dense(), before.to_dense())


def test_selection() -> None:
    a, b = coo(), compressed(torch.sparse_csr)()

    def fn(a: Tensor, b: Tensor) -> Tensor:
        return a.to_dense() * b.to_dense()

    def paths(*args: Any, **options: Any) -> list[str]:
        return [leaf.path for leaf in program_of(fn, args, **options).inputs]

    assert paths(a, b) == ["args[0].values()", "args[1].values()"]
    assert paths(a, b.clone().requires_grad_()) == ["args[1].values()"]
    assert paths(a, b, wrt="args[0]") == ["args[0].values()"]
    assert paths(a, b, wrt="args[1].values()") == ["args[1].values()"]
    assert paths(a, b, wrt="args[1]", meaning=ALL) == ["args[1]"]
    assert gradproof.check(fn, (a, b), seed=1).verdict is RIGHT


def test_a_function_may_insist_on_requires_grad() -> None:
    def fn(x: Tensor) -> Tensor:
        return x.to_dense() * (2 if x.requires_grad else 5)

    assert run(fn, coo()).verdict is RIGHT


@every_kind
def test_what_is_not_there_is_said(make: Callable[..., Tensor]) -> None:
    x = make()
    program = program_of(square, x)
    kind = str(x.layout).removeprefix("torch.")
    with pytest.raises(gradproof.Unsupported, match=f"args\\[0\\] is {kind}, and torch makes no dual numbers of that"):
        program.push(np.ones((1, program.point.size)))
    assert not program.batched
    assert f"values: one by one, because args[0] is {kind}" in program.notes
    # torch 2.13 has no kernel for the backward of sin.
    assert run(torch.sin, x).verdict is UNSUPPORTED


@pytest.mark.parametrize("meaning", list(Meaning))
def test_no_warnings(meaning: Meaning) -> None:
    arguments = [make() for make in MAKERS.values()]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for x in arguments:
            run(square, x, meaning=meaning, order=2)


def test_the_same_structure_in_a_module() -> None:
    class Scaled(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(coo())

        def forward(self, x: Tensor) -> Tensor:
            return torch.sparse.mm(self.weight, x)

    module = Scaled()
    result = gradproof.check(module, torch.randn(6, 2, dtype=torch.float64), seed=1, order=2)
    assert result.verdict is RIGHT
    assert {"args[0]", "params.weight.values()"} <= {comparison.input.path for comparison in result.comparisons}
    assert torch.equal(module.weight.detach().to_dense(), coo().to_dense())
