"""The evidence that recognisers look at, and how well an explanation fits it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gradproof.agreement import entry_tolerance
from gradproof.contracts.side import side_of
from gradproof.diagnose.sight import Sight, Turned
from gradproof.norms import rms
from gradproof.program import Array, Indices, Leaf, Mask
from gradproof.settings import Tolerance

# An explanation must leave at most this share of the wrong entries, and of their squared deviation, unexplained.
UNEXPLAINED = 0.01
DISTINCT = 3
# Deviation within so many tolerances counts as none: entries with a bar wider than their tolerance are not looked at,
# or (`Exhibit.blur`) granted the widest of these.
SLACK = 2.0


@dataclass(frozen=True, eq=False)
class Exhibit:
    """One wrong block. `rows` and `columns` are offsets in the output and the input leaf that were looked at, and both
    sights are known there; elsewhere they may be. `point` and `value` are the numbers of the two leaves; `others` the
    numeric derivatives with respect to other inputs of the same size."""

    output: Leaf
    input: Leaf
    rows: Indices
    columns: Indices
    analytic: Sight
    numeric: Sight
    tolerance: Tolerance
    scale: float
    point: Array
    value: Array
    mode: str = "reverse"
    others: tuple[tuple[Leaf, Sight], ...] = ()
    turned: bool = False
    # Whether a probe agrees that leaves out some offsets of the output and of the input: asked where only a sample of
    # the block is known, before anything is said about all of it.
    agrees_without: Callable[[Mask, Mask], bool] | None = None
    # The entries that the comparison counts as wrong, where it has looked at all of them.
    counted: Mask | None = None
    # How far the numeric side may be off by its own noise, where that is more than the tolerance.
    blur: float = 0.0

    @cached_property
    def claimed(self) -> Array:
        return self.analytic.at(self.rows, self.columns)

    @cached_property
    def measured(self) -> Array:
        return self.numeric.at(self.rows, self.columns)

    @cached_property
    def known(self) -> Mask:
        return np.isfinite(self.claimed) & np.isfinite(self.measured)

    @cached_property
    def wrong(self) -> Mask:
        with np.errstate(invalid="ignore"):
            return self.known & (np.abs(self.claimed - self.measured) > self.slack(self.measured))

    @cached_property
    def off(self) -> Mask:
        """Entries beyond one tolerance: what is said to agree, and how many are said to be explained, is told by it."""
        if self.counted is not None:
            return self.known & self.counted
        with np.errstate(invalid="ignore"):
            return self.known & (np.abs(self.claimed - self.measured) > self.slack(self.measured) / SLACK)

    @cached_property
    def telling(self) -> Mask:
        """Entries that are not zero on both sides, and so could have been wrong in a way that shows."""
        size = np.fmax(np.abs(self.claimed), np.abs(self.measured))
        return np.asarray(self.known & (size > self.slack(np.zeros_like(size))))

    @property
    def complete(self) -> bool:
        return self.rows.size == self.output.size and self.columns.size == self.input.size

    def slack(self, numbers: Array) -> Array:
        return SLACK * (entry_tolerance(numbers, self.scale, self.tolerance) + self.blur)

    def sideways(self) -> Exhibit:
        """Rows for columns: what is said of the input's index is then said of the output's."""
        ask = self.agrees_without
        return Exhibit(
            self.input,
            self.output,
            self.columns,
            self.rows,
            Turned(self.analytic),
            Turned(self.numeric),
            self.tolerance,
            self.scale,
            self.value,
            self.point,
            self.mode,
            (),
            not self.turned,
            ask and (lambda rows, columns: ask(columns, rows)),
            None if self.counted is None else self.counted.T,
            self.blur,
        )

    def right_elsewhere(self, columns: Mask) -> bool:
        """Whether everything but these offsets of the input is right, as far as can be told."""
        if self.off[:, ~columns[self.columns]].any():
            return False
        if self.complete or self.agrees_without is None:
            return self.complete
        return self.agrees_without(np.zeros(self.output.size, dtype=bool), columns)

    @property
    def subject(self) -> str:
        """What carries the mistake when it is in the columns: the gradient, or (sideways) the incoming one."""
        if self.mode == "forward":
            name = "the forward derivative with respect to" if not self.turned else "the tangent of"
            return f"{name} {self.input.path}"
        return f"the gradient of {self.input.path}" if not self.turned else f"the cotangent of {self.input.path}"

    @property
    def rule(self) -> str:
        return side_of(self.mode).rule


@dataclass(frozen=True, slots=True)
class Fit:
    """How an explanation fits: the share of the squared deviation that it takes away, the number of wrong entries that
    it was tested on, and of all that are counted as wrong, those that are hardly off included."""

    explained: float
    wrong: int
    counted: int = 0


def fit(exhibit: Exhibit, predicted: Array, columns: Indices | None = None, rows: Indices | None = None) -> Fit | None:
    """The fit of a prediction of the analytic numbers on a grid (by default that of the exhibit); None if it fails."""
    rows, columns = exhibit.rows if rows is None else rows, exhibit.columns if columns is None else columns
    own = rows is exhibit.rows and columns is exhibit.columns
    claimed = exhibit.claimed if own else exhibit.analytic.at(rows, columns)
    measured = exhibit.measured if own else exhibit.numeric.at(rows, columns)
    return judged(exhibit, claimed - predicted, exhibit.slack(predicted), claimed - measured, exhibit.slack(measured))


@np.errstate(invalid="ignore")
def judged(exhibit: Exhibit, left: Array, slack: Array, before: Array, allowed: Array) -> Fit | None:
    """`left` is the deviation that an explanation leaves, `before` that without it (NaN where unknown)."""
    known = np.isfinite(left)
    both = known & np.isfinite(before)
    wrong = both & (np.abs(before) > allowed)
    count = int(np.count_nonzero(wrong))
    if count < 1 or (exhibit.complete and (count < 2 or 2 * count < np.count_nonzero(exhibit.wrong))):
        return None
    if np.count_nonzero(known & (np.abs(left) > slack)) > UNEXPLAINED * count:
        return None
    total = rms(before[both])
    explained = 1.0 - (rms(left[both]) / total) ** 2 if total > 0 else 0.0
    off = exhibit.off if before.shape == exhibit.off.shape else np.abs(before) > allowed / SLACK
    return Fit(explained, count, int(np.count_nonzero(both & off))) if explained >= 1.0 - UNEXPLAINED else None


def varied(numbers: Array) -> bool:
    """At least three different sizes: zeros and ones are found anywhere."""
    sizes = np.sort(np.abs(numbers[np.isfinite(numbers) & (numbers != 0)]))
    return sizes.size > 0 and 1 + int(np.count_nonzero(np.diff(sizes) > 1e-4 * sizes[1:])) >= DISTINCT


def shaped(leaf: Leaf) -> tuple[int, ...]:
    """The leaf's shape in coordinates: complex elements are pairs."""
    return (*leaf.shape, 2) if leaf.is_complex else leaf.shape


def union(*parts: Indices) -> Indices:
    """All offsets that are known, once each."""
    joined = np.unique(np.concatenate(parts))
    return joined[joined >= 0]


def extent(exhibit: Exhibit, found: Fit) -> str:
    """How much was explained, to be put in brackets."""
    count = max(found.wrong, found.counted)
    if not exhibit.complete:
        return f"explains all {count:,} wrong entries that were looked at"
    everything = int(np.count_nonzero(exhibit.off))
    if count < everything:  # the others it says nothing of, such as those at the end from which all is shifted
        return f"explains {count:,} of the {everything:,} wrong entries"
    if found.explained > 0.9999:
        return f"explains all {count:,} wrong entries"
    return f"explains {100 * found.explained:.3g} % of the error in {count:,} wrong entries"
