"""What the caller asked for, in the core's words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradproof.errors import UsageError
from gradproof.program import Program
from gradproof.settings import Settings, Tolerance

# JAX draws its directions from a fixed seed too: a suite of tests gives the same answer each time.
SEED = 0
# JAX's gradient tolerances, absolute and relative alike. They hold where the caller names only the other one.
JAX_TOLERANCE = {
    "float64": 1e-5,
    "complex128": 1e-5,
    "float32": 2e-3,
    "complex64": 1e-3,
    "float16": 1e-2,
    "bfloat16": 1e-1,
}
NARROWER = 1e-1

Given = float | Mapping[Any, float] | None


@dataclass(frozen=True, slots=True)
class Options:
    """None means that it was left out. A tolerance may be a mapping from dtypes to numbers."""

    atol: Given
    rtol: Given
    eps: float | None

    def settings(self, program: Program, modes: Sequence[str]) -> Settings:
        return Settings.validated(
            modes=modes,
            tolerance=self.tolerance(program),
            step=None if not self.eps else float(self.eps),
            seed=SEED,
        )

    def tolerance(self, program: Program) -> Tolerance | None:
        """None where the core chooses: with nothing named. Otherwise `atol + rtol * |derivative|` for every entry,
        whatever the size of the output."""
        if self.atol is None and self.rtol is None:
            return None
        dtypes = {leaf.dtype for leaf in program.inputs + program.outputs}
        return Tolerance(relative=_widest("rtol", self.rtol, dtypes), absolute=self.absolute(program), block=0.0)

    def absolute(self, program: Program) -> float:
        if self.atol is None and self.rtol is None:
            return 0.0
        return _widest("atol", self.atol, {leaf.dtype for leaf in program.inputs + program.outputs})


def _widest(name: str, given: Given, dtypes: set[str]) -> float:
    if given is None or isinstance(given, Mapping):
        named = {np.dtype(key).name: float(value) for key, value in (given or {}).items()}
        return max(named.get(dtype, JAX_TOLERANCE.get(dtype, NARROWER)) for dtype in dtypes)
    if not given >= 0:
        raise UsageError(f"{name}={given!r} is not understood; write a number >= 0, or {{np.float32: 1e-3}}")
    return float(given)
