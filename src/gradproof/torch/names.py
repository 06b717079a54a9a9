"""What a function is called in reports."""

from __future__ import annotations

import functools
from typing import Any

import torch

from gradproof import names


def name_of(fn: Any) -> str:
    if isinstance(fn, functools.partial):
        return name_of(fn.func)
    owner = getattr(fn, "__self__", None)
    if isinstance(owner, type) and issubclass(owner, torch.autograd.Function):
        return f"{owner.__name__}.{fn.__name__}"  # by its own name, `apply` belongs to torch's base class
    return names.name_of(fn)
