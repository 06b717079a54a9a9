"""What a one-sided slope does as the steps shrink: it arrives at once, crawls to its limit, or grows without end.

The slope of x^p at 0 over a step h is h^(p - 1). Four octaves further down, what a rung changes is always the same
share of what the rung above changed: 2^(-4 (p - 1)). A share below one sums to a limit, which can be told from a few
rungs (A. Aitken, 1926) though none of them is near it; a share of one (x log x) or more (a root) has none. Noise is not
like that: its changes have no share, and grow as the steps shrink.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gradproof.program import Array, Mask
from gradproof.reference.lepski import lepski

# A slope crawls when what a rung changes is at least this share of what the rung above changed. Four octaves make it
# 1/16 where the function has an expansion in whole powers of the step, and 1/4 for x^1.5, which still arrives.
CRAWL = 0.28
# From this share on, up to this one, there is no limit. A jump has 16.
ENDLESS = (0.998, 2.0**3.9)
# Shares that differ by less are the same, as far as a limit may be computed from them; by less: at least it crawls.
SAME, SIMILAR = 1e-3, 0.1
# The same for shares without a limit, relative to themselves.
ALIKE = 0.03
# Rows of four rungs that crawl, when it is no accident.
FIRM = 3
# A limit is believed to so many times what the rungs disagree about it.
DOUBTED = 8.0


@dataclass(frozen=True, slots=True)
class Course:
    """Arrays (k, M). `limit` +- `bar` where the slope crawls steadily enough to tell (infinite elsewhere); `tail`: how
    far a given slope may be from the limit where it crawls, and zero where it does not; `firmly`: it does so over many
    steps, which no noise does; `endless`: there is no limit."""

    limit: Array
    bar: Array
    tail: Array
    firmly: Mask
    endless: Mask


@np.errstate(invalid="ignore", divide="ignore", over="ignore")
def course(rungs: Sequence[Array], exponents: Sequence[int], slope: Array) -> Course:
    """Of the slopes at the steps 2**exponents, smallest first; `slope` is what would be believed of them."""
    known = _with_first_look(dict(zip(exponents, rungs, strict=True)))
    tail, endless = np.zeros(slope.shape), np.zeros(slope.shape, dtype=bool)
    times = np.zeros(slope.shape, dtype=int)
    # The smallest steps tell most, unless noise covers them: so they come last.
    for row in reversed(_rows(known, 4)):
        changes = np.diff(row, axis=0)
        shares = changes[:-1] / changes[1:]
        crawling = (shares > CRAWL).all(axis=0) & (shares < 1.05).all(axis=0) & (np.ptp(shares, axis=0) < SIMILAR)
        ahead = np.abs(changes[0]) * np.where(shares[0] < 1.0, shares[0] / (1.0 - shares[0]), np.inf)
        tail = np.where(crawling, np.abs(row[0] - slope) + 2.0 * ahead, tail)
        times += crawling
    for row in _rows(known, 6):
        endless |= _endless(row)
    limits = [_limit(row) for row in _rows(known, 5)]
    if not limits:
        return Course(slope, np.full(slope.shape, np.inf), tail, times >= FIRM, endless)
    limit, bar = lepski(*zip(*limits, strict=True))
    return Course(limit, np.where(endless | (tail == 0), np.inf, bar), tail, times >= FIRM, endless)


def _rows(known: dict[int, Array], count: int) -> list[Array]:
    """So many neighbouring rungs each, the smallest steps first; none that begins above the first look."""
    spans = [range(first, first + 4 * count, 4) for first in sorted(known) if first <= 0]
    return [np.stack([known[one] for one in span]) for span in spans if all(one in known for one in span)]


def _endless(row: Array) -> Mask:
    """Each of six rungs in a row moves on by the same share, which is one or more."""
    changes = np.diff(row, axis=0)
    shares = changes[:-1] / changes[1:]
    inside = (shares > ENDLESS[0]).all(axis=0) & (shares < ENDLESS[1]).all(axis=0)
    return np.asarray(inside & (np.ptp(shares, axis=0) < ALIKE * (shares[0] - (1.0 - ALIKE))))


def _limit(row: Array) -> tuple[Array, Array]:
    """From five rungs, three times over; infinite where they do not crawl by the same share."""
    changes = np.diff(row, axis=0)
    shares = changes[:-1] / changes[1:]
    limits = row[:3] - changes[:3] * shares / (1.0 - shares)
    steady = (shares > CRAWL).all(axis=0) & (shares < ENDLESS[0]).all(axis=0) & (np.ptp(shares, axis=0) < SAME)
    return limits[0], np.where(steady, DOUBTED * np.ptp(limits, axis=0), np.nan)


def _with_first_look(known: dict[int, Array]) -> dict[int, Array]:
    """That has no one-sided slopes: they are put in as if they crawled there as they do around it."""
    if 0 in known or not {-8, -4, 4} <= known.keys():
        return known
    # Changes of a, a/r and a/r^2: the first is known, and the sum of the others.
    change = known[-4] - known[-8]
    grown = 0.5 * (np.sqrt(1.0 + 4.0 * (known[4] - known[-4]) / change) - 1.0)
    return {**known, 0: known[-4] + change * grown}
