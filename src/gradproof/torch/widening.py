"""A float64 copy of a call, and of the gradient of one; or one in float32, of half precision that float64 is not for.

What a function holds itself, such as the weights in a closure, is float32 also when its arguments are float64. Some
operators take both, by torch's rules of promotion; others, such as matrix products, raise. In the copy they all do as
the first: whatever meets float64 is read as float64. And a function may cast to float32 itself: see `casts`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch.overrides import TorchFunctionMode

from gradproof.copies import refuse_others, unsupported_in_double
from gradproof.precision import DOUBLE, SINGLE, Precision, form_of, of
from gradproof.torch import subclasses
from gradproof.torch.calls import UserCall, double
from gradproof.torch.casts import WIDER, Casts, LeavingOut, Mode, Watching
from gradproof.torch.gradientcall import GradientCall
from gradproof.unrounded import Unrounded

if TYPE_CHECKING:
    from gradproof.torch.torchprogram import TorchProgram

WIDE = frozenset(WIDER.values())


class _Calls(TorchFunctionMode):
    """In calls of torch's functions, from where they begin."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return _read(func, args, kwargs or {})


class _Operators(Mode):  # type: ignore[no-untyped-call]
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


def widened(program: TorchProgram) -> TorchProgram:
    """The program itself where its arguments are float64 already."""
    if program.parent is not None:
        wide = program.parent.widened()
        return program if wide is program.parent else _gradient_like(program, wide)
    given = program.call
    call = given.widened() if isinstance(given, UserCall) else None
    if call is None or not isinstance(given, UserCall):
        return program
    with unsupported_in_double():
        try:
            return _copied(program, call)
        except Exception:
            with suppress(Exception):  # the first reason is the one that the user knows
                return _copied(program, call.read_by(widening))
            with suppress(Exception):  # kernels for half precision know float32 more often than float64
                single = given.widened(_single)
                if single is not None:
                    return _copied(program, single, SINGLE)
            raise


def unrounded(program: TorchProgram) -> Unrounded[TorchProgram] | None:
    """See `gradproof.unrounded`."""
    if program.parent is not None:
        found = program.parent.unrounded()
        return found and replace(found, program=_gradient_like(program, found.program))
    if not isinstance(program.call, UserCall) or program.call.forms.captured:
        return None
    native, kept = Casts(), Casts()
    with unsupported_in_double(), program.scope, torch.no_grad():
        leaves = [tensor.requires_grad_() for tensor in program.call.inputs.tensors(program.point.copy())]
        with Watching(native):
            program.call.one(leaves)
    del leaves
    program.tally.evaluations += 1
    call = program.call.widened()
    if call is None and not native.narrowest:
        return None

    @contextmanager
    def reading() -> Iterator[None]:
        with LeavingOut(kept), widening():
            yield

    with unsupported_in_double():
        wide = _copied(program, (call or program.call).read_by(reading))
    if not (native.narrowest or kept.narrowest):
        return None
    # What a rule rounds to that is coarser than all that the function does is no part of the function.
    coarse = [of(one) for one in (native.narrowest, kept.narrowest) if one]
    kept.least = min(one.bits for one in (*coarse, form_of(program)))
    return Unrounded(wide, native.narrowest or "float64")


def _copied(program: TorchProgram, call: UserCall, form: Precision = DOUBLE) -> TorchProgram:
    copy = program.of(call)
    refuse_others(program.outputs, copy.outputs, form)
    return copy


def _single(value: Any) -> Any:
    """In float32 where it is in half precision."""
    half = isinstance(value, torch.Tensor) and value.dtype in (torch.float16, torch.bfloat16, torch.complex32)
    return subclasses.widened(value, torch.float32) if half else value


def _gradient_like(program: TorchProgram, wide: TorchProgram) -> TorchProgram:
    """Of a wide program, as the given one is that of its parent."""
    given = program.call.cotangents if isinstance(program.call, GradientCall) else None
    with unsupported_in_double():
        if given is not None:
            wider = double if form_of(wide) is DOUBLE else _single
            return wide.gradient_at([None if one is None else wider(one) for one in given])
        return wide.gradient(program.point[wide.point.size :])


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
