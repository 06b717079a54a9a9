"""R23: objects that are no tensors but pass for one by `__torch_function__`.

The check moves ordinary tensors. Inside the call each becomes an object of the user's again, made by torch's own
functions, which such an object answers to; what the function returns is read as numbers. Between the two stands a rule
whose backward is the gradient map of the same function, taken across in the same way: so every order exists.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.overrides import is_tensor_like

from gradproof.torch.dropin.entry import as_tuple


def without_likes(func: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The same function of ordinary tensors, where an argument that requires grad only looks like one."""
    places = [i for i, value in enumerate(arguments) if _is_like(value) and value.requires_grad]
    if not places:
        return func, arguments
    likes = [arguments[i] for i in places]

    @functools.wraps(func, updated=())
    def of_tensors(*given: Any) -> Any:
        moved = [i for i, value in enumerate(given) if i in places or _moves(value)]
        kinds = [likes[places.index(i)] if i in places else None for i in moved]

        def run(*points: Any) -> Sequence[Any]:
            full = list(given)
            for i, point in zip(moved, points, strict=True):
                full[i] = point
            return [one for one in as_tuple(func(*full)) if _has_derivatives(one)]

        made = _Across.apply(run, kinds, *(given[i] for i in moved))  # type: ignore[no-untyped-call]
        return made[0] if len(made) == 1 else made

    tensors = list(arguments)
    for i, like in zip(places, likes, strict=True):
        tensors[i] = numbers(like).requires_grad_()
    return of_tensors, tuple(tensors)


def numbers(value: Any) -> Tensor:
    """Of a tensor, or of what passes for one, as an ordinary tensor of its own."""
    if isinstance(value, Tensor):
        return value.detach().clone()
    return torch.tensor(value.detach().tolist(), dtype=value.dtype, device=value.device)


class _Across(torch.autograd.Function):
    """`run` on points of the given kinds (None: an ordinary tensor), from and to ordinary tensors."""

    @staticmethod
    def forward(ctx: Any, run: Callable[..., Sequence[Any]], kinds: Sequence[Any], *values: Tensor) -> Any:
        with torch.enable_grad():
            results = run(*(_point(kind, value) for kind, value in zip(kinds, values, strict=True)))
        read = tuple(numbers(one) for one in results)
        ctx.run, ctx.kinds = run, kinds
        ctx.follows = [bool(one.requires_grad) for one in results]
        ctx.save_for_backward(*values)
        ctx.mark_non_differentiable(*(one for one, follows in zip(read, ctx.follows, strict=True) if not follows))
        return read

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        kept = [i for i, follows in enumerate(ctx.follows) if follows]
        run, kinds, count = ctx.run, ctx.kinds, len(ctx.kinds)

        def gradients(*points: Any) -> Sequence[Any]:
            values = run(*points[:count])
            found = torch.autograd.grad(
                [values[i] for i in kept], points[:count], points[count:], create_graph=True, allow_unused=True
            )
            pairs: Any = zip(found, points[:count], strict=True)
            return [torch.zeros_like(point) if one is None else one for one, point in pairs]

        given = [cotangents[i] for i in kept]
        values = ctx.saved_tensors
        return None, None, *_Across.apply(gradients, [*kinds, *[None] * len(kept)], *values, *given)  # type: ignore[no-untyped-call]


def _point(kind: Any, value: Tensor) -> Any:
    """A leaf with these values. An object of the user's comes from an operation in which it takes part."""
    value = value.detach()
    if kind is None:
        return value.clone().requires_grad_()
    every = torch.ones(value.shape, dtype=torch.bool, device=value.device)
    return torch.where(every, value, kind.detach()).requires_grad_()


def _is_like(value: Any) -> bool:
    """Whether numbers can be read from it as from a tensor, though it is none."""
    return _passes(value) and not isinstance(value, Tensor) and hasattr(value, "tolist")


def _passes(value: Any) -> bool:
    return bool(is_tensor_like(value))  # type: ignore[no-untyped-call]


def _moves(value: Any) -> bool:
    return isinstance(value, Tensor) and value.requires_grad


def _has_derivatives(value: Any) -> bool:
    return _passes(value) and bool(value.dtype.is_floating_point or value.dtype.is_complex)
