"""Copies of a call in float64, which adapters make where the user works in less: what is refused of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from gradproof.errors import Unsupported, first_line
from gradproof.program import Leaf


@contextmanager
def unsupported_in_double() -> Iterator[None]:
    """Whatever a call raises that it does not raise in the user's format."""
    try:
        yield
    except Unsupported:
        raise
    except Exception as error:
        raise Unsupported(f"does not run in float64: {type(error).__name__}: {first_line(error)}") from error


def refuse_others(outputs: Sequence[Leaf], wide: Sequence[Leaf]) -> None:
    """A function that returns something else for float64 arguments is another function."""
    for leaf, wider in zip(outputs, wide, strict=False):
        if wider.dtype not in ("float64", "complex128"):
            raise Unsupported(f"{wider.path} stays {wider.dtype} when all arguments are float64")
        if (leaf.path, leaf.shape, leaf.is_complex) != (wider.path, wider.shape, wider.is_complex):
            raise Unsupported(f"{leaf.path} is another kind of output when all arguments are float64")
    if len(wide) != len(outputs):
        raise Unsupported("there are other outputs when all arguments are float64")
