"""One stencil: central differences at two or three steps, and what they say about themselves.

Along a displacement d, phi(t) = f(x + t*d) is sampled at +-t for each t of a short list, the first being 1. With D(t)
the central difference and S(t) = phi(t) + phi(-t) - 2 phi(0):

- the value is the Richardson column R = (D(b) - r D(a)) / (1 - r) with r = (b/a)^2, whose truncation error is O(t^4);
- truncation shows as the difference between neighbours;
- noise shows as the even residual S(a) - S(b)/r, which is O(t^4) for a smooth function and a known multiple of the
  standard deviation for noise. A kink or a jump within the stencil shows there too.

The steps are no powers of two of each other. A function that moves in stairs (float32 inside, an iterative solver with
a tolerance) would otherwise take each of them in the same rounding, and look exactly linear with a wrong slope. They
are multiples of 1/32, so that x +- t*d stays exact. `make bench` prints how often the true error exceeds the bar, and
how much wider the bar is.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from gradproof.norms import NEARLY, largest
from gradproof.program import Array, Indices
from gradproof.reference.field import Field, Ground

THREE = (1.0, 21 / 32, 11 / 32)
TWO = (1.0, 11 / 32)

TRUNCATION_FACTOR = 4.0
NOISE_FACTOR = 8.0
FLOOR_FACTOR = 4.0
# What a step that is off by a part of itself does to a slope, at most: to a central one, and to a one-sided one, where
# differences of slopes are extrapolated. A step that is off by more than `MISSTEP` of itself tells nothing.
MISSTEP_FACTOR, MISSTEP_SIDED, MISSTEP = 2.0, 8.0, 0.25
# Noise and floor act on a slope through the smallest step.
PER_STEP = 1.0 / TWO[-1]

# Rows of so many numbers in all, inputs and outputs, go into one batch.
SHORT = 2**16


@dataclass(frozen=True, slots=True)
class Slopes:
    """Derivatives along each displacement: central, with the two parts of its bar; `sigma`, the standard deviation of
    the function values if what is left over were all noise; and from either side alone, NaN where that was not asked
    for. Arrays (k, M)."""

    central: Array
    truncation: Array
    noise: Array
    sigma: Array
    right: Array
    right_bar: Array
    left: Array
    left_bar: Array

    @property
    def bar(self) -> Array:
        return self.truncation + self.noise

    def of_rows(self, rows: Indices) -> Slopes:
        return Slopes(*(getattr(self, one.name)[rows] for one in fields(self)))


def sample(field: Ground, displacements: Array, steps: tuple[float, ...]) -> Array:
    """f(x + t*d) and f(x - t*d) for each t: an array (2*len(steps), k, M)."""
    count, size = len(displacements), field.point.size
    if field.rows >= 2 * len(steps) * count:
        points = np.empty((2 * len(steps), count, size))
        for index, step in enumerate(steps):
            moved = displacements if step == 1.0 else displacements * step
            np.add(field.point, moved, out=points[2 * index])
            np.subtract(field.point, moved, out=points[2 * index + 1])
        return field.values(points.reshape(-1, size)).reshape(2 * len(steps), count, -1)
    result = np.empty((2 * len(steps), count, field.value.size))
    buffer = np.empty((min(field.rows, count), size))  # fresh memory is dear at a million coordinates
    for first in range(0, count, field.rows):
        some = displacements[first : first + field.rows]
        chunk = buffer[: len(some)]
        for index, step in enumerate(steps):
            for offset, move in enumerate((np.add, np.subtract)):
                moved = some if step == 1.0 else np.multiply(some, step, out=chunk)
                move(field.point, moved, out=chunk)
                result[2 * index + offset, first : first + len(some)] = field.values(chunk)
    return result


def sample_around(field: Ground, displacements: Array) -> tuple[Array, Array, Array]:
    """f(x + d), f(x - d) and f(x): (k, M) each but the last. Short rows are all run in one batch, f(x) among them: it
    may round in another way than a plain call does."""
    count, size = displacements.shape
    if 2 * count > field.rows >= count:  # as they come: at a million coordinates every copy counts
        return field.values(field.point + displacements), field.values(field.point - displacements), field.value
    if 2 * count <= field.alone or (2 * count + 1) * (size + field.value.size) > SHORT:
        up, down = sample(field, displacements, (1.0,))
        return up, down, field.value
    points = np.empty((2 * count + 1, size))
    np.add(field.point, displacements, out=points[:count])
    np.subtract(field.point, displacements, out=points[count:-1])
    points[-1] = field.point
    values = field.values(points)
    return values[:count], values[count:-1], _between(values[-1], field.value)


@np.errstate(invalid="ignore")
def _between(batched: Array, plain: Array) -> Array:
    """f(x) as the batch has it, which rounds as in its other rows. But what is not f(x) at all does not stand for it:
    the function was another one in the plain call, and that must show."""
    return batched if largest(batched - plain) <= NEARLY * largest(plain) else plain


def sample_columns(field: Field, steps: Array, columns: Indices) -> tuple[Array, Array, Array]:
    """The values where single coordinates of the point are moved by their step, up and down: (k, M) each; and where
    none is."""
    count = columns.size
    points = np.empty((2 * count + 1, field.point.size))
    points[:] = field.point
    points[np.arange(count), columns] += steps[columns]
    points[np.arange(count, 2 * count), columns] -= steps[columns]
    values = field.values(points)
    return values[:count], values[count:-1], _between(values[-1], field.value)


def spread_of_residual(ratio: float) -> float:
    """The standard deviation of S(a) - S(b)/r, for noise of standard deviation one."""
    return float(np.sqrt(2.0 + 2.0 / ratio**2 + (2.0 / ratio - 2.0) ** 2))


def spread_of_difference(a: float, b: float) -> float:
    """The same of D(b) - D(a)."""
    return float(np.sqrt(0.5 / a**2 + 0.5 / b**2))


@np.errstate(invalid="ignore", divide="ignore")
def misstep(field: Field, displacements: Array, steps: tuple[float, ...]) -> Array:
    """How far off the steps are, relative to themselves, because the program rounds its arguments: (k, 1)."""
    worst = np.zeros((len(displacements), 1))
    if field.seen is None:
        return worst
    for step in (*steps, *(-step for step in steps)):
        wanted = field.point + step * displacements
        error = np.where(displacements == 0, 0.0, np.abs((field.seen(wanted) - wanted) / (step * displacements)))
        np.maximum(worst, error.max(axis=1, keepdims=True), out=worst)
    return worst


def _blurred(found: Slopes, error: Array) -> Slopes:
    """The same slopes, after steps that were off by a relative `error`: less certain, or useless."""
    if not error.any():
        return found
    extra = np.where(error > MISSTEP, np.nan, error)
    size = np.abs(found.central)
    return replace(
        found,
        noise=found.noise + MISSTEP_FACTOR * extra * size,
        right_bar=found.right_bar + MISSTEP_SIDED * extra * size,
        left_bar=found.left_bar + MISSTEP_SIDED * extra * size,
        sigma=found.sigma + 0.0 * extra,
    )


def first_slopes(field: Field, displacements: Array) -> Slopes:
    """The two-level stencil: the first look, written for speed."""
    found = two_levels(field, sample(field, displacements, TWO))
    return found if field.seen is None else _blurred(found, misstep(field, displacements, TWO))


@np.errstate(invalid="ignore", over="ignore")
def two_levels(field: Field, samples: Array) -> Slopes:
    up, down, up_near, down_near = samples
    ratio = TWO[1] ** 2
    coarse = up - down
    coarse *= 0.5
    fine = up_near - down_near
    fine *= 0.5 / TWO[1]
    odd = fine - coarse
    value = odd * (ratio / (1.0 - ratio))
    value += fine
    np.abs(odd, out=odd)
    truncation = odd * TRUNCATION_FACTOR
    odd *= 1.0 / spread_of_difference(*TWO)
    sigma = up_near + down_near
    sigma *= -1.0 / ratio
    sigma += up
    sigma += down
    sigma += (2.0 / ratio - 2.0) * field.value
    np.abs(sigma, out=sigma)
    sigma *= 1.0 / spread_of_residual(ratio)
    noise = sigma * (NOISE_FACTOR * PER_STEP)
    noise += (FLOOR_FACTOR * PER_STEP) * field.floor
    np.maximum(sigma, odd, out=sigma)
    missing = np.broadcast_to(np.nan, value.shape)
    return Slopes(value, truncation, noise, sigma, missing, missing, missing, missing)


@np.errstate(invalid="ignore", over="ignore")
def slopes(field: Field, displacements: Array) -> Slopes:
    """The three-level stencil with one-sided slopes: the thorough look."""
    samples = sample(field, displacements, THREE)
    steps = np.array(THREE)[:, None, None]
    up, down = samples[0::2], samples[1::2]
    differences = (up - down) / (2 * steps)
    second = up + down - 2.0 * field.value
    columns, residuals = [], []
    for index in (0, 1):
        ratio = (THREE[index + 1] / THREE[index]) ** 2
        columns.append((differences[index + 1] - ratio * differences[index]) / (1.0 - ratio))
        residuals.append(np.abs(second[index] - second[index + 1] / ratio) / spread_of_residual(ratio))
    sigma = np.maximum(*residuals)
    noise = PER_STEP * (NOISE_FACTOR * sigma + FLOOR_FACTOR * field.floor)
    sigma = np.maximum(sigma, np.abs(differences[2] - differences[1]) / spread_of_difference(*THREE[1:]))
    right, right_change = _one_sided((up - field.value) / steps)
    left, left_change = _one_sided((field.value - down) / steps)
    # Noise is the same on both sides, so the larger change speaks for both, unless one side left the domain.
    change = TRUNCATION_FACTOR * np.fmax(right_change, left_change) + 2 * PER_STEP * FLOOR_FACTOR * field.floor
    found = Slopes(
        columns[1],
        TRUNCATION_FACTOR * np.abs(columns[1] - columns[0]),
        noise,
        sigma,
        right,
        np.where(np.isfinite(right_change), change, np.nan),
        left,
        np.where(np.isfinite(left_change), change, np.nan),
    )
    return found if field.seen is None else _blurred(found, misstep(field, displacements, THREE))


def _one_sided(slope: Array) -> tuple[Array, Array]:
    """Two Richardson columns from one side: errors O(t), then O(t^2); neighbouring values show what is left."""
    a, b, c = THREE
    first = (slope[1] * a - slope[0] * b) / (a - b)
    second = (slope[2] * b - slope[1] * c) / (b - c)
    return (second * a - first * c) / (a - c), np.abs(second - first)
