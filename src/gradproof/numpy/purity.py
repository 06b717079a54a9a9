"""What a call of the user's function leaves as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np


@contextmanager
def preserved() -> Iterator[None]:
    """NumPy's global random state is the same afterwards; steps out of the domain raise no warnings."""
    state = np.random.get_state()  # noqa: NPY002  the stream that the user's function would use
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        np.random.set_state(state)  # noqa: NPY002
