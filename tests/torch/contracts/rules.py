"""Right and wrong rules, one pair for each way to break a contract. Every wrong one gives the right numbers when it is
called in the plainest way."""

from __future__ import annotations

import itertools
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.autograd import Function

F64 = torch.float64


def leaf(*shape: int, seed: int = 0, dtype: torch.dtype = F64) -> Tensor:
    return torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(seed + 5))


class Sine(Function):
    """The right one that the others are twins of: sin, with everything that torch.func wants."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x.sin()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return g * x.cos()

    @staticmethod
    def jvp(ctx: Any, t: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return t * x.cos()


class OnceOnly(Function):
    """The same for single points: nothing of torch.func."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return g * x.cos()


# ---- adjoint


class SingleBackward(Sine):
    """A constant that is rounded to float32: 3e-8 off."""

    generate_vmap_rule = True

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return 3 * g * x.cos() * torch.tensor(1 / 3).to(g.dtype)


class SlightlyOffForward(Sine):
    generate_vmap_rule = True

    @staticmethod
    def jvp(ctx: Any, t: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return t * x.cos() * (1 + 1e-6)


# ---- repeatable


class Jittery(Function):
    """2x, whose backward moves by a random relative amount."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, amount: float) -> Tensor:
        ctx.amount = amount
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return 2 * g * (1 + ctx.amount * torch.rand_like(g)), None


class Counting(Function):
    calls: ClassVar[Any] = itertools.count()

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return 2 * g * (1 + 1e-9 * next(Counting.calls))


# ---- symmetric


class Quadratic(Function):
    """x . M x + sum of x. Its gradient is (M + M^T) x + 1; `wrong` says 2 M x + 1, no gradient of anything."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, matrix: Tensor, wrong: bool) -> Tensor:
        ctx.save_for_backward(x, matrix)
        ctx.wrong = wrong
        return x @ (matrix @ x) + x.sum()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        x, matrix = ctx.saved_tensors
        both = 2 * matrix if ctx.wrong else matrix + matrix.T
        return g * (both @ x + 1), None, None


class Rotated(Function):
    """sum of squares. `wrong` adds to its gradient what is zero at zero: a rotation."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, wrong: bool) -> Tensor:
        ctx.save_for_backward(x)
        ctx.wrong = wrong
        return (x * x).sum() + x.sum()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        turn = torch.stack([-x[1], x[0], *(0 * x[2:])]) if ctx.wrong else torch.zeros_like(x)
        return g * (2 * x + 1 + turn), None


# ---- pure


class Square(Function):
    """x * x, in many ways: `how` says what backward or forward writes into."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, how: str) -> Tensor:
        ctx.how, ctx.kept = how, x * 2
        value = x * x
        if how == "input":
            x.add_(1)
        if how == "data":
            x.data.add_(1)
        ctx.save_for_backward(x, value)
        if how == "marked":
            x.copy_(value)
            ctx.mark_dirty(x)
            return x
        return value

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        _, value = ctx.saved_tensors
        gradient = ctx.kept * g
        if ctx.how == "cotangent":
            g.mul_(2)
        if ctx.how == "saved":
            value.zero_()
        if ctx.how == "context":
            ctx.kept = ctx.kept
            ctx.other = ctx.kept.add_(0.0).neg_().neg_().add_(1.0).sub_(1.0).mul_(1 + 2.0**-40)
        return gradient, None


def square(how: str) -> Any:
    return lambda x: Square.apply(x, how)


def inside(how: str) -> Any:
    """The rule in the middle: its cotangent is not the one that the user passed."""
    return lambda x: (3 * Square.apply(2 * x, how)).sin()


# ---- attributes


class Returns(Function):
    """2x; `how` says what backward returns it as."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, how: str) -> Tensor:
        ctx.how = how
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        gradient = 2 * g
        made = {
            "float32": gradient.float,
            "bfloat16": gradient.bfloat16,
            "double": gradient.double,
            "sparse": gradient.to_sparse,
            "larger": lambda: torch.stack([gradient, 0 * gradient]),
            "right": lambda: gradient,
        }
        return made[ctx.how](), None


def returns(how: str) -> Any:
    return lambda x: Returns.apply(x, how)


# ---- reusable

LAST: dict[str, Tensor] = {}


class InAGlobal(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        LAST["x"] = x.detach().clone()
        return x.sin()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        return g * LAST["x"].cos()


class InTheClass(Function):
    mask: ClassVar[Any] = None

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        InTheClass.mask = (x.detach() * 100).floor() / 100
        return x**2

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        return 2 * g * InTheClass.mask


# ---- undefined


class Two(Function):
    """(2x, 3x) without materialised cotangents; `how` says what is done with one that is undefined."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, how: str) -> tuple[Tensor, Tensor]:
        ctx.set_materialize_grads(False)
        ctx.how = how
        return x * 2, x * 3

    @staticmethod
    def backward(ctx: Any, g: Tensor | None, h: Tensor | None) -> Any:
        if ctx.how == "raises" and h is None:
            raise ValueError("the second cotangent is missing")
        if ctx.how == "constant" and h is None and g is not None:
            return g * 2 + 1, None
        parts = [factor * c for factor, c in ((2, g), (3, h)) if c is not None]
        return sum(parts) if parts else None, None


def two(how: str) -> Any:
    return lambda x: Two.apply(x, how)


class Product(Function):
    """x * y; `how` says what jvp does with a tangent that is undefined."""

    @staticmethod
    def forward(x: Tensor, y: Tensor, how: str) -> Tensor:
        return x * y

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        x, y, ctx.how = inputs
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x, y)
        ctx.save_for_forward(x, y)

    @staticmethod
    def backward(ctx: Any, g: Tensor | None) -> Any:
        x, y = ctx.saved_tensors
        return (None, None, None) if g is None else (g * y, g * x, None)

    @staticmethod
    def jvp(ctx: Any, t: Tensor | None, s: Tensor | None, _: Any) -> Any:
        x, y = ctx.saved_tensors
        if ctx.how == "wrong" and s is None:
            return torch.ones_like(x)
        total = torch.zeros_like(x)
        if t is not None:
            total = total + t * y
        return total if s is None else total + s * x


