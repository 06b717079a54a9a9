"""From wrong comparisons and failed contracts to findings that say why."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gradproof.diagnose.cotangent import cotangent
from gradproof.diagnose.exhibit import Exhibit
from gradproof.diagnose.recognise import blamed, recognise
from gradproof.diagnose.sampled import sampled
from gradproof.diagnose.sight import Whole
from gradproof.diagnose.stale import stale
from gradproof.errors import BudgetSpent
from gradproof.evidence.gathered import Task
from gradproof.evidence.wording import mismatch
from gradproof.norms import rms
from gradproof.program import Array
from gradproof.result import Comparison, Diagnosis, Finding, Verdict

# Of so many wrong blocks each is looked at; more of them are told apart no better by more of the same.
BLOCKS = 8


def explained(task: Task, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """The same findings; those of a backward that is not linear say in what way, where it shows."""
    return tuple(_with(f, _cotangent(task, f)) if f.code == "nonlinear" else f for f in findings)


def mismatches(task: Task, comparisons: tuple[Comparison, ...], findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """One finding for each wrong block, with its cause where one explains the numbers."""
    wrong = [comparison for comparison in comparisons if comparison.verdict is Verdict.WRONG]
    causes = {f.place.input.path: f.diagnosis for f in findings if f.code == "nonlinear" and f.place.input}
    said = []
    for k, comparison in enumerate(wrong):
        if comparison.mode == "reverse" and comparison.input.path in causes:
            # Pulls that are not linear make no Jacobian: its numbers would explain nothing.
            diagnosis = causes[comparison.input.path]
        else:
            diagnosis = _diagnosis(task, comparison, comparisons) if k < BLOCKS else None
            diagnosis = blamed(diagnosis, comparison, comparisons)
        said.append(_with(mismatch(comparison), diagnosis))
    return tuple(said)


def _with(finding: Finding, diagnosis: Diagnosis | None) -> Finding:
    if diagnosis is None or finding.code == "nan-gradient":
        return finding
    return replace(finding, diagnosis=diagnosis, hint=diagnosis.hint)


def _cotangent(task: Task, finding: Finding) -> Diagnosis | None:
    path = finding.place.input.path if finding.place.input else ""
    leaf = next((leaf for leaf in task.program.inputs if leaf.path == path), None)
    try:
        return cotangent(task.program, leaf, task.generator) if leaf is not None else None
    except BudgetSpent:
        return None


def _diagnosis(task: Task, comparison: Comparison, comparisons: tuple[Comparison, ...]) -> Diagnosis | None:
    try:
        exhibit = whole(task, comparison, comparisons) if comparison.scope == "entries" else sampled(task, comparison)
        return (recognise(exhibit) or stale(task, exhibit)) if exhibit is not None else None
    except BudgetSpent:
        return None


def whole(task: Task, comparison: Comparison, comparisons: tuple[Comparison, ...]) -> Exhibit:
    """A block of which every entry was compared."""
    numeric = _numbers(comparison)
    others = tuple(
        (other.input, Whole(_numbers(other)))
        for other in comparisons
        if other is not comparison
        and (other.mode, other.output) == (comparison.mode, comparison.output)
        and other.input.shape == comparison.input.shape
    )
    leaf, output = comparison.input, comparison.output
    return Exhibit(
        output,
        leaf,
        np.arange(output.size),
        np.arange(leaf.size),
        Whole(comparison.analytic),
        Whole(numeric),
        task.tolerance,
        rms(numeric),
        task.program.point[leaf.span],
        task.program.value[output.span],
        comparison.mode,
        others,
    )


def _numbers(comparison: Comparison) -> Array:
    """The numeric side, NaN at kinks and where its bar is wider than the tolerance."""
    unclear = ~(comparison.bar <= comparison.tolerance)
    if comparison.spread is not None:
        unclear |= comparison.spread > 0
    return np.where(unclear, np.nan, comparison.numeric) if unclear.any() else comparison.numeric
