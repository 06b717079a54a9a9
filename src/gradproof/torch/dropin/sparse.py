"""`as_sparse_gradcheck`: a gradcheck that knows only dense tensors, for functions of sparse ones.

What a sparse input stores becomes a dense input, and the sparse tensor is made from it again inside the call; sparse
outputs are made dense. With `masked=False` the input first stores all its entries.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from gradproof.torch.forms import Meaning
from gradproof.torch.sparse import SPARSE, Everywhere, Pattern, Stored, masked, opened, stored


def as_sparse_gradcheck(gradcheck: Callable[..., Any]) -> Callable[..., Any]:
    """Extend `gradcheck`, `gradgradcheck` or a `functools.partial` of them to sparse inputs and outputs.

    `masked=True`, here or in the partial: entries that are not stored are no inputs, and get no gradient.
    """
    # What `partial` has bound may be overridden by the call, as with any other argument.
    bound = gradcheck.keywords.get("masked") if isinstance(gradcheck, functools.partial) else None

    @functools.wraps(gradcheck, assigned=(), updated=())
    def with_sparse_support(func: Callable[..., Any], inputs: Any, *args: Any, **kwargs: Any) -> Any:
        meaning = Meaning.MASKED if kwargs.pop("masked", bound) else Meaning.ALL
        given = tuple(inputs) if isinstance(inputs, (list, tuple)) else (inputs,)
        forms = {i: _form(value, meaning) for i, value in enumerate(given) if _is_sparse_leaf(value)}
        dense_inputs = tuple(_values(forms[i]) if i in forms else value for i, value in enumerate(given))

        def of_dense(*values: Any) -> Any:
            arguments = [_rebuilt(value, forms[i]) if i in forms else value for i, value in enumerate(values)]
            return _dense(func(*arguments), masked if meaning is Meaning.MASKED else opened)

        return gradcheck(of_dense, dense_inputs, *args, **kwargs)

    return with_sparse_support


class _Rebuild(torch.autograd.Function):
    """Stored values -> sparse tensor. Unlike torch's own constructors it can be differentiated again and again."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, form: Stored) -> Tensor:
        ctx.form = form
        ctx.set_materialize_grads(False)  # torch 2.13 cannot make zeros of the blocked layouts
        return form.argument(values)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, None]:
        gradient = gradients[0]
        return None if gradient is None else ctx.form.gradient(gradient), None


def _rebuilt(values: Tensor, form: Stored) -> Tensor:
    made: Tensor = _Rebuild.apply(values, form)  # type: ignore[no-untyped-call]
    return made


def _is_sparse_leaf(value: object) -> bool:
    return isinstance(value, Tensor) and value.requires_grad and value.layout in SPARSE


def _form(tensor: Tensor, meaning: Meaning) -> Stored:
    tensor = tensor.detach()
    if meaning is Meaning.MASKED:
        return Stored("", Pattern(tensor))
    every = Everywhere.of("", tensor)
    return Stored("", Pattern(every.argument(every.coordinates)))


def _values(form: Stored) -> Tensor:
    """A leaf of its own, so that nothing reaches the user's tensor."""
    return stored(form.pattern.tensor).detach().clone().requires_grad_()


def _dense(result: Any, how: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(result, (list, tuple)):
        return tuple(_dense(part, how) for part in result)
    return how(result) if isinstance(result, Tensor) and result.layout in SPARSE else result
