"""Programs of random operations at random points; right ones, and the same with one rule altered on the way.

A catalogue holds the mistakes that its author thought of, at points that suit them. Here saturated functions, terms
that cancel, ties and underflow meet each other as they do in real programs.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

import gradproof
from gradproof import Verdict

Operation = Callable[..., Tensor]
Change = Callable[[Tensor], Tensor]
Generator = np.random.Generator

# A program stays small enough to be looked at, and in the range of every format.
MOST_ELEMENTS, LARGEST = 300_000, 1e4
# Of a gradient, what an altered rule must change to count as a mistake; beyond what is rounding of value over input.
CLEAR, ROUNDING = 1e-3, 1e-9

SMOOTH: dict[str, Operation] = {
    "sin": torch.sin,
    "cos": torch.cos,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "softplus": functional.softplus,
    "gelu": functional.gelu,
    "silu": functional.silu,
    "mish": functional.mish,
    "logsigmoid": functional.logsigmoid,
    "erf": torch.erf,
    "atan": torch.atan,
    "square": torch.square,
    "cube": lambda x: x**3,
    "hyperbola": lambda x: (1 + x * x).sqrt(),
    "lorentz": lambda x: 1 / (1 + x * x),
    "log1p": lambda x: torch.log1p(x * x),
    "exp": lambda x: torch.exp(torch.tanh(x)),
    "scale": lambda x: 1.7 * x,
    "shift": lambda x: x + 0.3,
}
KINKED: dict[str, Operation] = {
    "relu": functional.relu,
    "abs": torch.abs,
    "leaky": lambda x: functional.leaky_relu(x, 0.1),
    "clamp": lambda x: x.clamp(-1, 1),
    "shrink": lambda x: functional.softshrink(x, 0.2),
}
# Along a dimension.
ALONG: dict[str, Callable[[Tensor, int], Tensor]] = {
    "sum": lambda x, d: x.sum(d),
    "mean": lambda x, d: x.mean(d),
    "logsumexp": lambda x, d: x.logsumexp(d),
    "softmax": lambda x, d: x.softmax(d),
    "cumsum": lambda x, d: x.cumsum(d),
    "norm": lambda x, d: (0.1 + x.square().sum(d)).sqrt(),
    "var": lambda x, d: x.var(d, unbiased=False),
    "prod": lambda x, d: x.prod(d),
    "flip": lambda x, d: x.flip(d),
    "roll": lambda x, d: x.roll(1, d),
    "difference": lambda x, d: x - x.roll(1, d),
    "layer_norm": lambda x, d: functional.layer_norm(x.movedim(d, -1), (x.shape[d],)).movedim(-1, d),
}
SELECTING: dict[str, Callable[[Tensor, int], Tensor]] = {
    "amax": lambda x, d: x.amax(d),
    "sort": lambda x, d: x.sort(d)[0],
}
OF_TWO: dict[str, Operation] = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "gate": lambda x, y: x * torch.sigmoid(y),
    "div": lambda x, y: x / (1.5 + torch.sin(y)),
    "hypot": lambda x, y: (x * x + y * y + 0.1).sqrt(),
}


@dataclass(frozen=True)
class Step:
    name: str
    run: Operation
    operands: tuple[int, ...]


@dataclass(frozen=True)
class RandomProgram:
    """Steps on a growing list of values, of which those that no step uses are the outputs."""

    steps: tuple[Step, ...]
    outputs: tuple[int, ...]

    def __call__(self, *args: Tensor) -> Any:
        return self.run(args)

    def run(self, args: Sequence[Tensor], altered: int = -1, change: Change = torch.clone) -> Any:
        values = list(args)
        for k, step in enumerate(self.steps):
            value = step.run(*(values[i] for i in step.operands))
            values.append(Altered.apply(value, change) if k == altered else value)
        found = tuple(values[i] for i in self.outputs)
        return found[0] if len(found) == 1 else found

    def __str__(self) -> str:
        return ", ".join(step.name for step in self.steps)


class Altered(torch.autograd.Function):
    """The identity, with a gradient of its own."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, change: Change) -> Tensor:
        ctx.change = change
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return ctx.change(grad), None


@dataclass(frozen=True)
class Drawn:
    """A right program with its arguments, and a wrong one. `gap`: how far their gradients are apart, relative to the
    largest number of each; 0 if by no more than rounding."""

    program: RandomProgram
    args: tuple[Tensor, ...]
    wrong: Callable[..., Any]
    mistake: str
    gap: float


def draw(seed: int, dtype: torch.dtype = torch.float64, *, large: bool = False, kinks: bool = True) -> Drawn | None:
    """None where the arguments lead out of the range of numbers."""
    generator = np.random.default_rng(seed)
    shapes = [_shape(generator, large=large) for _ in range(generator.integers(1, 4))]
    program, sizes = _program(generator, shapes, kinks=kinks)
    size = 10.0 ** generator.uniform(-3, 2)
    args = tuple((size * torch.as_tensor(generator.standard_normal(shape))).to(dtype) for shape in shapes)
    where = int(generator.integers(len(program.steps)))
    mistake, change = _mistake(generator, sizes[where])
    values, gradients = program(*args), _pulled(program, args)
    if not all(bool(one.isfinite().all()) for one in (*_listed(values), *gradients)):
        return None
    wrong = partial(_altered, program, where, change)
    return Drawn(program, args, wrong, f"{mistake} at {program.steps[where].name}", _gap(program, wrong, args))


