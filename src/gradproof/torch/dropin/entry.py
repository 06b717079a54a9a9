"""What is said about the arguments before the function is called, and about the outputs after the first call."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import torch

from gradproof import precision
from gradproof.torch.calls import UserCall
from gradproof.torch.forms import MKLDNN
from gradproof.torch.leaves import dtype_name
from gradproof.torch.tree import flatten

_DOUBLE = (torch.float64, torch.complex128)


def as_tuple(value: Any) -> tuple[Any, ...]:
    """The arguments, or outputs, as torch's checker counts them."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def check_inputs(arguments: Sequence[Any]) -> None:
    """Refuse what cannot be checked, and warn of what is checked in another way. Tensors in containers count too."""
    any_requires_grad = False
    for index, argument in enumerate(arguments):
        found: list[tuple[str, Any]] = []
        flatten(argument, "", found)
        for _, value in found:
            if not (isinstance(value, torch.Tensor) and value.requires_grad):
                continue
            any_requires_grad = True
            if value.dtype not in _DOUBLE:
                _warn_of_precision(index, value)
            if value.layout is torch.strided and any(
                stride == 0 and size > 1 for stride, size in zip(value.stride(), value.shape, strict=True)
            ):
                raise RuntimeError(
                    f"The {index}th input has a dimension with stride 0: entries share memory, so that none can be "
                    "moved alone. Pass .contiguous() of it."
                )
    if not any_requires_grad:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient: call .requires_grad_() on those to check"
        )


def check_returned_tensors(call: UserCall) -> None:
    """Objects that are no tensors may stand among the outputs, but not alone: then nothing would be checked. torch asks
    the first for `requires_grad`; its exception is kept. `()` and tensors without a derivative pass there and here."""
    if call.skipped and not call.tensors:
        found = ", ".join(f"{one.path}: {one.reason}" for one in call.skipped)
        raise AttributeError(
            f"func returns no tensor that could have a requires_grad ({found}); return what it computes: `return y`"
        )


def check_layouts(layouts: Sequence[torch.layout]) -> None:
    """Sparse and mkldnn outputs must be made dense by the function itself: only its author knows the meaning."""
    for layout in layouts:
        if layout is torch.strided:
            continue
        kind = "MKLDNN" if layout is MKLDNN else "Sparse"
        raise ValueError(
            f"{kind} output is not supported at gradcheck yet. Return out.to_dense(masked_grad=...) from the function."
        )


def _warn_of_precision(index: int, value: torch.Tensor) -> None:
    name = dtype_name(value.dtype)
    digits = precision.of(name).roundoff
    warnings.warn(
        f"Input #{index} requires gradient and is not a double precision floating point or complex: it is {name}. The "
        "numeric derivative is taken in float64 where the function runs in it, and the gradient is judged with a "
        f"tolerance that fits the rounding of {name} ({digits:.0e}) unless atol or rtol is given.",
        UserWarning,
        stacklevel=6,
    )
