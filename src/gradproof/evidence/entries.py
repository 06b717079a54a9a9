"""Single entries of the Jacobian as a result names them, out of the arrays that they stand in."""

from __future__ import annotations

from gradproof.program import Array
from gradproof.reference.estimate import Estimate
from gradproof.result import Entry, Place, Table


def measured_entry(place: Place, at: tuple[int, ...], analytic: Array, numeric: Estimate, tolerance: Array) -> Entry:
    """Arrays of one shape."""
    return Table(analytic, numeric.value, numeric.bar, tolerance, numeric.spread).entry(place, at)
