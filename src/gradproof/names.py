"""What a function is called in reports."""

from __future__ import annotations

import functools
import inspect
from typing import Any


def name_of(fn: Any) -> str:
    if isinstance(fn, functools.partial):
        return name_of(fn.func)
    if inspect.isbuiltin(fn):
        return fn.__name__  # its qualified name may be that of a class nobody knows, as of torch.sin
    # The second is how torch (2.13) names an operator of `torch.library.custom_op`.
    found = (getattr(fn, name, None) for name in ("__qualname__", "_qualname", "__name__"))
    return str(next(filter(None, found), type(fn).__name__)).rpartition("<locals>.")[2]
