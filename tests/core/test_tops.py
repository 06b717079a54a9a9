"""The largest entries of a Jacobian, block by block."""

from __future__ import annotations

import numpy as np

from gradproof.evidence.tops import Tops
from gradproof.program import leaves

INPUTS = leaves([("a", (4,), "float64"), ("b", (2, 3), "float64"), ("none", (0,), "float64")])
OUTPUTS = leaves([("y", (3,), "float64"), ("z", (5,), "float64"), ("empty", (0,), "float64")])


def test_the_largest_entry_of_every_block_is_found() -> None:
    jacobian = np.random.default_rng(0).standard_normal((10, 9))[:, :8]  # a part of a larger array, as JAX gives it
    jacobian[:4, 3:] = 0.0
    tops = Tops.of(jacobian, OUTPUTS)
    for leaf in INPUTS:
        for output in OUTPUTS:
            block, found = np.abs(jacobian[leaf.span, output.span]), tops.largest(leaf, output)
            if not block.any():
                assert found is None
                continue
            assert found is not None
            assert leaf.start <= found[0] < leaf.stop
            assert output.start <= found[1] < output.stop
            assert abs(jacobian[found]) == block.max()
    np.testing.assert_array_equal(tops.of_inputs(), np.abs(jacobian).max(axis=1))
    np.testing.assert_array_equal(tops.outputs, np.abs(jacobian).max(axis=0))


def test_of_equal_entries_the_first_is_named_whatever_its_sign() -> None:
    jacobian = np.array([[1.0, -3.0, 3.0], [3.0, 0.0, -3.0]])
    both, three = leaves([("x", (2,), "float64")]), leaves([("y", (3,), "float64")])
    assert Tops.of(jacobian, three).largest(both[0], three[0]) == (0, 1)