def product(how: str) -> Any:
    return lambda x, y: Product.apply(x, y, how)


# ---- layout


def by_memory(tensor: Tensor) -> Tensor:
    """The entries that a contiguous tensor would have in this memory."""
    room = tensor.untyped_storage().nbytes() // tensor.element_size() - tensor.storage_offset()
    strides = torch.empty(tensor.shape).stride()
    if room < tensor.numel():  # read what is there, again and again
        return tensor.as_strided((room,), (1,)).repeat(tensor.numel())[: tensor.numel()].view(tensor.shape)
    return tensor.as_strided(tensor.shape, strides)


class Memory(Function):
    """x * x, reading memory directly: in forward, in backward, or without an offset."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, how: str) -> Tensor:
        ctx.how = how
        seen = by_memory(x) if how == "forward" else x
        if how == "repeated" and 0 in x.stride():
            seen = x / x.numel()
        ctx.save_for_backward(by_memory(x) if how == "saved" else x)
        return (seen * seen).contiguous()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        if ctx.how == "backward":
            g = by_memory(g)
        if ctx.how == "view":
            g = g.view(-1).view(g.shape)
        if ctx.how == "offset":
            g = g.as_strided(g.shape, g.stride(), 0)
        if ctx.how == "channels" and not g.is_contiguous() and g.is_contiguous(memory_format=torch.channels_last):
            g = by_memory(g)
        if ctx.how == "expanded" and 0 in g.stride():
            g = g / g.numel()
        return 2 * x * g, None


def memory(how: str) -> Any:
    return lambda x: Memory.apply(x, how)


# ---- not finite


class Poisoned(Sine):
    """NaN, whatever comes in."""

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        return g * float("nan")


# ---- subsets


class Scaled(Function):
    """x * y; `how` says what is forgotten when not everything requires grad."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, z: Tensor, how: str) -> Tensor:
        ctx.how = how
        ctx.save_for_backward(x, y, z)
        return x * y * z

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        x, y, z = ctx.saved_tensors
        needs_x, needs_y, needs_z, _ = ctx.needs_input_grad
        first = needs_y if ctx.how == "index" else needs_x
        gradients = [g * y * z if first else None, g * x * z if needs_y else None, g * x * y if needs_z else None]
        if ctx.how == "others" and not needs_z:
            gradients[0] = g * y
        return *gradients, None


def scaled(how: str) -> Any:
    return lambda x, y, z: Scaled.apply(x, y, z, how)


# ---- vmap


class Batched(Function):
    """x - y, with a vmap rule of its own; `how` says what is wrong with it."""

    how: ClassVar[str] = "right"

    @staticmethod
    def forward(x: Tensor, y: Tensor) -> Tensor:
        return x - y

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None: ...

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return g, -g

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Tensor, y: Tensor) -> Any:
        first, second = in_dims[:2]
        if Batched.how == "in_dims":
            return Batched.apply(x, y), 0
        x = x.movedim(first, 0) if first is not None else x.expand(info.batch_size, *x.shape)
        y = y.movedim(second, 0) if second is not None else y.expand(info.batch_size, *y.shape)
        if Batched.how == "row 0":
            y = y[:1].expand_as(y)
        if Batched.how == "reversed":
            return Batched.apply(x.flip(0), y.flip(0)), 0
        return Batched.apply(x, y), 0
