"""What to make of a slope that no central stencil resolves: a kink, the border of the domain, a jump, or noise."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gradproof.program import Array
from gradproof.reference.estimate import Estimate, Kind
from gradproof.reference.lepski import lepski
from gradproof.reference.stencil import Slopes

Mask = NDArray[np.bool_]

# One-sided slopes differ for certain when they lie this many bars apart.
APART = 3.0
# A kink nearby is worth a remark when the slopes on its sides differ by this share.
NOTABLE = 0.05
# log2 of the longest step that counts as near, relative to the first look.
WITHIN = 4
# A slope is unbounded when it grows like a power of the step between these, rung by rung: a root has 1/2, a jump 1.
GROWTH = (0.1, 0.9)
# A slope crawls when what a rung changes is at least this share of what the rung above changed. Four octaves make it
# 1/16 where the function has an expansion in whole powers of the step, and 1/4 for x^1.5, which still arrives.
CRAWL = 0.28


def classify(central: Estimate, missed: Mask, rungs: Sequence[tuple[int, Slopes]]) -> Estimate:
    """Replace the central slopes that missed their goal by what the one-sided slopes allow to say.

    At a kink the interval between the one-sided slopes (Clarke's subdifferential along this direction) becomes
    value +- spread. At the border of the domain the slope of the finite side is the derivative. A slope that is known
    only because the steps stay on one side of a kink nearby is marked as such. `rungs` are
    (log2 of the step, slopes), smallest step first.
    """
    steps = [pair for pair in rungs if not (np.isnan(pair[1].right_bar).all() and np.isnan(pair[1].left_bar).all())]
    if not steps:
        return central
    sided, exponents = [slopes for _, slopes in steps], [exponent for exponent, _ in steps]
    right_bars = _sober([one.right_bar for one in sided], exponents)
    left_bars = _sober([one.left_bar for one in sided], exponents)
    within = _kink_within(steps, right_bars, left_bars)
    if not missed.any():
        return Estimate(central.value, central.bar, central.spread, np.where(within, np.uint8(Kind.NEAR), central.kind))
    right, right_bar = lepski([one.right for one in sided], right_bars)
    left, left_bar = lepski([one.left for one in sided], left_bars)
    has_right, has_left = np.isfinite(right_bar), np.isfinite(left_bar)
    gap = np.where(has_right & has_left, np.abs(right - left), 0.0)
    sides_bar = np.maximum(right_bar, left_bar)
    apart = gap > APART * (right_bar + left_bar)
    right_tail = _tail([one.right for one in sided], exponents, right)
    left_tail = _tail([one.left for one in sided], exponents, left)
    kink = missed & has_right & has_left & apart & _persistent(gap, sided) & (right_tail == 0) & (left_tail == 0)
    edge = missed & (has_right != has_left)
    jump = missed & ~kink & _constant_rise(rungs)
    steep = missed & ~kink & ~jump & _unbounded([np.where(has_right, one.right, one.left) for one in sided])
    value = np.where(kink, 0.5 * (right + left), central.value)
    value = np.where(edge, np.where(has_right, right, left), value)
    bar = np.where(kink, sides_bar, central.bar)
    bar = np.where(edge, np.where(has_right, right_bar + right_tail, left_bar + left_tail), bar)
    bar = np.where(jump | steep, np.inf, bar)
    # Steps that stay on this side of a nearby kink or border may be too short for the noise. The side that it is not on
    # has the same slope, and steps as long as they like.
    cut = np.logical_or.reduce([np.isfinite(one.right_bar) != np.isfinite(one.left_bar) for one in sided])
    better = missed & (within | cut) & has_right & has_left & ~apart
    better &= np.minimum(right_bar, left_bar) < central.bar
    better &= np.abs(central.value - np.where(right_bar < left_bar, right, left)) <= APART * central.bar
    value = np.where(better, np.where(right_bar < left_bar, right, left), value)
    bar = np.where(better, np.minimum(right_bar, left_bar), bar)
    kind = np.where(missed & ~better, np.uint8(Kind.ROUGH), np.uint8(Kind.SMOOTH))
    near = within & (~missed | better)
    for mask, label in (
        (near, Kind.NEAR),
        (jump, Kind.JUMP),
        (edge, Kind.EDGE),
        (steep, Kind.STEEP),
        (kink, Kind.KINK),
    ):
        kind = np.where(mask, np.uint8(label), kind)
    return Estimate(value, bar, np.where(kink, 0.5 * gap, 0.0), kind)


def _sober(bars: Sequence[Array], exponents: Sequence[int]) -> list[Array]:
    """A bar that is narrow by luck would drive out all larger steps: the noise that the three smallest steps show is
    there at every step."""
    small = np.stack([bar * 2.0**exponent for bar, exponent in zip(bars[:3], exponents, strict=False)])
    level = np.fmax.reduce(small, axis=0)
    return [np.fmax(bar, np.where(np.isnan(bar), bar, level * 2.0**-e)) for bar, e in zip(bars, exponents, strict=True)]


def _kink_within(steps: Sequence[tuple[int, Slopes]], right_bars: Sequence[Array], left_bars: Sequence[Array]) -> Mask:
    """Where the slopes on both sides differ over steps around the first, whatever smaller ones say."""
    seen = np.zeros(steps[0][1].right.shape, dtype=bool)
    for (exponent, slopes), right_bar, left_bar in zip(steps, right_bars, left_bars, strict=True):
        if exponent <= WITHIN:
            gap = np.abs(slopes.right - slopes.left)
            size = np.maximum(np.abs(slopes.right), np.abs(slopes.left))
            seen |= (gap > APART * (right_bar + left_bar)) & (gap > NOTABLE * size)
    return seen


def _persistent(gap: Array, sided: Sequence[Slopes]) -> Mask:
    """The same gap between left and right at two or more steps; noise would make it shrink as the step grows."""
    same = [np.abs(np.abs(slopes.right - slopes.left) - gap) <= 0.25 * gap for slopes in sided]
    return np.asarray(np.sum(same, axis=0) >= 2)


def _constant_rise(rungs: Sequence[tuple[int, Slopes]]) -> Mask:
    """The function rises by the same amount over ever smaller steps."""
    rises = np.stack([slopes.central * 2.0**exponent for exponent, slopes in rungs[:3]])
    mean = np.abs(rises.mean(axis=0))
    return np.asarray((len(rises) == 3) & (mean > 0) & (np.ptp(rises, axis=0) <= 0.2 * mean))


def _unbounded(slopes: Sequence[Array]) -> Mask:
    """Over the smallest steps, four octaves apart, the slope grows by the same power each time."""
    if len(slopes) < 5:
        return np.zeros(slopes[0].shape, dtype=bool)
    small = np.stack(slopes[:5])
    growth = np.log2(small[:-1] / small[1:]) / 4.0
    inside = (growth > GROWTH[0]) & (growth < GROWTH[1])
    return np.asarray(inside.all(axis=0) & (np.ptp(growth, axis=0) < 0.1))


@np.errstate(invalid="ignore", divide="ignore", over="ignore")
def _tail(rungs: Sequence[Array], exponents: Sequence[int], slope: Array) -> Array:
    """How far this slope may be from its limit where it crawls. Elsewhere zero.

    Each of four rungs in a row changes it by the same share of what the one above did, as x^1.1 does at 0: none of them
    shows how far away the limit is. Noise is not like that: it grows as the steps shrink.
    """
    result = np.zeros(slope.shape)
    known = _with_first_look(dict(zip(exponents, rungs, strict=True)))
    # The smallest steps tell most, unless noise covers them: so they come last.
    for first in sorted(known, reverse=True):
        row = [known[exponent] for exponent in range(first, first + 13, 4) if exponent in known]
        if first > 0 or len(row) < 4:
            continue
        changes = np.diff(np.stack(row), axis=0)
        shares = changes[:-1] / changes[1:]
        crawling = (shares > CRAWL).all(axis=0) & (shares < 1.05).all(axis=0) & (np.ptp(shares, axis=0) < 0.1)
        ahead = np.abs(changes[0]) * np.where(shares[0] < 1.0, shares[0] / (1.0 - shares[0]), np.inf)
        result = np.where(crawling, np.abs(row[0] - slope) + 2.0 * ahead, result)
    return result


def _with_first_look(known: dict[int, Array]) -> dict[int, Array]:
    """That has no one-sided slopes: they are put in as if they crawled there as they do above."""
    if 0 in known or not {-4, 4, 8, 12} <= known.keys():
        return known
    share = (known[8] - known[4]) / (known[12] - known[8])
    return {**known, 0: known[-4] + (known[4] - known[-4]) * share / (1.0 + share)}
