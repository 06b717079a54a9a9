"""NumPy's global random stream: whether it was used, and how to put it back. Shared by the adapters."""

from __future__ import annotations

import ctypes
import functools
import pickle
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

# The generator behind np.random.* keeps 624 words and a position in one block of memory. Comparing that block costs
# under a microsecond, while get_state and set_state cost tens, so they are called only when something changed.
_BLOCK = 4 * 624 + 4


@dataclass(frozen=True, slots=True)
class _Taken:
    """A state in full, and the block of memory that it was taken from."""

    block: bytes
    state: Any


class NumpyStream:
    """The state of NumPy's global generator when this was made."""

    __slots__ = ("_taken",)

    _last: ClassVar[_Taken] = _Taken(b"", None)

    def __init__(self) -> None:
        block = _block()
        if not block or block != self._last.block:
            state = np.random.get_state(legacy=False)  # noqa: NPY002  the user's own, to be left as it is
            # A pending second normal number lives outside the block and can be used up without touching the block:
            # then the block says nothing, and the state must be set in full each time.
            NumpyStream._last = _Taken(b"" if state["has_gauss"] else block, state)
        self._taken = self._last

    def moved(self) -> bool:
        """Whether it is another one now."""
        block = self._taken.block and _block()
        if block:
            return block != self._taken.block
        now = np.random.get_state(legacy=False)  # noqa: NPY002
        return pickle.dumps(now) != pickle.dumps(self._taken.state)

    def restore(self) -> None:
        block = self._taken.block
        if block and block == _block():  # mostly, and all the time
            return
        if self.moved():
            np.random.set_state(self._taken.state)  # noqa: NPY002


def _block() -> bytes:
    """That of the generator in use; nothing where it is of another kind."""
    generator = np.random.get_bit_generator()  # type: ignore[attr-defined]
    if type(generator) is not np.random.MT19937:
        return b""
    found: bytes = _memory(generator).raw
    return found


@functools.lru_cache(maxsize=1)
def _memory(generator: np.random.MT19937) -> Any:
    """The generator is kept, and so its memory lives."""
    return (ctypes.c_char * _BLOCK).from_address(generator.ctypes.state_address)
