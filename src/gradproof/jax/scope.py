"""Leave the world as it was: 64-bit mode as the program needs it, and NumPy's random stream."""

from __future__ import annotations

import importlib
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

import jax

from gradproof.streams import NumpyStream

# A context manager of the thread. It used to live among the experimental ones.
enable_x64: Any = (jax if hasattr(jax, "enable_x64") else importlib.import_module("jax.experimental")).enable_x64


class Scope:
    """A reusable, nestable scope: 64-bit numbers are `"on"` or `"off"` inside, whatever the user's configuration, which
    is never changed. Restores on the way out whatever the way out is.

    Dtypes are promoted as by default, also where the user forbids it: in 64-bit mode other dtypes meet, and JAX 0.10
    lets some of them leak out of it (docs/found-in-jax.md).
    """

    __slots__ = ("_saved", "width")

    def __init__(self, width: str) -> None:
        self.width = width
        self._saved: list[tuple[list[AbstractContextManager[Any]], NumpyStream]] = []

    @property
    def form(self) -> str:
        """What is compiled in one scope serves in others of the same form."""
        return self.width

    def changes(self) -> list[AbstractContextManager[Any]]:
        """Only what is not so already: a check enters scopes some dozens of times."""
        changes: list[AbstractContextManager[Any]] = []
        if ambient() != self.width:
            changes.append(enable_x64(self.width == "on"))
        if jax.config.jax_numpy_dtype_promotion != "standard":  # type: ignore[attr-defined]
            changes.append(jax.numpy_dtype_promotion("standard"))
        return changes

    def __enter__(self) -> None:
        changes = self.changes()
        for one in changes:
            one.__enter__()
        self._saved.append((changes, NumpyStream()))

    def moved(self) -> bool:
        """Inside the scope: whether NumPy's random stream has been used since it was entered."""
        return self._saved[-1][1].moved()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        changes, stream = self._saved.pop()
        stream.restore()
        for one in reversed(changes):
            one.__exit__(kind, error, trace)


def ambient() -> str:
    """What the user has now."""
    return "on" if jax.config.jax_enable_x64 else "off"  # type: ignore[attr-defined]
