"""Single entries of the Jacobian as a result names them, out of the arrays that they stand in."""

from __future__ import annotations

from typing import Protocol

from gradproof.program import Array
from gradproof.reference.estimate import Estimate
from gradproof.result import Entry, Place

At = tuple[int, ...]


class Numbers(Protocol):
    """Both sides of several entries: a `Table`, or a `Comparison` made of one."""

    @property
    def analytic(self) -> Array: ...

    @property
    def numeric(self) -> Array: ...

    @property
    def bar(self) -> Array: ...

    @property
    def tolerance(self) -> Array: ...

    @property
    def spread(self) -> Array | None: ...


def measured_entry(place: Place, at: At, analytic: Array, numeric: Estimate, tolerance: Array) -> Entry:
    """Arrays of one shape."""
    numbers = (analytic, numeric.value, numeric.bar, tolerance, numeric.spread)
    return Entry(place, *(float(one[at]) for one in numbers))


def entry_of(place: Place, at: At, numbers: Numbers) -> Entry:
    parts = (numbers.analytic, numbers.numeric, numbers.bar, numbers.tolerance)
    spread = () if numbers.spread is None else (numbers.spread,)
    return Entry(place, *(float(one[at]) for one in (*parts, *spread)))
