"""NumPy's global random stream: whether it was used, and how to put it back. Shared by the adapters."""

from __future__ import annotations

import ctypes
import pickle
from typing import Any, ClassVar

import numpy as np

# The generator behind np.random.* keeps 624 words and a position in one block of memory. Comparing that block costs
# under a microsecond, while get_state and set_state cost tens, so they are called only when something changed.
_BLOCK = 4 * 624 + 4


class NumpyStream:
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
