"""The same derivatives in two formats, and where they are further apart than rounding."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gradproof.agreement import entry_tolerance
from gradproof.norms import farthest, largest, rms
from gradproof.precision import Precision
from gradproof.program import Array, Mask
from gradproof.reference.rounding import off
from gradproof.settings import Tolerance


@dataclass(frozen=True, slots=True)
class Block:
    """Numbers of one size; `least` is what may be rounding whatever that is."""

    rows: slice
    columns: slice
    least: float

    @property
    def where(self) -> tuple[slice, slice]:
        return self.rows, self.columns


@dataclass(frozen=True)
class Sides:
    """Derivatives in both formats, each (rows, numbers)."""

    native: Array
    wide: Array
    blocks: tuple[Block, ...]
    tolerance: Tolerance
    form: Precision

    @property
    def close(self) -> bool:
        """Whether all deviations are within what is granted to the smallest numbers of their blocks."""
        for block in self.blocks:
            wide = self.wide[block.where]
            least = entry_tolerance(np.zeros(1), rms(wide), self.tolerance)[0] + block.least
            with np.errstate(invalid="ignore"):
                if not farthest(self.native[block.where], wide) <= least:
                    return False
        return True

    @cached_property
    def scale(self) -> Array:
        found = np.zeros_like(self.wide)
        for block in self.blocks:
            found[block.where] = rms(self.wide[block.where])
        return found

    @cached_property
    def allowed(self) -> Array:
        """How far they may be apart."""
        found = entry_tolerance(self.wide, self.scale, self.tolerance)
        for block in self.blocks:
            found[block.where] += block.least
        return found

    @cached_property
    def beyond(self) -> Array:
        """How many times what is allowed the deviation is; 0 where it is within."""
        with np.errstate(invalid="ignore", over="ignore"):
            times = np.nan_to_num(np.abs(self.native - self.wide) / (self.allowed + 1e-300), nan=np.inf, posinf=np.inf)
        return np.where(off(self.native, self.wide, self.allowed, self.form), times, 0.0)

    @property
    def overflown(self) -> Mask:
        """Where the native number is lost because some derivatives are too large for the format: inf, or NaN made of
        one (inf * 0)."""
        lost = ~np.isfinite(self.native) & np.isfinite(self.wide)
        return lost if largest(np.nan_to_num(self.wide)) >= 0.5 * self.form.largest else np.zeros_like(lost)
