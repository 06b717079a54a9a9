"""Long lists in their order: the numbers are so close to each other that every step passes many kinks."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from gradproof import Verdict, check

SORTED = {
    "sort": torch.sort,
    "topk": lambda x: torch.topk(x, x.numel() // 10),
    "cummax": lambda x: torch.cummax(x, 0),
}


def one_wrong(name: str, place: int) -> Any:
    """The same with a gradient that is negated at one output."""

    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            found = SORTED[name](x)
            ctx.save_for_backward(found.indices)
            ctx.size = x.numel()
            return found.values.clone()

        @staticmethod
        def backward(ctx: Any, cotangent: torch.Tensor) -> torch.Tensor:
            (indices,) = ctx.saved_tensors
            cotangent = cotangent.clone()
            cotangent[place] *= -1
            return torch.zeros(ctx.size, dtype=cotangent.dtype).index_add(0, indices, cotangent)

    return Wrong.apply


def drawn(size: int, seed: int) -> torch.Tensor:
    return torch.randn(size, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("size", [1_000, 10_000])
@pytest.mark.parametrize("name", list(SORTED))
def test_every_draw_is_right_and_one_wrong_entry_is_found(name: str, size: int, seed: int) -> None:
    x, place = drawn(size, seed), 7 * size // 100
    right = check(lambda x: SORTED[name](x).values, x, seed=seed)
    assert right.verdict is Verdict.RIGHT, str(right)
    wrong = check(one_wrong(name, place), x, seed=seed)
    assert wrong.verdict is Verdict.WRONG, str(wrong)
    assert f"out[{place}] / d args[0][{int(SORTED[name](x).indices[place])}]" in str(wrong)


@pytest.mark.parametrize("name", ["sort", "topk"])
def test_a_list_of_a_hundred_thousand(name: str) -> None:
    x, place = drawn(100_000, 3), 5_000
    right = check(lambda x: SORTED[name](x).values, x, seed=3)
    assert right.verdict is Verdict.RIGHT, str(right)
    assert right.cost.evaluations < 1_400
    wrong = check(one_wrong(name, place), x, seed=3)
    assert wrong.verdict is Verdict.WRONG, str(wrong)
    assert f"out[{place}] / d args[0][{int(SORTED[name](x).indices[place])}]" in str(wrong)
