"""NumPy arrays for the command line, and its old global random stream."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradproof.errors import UsageError


def array(values: NDArray[Any], dtype: str) -> NDArray[Any]:
    """A copy in this format."""
    try:
        return np.array(values, dtype=dtype)
    except TypeError as unknown:
        raise UsageError(f"dtype={dtype} is not one of NumPy's; write dtype=float64, or float32") from unknown


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """The stream of `np.random.randn` and its like, which many functions still draw from."""
    state = np.random.get_state()  # noqa: NPY002  this is the old stream
    np.random.seed(seed % 2**32)  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(state)  # noqa: NPY002
