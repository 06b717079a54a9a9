"""A factor of its own for each slice: a count, a weight or a norm that is missing, or counted twice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gradproof.diagnose.exhibit import Exhibit, extent, fit
from gradproof.diagnose.factors import common_ratio
from gradproof.program import Array, Indices
from gradproof.result import Diagnosis

# Numbers that each factor must explain, but for a few slices that hold less.
EACH = 3
# Factors that differ by less are one.
DISTINCT = 1e-3


@dataclass(frozen=True, eq=False, slots=True)
class Slices:
    """The columns by the slice they lie in, and how those are written."""

    name: str
    owner: Indices


def factor_of_each(exhibit: Exhibit) -> Diagnosis | None:
    """The fewest slices first: what is said of the output may be simpler than what is said of the input."""
    both = [(side, slices) for side in (exhibit, exhibit.sideways()) for slices in _slicings(side)]
    for side, slices in sorted(both, key=lambda pair: int(pair[1].owner.max(initial=0))):
        found = _explained(exhibit, side, slices)
        if found is not None:
            return found
    return None


def _slicings(side: Exhibit) -> Iterator[Slices]:
    """By each axis, and by all of them but the last."""
    leaf = side.input
    index = np.unravel_index(side.columns // leaf.width, leaf.shape) if leaf.shape else ()
    rank = len(leaf.shape)
    chosen = dict.fromkeys([*((axis,) for axis in range(rank)), tuple(range(rank - 1))])
    for axes in filter(None, chosen):
        letters = iter("ijklmnop")
        place = ", ".join(next(letters, "i") if axis in axes else ":" for axis in range(rank))
        rows = np.stack([index[axis] for axis in axes])
        yield Slices(f"{leaf.path}[{place}]", np.unique(rows, axis=1, return_inverse=True)[1].ravel())


def _explained(exhibit: Exhibit, side: Exhibit, slices: Slices) -> Diagnosis | None:
    ratios = _ratios(side, slices.owner)
    told = ratios[np.isfinite(ratios)]
    off = told[np.abs(told - 1.0) > DISTINCT]
    if off.size < 2 or np.ptp(off) <= DISTINCT * np.abs(off).max():
        return None
    found = fit(side, np.nan_to_num(ratios, nan=1.0)[slices.owner] * side.measured)
    if found is None:
        return None
    low, high = float(told.min()), float(told.max())
    return Diagnosis(
        "factor-of-each",
        f"{exhibit.subject} is off by a factor of its own for each {slices.name}, from {low:.4g} to {high:.4g} "
        f"({extent(exhibit, found)})",
        found.explained,
        f"Look for a number for each of them that {exhibit.rule} leaves out, counts twice or takes from another: a "
        "count, a weight, a norm.",
    )


def _ratios(side: Exhibit, owner: Indices) -> Array:
    """The factor of each slice, NaN where nothing tells one; none at all if there are too few numbers for each."""
    count = int(owner.max(initial=-1)) + 1
    ratios = np.full(count, np.nan)
    if np.count_nonzero(side.telling) < EACH * count:
        return ratios
    enough = 0
    for k in range(count):
        here = side.telling[:, owner == k]
        ratio = common_ratio(side.claimed[:, owner == k][here], side.measured[:, owner == k][here])
        if ratio is not None:
            ratios[k] = ratio
            enough += int(np.count_nonzero(here) >= EACH)
    told = np.count_nonzero(np.isfinite(ratios))
    return ratios if 4 * enough >= 3 * told else np.full(count, np.nan)
