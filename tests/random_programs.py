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
from torch import Tensor, nn
from torch.autograd import forward_ad

import gradproof
from gradproof import Verdict
from tests.random_operations import EVERYTHING, PLAIN, Along, Operation, Operations

Change = Callable[[Tensor], Tensor]
Generator = np.random.Generator
Derivatives = Callable[[Callable[..., Any], Sequence[Tensor]], list[Tensor]]

# A program stays small enough to be looked at, and in the range of every format.
MOST_ELEMENTS, LARGEST = 300_000, 1e4
# As far as numbers may go at the point of a wide program: squares of products overflow in rules of torch.
FARTHEST = 1e12
# Outputs that are products of all pairs grow fast.
MOST_OF_A_PRODUCT = 1_000
# Of a gradient, what an altered rule must change to count as a mistake; beyond what is rounding of value over input.
CLEAR, ROUNDING = 1e-3, 1e-9


@dataclass(frozen=True)
class Kind:
    dtype: torch.dtype = torch.float64
    operations: Operations = PLAIN
    large: bool = False
    order: int = 1

    @property
    def wide(self) -> bool:
        """Whether programs have parameters, complex arguments and rules of forward mode as well."""
        return self.operations is EVERYTHING


PLAIN_KIND = Kind()


@dataclass(frozen=True)
class Step:
    name: str
    run: Operation
    operands: tuple[int, ...]


# How a step is computed: as it is, or with a rule of its own.
Rule = Callable[[Step, Sequence[Tensor]], Tensor]


def _as_it_is(step: Step, operands: Sequence[Tensor]) -> Tensor:
    return step.run(*operands)


@dataclass(frozen=True)
class RandomProgram:
    """Steps on a growing list of values, of which those that no step uses are the outputs."""

    steps: tuple[Step, ...]
    outputs: tuple[int, ...]

    def __call__(self, *args: Tensor) -> Any:
        return self.run(args)

    def run(self, args: Sequence[Tensor], altered: int = -1, rule: Rule = _as_it_is) -> Any:
        values = self.values(args, altered, rule)
        found = tuple(values[i] for i in self.outputs)
        return found[0] if len(found) == 1 else found

    def values(self, args: Sequence[Tensor], altered: int = -1, rule: Rule = _as_it_is) -> list[Tensor]:
        """The arguments, and what each step gives."""
        values = list(args)
        for k, step in enumerate(self.steps):
            operands = [values[i] for i in step.operands]
            values.append((rule if k == altered else _as_it_is)(step, operands))
        return values

    def __str__(self) -> str:
        return ", ".join(step.name for step in self.steps)


