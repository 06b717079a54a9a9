"""What to make of a slope that no central stencil resolves: a kink, the border of the domain, a jump, a slope that
arrives late or never, or noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from gradproof.program import Array, Mask
from gradproof.reference.courses import course
from gradproof.reference.estimate import Estimate, Kind
from gradproof.reference.lepski import lepski
from gradproof.reference.stencil import Slopes

# One-sided slopes differ for certain when they lie this many bars apart.
APART = 3.0
# A kink nearby is worth a remark when the slopes on its sides differ by this share.
NOTABLE = 0.05
# log2 of the longest step that counts as near, relative to the first look.
WITHIN = 4
# Rises over several steps are the same when they differ by this share at most; those from a value that stands alone
# are so to more digits.
LIKE, ISOLATED = 0.2, 1e-3
# Slopes that may still move by less than this share of a kink leave it what it is: rounding can look like a crawl.
SETTLED = 1e-6


def classify(central: Estimate, missed: Mask, rungs: Sequence[tuple[int, Slopes]], coarse: Array) -> Estimate:
    """Replace the central slopes that missed their goal by what the one-sided slopes allow to say.

    At a kink the interval between the one-sided slopes (Clarke's subdifferential along this direction) becomes
    value +- spread. At the border of the domain the slope of the finite side is the derivative. A slope that is known
    only because the steps stay on one side of a kink nearby is marked as such. `rungs` are
    (log2 of the step, slopes), smallest step first; what is not higher than `coarse` (M,) may be rounding, and no jump.
    """
    steps = [pair for pair in rungs if not (np.isnan(pair[1].right_bar).all() and np.isnan(pair[1].left_bar).all())]
    if not steps:
        return central
    sided, exponents = [slopes for _, slopes in steps], [exponent for exponent, _ in steps]
    right_bars = _sober([one.right_bar for one in sided], exponents)
    left_bars = _sober([one.left_bar for one in sided], exponents)
    bent, within = _kink_within(steps, right_bars, left_bars)
    if not missed.any():
        return Estimate(central.value, central.bar, central.spread, np.where(within, np.uint8(Kind.NEAR), central.kind))
    right = _side([one.right for one in sided], right_bars, exponents)
    left = _side([one.left for one in sided], left_bars, exponents)
    both = right.exists & left.exists
    one = right.where(right.exists, left)
    gap = np.where(both, np.abs(right.slope - left.slope), 0.0)
    sides_bar = np.maximum(right.bar, left.bar)
    apart = gap > APART * (right.bar + left.bar)
    arrived = missed & both & right.arrived & left.arrived & ~apart
    lasting = _persistent(gap, sided) | (right.arrived & left.arrived)
    tails = np.maximum(right.tail, left.tail)
    kink = missed & both & apart & lasting & (tails <= SETTLED * gap) & ~one.endless
    edge = missed & (right.exists != left.exists)
    jump = missed & ~kink & _constant_rise(rungs, steps, coarse)
    steep = missed & ~kink & ~jump & one.endless
    slow = missed & ~steep & ~jump & (right.slow | left.slow)
    value = np.where(kink | arrived, 0.5 * (right.slope + left.slope), np.where(edge, one.slope, central.value))
    bar = np.where(kink, sides_bar + tails, np.where(arrived, sides_bar + gap, central.bar))
    bar = np.where(slow, np.maximum(bar, np.maximum(right.tail, left.tail)), bar)
    bar = np.where(edge, one.bar + one.tail, bar)
    bar = np.where(jump | steep, np.inf, bar)
    # Steps that stay on this side of a nearby kink or border may be too short for the noise. The side that it is not on
    # has the same slope, and steps as long as they like.
    cut = np.logical_or.reduce([np.isfinite(one.right_bar) != np.isfinite(one.left_bar) for one in sided])
    narrow = right.where(right.bar < left.bar, left)
    better = missed & (bent | cut) & both & ~apart & ~(jump | steep | slow | arrived) & (narrow.bar < central.bar)
    better &= np.abs(central.value - narrow.slope) <= APART * central.bar
    value = np.where(better, narrow.slope, value)
    bar = np.where(better, narrow.bar, bar)
    kind = np.where(missed & ~better, np.uint8(Kind.ROUGH), np.uint8(Kind.SMOOTH))
    near = within & (~missed | better) & ~arrived
    for mask, label in (
        (near, Kind.NEAR),
        (slow | arrived, Kind.SLOW),
        (jump, Kind.JUMP),
        (edge, Kind.EDGE),
        (steep, Kind.STEEP),
        (kink, Kind.KINK),
    ):
        kind = np.where(mask, np.uint8(label), kind)
    return Estimate(value, bar, np.where(kink, 0.5 * gap, 0.0), kind)


@dataclass(frozen=True, slots=True)
class _Side:
    """What is believed of the slopes on one side; a bar that is not finite means that there is none. `arrived`: they
    crawl to a limit that can be told; `tail`: how far away it may be where it cannot, for
    certain where they are `slow`; `endless`: there is none."""

    slope: Array
    bar: Array
    tail: Array
    slow: Mask
    arrived: Mask
    endless: Mask

    @property
    def exists(self) -> Mask:
        return np.isfinite(self.bar)

    def where(self, mask: Mask, other: _Side) -> _Side:
        pairs = [(getattr(self, field.name), getattr(other, field.name)) for field in fields(self)]
        return _Side(*(np.where(mask, ours, theirs) for ours, theirs in pairs))


def _side(slopes: Sequence[Array], bars: Sequence[Array], exponents: Sequence[int]) -> _Side:
    slope, bar = lepski(slopes, bars)
    along = course(slopes, exponents, slope)
    arrived = np.isfinite(along.bar) & np.isfinite(bar)
    return _Side(
        np.where(arrived, along.limit, slope),
        np.where(arrived, along.bar, bar),
        np.where(arrived, 0.0, along.tail),
        along.firmly & ~arrived,
        arrived,
        along.endless & np.isfinite(bar),
    )


def _sober(bars: Sequence[Array], exponents: Sequence[int]) -> list[Array]:
    """A bar that is narrow by luck would drive out all larger steps: the noise that the three smallest steps show is
    there at every step."""
    small = np.stack([bar * 2.0**exponent for bar, exponent in zip(bars[:3], exponents, strict=False)])
    level = np.fmax.reduce(small, axis=0)
    return [np.fmax(bar, np.where(np.isnan(bar), bar, level * 2.0**-e)) for bar, e in zip(bars, exponents, strict=True)]


def _kink_within(
    steps: Sequence[tuple[int, Slopes]], right_bars: Sequence[Array], left_bars: Sequence[Array]
) -> tuple[Mask, Mask]:
    """Where the slopes on both sides differ over steps around the first, whatever smaller ones say; and where they do
    so by enough to be worth a remark."""
    seen, notable = (np.zeros(steps[0][1].right.shape, dtype=bool) for _ in range(2))
    for (exponent, slopes), right_bar, left_bar in zip(steps, right_bars, left_bars, strict=True):
        if exponent <= WITHIN:
            gap = np.abs(slopes.right - slopes.left)
            size = np.maximum(np.abs(slopes.right), np.abs(slopes.left))
            apart = gap > APART * (right_bar + left_bar)
            seen |= apart
            notable |= apart & (gap > NOTABLE * size)
    return seen, notable


def _persistent(gap: Array, sided: Sequence[Slopes]) -> Mask:
    """The same gap between left and right at two or more steps; noise would make it shrink as the step grows."""
    same = [np.abs(np.abs(slopes.right - slopes.left) - gap) <= 0.25 * gap for slopes in sided]
    return np.asarray(np.sum(same, axis=0) >= 2)


def _constant_rise(rungs: Sequence[tuple[int, Slopes]], steps: Sequence[tuple[int, Slopes]], coarse: Array) -> Mask:
    """The function rises by the same amount over ever smaller steps, and by more than rounding: from one side to the
    other, or from the point itself to a side, where noise there would look alike if it were not for the digits."""
    across = [slopes.central * 2.0**exponent for exponent, slopes in rungs[:3]]
    right = [slopes.right * 2.0**exponent for exponent, slopes in steps[:5]]
    left = [slopes.left * 2.0**exponent for exponent, slopes in steps[:5]]
    alone = (len(steps) >= 5) & _constant(right, ISOLATED, coarse) & _constant(left, ISOLATED, coarse)
    # The bars of such slopes are 1.4 times as wide as themselves, and more if they come from the last digits.
    alone &= np.logical_and.reduce([one.right_bar <= 2.0 * np.abs(one.right) for _, one in steps[:5]])
    return np.asarray(((len(rungs) >= 3) & _constant(across, LIKE, coarse)) | alone)


def _constant(rises: Sequence[Array], share: float, least: Array) -> Mask:
    mean = np.abs(np.mean(rises, axis=0))
    return np.asarray((mean > least) & (np.ptp(rises, axis=0) <= share * mean))
