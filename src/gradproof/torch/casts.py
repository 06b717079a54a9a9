"""Casts to narrower formats inside a function: watch for them, or leave them out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from gradproof.precision import of
from gradproof.torch.leaves import dtype_name

WIDER = {
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.complex32: torch.complex128,
    torch.complex64: torch.complex128,
}
# What is drawn in another format is another number.
RANDOM = ("rand", "normal", "bernoulli", "uniform")


@dataclass(slots=True)
class Casts:
    """The coarsest format that something finer was cast to, by name; empty as long as there was none. Casts to fewer
    bits than `least` are not left out."""

    narrowest: str = ""
    least: int = 0

    def met(self, dtype: torch.dtype) -> None:
        if not self.narrowest or _bits(dtype) < of(self.narrowest).bits:
            self.narrowest = dtype_name(dtype)

    def leaves_out(self, dtype: torch.dtype) -> bool:
        return dtype in WIDER and _bits(dtype) >= self.least


class Mode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """In operators. torch (2.13) would load its compiler, which takes seconds, to keep it off what a mode calls."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False


class Watching(Mode):
    """Where `float()`, `to`, `softmax(dtype=...)` and autocast all end as a dtype that is asked for."""

    def __init__(self, casts: Casts) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._casts = casts

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        made = func(*args, **kwargs or {})
        if isinstance(made, torch.Tensor) and any(_is_finer(one, made) for one in args):
            self._casts.met(made.dtype)
        return made


class LeavingOut(Watching):  # type: ignore[no-untyped-call]
    """Whatever would be cast to a narrower format is float64 instead, and so are new tensors of such a format."""

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        asked, drawn = (kwargs or {}).get("dtype"), getattr(func, "__name__", "").startswith(RANDOM)
        if asked is None or drawn or not self._casts.leaves_out(asked):
            return super().__torch_dispatch__(func, types, args, kwargs)
        self._casts.met(asked)
        return func(*args, **(kwargs or {}) | {"dtype": WIDER[asked]})


def _bits(dtype: torch.dtype) -> int:
    return of(dtype_name(dtype)).bits


def _is_finer(one: Any, made: torch.Tensor) -> bool:
    """Whether both have a format, and this one has more digits."""
    both = isinstance(one, torch.Tensor) and all(x.is_floating_point() or x.is_complex() for x in (one, made))
    return both and _bits(one.dtype) > _bits(made.dtype)
