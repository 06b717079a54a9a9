"""What is nearly right: off by no more than a small share of the entries that are wrong.

A solver that stops at a tolerance leaves such a thing: its result is smooth, and another function than the one that the
author has differentiated. So does an adjoint that is solved for no better than that, or that is exact in the limit of
small steps alone. A term that is small at this point looks the same, so that both are named.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gradproof.contracts.side import side_of
from gradproof.evidence.wording import rounded_up
from gradproof.norms import rms
from gradproof.result import Comparison, Finding
from gradproof.settings import Tolerance

# Of the size of an entry.
SMALL = 0.03
# Causes that say where the mistake comes from, or how, but not by how much the numbers are off.
WITHOUT_SIZE = ("", "rule", "reverse-only", "forward-only", "cotangent-inexact", "tangent-inexact")


def share_off(comparison: Comparison, tolerance: Tolerance) -> float:
    """By how much of their size, or of their block's, the entries that were looked at are off at most."""
    return comparison.excess * tolerance.relative


def _own_share(comparison: Comparison) -> float:
    """By how much of their own size the wrong entries are off, all of them together. A few small ones of the wrong sign
    beside large ones that are right are off by little of their block's size, and agree to no digit."""
    if comparison.scope == "probes":
        gap = np.array([one.deviation for one in comparison.found])
        size = np.array([max(abs(one.analytic), abs(one.numeric)) for one in comparison.found])
    else:
        wrong = comparison.deviation > comparison.tolerance
        gap = comparison.deviation[wrong]
        size = np.fmax(np.abs(comparison.analytic), np.abs(comparison.numeric))[wrong]
    whole = rms(size)
    return rms(gap) / whole if whole else 0.0


def nearly(findings: tuple[Finding, ...], wrong: Sequence[Comparison], tolerance: Tolerance) -> tuple[Finding, ...]:
    """The findings of all wrong blocks. If every one is nearly right, they say so, and what that may come from: a
    solver would leave as much in all of them."""
    share = max((share_off(one, tolerance) for one in wrong), default=0.0)
    if not 0.0 < share <= SMALL or any(_own_share(one) > SMALL for one in wrong):
        return findings
    return tuple(_with_hint(one, comparison, share) for one, comparison in zip(findings, wrong, strict=True))


def _with_hint(finding: Finding, comparison: Comparison, share: float) -> Finding:
    cause = finding.diagnosis.code if finding.diagnosis else ""
    if finding.code != "mismatch" or cause not in WITHOUT_SIZE:
        return finding
    digits = int(-math.log10(share))
    agree = f"They agree to {digits} digit{'s' if digits > 1 else ''}"
    rule = side_of(comparison.mode).rule
    hint = (
        f"{agree}: if the function or {rule} solves something to a tolerance, make that tighter, or pass "
        f"tolerance={rounded_up(1.5 * share):g}; if not, look for a term that is small at this point."
    )
    diagnosis = finding.diagnosis and replace(finding.diagnosis, hint=hint)
    return replace(finding, hint=hint, diagnosis=diagnosis)
