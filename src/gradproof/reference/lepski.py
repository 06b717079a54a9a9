"""Which of several estimates with error bars to believe (O. Lepski's rule for choosing a bandwidth, 1990).

From the smallest step upwards, an estimate is trusted as long as its interval meets those of all smaller steps, and of
the trusted ones the narrowest is taken. A large step that sees another branch of the function, or an aliased
oscillation, drops out, although its own bar may look narrow.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gradproof.program import Array

# Intervals are widened by this factor for the question whether they meet: among ten of them one may be unlucky, and
# must not drive out all larger steps.
DOUBT = 5.0


def lepski(values: Sequence[Array], bars: Sequence[Array]) -> tuple[Array, Array]:
    """From the smallest step up: the narrowest interval among those that all meet. Infinite where there is none."""
    low = np.full_like(values[0], -np.inf)
    high = np.full_like(values[0], np.inf)
    best = np.zeros_like(values[0])
    best_bar = np.full_like(values[0], np.inf)
    trusted = np.ones(values[0].shape, dtype=bool)
    for value, bar in zip(values, bars, strict=True):
        usable = np.isfinite(value) & np.isfinite(bar)
        bottom = np.where(usable, value - DOUBT * bar, -np.inf)
        top = np.where(usable, value + DOUBT * bar, np.inf)
        trusted &= ~usable | ((bottom <= high) & (top >= low))
        better = trusted & usable & (bar < best_bar)
        best = np.where(better, value, best)
        best_bar = np.where(better, bar, best_bar)
        low = np.where(trusted, np.maximum(low, bottom), low)
        high = np.where(trusted, np.minimum(high, top), high)
    return best, best_bar
