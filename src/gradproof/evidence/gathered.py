"""What either kind of evidence hands to the verdict."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gradproof.metered import Metered
from gradproof.program import Array
from gradproof.result import Comparison, Finding, Power
from gradproof.settings import Tolerance


@dataclass(frozen=True, slots=True)
class Task:
    """One program to be judged: the analytic side as the user runs it, the numeric side in the widest format there
    is (the same program when it is in double already)."""

    program: Metered
    reference: Metered
    modes: tuple[str, ...]
    tolerance: Tolerance
    order: int
    generator: np.random.Generator
    steps: Array  # the first step of every coordinate, on the numeric side


@dataclass(frozen=True, slots=True)
class Gathered:
    comparisons: tuple[Comparison, ...]
    findings: tuple[Finding, ...]
    power: Power | None


def restricted(vector: Array, span: slice) -> Array:
    """One row: the vector, and zero outside the span."""
    row = np.zeros((1, vector.size))
    row[0, span] = vector[span]
    return row
