"""The price of the contracts: a passing check with all of them, against the same check with none."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

import torch
from torch import Tensor

import gradproof
from bench.speed import Subject, custom, plain
from bench.table import Claim, Part, Size, Table, number
from bench.timing import interleaved

# Also at a size where every pull counts.
MILLION = 1_000_000


def run(size: Size, say: Callable[[str], None]) -> Part:
    table = Table(
        "The price of the contracts (milliseconds)",
        ("function", "elements", "without", "with", "ratio", "pulls more", "calls more"),
        "a passing check with contracts='none' and 'all', every entry (a probe at the million), all modes; "
        "median of interleaved runs, processor time",
    )
    subjects = [*plain(), *custom(), *_large()]
    if size == "quick":
        subjects = subjects[::3]
    ratios = [_row(table, subject, size, say) for subject in subjects]
    return Part(
        [table],
        [
            Claim(
                f"a passing check with all contracts against one with none, {len(ratios)} functions: times the time",
                "all ≤ 2",
                f"median {number(median(ratios))}, worst {number(max(ratios))}",
                max(ratios) <= 2,
            )
        ],
    )


def _large() -> list[Subject]:
    x = torch.randn(MILLION, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    return [Subject("sin", torch.sin, (x,)), Subject("custom sin", _Sin.apply, (x,))]


class _Sin(torch.autograd.Function):
    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, *cotangents: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors  # type: ignore[attr-defined]
        return cotangents[0] * x.cos()


def _row(table: Table, subject: Subject, size: Size, say: Callable[[str], None]) -> float:
    fn, args = subject.fn, subject.fresh()
    effort: gradproof.settings.Effort = "auto" if subject.elements >= MILLION else "exhaustive"

    def check(contracts: str) -> gradproof.Result:
        return gradproof.check(fn, args, effort=effort, seed=0, contracts=contracts)

    without, all_of_them = check("none"), check("all")
    for result in (without, all_of_them):
        if not result.ok:
            say(f"{subject.name}: gradproof says {result.verdict}")
    seconds = interleaved(
        {"without": lambda: check("none"), "with": lambda: check("all")},
        seconds=3.0 if size == "full" else 0.5,
        least=5,
        most=25,
        clock=time.process_time,  # one thread: what others do on the machine does not count
    )
    ratio = seconds["with"] / seconds["without"]
    table.add(
        subject.name, f"{subject.elements:,}", *(f"{1000 * seconds[name]:.1f}" for name in ("without", "with")),
        number(ratio), all_of_them.cost.pulls - without.cost.pulls,
        all_of_them.cost.evaluations - without.cost.evaluations,
    )  # fmt: skip
    say(f"{subject.name}: {ratio:.2f} times the time")
    return ratio
