"""Registered custom operators: torch.library.opcheck, as a contract."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from gradproof import check


def save(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(inputs[0])


def leaf() -> Tensor:
    return torch.randn(4, dtype=torch.float64, generator=torch.Generator().manual_seed(3))


@pytest.fixture
def library() -> Iterator[str]:
    """A name space that goes away with the test."""
    with torch.library._scoped_library("gradproof_contracts", "FRAGMENT"):
        yield "gradproof_contracts"


@pytest.mark.slow  # the first compilation in a process takes seconds
def test_an_operator_that_keeps_its_schema(library: str) -> None:
    @torch.library.custom_op(f"{library}::right", mutates_args=())
    def right(x: Tensor) -> Tensor:
        return x.sin()

    right.register_autograd(lambda ctx, g: g * ctx.saved_tensors[0].cos(), setup_context=save)
    right.register_fake(torch.empty_like)
    for fn in (right, torch.ops.gradproof_contracts.right.default, lambda x: right(2 * x).exp()):
        result = check(fn, leaf(), seed=1)
        assert result.ok, str(result)
        assert not any("could not be run" in note for note in result.notes)
    # Tangents do not get through an operator; that is no fault of the rule's.
    assert any("operator without a forward rule" in finding.sentence for finding in result.findings)
    assert check(right, leaf(), seed=1, contracts="opcheck").ok


def test_an_operator_that_writes_into_what_it_said_it_would_not(library: str) -> None:
    @torch.library.custom_op(f"{library}::writes", mutates_args=())
    def writes(x: Tensor, work: Tensor) -> Tensor:
        work.add_(1)
        return x.sin()

    writes.register_autograd(lambda ctx, g: (g * ctx.saved_tensors[0].cos(), None), setup_context=save)
    work = torch.zeros(4, dtype=torch.float64)
    result = check(lambda x: writes(x, work.clone()), leaf(), seed=1)
    (finding,) = result.wrong
    assert finding.code == "opcheck"
    assert "writes" in finding.sentence
    assert "test_schema" in finding.sentence


def test_an_operator_without_a_rule_is_found_when_asked_for(library: str) -> None:
    @torch.library.custom_op(f"{library}::ruleless", mutates_args=())
    def ruleless(x: Tensor, work: Tensor) -> Tensor:
        work.zero_()
        return x + 1

    def fn(x: Tensor) -> Tensor:
        return x * ruleless(x.detach(), torch.ones(4, dtype=torch.float64)).detach().sign()

    assert "opcheck" not in [finding.code for finding in check(fn, leaf(), seed=1).wrong]
    result = check(fn, leaf(), seed=1, contracts="opcheck")
    assert [finding.code for finding in result.wrong] == ["opcheck"]


def test_fake_tensors_are_looked_at_when_asked_for_by_name(library: str) -> None:
    @torch.library.custom_op(f"{library}::larger", mutates_args=())
    def larger(x: Tensor) -> Tensor:
        return x.sin()

    larger.register_autograd(lambda ctx, g: g * ctx.saved_tensors[0].cos(), setup_context=save)
    larger.register_fake(lambda x: x.new_empty(7))
    assert check(larger, leaf(), seed=1).ok
    (finding,) = check(larger, leaf(), seed=1, contracts="opcheck").wrong
    assert finding.code == "opcheck"
    assert "test_faketensor" in finding.sentence


@pytest.mark.parametrize(("factor", "right"), [(1.0, True), (2.0, False)])
def test_batches_of_an_operator_without_a_rule_say_nothing_on_stderr(
    library: str, capfd: pytest.CaptureFixture[str], factor: float, right: bool
) -> None:
    @torch.library.custom_op(f"{library}::quiet{int(factor)}", mutates_args=())
    def product(x: Tensor, w: Tensor) -> Tensor:
        return x.sin() @ w

    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
        x, w = ctx.saved_tensors
        return factor * (g @ w.T) * x.cos(), x.sin().T @ g

    product.register_autograd(backward, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs))
    x, w = leaf().reshape(2, 2), torch.ones(2, 5, dtype=torch.float64)
    assert check(product, (x, w), seed=1, contracts="linear").ok is right
    assert capfd.readouterr().err == ""
    torch.vmap(lambda x: product(x, w))(x.repeat(3, 1, 1))
    assert "performance drop" in capfd.readouterr().err  # it still says so to others
