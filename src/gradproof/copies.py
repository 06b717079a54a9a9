"""Copies of a call in float64, which adapters make where the user works in less: what is refused of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from gradproof.errors import Unsupported, first_line
from gradproof.precision import DOUBLE, Precision, of
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


def refuse_others(outputs: Sequence[Leaf], wide: Sequence[Leaf], form: Precision = DOUBLE) -> None:
    """A function that returns something else for arguments of a wider format is another function."""
    when = f"when all arguments are {form.name}"
    for leaf, wider in zip(outputs, wide, strict=False):
        if of(wider.dtype).bits < form.bits:
            raise Unsupported(f"{wider.path} stays {wider.dtype} {when}")
        if (leaf.path, leaf.shape, leaf.is_complex) != (wider.path, wider.shape, wider.is_complex):
            raise Unsupported(f"{leaf.path} is another kind of output {when}")
    if len(wide) != len(outputs):
        raise Unsupported(f"there are other outputs {when}")
