"""All functions of the catalogue as cases, in one precision."""

from __future__ import annotations

import functools
import itertools
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import jax
import numpy as np

from gradproof.cases import Call, Case
from gradproof.errors import UsageError
from gradproof.jax.catalogue import arrays, elementwise, lax, linalg, nn, special
from gradproof.jax.catalogue.entries import Entry, array
from gradproof.jax.scope import Scope

TABLES = (elementwise, arrays, linalg, nn, special, lax)
DTYPES = ("float64", "float32", "float16", "bfloat16")
# JAX keeps all that it compiles, some ten megabytes for each function: it forgets them after so many.
CLEARED = 25
_made = itertools.count(1)


@dataclass(frozen=True, slots=True)
class JaxCatalogue:
    """`dtype`: of all real arguments; complex ones have the same width."""

    dtype: str = "float64"

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise UsageError(f"dtype={self.dtype!r} is not understood; write one of {', '.join(DTYPES)}")

    def cases(self) -> Iterator[Case]:
        for table in TABLES:
            for entry in filter(lambda entry: entry.known, table.entries()):
                yield Case(entry.name, functools.partial(_call, entry, self.dtype))


def _call(entry: Entry, dtype: str, seed: int) -> Call:
    if next(_made) % CLEARED == 0:
        jax.clear_caches()  # type: ignore[no-untyped-call]
    # Each function has numbers of its own, whatever stands before it in the catalogue.
    generator = np.random.default_rng((seed, zlib.crc32(entry.name.encode())))
    with Scope("on" if dtype == "float64" else "off"):
        args = tuple(array(draw(generator), dtype) for draw in entry.draws)
    return Call(entry.function(), args, options=entry.options)
