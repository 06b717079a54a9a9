"""Which outputs are nothing but the rounding of larger numbers; see tests/torch/test_leftovers.py for whole checks."""

from __future__ import annotations

import numpy as np
import pytest

from gradproof.reference.rounding import leftovers
from tests.core.programs import elementwise


def test_what_cancels_but_for_rounding() -> None:
    point = np.array([0.7, -1.3, 2.1])
    program = elementwise(lambda x: np.sin(x) ** 2 + np.cos(x) ** 2 - 1.0, np.zeros_like, point)
    (terms,) = leftovers(program, np.random.default_rng(0))
    assert 0.1 < terms < 10.0


@pytest.mark.parametrize("point", [[0.0, 0.0, 0.0], [0.0, 1e-12, 0.0], [1e-14, -1e-13, 2e-12]])
def test_values_that_are_small_because_their_arguments_are_have_a_size_of_their_own(point: list[float]) -> None:
    program = elementwise(lambda x: 3.0 * x, lambda x: np.full_like(x, 3.0), np.array(point))
    assert leftovers(program, np.random.default_rng(0)) == ()
