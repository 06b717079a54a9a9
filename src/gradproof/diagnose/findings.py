"""From wrong comparisons and failed contracts to findings that say why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from gradproof.agreement import CLEAR
from gradproof.contracts.linear import mixed
from gradproof.contracts.side import SIDES
from gradproof.diagnose.exhibit import Exhibit
from gradproof.diagnose.nearly import SMALL, nearly, share_off
from gradproof.diagnose.nonlinear import is_inexact, nonlinear
from gradproof.diagnose.recognise import blamed, recognise
from gradproof.diagnose.rowwise import factor_of_each
from gradproof.diagnose.sampled import sampled
from gradproof.diagnose.sight import Whole
from gradproof.diagnose.stale import stale
from gradproof.diagnose.through import named
from gradproof.errors import BudgetSpent
from gradproof.evidence.gathered import Task
from gradproof.evidence.native import Departure
from gradproof.evidence.wording import mismatch
from gradproof.norms import rms
from gradproof.precision import SINGLE, Precision
from gradproof.program import Array
from gradproof.reference.rounding import roughened
from gradproof.result import Comparison, Diagnosis, Finding, Verdict

# Of so many wrong blocks each is looked at; more of them are told apart no better by more of the same.
BLOCKS = 8
# Findings about a rule that is not linear, and the side it is asked from.
NONLINEAR = {side.code: side for side in SIDES}


def explained(task: Task, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """The same findings; those of a rule that is not linear say in what way, where it shows."""
    return tuple(_with(f, _nonlinear(task, f)) if f.code in NONLINEAR else f for f in findings)


def as_exact(findings: tuple[Finding, ...], comparisons: tuple[Comparison, ...]) -> tuple[Finding, ...]:
    """The same findings. Where all numbers agree, a rule that is linear to some digits is as exact as the solver in it:
    whether that is exact enough cannot be told from what is not linear."""
    if not comparisons or any(one.verdict is not Verdict.RIGHT for one in comparisons):
        return findings
    return tuple(replace(one, verdict=Verdict.UNDECIDED) if is_inexact(one.diagnosis) else one for one in findings)


def mismatches(task: Task, comparisons: tuple[Comparison, ...], findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """One finding for each wrong block, with its cause where one explains the numbers."""
    wrong = [comparison for comparison in comparisons if comparison.verdict is Verdict.WRONG]
    unsteady = any(f.code == "nondeterministic" and f.verdict is Verdict.WRONG for f in findings)
    causes = {(NONLINEAR[f.code].mode, _made(f)): f.diagnosis for f in findings if f.code in NONLINEAR}
    said = []
    wrong.sort(key=lambda comparison: comparison.unfollowed)
    for k, comparison in enumerate(wrong):
        made = comparison.input if comparison.mode == "reverse" else comparison.output
        cause = causes.get((comparison.mode, made.path))
        if (comparison.mode, made.path) in causes and not is_inexact(cause):
            # What is not linear makes no Jacobian: its numbers would explain nothing.
            diagnosis = cause
        elif unsteady and comparison.mode == "reverse":
            diagnosis = None  # nor do numbers that are others each time
        else:
            looked_at = k < BLOCKS and not comparison.unfollowed
            diagnosis = _diagnosis(task, comparison, comparisons) if looked_at else None
            if diagnosis is None and share_off(comparison, task.tolerance) <= SMALL:
                diagnosis = cause
            diagnosis = blamed(diagnosis, comparison, comparisons)
        said.append(_with(mismatch(comparison), diagnosis))
    findings = named(task, comparisons, tuple(said)) if said and not (unsteady or causes) else tuple(said)
    return nearly(findings, wrong, task.tolerance)


def only_in(form: Precision, findings: tuple[Finding, ...], departures: Sequence[Departure]) -> tuple[Finding, ...]:
    """The same findings where the rule is right in float64; those without a cause say so."""
    worst = max(one.relative for one in departures)
    diagnosis = Diagnosis(
        "precision",
        f"the same rule is right in float64: only its numbers in {form.name} are off, by {worst:.2g} of their size",
        1.0,
        f"Look for a cast to a format narrower than {form.name}, or for a branch on the dtype.",
    )
    # Of zeros it says more than that they are zeros: they are none in float64.
    small = f"Look for a number on the way that is too small or too large for {form.name}, or a branch on the dtype."
    instead = {"": diagnosis, "detached": replace(diagnosis, hint=small)}
    findings = tuple(
        _with(f, instead.get(f.diagnosis.code if f.diagnosis else "")) if f.code == "mismatch" else f for f in findings
    )
    if form.bits >= SINGLE.bits or any(one.code == "mismatch" for one in findings):
        return findings
    # So few digits do that by themselves where large numbers cancel; no single entry is off.
    return tuple(
        replace(one, verdict=Verdict.UNDECIDED, sentence=f"{one.sentence}; in float64 it is linear")
        if one.code in NONLINEAR
        else one
        for one in findings
    )


def only_rounding(task: Task, findings: Sequence[Finding], comparisons: Sequence[Comparison], form: Precision) -> bool:
    """Whether all that is wrong in float64 looks like a rule that rounds to the program's own format on the way: by at
    most the tolerance, relative to the block, and by something else at every entry, or named so by the diagnosis; and
    the gradient is as rough as that makes it."""
    named = [one for one in findings if one.diagnosis is not None and one.diagnosis.code == "precision"]
    places = {(one.place.output.path, one.place.input.path) for one in named if one.place.output and one.place.input}
    wrong = [one for one in comparisons if one.verdict is Verdict.WRONG]
    contracts = [one for one in findings if one.verdict is Verdict.WRONG and one.code != "mismatch"]
    if not all(one.diagnosis is not None and one.diagnosis.code == "precision" for one in contracts):
        return False
    largest = task.tolerance.relative
    if not all(
        _rounded(one, largest, "named" if (one.output.path, one.input.path) in places else "unnamed", form)
        for one in wrong
        if not one.unfollowed  # the worst of them were
    ):
        return False
    rough = roughened(task.reference, mixed(task.program.value.size, task.generator), form, task.generator)
    return all(one.input.path in rough for one in wrong)


def _rounded(comparison: Comparison, largest: float, cause: Literal["named", "unnamed"], form: Precision) -> bool:
    """The few entries that were found may be off alike by chance; the diagnosis has looked at more."""
    strongest = max((abs(one.numeric) for one in comparison.found), default=0.0)
    clear = [one for one in comparison.found if abs(one.numeric) > 0.25 * strongest]
    errors = np.array([one.analytic / one.numeric - 1.0 for one in clear])
    if not errors.size or np.abs(errors).max() > largest:
        return False
    return cause == "named" or bool(np.abs(errors).max() <= max(2.0 * np.ptp(errors), form.roundoff))


def _with(finding: Finding, diagnosis: Diagnosis | None) -> Finding:
    if diagnosis is None or finding.code == "nan-gradient":
        return finding
    return replace(finding, diagnosis=diagnosis, hint=diagnosis.hint)


def _made(finding: Finding) -> str:
    """The leaf whose numbers the rule makes in a way that is not linear."""
    spot = NONLINEAR[finding.code].spot(finding.place)
    return spot.path if spot else ""


def _nonlinear(task: Task, finding: Finding) -> Diagnosis | None:
    side, path = NONLINEAR[finding.code], _made(finding)
    leaf = next((leaf for leaf in side.made(task.program) if leaf.path == path), None)
    try:
        return nonlinear(task.program, side, leaf, task.generator) if leaf is not None else None
    except BudgetSpent:
        return None


def _diagnosis(task: Task, comparison: Comparison, comparisons: tuple[Comparison, ...]) -> Diagnosis | None:
    try:
        exhibit = whole(task, comparison, comparisons) if comparison.scope == "entries" else sampled(task, comparison)
        if exhibit is None:
            return None
        found = recognise(exhibit)
        if found is None and comparison.scope == "entries" and 2 * np.count_nonzero(exhibit.wrong) < comparison.wrong:
            found = recognise(_blurred(exhibit, comparison))
        # Another point is looked for in one function, not in a network of them.
        found = found or (None if any(one.unfollowed for one in comparisons) else stale(task, exhibit))
        return found or factor_of_each(exhibit)  # as stale weights look, too
    except BudgetSpent:
        return None


def _blurred(exhibit: Exhibit, comparison: Comparison) -> Exhibit:
    """The same with all numbers that are known as well as the worst of those that are wrong beyond their bars."""
    wrong = comparison.deviation > comparison.tolerance + CLEAR * comparison.bar
    blur = float(np.max(comparison.bar[wrong], initial=0.0))
    numeric = np.where(comparison.bar <= np.maximum(blur, comparison.tolerance), comparison.numeric, np.nan)
    if comparison.spread is not None:
        numeric[comparison.spread > 0] = np.nan
    return replace(exhibit, numeric=Whole(numeric), scale=rms(numeric[np.isfinite(numeric)]), counted=wrong, blur=blur)


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
        counted=comparison.deviation > comparison.tolerance,
    )


def _numbers(comparison: Comparison) -> Array:
    """The numeric side, NaN at kinks and where its bar is wider than the tolerance."""
    unclear = ~(comparison.bar <= comparison.tolerance)
    if comparison.spread is not None:
        unclear |= comparison.spread > 0
    return np.where(unclear, np.nan, comparison.numeric) if unclear.any() else comparison.numeric
