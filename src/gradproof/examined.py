"""What looking at one order of one program gave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from gradproof.picture import Trace
from gradproof.program import Array
from gradproof.result import Comparison, Finding, Power, Verdict, worst_of

CONSEQUENCE = (
    "Mend order 1 first: order 2 is held against differences of it, and its mismatch may be nothing but a consequence."
)


@dataclass(frozen=True, slots=True)
class Examined:
    """What one order gave; orders are joined. `empty`: there was not a single derivative to look at.
    `jacobians`: the analytic ones (N, M), by mode, where every entry was compared; of no interest
    beyond the order."""

    comparisons: tuple[Comparison, ...] = ()
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    power: Power | None = None
    empty: bool = False
    traces: tuple[Trace, ...] = ()
    jacobians: Mapping[str, Array] = field(default_factory=dict)

    @property
    def verdict(self) -> Verdict:
        return worst_of([one.verdict for one in self.comparisons] + [one.verdict for one in self.findings])

    def joined(self, other: Examined) -> Examined:
        weaker = max((p for p in (self.power, other.power) if p), key=lambda power: power.relative, default=None)
        return Examined(
            self.comparisons + other.comparisons,
            self.findings + other.findings,
            self.notes + other.notes,
            weaker,
            self.empty or other.empty,
            self.traces + other.traces,
        )


def consequence(examined: Examined) -> Examined:
    """The same order, of which nothing is known: it is held against differences of a lower one, which is wrong."""
    return replace(
        examined,
        findings=tuple(
            replace(finding, diagnosis=None, hint=CONSEQUENCE) if finding.code == "mismatch" else finding
            for finding in examined.findings
        ),
    )
