"""Leave the world as it was: random states of torch and NumPy, grad mode, default dtype, training flags."""

from __future__ import annotations

import ctypes
import pickle
from collections.abc import Sequence
from types import TracebackType
from typing import Any, ClassVar

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
                _NumpyState(),
                [module.training for module in self._modules],
                inference,
            )
        )

    def moved(self) -> bool:
        """Inside the scope: whether a random stream has been used since it was entered."""
        _, _, rng, cuda, numpy_state, _, _ = self._saved[-1]
        if not torch.equal(torch.get_rng_state(), rng) or numpy_state.moved():
            return True
        after = torch.cuda.get_rng_state_all() if cuda is not None else []
        return any(not torch.equal(one, other) for one, other in zip(cuda or [], after, strict=True))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        grad, dtype, rng, cuda, numpy_state, training, inference = self._saved.pop()
        torch.set_grad_enabled(grad)
        if torch.get_default_dtype() is not dtype:
            torch.set_default_dtype(dtype)
        torch.set_rng_state(rng)
        if cuda is not None:
            torch.cuda.set_rng_state_all(cuda)
        numpy_state.restore()
        for module, flag in zip(self._modules, training, strict=True):
            module.training = flag
        if inference is not None:
            inference.__exit__(None, None, None)


class _NumpyState:
    """The state of NumPy's global generator when this was made."""

    __slots__ = ("_address", "_block", "_state")

    # The last state taken in full, by the block of memory that it was taken from.
    _taken: ClassVar[dict[bytes, Any]] = {}

    def __init__(self) -> None:
        self._address = _numpy_address()
        self._block = ctypes.string_at(self._address, _BLOCK) if self._address is not None else b""
        self._state: Any = self._taken.get(self._block)
        if self._state is None:
            self._state = np.random.get_state(legacy=False)  # noqa: NPY002  the user's own, to be left as it is
            # A pending second normal number lives outside the block and can be used up without touching the block:
            # then the block says nothing, and the state must be set in full each time.
            if self._block and not self._state["has_gauss"]:
                self._taken.clear()
                self._taken[self._block] = self._state
            else:
                self._block = b""

    def moved(self) -> bool:
        """Whether it is another one now."""
        if self._block and self._address is not None and _numpy_address() == self._address:
            return ctypes.string_at(self._address, _BLOCK) != self._block
        now = np.random.get_state(legacy=False)  # noqa: NPY002
        return pickle.dumps(now) != pickle.dumps(self._state)

    def restore(self) -> None:
        if self.moved():
            np.random.set_state(self._state)  # noqa: NPY002


def _numpy_address() -> int | None:
    get = getattr(np.random, "get_bit_generator", None)
    generator = get() if get is not None else None
    return generator.ctypes.state_address if type(generator) is np.random.MT19937 else None
