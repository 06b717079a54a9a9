"""What happens around each call of the user's function: random streams put back before it, its outputs mapped after."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gradproof.errors import UsageError
from gradproof.settings import Randomness
from gradproof.streams import NumpyStream

Before = Callable[[], None]
After = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Around:
    """`after` maps what the function returned; `randomness` says whether every call starts from the same streams."""

    after: After | None = None
    randomness: Randomness = "detect"

    @classmethod
    def asked(cls, output_map: object, randomness: Randomness) -> Around:
        if output_map is None:
            return cls(None, randomness)
        if not callable(output_map):
            raise UsageError(
                f"output_map={output_map!r} is not a function; write output_map=lambda values, vectors: (values, "
                "vectors.abs())"
            )
        return cls(functools.partial(_mapped, output_map), randomness)

    @property
    def plain(self) -> bool:
        return self.after is None and self.randomness == "detect"


def _mapped(output_map: Callable[..., Any], outputs: Any) -> Any:
    """A tuple of outputs, named or not, is spread over the arguments."""
    return output_map(*outputs) if isinstance(outputs, tuple) else output_map(outputs)


def reseeding(framework: Before | None) -> Before:
    """A function that puts all streams back to where they are now: Python's, NumPy's, and the framework's own."""
    python, numpy = random.getstate(), NumpyStream()

    def before() -> None:
        random.setstate(python)
        numpy.restore()
        if framework is not None:
            framework()

    return before


def composed(fn: Callable[..., Any], before: Before | None, after: After | None) -> Callable[..., Any]:
    """Fn with something done before and after each call."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if before is not None:
            before()
        result = fn(*args, **kwargs)
        return result if after is None else after(result)

    # By its name in reports, and by its signature where that is asked for.
    functools.update_wrapper(call, fn, updated=())
    call.__qualname__ = getattr(fn, "__qualname__", None) or type(fn).__name__
    return call
