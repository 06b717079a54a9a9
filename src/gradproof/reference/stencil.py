"""One stencil: central differences at two or three steps, a factor two apart, and what they say about themselves.

Along a displacement d, phi(t) = f(x + t*d) is sampled at t = +-1, +-1/2 (and +-1/4). With D the central difference:

- the value is the Richardson column R = D(t/2) + (D(t/2) - D(t))/3, whose truncation error is O(t^4);
- truncation shows as the difference between neighbouring rungs;
- noise shows as the fourth difference f(-t) - 4f(-t/2) + 6f(0) - 4f(t/2) + f(t), which is O(t^4) for a smooth function
  and sqrt(70) sigma for noise of standard deviation sigma. A kink or a jump within the stencil shows there too.

The factors below were chosen so that for pure noise, the worst case, the true error exceeds the bar in 0.5 % (two
levels) and 0.2 % (three levels) of all draws with a median bar of 8 times the error; `make bench` prints what
they give on real functions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gradproof.program import Array
from gradproof.reference.field import Field

FOURTH_DIFFERENCE = 70.0**0.5
FLOOR_FACTOR = 4.0


@dataclass(frozen=True, slots=True)
class Slopes:
    """Derivatives along each displacement, with error bars: central, and from either side alone. Arrays (k, M)."""

    central: Array
    truncation: Array
    noise: Array
    right: Array
    right_bar: Array
    left: Array
    left_bar: Array

    @property
    def bar(self) -> Array:
        return self.truncation + self.noise


def sample(field: Field, displacements: Array, levels: int) -> Array:
    """f(x + t*d) for t = 1, -1, 1/2, -1/2, ...: an array (2*levels, k, M)."""
    steps = [sign * 0.5**level for level in range(levels) for sign in (1.0, -1.0)]
    count = len(displacements)
    if field.rows >= len(steps) * count:
        points = np.multiply.outer(np.array(steps), displacements)
        points += field.point
        return field.values(points.reshape(-1, field.point.size)).reshape(len(steps), count, -1)
    result = np.empty((len(steps), count, field.value.size))
    buffer = np.empty((min(field.rows, count), field.point.size))  # fresh memory is dear at a million coordinates
    for first in range(0, count, field.rows):
        some = displacements[first : first + field.rows]
        chunk = buffer[: len(some)]
        for level in range(levels):
            for index, move in ((2 * level, np.add), (2 * level + 1, np.subtract)):
                move(field.point, some, out=chunk)
                result[index, first : first + len(some)] = field.values(chunk)
            if level + 1 < levels:
                some = some * 0.5
    return result


def central(field: Field, displacements: Array) -> tuple[Array, Array, Array]:
    """(value, truncation, noise) of the two-level stencil; the cheap first look."""
    return central_of(field, sample(field, displacements, 2))


@np.errstate(invalid="ignore", over="ignore")
def central_of(field: Field, samples: Array) -> tuple[Array, Array, Array]:
    """The same from samples already taken; written for speed, since exhaustive checks spend their time here."""
    up, down, up_half, down_half = samples
    coarse = up - down
    coarse *= 0.5
    fine = up_half - down_half
    truncation = fine - coarse
    value = truncation * (1.0 / 3.0)
    value += fine
    np.abs(truncation, out=truncation)
    truncation *= 2.0
    noise = up_half + down_half
    noise *= -4.0
    noise += up
    noise += down
    noise += 6.0 * field.value
    np.abs(noise, out=noise)
    noise *= 2 * 6.0 / FOURTH_DIFFERENCE
    noise += (2 * FLOOR_FACTOR) * field.floor
    return value, truncation, noise


def slopes(field: Field, displacements: Array) -> Slopes:
    """The three-level stencil with one-sided slopes: the thorough look."""
    samples = sample(field, displacements, 3)
    steps = np.array([1.0, 0.5, 0.25])[:, None, None]
    up, down = samples[0::2], samples[1::2]
    with np.errstate(invalid="ignore", over="ignore"):
        differences = (up - down) / (2 * steps)
        richardson = differences[1:] + (differences[1:] - differences[:-1]) / 3.0
        second = up + down - 2.0 * field.value
        fourth = np.abs(second[:-1] - 4.0 * second[1:]) / FOURTH_DIFFERENCE
        sigma = np.maximum(fourth[0], fourth[1])
        noise = (4.0 * sigma + FLOOR_FACTOR * field.floor) / 0.25
        right, right_change = _one_sided((up - field.value) / steps)
        left, left_change = _one_sided((field.value - down) / steps)
        # Noise is the same on both sides, so the larger change speaks for both, unless one side left the domain.
        change = 4.0 * np.fmax(right_change, left_change) + 8.0 * FLOOR_FACTOR * field.floor
        right_bar = np.where(np.isfinite(right_change), change, np.nan)
        left_bar = np.where(np.isfinite(left_change), change, np.nan)
        truncation = np.abs(richardson[1] - richardson[0])
    return Slopes(richardson[1], truncation, noise, right, right_bar, left, left_bar)


def _one_sided(slope: Array) -> tuple[Array, Array]:
    """Two Richardson columns from one side: errors O(t), then O(t^2); neighbouring values show what is left."""
    first = 2.0 * slope[1:] - slope[:-1]
    return first[1] + (first[1] - first[0]) / 3.0, np.abs(first[1] - first[0])
