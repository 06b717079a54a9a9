"""Full Jacobians of JAX functions against `jax.test_util.check_grads`, which looks at one direction."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.test_util import check_grads

import gradproof
from bench.table import Claim, Part, Size, Table, number
from bench.timing import interleaved
from gradproof.jax.scope import enable_x64

DTYPES = ("float64", "float32")
# Of the processor, all threads together: XLA compiles on several, and a busy machine must not change the ratio.
CLOCK = time.process_time


@dataclass(frozen=True)
class Subject:
    name: str
    fn: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]

    @property
    def elements(self) -> int:
        return sum(int(np.prod(shape)) for shape in self.shapes)

    def args(self, dtype: str) -> tuple[jax.Array, ...]:
        generator = np.random.default_rng(self.elements)
        return tuple(jnp.asarray(generator.standard_normal(shape), dtype) for shape in self.shapes)

    def fresh(self) -> Callable[..., Any]:
        """Another object each time: nothing that was compiled for it can be used again."""
        return functools.partial(self.fn)


def _layer(x: Any, weight: Any, bias: Any) -> Any:
    return jnp.tanh(x @ weight + bias)


def _layer_norm(x: Any, scale: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return scale * centred / jnp.sqrt(jnp.square(centred).mean(-1, keepdims=True) + 1e-5)


def _cholesky(x: Any) -> Any:
    return jnp.linalg.cholesky(x @ x.T + 9 * jnp.eye(len(x), dtype=x.dtype))


SUBJECTS = (
    Subject("sin 100", jnp.sin, ((100,),)),
    Subject("sin 500", jnp.sin, ((500,),)),
    Subject("softmax 500", jax.nn.softmax, ((500,),)),
    Subject("logsumexp 500", jax.nn.logsumexp, ((500,),)),
    Subject("cumsum 200", jnp.cumsum, ((200,),)),
    Subject("matmul 15x15", jnp.matmul, ((15, 15), (15, 15))),
    Subject("layer 10x12 -> 8", _layer, ((10, 12), (12, 8), (8,))),
    Subject("layer norm 20x20", _layer_norm, ((20, 20), (20,))),
    Subject("cholesky 10x10", _cholesky, ((10, 10),)),
    Subject("gelu 20x20", jax.nn.gelu, ((20, 20),)),
)


def run(size: Size, say: Callable[[str], None]) -> Part:
    table = Table(
        "JAX (milliseconds of the processor)",
        ("function", "dtype", "elements", "check_grads", "ours", "ratio", "first: check_grads", "ours", "ratio"),
        "every entry of the Jacobian in both modes, against check_grads(order=1); the first call compiles",
    )
    warm, first = [], []
    for subject in SUBJECTS if size == "full" else SUBJECTS[1:8:3]:
        for dtype in DTYPES:
            with enable_x64(dtype == "float64"):
                ratios = _row(table, subject, dtype)
            warm.append(ratios[0])
            first.append(ratios[1])
            say(f"{subject.name} {dtype}: {warm[-1]:.2f} times check_grads, the first call {first[-1]:.2f} times")
    return Part(
        [table],
        [
            Claim(
                f"JAX, every entry, {len(warm)} checks of up to 500 elements: time against `check_grads(order=1)`",
                "≤ 1",
                f"median {number(median(warm))}, worst {number(max(warm))}",
                max(warm) <= 1,
            ),
            Claim(
                "the same: the first call, with compilation",
                "≤ 2",
                f"median {number(median(first))}, worst {number(max(first))}",
                max(first) <= 2,
            ),
        ],
    )


def _row(table: Table, subject: Subject, dtype: str) -> tuple[float, float]:
    """(warm, first): our time over that of check_grads."""
    args = subject.args(dtype)

    def theirs(fn: Callable[..., Any]) -> None:
        check_grads(fn, args, 1, atol=1.0, rtol=1.0)  # whether it agrees does not matter for its time

    def ours(fn: Callable[..., Any]) -> None:
        result = gradproof.check(fn, args, effort="exhaustive", seed=0)
        if not result.ok:
            raise RuntimeError(f"{subject.name}: gradproof says {result.verdict}")

    cold = [_first(run, subject) for run in (theirs, ours)]
    kept = subject.fresh()
    seconds = interleaved(
        {"theirs": lambda: theirs(kept), "ours": lambda: ours(kept)}, seconds=1.0, least=5, clock=CLOCK
    )
    ratios = seconds["ours"] / seconds["theirs"], cold[1] / cold[0]
    table.add(
        subject.name, dtype, subject.elements,
        *(f"{1000 * seconds[name]:.1f}" for name in ("theirs", "ours")), number(ratios[0]),
        *(f"{1000 * one:.0f}" for one in cold), number(ratios[1]),
    )  # fmt: skip
    return ratios


def _first(check: Callable[[Callable[..., Any]], None], subject: Subject) -> float:
    jax.clear_caches()
    fn = subject.fresh()
    started = CLOCK()
    check(fn)
    return CLOCK() - started
