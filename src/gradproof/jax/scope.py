"""Leave the world as it was: 64-bit mode as the program needs it, and NumPy's random stream."""

from __future__ import annotations

import importlib
from types import TracebackType
from typing import Any

import jax

from gradproof.streams import NumpyStream

# A context manager of the thread. It used to live among the experimental ones.
_HOME: Any = jax if hasattr(jax, "enable_x64") else importlib.import_module("jax.experimental")


class Scope:
    """A reusable, nestable scope: 64-bit numbers are `"on"` or `"off"` inside, whatever the user's configuration, which
    is never changed. Restores on the way out whatever the way out is."""

    __slots__ = ("_saved", "width")

    def __init__(self, width: str) -> None:
        self.width = width
        self._saved: list[tuple[Any, NumpyStream]] = []

    def __enter__(self) -> None:
        context = _HOME.enable_x64(self.width == "on")
        context.__enter__()
        self._saved.append((context, NumpyStream()))

    def moved(self) -> bool:
        """Inside the scope: whether NumPy's random stream has been used since it was entered."""
        return self._saved[-1][1].moved()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        context, stream = self._saved.pop()
        stream.restore()
        context.__exit__(kind, error, trace)


def ambient() -> str:
    """What the user has now."""
    return "on" if jax.config.jax_enable_x64 else "off"  # type: ignore[attr-defined]
