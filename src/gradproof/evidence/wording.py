"""The sentences of findings, kept apart from the arithmetic."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gradproof.program import Program
from gradproof.result import Comparison, Finding, Place, Verdict

UNDECIDED_HINTS = {
    "noise": "The function's own noise is too large; make it more exact (a tighter solver tolerance), or pass a wider "
    "tolerance=.",
    "precision": "The function runs in low precision only; a float64 version, or a wider tolerance=, would decide.",
    "domain": "The point lies on the border of the domain; move it inside.",
    "jump": "The function jumps here; move the point.",
    "kink": "The function has a kink here that the steps do not resolve; move the point.",
    "budget": "Allow more calls or seconds in budget=.",
}


def _and_more(count: int) -> str:
    return f" (and at {count - 1} more entries)" if count > 1 else ""


def kink_remark(place: Place, count: int, low: float, high: float) -> Finding:
    return Finding(
        "kink",
        Verdict.RIGHT,
        place,
        f"{place} has a kink at this point{_and_more(count)}: every value from {low:.6g} to {high:.6g} is a valid "
        "subgradient",
        "Move the point away from the kink to check an ordinary derivative.",
    )


def stairs_remark(place: Place, count: int, low: float, high: float) -> Finding:
    return Finding(
        "stairs",
        Verdict.RIGHT,
        place,
        f"{place} moves in stairs{_and_more(count)}: its slope is {low:.6g} or {high:.6g}, on a tread or across them",
        "Make the function exact (a tighter solver tolerance, no rounding inside) to check an ordinary derivative.",
    )


def mismatch(comparison: Comparison) -> Finding:
    """The finding of a block that is wrong."""
    worst = comparison.worst
    place = worst.place if worst else Place()
    name = (
        f"{comparison.mode} derivative"
        if comparison.order == 1
        else f"{comparison.mode} derivative of order {comparison.order}"
    )
    if worst is not None and worst.analytic != worst.analytic:
        return Finding(
            "nan-gradient", Verdict.WRONG, place, f"the {name} is NaN where the function is smooth and finite"
        )
    if comparison.scope != "probes":
        extent = f"{comparison.wrong} of {comparison.entries} entries"
    else:
        extent = f"at least {max(comparison.wrong, 1)} of {comparison.entries} entries"
    rule = "backward" if comparison.mode == "reverse" else "the forward rule"
    hint = f"Look at how {rule} computes the derivative with respect to {comparison.input.path} at this index."
    return Finding("mismatch", Verdict.WRONG, place, f"the {name} is wrong in {extent}; worst at {place}", hint)


def undecided(comparison: Comparison) -> Finding:
    worst = comparison.worst
    place = worst.place if worst else Place()
    sentence = f"{str(place) or comparison.output.path} cannot be told: the numeric derivative is only known to "
    sentence += f"±{worst.bar:.2g}, the tolerance is {worst.tolerance:.2g}" if worst else "less than the tolerance"
    return Finding(
        comparison.reason or "noise", Verdict.UNDECIDED, place, sentence, UNDECIDED_HINTS.get(comparison.reason, "")
    )


def worded(findings: tuple[Finding, ...], words: tuple[tuple[str, str], ...]) -> tuple[Finding, ...]:
    """The same findings in the words of the program's author, who may have no backward but a `jac`."""

    def said(text: str) -> str:
        for ours, theirs in words:
            text = text.replace(ours, theirs)
        return text

    return tuple(
        replace(
            finding,
            sentence=said(finding.sentence),
            hint=said(finding.hint),
            diagnosis=finding.diagnosis
            and replace(
                finding.diagnosis, sentence=said(finding.diagnosis.sentence), hint=said(finding.diagnosis.hint)
            ),
        )
        for finding in findings
    )


def unsupported(what: str, reason: str, verdict: Verdict) -> Finding:
    """Something that does not exist for this program; a remark unless the user asked for it by name."""
    return Finding("unsupported", verdict, Place(), f"{what} does not exist here: {reason}")


def budget_spent(reason: str) -> Finding:
    return Finding(
        "budget", Verdict.UNDECIDED, Place(), f"stopped before a verdict: {reason}", UNDECIDED_HINTS["budget"]
    )


def not_finite(program: Program) -> tuple[Finding, ...]:
    """Outputs that are NaN or infinite at the point itself: nothing can be said of their derivatives."""
    findings = []
    for leaf in program.outputs:
        bad = np.flatnonzero(~np.isfinite(program.value[leaf.span]))
        if bad.size:
            spot = leaf.spot(leaf.start + int(bad[0]))
            sentence = f"{spot} is {program.value[leaf.start + int(bad[0])]} at this point"
            if bad.size > 1:
                sentence += f" (and {bad.size - 1} more outputs are not finite)"
            findings.append(
                Finding("nan-value", Verdict.UNDECIDED, Place(spot, None), sentence, "Move the point into the domain.")
            )
    return tuple(findings)
