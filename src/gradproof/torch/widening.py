"""What a function holds itself, such as the weights in a closure, is float32 also when its arguments are float64.

Some operators take both, by torch's rules of promotion; others, such as matrix products, raise. In a float64 copy of
the call they all do as the first: whatever meets float64 is read as float64.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from gradproof.program import Leaf, Program
from gradproof.torch.calls import UserCall
from gradproof.torch.modes import refuse_others, unsupported_in_double

Wide = TypeVar("Wide", bound=Program)
WIDER = {
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.complex32: torch.complex128,
    torch.complex64: torch.complex128,
}
WIDE = frozenset(WIDER.values())


class _Calls(TorchFunctionMode):
    """In calls of torch's functions, from where they begin."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return _read(func, args, kwargs or {})


class _Operators(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """In operators: a reverse pass is one call, and what happens inside of it shows only here."""

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return _read(func, args, kwargs or {})


@contextmanager
def widening() -> Iterator[None]:
    """What an operator writes into stays what it is, and so does what meets no float64."""
    with _Operators(), _Calls():  # type: ignore[no-untyped-call]
        yield


def _read(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if any(tensor.dtype in WIDE for tensor in _tensors((args, kwargs))):
        written = 1 if _writes(func) else 0
        args = (*args[:written], *_widened(args[written:]))
        kwargs = {name: value if name == "out" else _widened(value) for name, value in kwargs.items()}
    return func(*args, **kwargs)


def in_double(call: UserCall, make: Callable[[UserCall], Wide], native: Sequence[Leaf]) -> Wide:
    """The program of a float64 copy of a call: as it is, or, where it raises or stays narrow, widening what the
    function holds. `native` are the outputs of the call in its own format."""

    def made(wide: UserCall) -> Wide:
        program = make(wide)
        refuse_others(native, program.outputs)
        return program

    with unsupported_in_double():
        try:
            return made(call)
        except Exception:
            with suppress(Exception):  # the first reason is the one that the user knows
                return made(call.read_by(widening))
            raise


def _writes(func: Callable[..., Any]) -> bool:
    """Whether it changes its first argument: `add_`, `add_.Tensor`, `__iadd__`, `__setitem__`."""
    name = getattr(func, "__name__", "").partition(".")[0]
    return name == "__setitem__" or name.startswith("__i") or (name.endswith("_") and not name.endswith("__"))


def _tensors(nested: Any) -> Iterator[torch.Tensor]:
    if isinstance(nested, torch.Tensor):
        yield nested
    elif isinstance(nested, (tuple, list)):
        for one in nested:
            yield from _tensors(one)
    elif isinstance(nested, dict):
        yield from _tensors(tuple(nested.values()))


def _widened(nested: Any) -> Any:
    if isinstance(nested, torch.Tensor):
        wider = WIDER.get(nested.dtype)
        return nested if wider is None else nested.to(wider)
    if type(nested) in (tuple, list):
        return type(nested)(_widened(one) for one in nested)
    return nested
