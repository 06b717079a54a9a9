"""Vectors that are looked at piece by piece: what they give is what their numbers give, wherever those stand."""

from __future__ import annotations

import numpy as np
import pytest

from gradproof.norms import PIECE, Weighed, is_multiple, largest, product_size
from gradproof.program import Array, leaves
from gradproof.reference.steps import PERIODS, SIGNED, SMALLEST_SHARE, scales, signed

SIZES = (5, PIECE, PIECE + 1, 3 * PIECE - 7)


def written_out(values: Array) -> Array:
    """The scales of one leaf, from logarithms."""
    finite = np.isfinite(values)
    middle = np.frexp(np.sqrt(np.mean(np.square(values[finite]))))[1] - 1
    own = np.where(finite & (values != 0), np.frexp(values)[1] - 1, np.where(finite, -5000, middle))
    limited = np.maximum(own, middle - SMALLEST_SHARE)
    return np.asarray(np.ldexp(1.0, np.maximum(limited, (limited + middle) // 2)))


@pytest.mark.parametrize("spoilt", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_scales_of_several_leaves(size: int, spoilt: bool) -> None:
    generator = np.random.default_rng(size)
    sizes = (3, size, 70)
    point = generator.standard_normal(sum(sizes)) * 10.0 ** generator.integers(-9, 9, sum(sizes))
    point[::7] = 0.0
    if spoilt:
        point[[1, 5, -1]] = np.nan, np.inf, -np.inf
    inputs = leaves([(f"args[{i}]", (one,), "float64") for i, one in enumerate(sizes)])
    with np.errstate(invalid="ignore"):
        expected = np.concatenate([written_out(point[leaf.span]) for leaf in inputs])
        assert np.array_equal(scales(point, inputs), expected)


@pytest.mark.parametrize("size", [7, SIGNED.size, SIGNED.size + 1, PERIODS[-1]])
def test_signed_numbers_are_those_of_the_table(size: int) -> None:
    drawn = np.random.default_rng(3).bit_generator.random_raw(-(-size // 4)).view(np.uint16)[:size]
    assert np.array_equal(signed(np.random.default_rng(3), size), SIGNED[drawn % SIGNED.size])


def test_beyond_a_period_signed_numbers_repeat() -> None:
    size = 3 * PERIODS[-1]
    found = signed(np.random.default_rng(3), size)
    assert found.size == size
    (period,) = [one for one in PERIODS if np.array_equal(found[one:], found[:-one])]
    assert np.unique(np.abs(found[:period])).size > 2**12


@pytest.mark.parametrize("size", SIZES)
def test_sums_and_multiples(size: int) -> None:
    generator = np.random.default_rng(size)
    weights, values = generator.standard_normal((2, size))
    found = Weighed.of(weights, values)
    assert found.total == pytest.approx(np.sum(weights * values), rel=1e-9)
    assert found.size == product_size(weights, values) == pytest.approx(np.linalg.norm(weights * values))
    assert found.largest == largest(values) == np.abs(values).max()
    assert is_multiple(-0.25 * values, values, -0.25)
    for wrong in (0, size // 2, size - 1):
        other = -0.25 * values
        other[wrong] = np.nextafter(other[wrong], 9.0)
        assert not is_multiple(other, values, -0.25)
        spoilt = values.copy()
        spoilt[wrong] = np.nan
        assert np.isnan(Weighed.of(weights, spoilt).largest)
        assert not is_multiple(spoilt, spoilt, 1.0)