class Altered(torch.autograd.Function):
    """The identity, with a gradient of its own."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, pull: Change, push: Change) -> Tensor:
        ctx.pull, ctx.push = pull, push
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return ctx.pull(grad), None, None


class AlteredBothWays(Altered):
    """With a rule of forward mode."""

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, *_: None) -> Tensor:
        changed: Tensor = ctx.push(tangent)
        return changed.clone()


class Detached(torch.autograd.Function):
    """A step with the right gradient, which passes for a constant."""

    @staticmethod
    def forward(ctx: Any, run: Operation, *operands: Tensor) -> Tensor:
        ctx.run = run
        ctx.save_for_backward(*operands)
        return run(*operands).clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        further = torch.is_grad_enabled()
        with torch.enable_grad():
            points = [x.detach().requires_grad_() for x in ctx.saved_tensors]
            value = ctx.run(*points)
            return None, *torch.autograd.grad(value, points, grad, create_graph=further, allow_unused=True)


class WithParameters(nn.Module):
    """The last of the arguments are parameters."""

    def __init__(self, fn: Callable[..., Any], parameters: Sequence[Tensor]) -> None:
        super().__init__()
        self.fn, self.weights = fn, nn.ParameterList(nn.Parameter(x) for x in parameters)

    def forward(self, *args: Tensor) -> Any:
        return self.fn(*args, *self.weights)


@dataclass(frozen=True)
class Drawn:
    """A right program with its arguments, and a wrong one. `gap`: how far their derivatives are apart, relative to the
    largest number of each; 0 if by no more than rounding."""

    program: Callable[..., Any]
    args: tuple[Tensor, ...]
    steps: str
    wrong: Callable[..., Any]
    mistake: str
    gap: float
    order: int


def draw(seed: int, kind: Kind = PLAIN_KIND) -> Drawn | None:
    """None where the arguments lead out of the range of numbers, or to operations that do not know the format."""
    generator = np.random.default_rng(seed)
    shapes = [_shape(generator, large=kind.large) for _ in range(generator.integers(1, 4))]
    formats = [_complex(kind.dtype) if kind.wide and generator.random() < 0.15 else kind.dtype for _ in shapes]
    program, values = _program(generator, [_normal(generator, *x) for x in zip(shapes, formats, strict=True)], kind)
    size = 10.0 ** generator.uniform(-3, 2)
    args = tuple((size * _normal(generator, *x)).to(x[1]) for x in zip(shapes, formats, strict=True))
    where = int(generator.integers(len(program.steps)))
    mistake = _mistake(generator, values[where], kind)
    wrong = partial(_altered, program, where, mistake.rule)
    try:
        found = [*program.values(args), *_pulled(program, args)]
        if kind.wide:
            found += [*_pushed(program, args), *(_pulled_twice(program, args) if kind.order > 1 else ())]
        gap = _gap(program, wrong, args, mistake.derivatives, kind.order)
    except RuntimeError:
        if kind.wide:
            return None
        raise
    if not all(bool(one.isfinite().all()) for one in found):
        return None
    if kind.wide and max(float(one.abs().max()) for one in found) > FARTHEST:
        return None
    sides: list[Callable[..., Any]] = [program, wrong]
    if kind.wide and len(args) > 1 and generator.random() < 0.3:
        sides = [WithParameters(fn, args[1:]) for fn in sides]
        args = (args[0].requires_grad_(),)
    name = f"{mistake.name} at {program.steps[where].name}"
    return Drawn(sides[0], args, str(program), sides[1], name, gap, kind.order)


def verdict(fn: Callable[..., Any], drawn: Drawn, seed: int) -> Verdict:
    """On the right one or on the wrong one; what operations warn of is not asked here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return gradproof.check(fn, drawn.args, seed=seed, order=drawn.order).verdict


def _altered(program: RandomProgram, where: int, rule: Rule, *args: Tensor) -> Any:
    return program.run(args, where, rule)


def _complex(dtype: torch.dtype) -> torch.dtype:
    return torch.complex64 if dtype == torch.float32 else torch.complex128


