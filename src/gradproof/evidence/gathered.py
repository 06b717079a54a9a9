"""What either kind of evidence hands to the verdict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from gradproof.bounds import Limits
from gradproof.contracts.repeatable import Repeats
from gradproof.metered import Metered
from gradproof.program import Array
from gradproof.reference.complexstep import ComplexStep
from gradproof.result import Comparison, Finding, Power, Verdict
from gradproof.settings import CONTRACTS, Detail, Tolerance


@dataclass(frozen=True, slots=True)
class Task:
    """One program to be judged: the analytic side as the user runs it, the numeric side in the widest format there
    is (the same program when it is in double already)."""

    program: Metered
    reference: Metered
    modes: tuple[str, ...]
    tolerance: Tolerance
    linear: Tolerance  # for what is linear, to be held against itself
    order: int
    generator: np.random.Generator
    steps: Array  # the first step of every coordinate, on the numeric side
    repeats: Repeats  # to be asked where values leave a doubt
    contracts: tuple[str, ...] = CONTRACTS
    nondet_tol: float = 0.0
    exact: ComplexStep | None = None  # of the numeric side, where its function takes complex numbers
    limits: Limits | None = None  # what the user said of the inputs' domain
    detail: Detail = "summary"  # for a verdict alone, sums may stand for entries, and digits that cost much are spared
    role: Literal["own", "copy"] = "own"  # the program is the user's own, or float64 in place of a narrow format


@dataclass(frozen=True, slots=True)
class Gathered:
    """`jacobians`: the analytic ones (N, M), by mode, where every entry was compared. `repeated`: see `sums.Pulled`.
    `manner`: how, where that is not as the plan says."""

    comparisons: tuple[Comparison, ...]
    findings: tuple[Finding, ...]
    power: Power | None
    jacobians: Mapping[str, Array] = field(default_factory=dict)
    repeated: bool = False
    manner: str = ""

    @property
    def plainly_right(self) -> bool:
        """All numbers agree, and nothing is special about the point."""
        return all(c.verdict is Verdict.RIGHT for c in self.comparisons) and not any(
            finding.code in ("kink", "stairs") or finding.verdict is not Verdict.RIGHT for finding in self.findings
        )

    def with_findings(self, findings: tuple[Finding, ...]) -> Gathered:
        return replace(self, findings=findings + self.findings)


def weakest(seen: Iterable[tuple[float, float]], fraction: float) -> Power | None:
    """What would have been caught in every block: of pairs, the error that would have been in one of them, and its
    largest derivative. None where no derivative has a size."""
    shares = [(error / top, error) for error, top in seen if top > 0]
    relative, error = max(shares, default=(0.0, 0.0))
    return Power(error, relative, fraction) if relative > 0 else None


def distinct(analytic: Mapping[str, Array]) -> list[Array]:
    """The Jacobians of all modes; one that serves for two of them, once."""
    return list({id(one): one for one in analytic.values()}.values())


def restricted(vector: Array, span: slice) -> Array:
    """One row: the vector, and zero outside the span."""
    row = np.zeros((1, vector.size))
    row[0, span] = vector[span]
    return row