def verdict(fn: Callable[..., Any], drawn: Drawn, seed: int) -> Verdict:
    """On the right one or on the wrong one; what operations warn of is not asked here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return gradproof.check(fn, drawn.args, seed=seed).verdict


def _altered(program: RandomProgram, where: int, change: Change, *args: Tensor) -> Any:
    return program.run(args, where, change)


def _shape(generator: Generator, *, large: bool) -> tuple[int, ...]:
    if large:
        count = int(10.0 ** generator.uniform(3.3, 4.6))
        return (count,) if generator.random() < 0.5 else (max(2, count // 40), 40)
    shape = [int(generator.integers(1, 7)) for _ in range(generator.integers(0, 4))]
    if len(shape) > 1 and generator.random() < 0.4:
        shape[-1] = shape[-2]
    return tuple(shape)


def _program(
    generator: Generator, shapes: Sequence[tuple[int, ...]], *, kinks: bool
) -> tuple[RandomProgram, list[torch.Size]]:
    """With the shape of what each step gives."""
    values = [torch.as_tensor(generator.standard_normal(shape)) for shape in shapes]
    steps: list[Step] = []
    wanted = generator.integers(1, 9)
    while len(steps) < wanted:
        step = _step(generator, values, kinks=kinks)
        if step is None:
            continue
        value = step.run(*(values[i] for i in step.operands))
        if 0 < value.numel() <= MOST_ELEMENTS and bool(value.isfinite().all()) and float(value.abs().max()) < LARGEST:
            steps.append(step)
            values.append(value)
    used = {i for step in steps for i in step.operands}
    outputs = tuple(i for i in range(len(shapes), len(values)) if i not in used)
    return RandomProgram(tuple(steps), outputs), [value.shape for value in values[len(shapes) :]]


def _step(generator: Generator, values: Sequence[Tensor], *, kinks: bool) -> Step | None:
    """Mostly on the last value; None where the drawn one does not fit."""
    last = len(values) - 1
    i = last if generator.random() < 0.7 else int(generator.integers(len(values)))
    kind = generator.random()
    if kind < 0.45:
        name, run = _one_of(generator, {**SMOOTH, **KINKED} if kinks else SMOOTH)
        return Step(name, run, (i,))
    if kind < 0.75:
        name, along = _one_of(generator, {**ALONG, **SELECTING} if kinks else ALONG)
        dims = values[i].dim()
        return Step(name, partial(_along, along, int(generator.integers(dims))), (i,)) if dims else None
    name, run = _one_of(generator, OF_TWO)
    j = int(generator.integers(len(values)))
    pairs = zip(values[i].shape[::-1], values[j].shape[::-1], strict=False)
    return Step(name, run, (i, j)) if all(one == other or 1 in (one, other) for one, other in pairs) else None


def _along(run: Callable[[Tensor, int], Tensor], dim: int, x: Tensor) -> Tensor:
    return run(x, dim)


def _one_of(generator: Generator, table: dict[str, Any]) -> tuple[str, Any]:
    name = list(table)[generator.integers(len(table))]
    return name, table[name]


def _mistake(generator: Generator, shape: torch.Size) -> tuple[str, Change]:
    count = math.prod(shape)
    k, little = int(generator.integers(count)), 10.0 ** generator.uniform(-2, 0)

    def at(factor: float) -> Change:
        def change(grad: Tensor) -> Tensor:
            result = grad.clone().reshape(-1)
            result[k] = factor * result[k]
            return result.reshape(grad.shape)

        return change

    table: dict[str, Change] = {
        "negated": torch.neg,
        "doubled": lambda grad: 2 * grad,
        "a little larger": lambda grad: (1 + little) * grad,
        "left out": torch.zeros_like,
        "one entry zero": at(0.0),
        "one entry negated": at(-1.0),
        "one entry a little larger": at(1 + little),
        "clipped": lambda grad: grad.clamp(-0.5, 0.5),
        "without its sign": torch.abs,
    }
    if shape and count > 1:
        table |= {
            "flipped": lambda grad: grad.flip(0),
            "rolled": lambda grad: grad.roll(1, -1),
            "first row zero": lambda grad: torch.cat([0 * grad[:1], grad[1:]]),
            "a mean": lambda grad: grad.mean(-1, keepdim=True).expand(grad.shape),
        }
    return _one_of(generator, table)


def _listed(values: Any) -> list[Tensor]:
    return [values] if isinstance(values, Tensor) else list(values)


def _gap(right: Callable[..., Any], wrong: Callable[..., Any], args: Sequence[Tensor]) -> float:
    """In float64, for one random cotangent, as torch computes it."""
    sides = [_pulled(fn, args) for fn in (right, wrong)]
    value = math.sqrt(sum(float(one.double().square().sum()) for one in _listed(right(*args))))
    found = 0.0
    for x, one, other in zip(args, *sides, strict=True):
        apart, size = float((one - other).abs().max()), float(one.abs().max())
        if apart > ROUNDING * (value or 1.0) / max(float(x.double().abs().max()), 1e-300):
            found = max(found, apart / max(size, 1e-300))
    return found


def _pulled(fn: Callable[..., Any], args: Sequence[Tensor]) -> list[Tensor]:
    points = [x.detach().double().requires_grad_() for x in args]
    generator = torch.Generator().manual_seed(0)
    outputs = [value for value in _listed(fn(*points)) if value.requires_grad]
    cotangents = [torch.randn(value.shape, dtype=value.dtype, generator=generator) for value in outputs]
    found = torch.autograd.grad(outputs, points, cotangents, allow_unused=True)
    return [torch.zeros_like(x) if one is None else one for x, one in zip(points, found, strict=True)]
