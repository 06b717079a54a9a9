"""What a function is called in reports."""

from __future__ import annotations

import functools
import inspect
from typing import Any

import torch


def name_of(fn: Any) -> str:
    if isinstance(fn, functools.partial):
        return name_of(fn.func)
    owner = getattr(fn, "__self__", None)
    if isinstance(owner, type) and issubclass(owner, torch.autograd.Function):
        return f"{owner.__name__}.{fn.__name__}"  # by its own name, `apply` belongs to torch's base class
    if inspect.isbuiltin(fn):
        return fn.__name__
    # The second is how torch (2.13) names an operator of `torch.library.custom_op`.
    name = getattr(fn, "__qualname__", None) or getattr(fn, "_qualname", None) or type(fn).__name__
    return str(name).rpartition("<locals>.")[2]
