"""Leave the world as it was: random states, grad mode, default dtype, training flags."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

import numpy as np
import torch

# The generator behind np.random.* keeps 624 words and a position in one block of memory. Comparing that block costs
# under a microsecond, while get_state and set_state cost tens, so they are called only when something changed.
_BLOCK = 4 * 624 + 4


class Purity:
    """A reusable, nestable scope: `with Purity(modules): ...`. Restores on the way out whatever the way out is."""

    __slots__ = ("_modules", "_saved")

    def __init__(self, modules: Sequence[torch.nn.Module] = ()) -> None:
        self._modules = tuple(modules)
        self._saved: list[tuple[Any, ...]] = []

    def __enter__(self) -> None:
        inference = None
        if torch.is_inference_mode_enabled():
            inference = torch.inference_mode(mode=False)
            inference.__enter__()
        self._saved.append(
            (
                torch.is_grad_enabled(),
                torch.get_default_dtype(),
                torch.get_rng_state(),
                torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None,  # type: ignore[no-untyped-call]
                random.getstate(),
                _numpy_state(),
                [module.training for module in self._modules],
                inference,
            )
        )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        grad, dtype, rng, cuda, python, restore_numpy, training, inference = self._saved.pop()
        torch.set_grad_enabled(grad)
        if torch.get_default_dtype() is not dtype:
            torch.set_default_dtype(dtype)
        torch.set_rng_state(rng)
        if cuda is not None:
            torch.cuda.set_rng_state_all(cuda)
        random.setstate(python)
        restore_numpy()
        for module, flag in zip(self._modules, training, strict=True):
            module.training = flag
        if inference is not None:
            inference.__exit__(None, None, None)


# The last state taken in full, by the block of memory that it was taken from.
_taken: dict[bytes, Any] = {}


def _numpy_state() -> Callable[[], None]:
    """Remember the state of NumPy's global generator; the returned function brings it back."""
    address = _numpy_address()
    block = ctypes.string_at(address, _BLOCK) if address is not None else b""
    state = _taken.get(block)
    if state is None:
        state = np.random.get_state(legacy=False)  # noqa: NPY002  the user's own generator, to be left as it is
        # A pending second normal number lives outside the block and can be used up without touching the block: then
        # the block says nothing, and the state must be taken and set in full each time.
        if block and not state["has_gauss"]:
            _taken.clear()
            _taken[block] = state
        else:
            block = b""

    def restore() -> None:
        if not block or address is None or _numpy_address() != address or ctypes.string_at(address, _BLOCK) != block:
            np.random.set_state(state)  # noqa: NPY002

    return restore


def _numpy_address() -> int | None:
    get = getattr(np.random, "get_bit_generator", None)
    generator = get() if get is not None else None
    return generator.ctypes.state_address if type(generator) is np.random.MT19937 else None