def _normal(generator: Generator, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    real = generator.standard_normal(shape)
    return torch.as_tensor(real + 1j * generator.standard_normal(shape) if dtype.is_complex else real)


def _shape(generator: Generator, *, large: bool) -> tuple[int, ...]:
    if large:
        count = int(10.0 ** generator.uniform(3.3, 4.6))
        return (count,) if generator.random() < 0.5 else (max(2, count // 40), 40)
    shape = [int(generator.integers(1, 7)) for _ in range(generator.integers(0, 4))]
    if len(shape) > 1 and generator.random() < 0.4:
        shape[-1] = shape[-2]
    return tuple(shape)


def _program(generator: Generator, values: list[Tensor], kind: Kind) -> tuple[RandomProgram, list[Tensor]]:
    """With what each step gives."""
    count, most = len(values), MOST_OF_A_PRODUCT if kind.wide else MOST_ELEMENTS
    steps: list[Step] = []
    wanted = generator.integers(1, 9)
    while len(steps) < wanted:
        step = _step(generator, values, kind.operations)
        if step is None:
            continue
        try:
            value = step.run(*(values[i] for i in step.operands))
        except (RuntimeError, IndexError, TypeError):
            if kind.wide:
                continue
            raise
        if 0 < value.numel() <= most and bool(value.isfinite().all()) and float(value.abs().max()) < LARGEST:
            steps.append(step)
            values.append(value)
    used = {i for step in steps for i in step.operands}
    outputs = tuple(i for i in range(count, len(values)) if i not in used)
    return RandomProgram(tuple(steps), outputs), values[count:]


def _step(generator: Generator, values: Sequence[Tensor], operations: Operations) -> Step | None:
    """Mostly on the last value; None where the drawn one does not fit."""
    last = len(values) - 1
    i = last if generator.random() < 0.7 else int(generator.integers(len(values)))
    kind = generator.random()
    if kind < 0.45:
        name, run = _one_of(generator, operations.of_one)
        return Step(name, run, (i,))
    if kind < 0.75:
        name, along = _one_of(generator, operations.along)
        dims = values[i].dim()
        return Step(name, partial(_along, along, int(generator.integers(dims))), (i,)) if dims else None
    name, run = _one_of(generator, operations.of_two)
    j = int(generator.integers(len(values)))
    pairs = zip(values[i].shape[::-1], values[j].shape[::-1], strict=False)
    fits = not operations.broadcast or all(one == other or 1 in (one, other) for one, other in pairs)
    return Step(name, run, (i, j)) if fits else None


def _along(run: Along, dim: int, x: Tensor) -> Tensor:
    return run(x, dim)


def _one_of(generator: Generator, table: dict[str, Any]) -> tuple[str, Any]:
    name = list(table)[generator.integers(len(table))]
    return name, table[name]


@dataclass(frozen=True)
class Mistake:
    """`derivatives`: those that it shows in."""

    name: str
    rule: Rule
    derivatives: Derivatives


def _mistake(generator: Generator, value: Tensor, kind: Kind) -> Mistake:
    if kind.order > 1:
        return Mistake("a constant gradient", _detached, _pulled_twice)
    name, change = _change(generator, value)
    if not kind.wide or generator.random() < 0.3:
        return Mistake(name, partial(_with_rule, Altered, change, torch.clone), _pulled)
    pull, push, of = [(change, torch.clone, "reverse"), (torch.clone, change, "forward"), (change, change, "both")][
        generator.integers(3)
    ]
    return Mistake(
        f"{name} ({of})",
        partial(_with_rule, AlteredBothWays, pull, push),
        _pushed if of == "forward" else _pulled,
    )


def _with_rule(rule: type[Altered], pull: Change, push: Change, step: Step, operands: Sequence[Tensor]) -> Tensor:
    changed: Tensor = rule.apply(_as_it_is(step, operands), pull, push)
    return changed


def _detached(step: Step, operands: Sequence[Tensor]) -> Tensor:
    value: Tensor = Detached.apply(step.run, *operands)
    return value


def _change(generator: Generator, value: Tensor) -> tuple[str, Change]:
    shape = value.shape
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
    }
    if value.is_complex():
        table |= {"conjugated": lambda grad: grad.conj().resolve_conj(), "its real part": lambda grad: grad.real + 0j}
    else:
        table |= {"clipped": lambda grad: grad.clamp(-0.5, 0.5), "without its sign": torch.abs}
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


def _gap(
    right: Callable[..., Any], wrong: Callable[..., Any], args: Sequence[Tensor], derivatives: Derivatives, order: int
) -> float:
    """In float64, for one random cotangent or tangent, as torch computes it."""
    sides = [derivatives(fn, args) for fn in (right, wrong)]
    value = math.sqrt(sum(float(_double(one).abs().square().sum()) for one in _listed(right(*args))))
    # A tangent moves all arguments, and a gradient one.
    largest = [float(_double(x).abs().max()) for x in args]
    if derivatives is _pushed:
        largest = [max(largest)] * len(sides[0])
    found = 0.0
    for x, one, other in zip(largest, *sides, strict=True):
        apart, size = float((one - other).abs().max()), float(one.abs().max())
        if apart > ROUNDING * (value or 1.0) / max(x**order, 1e-300):
            found = max(found, apart / max(size, 1e-300))
    return found


def _double(x: Tensor) -> Tensor:
    return x.detach().to(torch.promote_types(x.dtype, torch.float64))


def _random(values: Sequence[Tensor]) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(value.shape, dtype=value.dtype, generator=generator) for value in values]


def _pulled(fn: Callable[..., Any], args: Sequence[Tensor]) -> list[Tensor]:
    return [one.detach() for one in _gradients(fn, *(_double(x).requires_grad_() for x in args))]


def _pulled_twice(fn: Callable[..., Any], args: Sequence[Tensor]) -> list[Tensor]:
    return _pulled(partial(_gradients, fn), args)


def _gradients(fn: Callable[..., Any], *points: Tensor) -> list[Tensor]:
    outputs = [value for value in _listed(fn(*points)) if value.requires_grad]
    found = torch.autograd.grad(outputs, points, _random(outputs), allow_unused=True, create_graph=True)
    return [torch.zeros_like(x) if one is None else one for x, one in zip(points, found, strict=True)]


def _pushed(fn: Callable[..., Any], args: Sequence[Tensor]) -> list[Tensor]:
    with forward_ad.dual_level():
        points = [_double(x) for x in args]
        duals = [forward_ad.make_dual(x, t) for x, t in zip(points, _random(points), strict=True)]
        outputs = [forward_ad.unpack_dual(value) for value in _listed(fn(*duals))]
        return [torch.zeros_like(one.primal) if one.tangent is None else one.tangent for one in outputs]
