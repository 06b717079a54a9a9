"""Exhaustive checks against torch's slow and fast gradcheck, at the sizes people test with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import torch
from torch import Tensor
from torch.autograd import gradcheck
from torch.nn import functional

import gradproof
from bench.table import Claim, Part, Size, Table, number
from bench.timing import interleaved
from tests.catalogue import FUNCTIONS, twin


@dataclass(frozen=True)
class Subject:
    name: str
    fn: Callable[..., Tensor]
    args: tuple[Tensor, ...]

    @property
    def elements(self) -> int:
        return sum(x.numel() for x in self.args)

    def fresh(self) -> tuple[Tensor, ...]:
        return tuple(x.clone().requires_grad_() for x in self.args)


def _normal(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(sum(shape)))


def plain() -> list[Subject]:
    rows = torch.tensor([3, 1, 4, 1, 5, 9, 2, 6])
    spread = _normal(8, 8)
    return [
        *(Subject("sin", torch.sin, (_normal(n),)) for n in (10, 100, 576, 1000)),
        Subject("softmax 10x10", lambda x: x.softmax(-1), (_normal(10, 10),)),
        Subject("mm 10x10", torch.mm, (_normal(10, 10), _normal(10, 10))),
        Subject("bmm 4x5x5", torch.bmm, (_normal(4, 5, 5), _normal(4, 5, 5))),
        Subject(
            "layer_norm 8x16",
            lambda x, w, b: functional.layer_norm(x, (16,), w, b),
            (_normal(8, 16), _normal(16), _normal(16)),
        ),
        Subject("logsumexp 300", lambda x: x.logsumexp(0), (_normal(300),)),
        Subject("conv2d 2x3x8x8", functional.conv2d, (_normal(2, 3, 8, 8), _normal(4, 3, 3, 3), _normal(4))),
        Subject("linear 8x16 -> 12", functional.linear, (_normal(8, 16), _normal(12, 16), _normal(12))),
        Subject("cumsum 200", lambda x: x.cumsum(0), (_normal(200),)),
        Subject("inverse 8x8", torch.linalg.inv, (spread + 8 * torch.eye(8, dtype=torch.float64),)),
        Subject(
            "cholesky 8x8",
            lambda x: torch.linalg.cholesky(x @ x.mT + torch.eye(8, dtype=torch.float64)),
            (spread,),
        ),
        Subject(
            "complex mul 60",
            torch.mul,
            (_normal(60, dtype=torch.complex128), _normal(60, dtype=torch.complex128)),
        ),
        Subject("gather of rows 12x10", lambda table: table[rows] * 2, (_normal(12, 10),)),
        Subject("gelu 20x20", functional.gelu, (_normal(20, 20),)),
        Subject(
            "cross entropy 20x10", lambda x: functional.cross_entropy(x, torch.arange(20) % 10), (_normal(20, 10),)
        ),
        Subject("max_pool2d 1x2x12x12", lambda x: functional.max_pool2d(x, 2), (_normal(1, 2, 12, 12),)),
    ]


def custom() -> list[Subject]:
    """No vmap rule and no forward mode: everything has to be done one by one."""
    chosen = (("sin", 100), ("softmax", 256), ("layernorm", 144), ("matmul", 100))
    found = []
    for name, n in chosen:
        subject = twin(FUNCTIONS[name], n)
        found.append(Subject(f"custom {name} {n}", subject.fn, subject.args))
    return found


def run(size: Size, say: Callable[[str], None]) -> Part:
    table = Table(
        "Exhaustive checks (milliseconds)",
        (
            "function", "elements", "torch slow", "torch fast", "ours, reverse", "ours, all modes",
            "slow / ours", "ours / fast", "calls: slow", "ours",
        ),
        "every entry of the Jacobian, median of interleaved runs; "
        "calls: of the user's function (one call may carry a batch)",
    )  # fmt: skip
    ratios = {"plain": [_row(table, subject, size, say) for subject in plain()]}
    ratios["custom"] = [_row(table, subject, size, say) for subject in custom()]
    faster = [slow for slow, _ in ratios["plain"]]
    written = [slow for slow, _ in ratios["custom"]]
    cost = [fast for _, fast in ratios["plain"]]
    table.add("median of the plain ones", "", "", "", "", "", number(median(faster)), number(median(cost)), "", "")
    table.add("worst of the plain ones", "", "", "", "", "", number(min(faster)), number(max(cost)), "", "")
    table.add("worst of the custom ones", "", "", "", "", "", number(min(written)), "", "", "")
    return Part(
        [table],
        [
            Claim(
                f"every entry, {len(faster)} functions of 10 to 1,000 elements: times faster than torch's slow mode",
                "median ≥ 15, all ≥ 1",
                f"median {number(median(faster))}, worst {number(min(faster))}",
                median(faster) >= 15 and min(faster) >= 1,
            ),
            Claim(
                f"the same for {len(written)} custom Functions without a vmap rule",
                "≥ 3",
                f"{number(min(written))} to {number(max(written))}",
                min(written) >= 3,
            ),
            Claim(
                "every entry: cost against torch's fast mode",
                "median ≤ 3",
                f"median {number(median(cost))}",
                median(cost) <= 3,
            ),
        ],
    )


def _row(table: Table, subject: Subject, size: Size, say: Callable[[str], None]) -> tuple[float, float]:
    """(torch slow / ours, ours / torch fast), after both have agreed that the gradient is right."""
    fn, args = subject.fn, subject.fresh()
    result = gradproof.check(fn, args, modes="reverse", effort="exhaustive", seed=0)
    if not result.ok:
        say(f"{subject.name}: gradproof says {result.verdict}")
    candidates: dict[str, Callable[[], object]] = {
        "slow": lambda: gradcheck(fn, args),
        "fast": lambda: gradcheck(fn, args, fast_mode=True),
        "ours": lambda: gradproof.check(fn, args, modes="reverse", effort="exhaustive", seed=0),
        "all": lambda: gradproof.check(fn, args, effort="exhaustive", seed=0),
    }
    seconds = interleaved(candidates, seconds=4.0 if size == "full" else 0.5, least=3 if size == "full" else 1)
    slow, ours = seconds["slow"] / seconds["ours"], seconds["ours"] / seconds["fast"]
    table.add(
        subject.name, subject.elements, *(f"{1000 * seconds[name]:.1f}" for name in candidates),
        number(slow), number(ours),
        _calls(lambda f: gradcheck(f, args), fn),
        _calls(lambda f: gradproof.check(f, args, modes="reverse", effort="exhaustive", seed=0), fn),
    )  # fmt: skip
    say(f"{subject.name}: {slow:.1f} times faster than slow, {ours:.1f} times the cost of fast")
    return slow, ours


def _calls(check: Callable[[Callable[..., Tensor]], object], fn: Callable[..., Tensor]) -> int:
    count = 0

    def counted(*args: Tensor) -> Tensor:
        nonlocal count
        count += 1
        return fn(*args)

    check(counted)
    return count
