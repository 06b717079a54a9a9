"""Functions that round inside: to float32 for a kernel, to bfloat16 by autocast, and back.

Their values move in stairs, and so they do in a float64 copy of the call. But a cast is the identity for all that takes
derivatives; without it the same function is smooth. A framework that can leave casts out says so by `unrounded`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from gradproof.program import Program

P_co = TypeVar("P_co", bound=Program, covariant=True)


@dataclass(frozen=True, slots=True)
class Unrounded(Generic[P_co]):
    """The function on float64 copies of its arguments, with no cast to a narrower format inside; and the dtype `form`,
    the coarsest that the function itself casts something finer to (float64 if there is none: only the copy does)."""

    program: P_co
    form: str


def unrounded_of(program: Program) -> Unrounded[Program] | None:
    """None where nothing is cast, or casts cannot be left out. Raises Unsupported where float64 is refused."""
    found: Callable[[], Unrounded[Program] | None] | None = getattr(program, "unrounded", None)
    return None if found is None else found()
