"""Arrays of a framework from NumPy's, and its random numbers held still, for those who have no arrays of their own.

A framework's folder may hold a module `arguments` with `array(values, dtype)` and `seeded(seed)`.
"""

from __future__ import annotations

import functools
import random
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol, cast

from numpy.typing import NDArray

from gradproof.errors import UsageError

# In the order in which they are chosen where nobody names one.
FRAMEWORKS = ("torch", "jax", "numpy")


class Arrays(Protocol):
    """What a framework's `arguments` module offers."""

    def array(self, values: NDArray[Any], dtype: str) -> Any:
        """The values in a format of this framework; raises UsageError for one that it does not have."""

    def seeded(self, seed: int) -> AbstractContextManager[None]:
        """The framework's global random stream started at `seed`, and given back as it was."""


def installed() -> str:
    """The framework to take where nobody names one."""
    return next(name for name in FRAMEWORKS if find_spec(name) is not None)


@functools.cache
def arrays_of(framework: str) -> Arrays:
    if framework not in FRAMEWORKS or find_spec(framework) is None:
        have = [name for name in FRAMEWORKS if find_spec(name) is not None]
        raise UsageError(f"framework {framework!r} is not installed; there is {', '.join(have)}: --framework {have[0]}")
    return cast(Arrays, import_module(f"gradproof.{framework}.arguments"))


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """All global random streams of what is loaded: Python's and the frameworks'."""
    state = random.getstate()
    random.seed(seed)
    try:
        with ExitStack() as stack:
            for framework in FRAMEWORKS:
                if framework in sys.modules:
                    stack.enter_context(arrays_of(framework).seeded(seed))
            yield
    finally:
        random.setstate(state)
