"""The sentences of findings, kept apart from the arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gradproof.contracts.side import side_of
from gradproof.errors import Refused, RuleRaised, Unsupported
from gradproof.evidence.native import Departure
from gradproof.norms import rms
from gradproof.precision import Precision
from gradproof.program import Skipped
from gradproof.reference.estimate import Kind
from gradproof.result import Comparison, Finding, Place, Verdict
from gradproof.settings import Settings, Tolerance

UNDECIDED_HINTS = {
    "noise": "The function's own noise is too large; make it more exact (a tighter solver tolerance), or pass a wider "
    "tolerance=.",
    "precision": "The function runs in low precision only. To decide, make it run in float64, use gradproof.compare "
    "with a plain reference that does, or pass a wider tolerance=.",
    "domain": "The point lies on the border of the domain; move it inside.",
    "steep": "The slope grows without bound here, as that of a root or of x log x at zero; move the point.",
    "slow": "The slope settles too slowly as the steps shrink, as that of |x|^1.1 at zero; move the point.",
    "stairs": "The function moves in stairs: its slope on a tread and across them differ; make it exact.",
    "jump": "The function jumps here; move the point.",
    "kink": "The function has a kink here that the steps do not resolve; move the point.",
    "budget": "Allow more calls or seconds in budget=.",
}

# A tolerance that is wider than this is no advice.
WIDEST = 0.05

# Who checks by another checker's interface has not all options.
DROP_IN = (
    ("Pass randomness='reseed'", "Seed inside of the function or call gradproof.check with randomness='reseed'"),
    (", pass spaces=", ", call gradproof.check with spaces="),
    ("Pass wrt= to see", "Check fewer inputs at once to see"),
    ("a wider tolerance=", "a wider atol= or rtol="),
    ("or tolerance=", "or rtol="),
    ("pass a tolerance= that", "pass an rtol= that"),
)

# Why an entry of such a kind stays undecided.
REASONS = {
    Kind.KINK: "kink",
    Kind.STAIRS: "stairs",
    Kind.EDGE: "domain",
    Kind.SLOW: "slow",
    Kind.STEEP: "steep",
    Kind.JUMP: "jump",
}


def _and_more(count: int) -> str:
    return f" (and at {count - 1} more {'entry' if count == 2 else 'entries'})" if count > 1 else ""


def kink_remark(place: Place, count: int, low: float, high: float) -> Finding:
    return Finding(
        "kink",
        Verdict.RIGHT,
        place,
        f"{place} has a kink at this point{_and_more(count)}: every value from {low:.6g} to {high:.6g} is a valid "
        "subgradient",
        "Move the point away from the kink to check an ordinary derivative.",
    )


def near_remark(place: Place, count: int, low: float, high: float) -> Finding:
    return Finding(
        "kink",
        Verdict.RIGHT,
        place,
        f"{place} has a kink close by{_and_more(count)}: steps were shortened to stay on this side, where the slope is "
        f"{0.5 * (low + high):.6g}",
        "Move the point away from the kink to check with ordinary steps.",
    )


def crowd_remark(most: int, looked: int) -> Finding:
    return Finding(
        "kink",
        Verdict.RIGHT,
        Place(),
        f"there are too many kinks to visit each: {looked} derivatives there were looked at one by one, of up to "
        f"{most:,} coordinates; the rest of the Jacobian was probed as usual",
        "Move the point away from the kinks, or pass effort='exhaustive'.",
    )


def hidden_kink_remark(place: Place) -> Finding:
    return Finding(
        "kink",
        Verdict.RIGHT,
        place,
        f"{place} has a kink at this point that no single coordinate shows; the gradient was held against the slopes "
        "on both sides of it along random directions",
        "Move the point away from the kink to check an ordinary derivative.",
    )


def tie_mismatch(mode: str, place: Place, others: int, says: float, low: float, high: float) -> Finding:
    slope = f"{low:.6g}" if f"{low:.4g}" == f"{high:.4g}" else f"from {low:.6g} to {high:.6g}"
    return Finding(
        "no-subgradient",
        Verdict.WRONG,
        place,
        f"{place} and {others} more at the same kink are each valid, but not together: along one direction the slope "
        f"is {slope}, and in {mode} mode they say {says:.6g}",
        "At a tie the gradient goes to one of the inputs or is shared out among them; look for code that gives all of "
        "it to each of them, or to none.",
    )


def stairs_remark(place: Place, count: int, low: float, high: float) -> Finding:
    return Finding(
        "stairs",
        Verdict.RIGHT,
        place,
        f"{place} moves in stairs{_and_more(count)}: its slope is {low:.6g} or {high:.6g}, one of them within a stair, "
        "the other across many",
        "Make the function exact (a tighter solver tolerance, no rounding inside) to check an ordinary derivative.",
    )


# What is said of derivatives that are right, but not ordinary.
REMARKS = {Kind.KINK: kink_remark, Kind.STAIRS: stairs_remark, Kind.NEAR: near_remark}


def mismatch(comparison: Comparison) -> Finding:
    """The finding of a block that is wrong."""
    worst, place = comparison.worst, comparison.place
    name = f"{comparison.mode} derivative" + (f" of order {comparison.order}" if comparison.order > 1 else "")
    if worst is not None and not np.isfinite(worst.analytic):
        there = "the function has a kink" if worst.spread else f"the numeric derivative is {worst.numeric:.6g}"
        return Finding(
            "nan-gradient",
            Verdict.WRONG,
            place,
            f"the {name} is {worst.analytic} where the value is finite and {there}",
            "Look for a division by zero, or for 0 * inf behind torch.where: mask the input, not the result.",
        )
    if comparison.scope != "probes":
        extent = f"{comparison.wrong} of {comparison.entries} entries"
    else:
        extent = f"at least {max(comparison.wrong, 1)} of {comparison.entries} entries"
    rule = side_of(comparison.mode).rule
    if worst is None:
        where = "in a random combination of all entries" if comparison.scope == "probes" else "as columns move together"
        text = f"the {name} {place} is off {where}, by more than entries within the tolerance can add up to"
        hint = f"Check a smaller example: there effort='exhaustive' shows every entry that {rule} gives."
        if comparison.unfollowed:
            hint = f"Pass wrt= to see which entries of {comparison.input.path} are wrong."
        return Finding("mismatch", Verdict.WRONG, place, text, hint)
    hint = f"Look at how {rule} computes the derivative with respect to {comparison.input.path} at this index."
    return Finding("mismatch", Verdict.WRONG, place, f"the {name} is wrong in {extent}; worst at {place}", hint)


def undecided(comparison: Comparison, tolerance: Tolerance) -> Finding:
    """`tolerance` is what it was judged by."""
    worst, place = comparison.worst, comparison.place
    hint = UNDECIDED_HINTS.get(comparison.reason, "")
    if 0.0 < (needed := _granting(comparison, tolerance)) <= WIDEST:
        hint = hint.replace("a wider tolerance=", f"tolerance={needed:g}")
    if worst:
        known = f"the numeric derivative is only known to ±{worst.bar:.2g}, the tolerance is {worst.tolerance:.2g}"
    elif comparison.scope == "pattern":
        known = "what is not stored should be zero, and that is not known within the tolerance"
    else:
        k = int(np.argmax(comparison.bar - comparison.tolerance))
        known = (
            f"random sums of its entries are only known to ±{comparison.bar[k]:.2g}, the tolerance of one is "
            f"{comparison.tolerance[k]:.2g}"
        )
    sentence = f"{place} cannot be told: {known}"
    return Finding(comparison.reason or "noise", Verdict.UNDECIDED, place, sentence, hint)


def _granting(comparison: Comparison, tolerance: Tolerance) -> float:
    """A relative tolerance that is wider than all bars; 0 if there is none. It is one of the size of each entry, or of
    its block if that is larger; a random sum says of itself what its size is."""
    if comparison.scope == "probes":
        sizes = comparison.tolerance / tolerance.finest
    else:
        sizes = np.maximum(np.abs(comparison.numeric), rms(comparison.numeric))
    with np.errstate(divide="ignore", invalid="ignore"):
        share = float(np.max(comparison.bar / sizes, initial=0.0))
    return rounded_up(2.0 * share) if np.isfinite(share) else 0.0


def rounded_up(share: float) -> float:
    """To one digit, so that it grants no less."""
    if not share > 0:
        return 0.0
    step = 10.0 ** np.floor(np.log10(share))
    return float(f"{np.ceil(share / step) * step:.0e}")


def imprecise(departure: Departure, form: Precision) -> Finding:
    """The rule is right, and its numbers are off by rounding, though by much of it."""
    return Finding(
        "imprecise",
        Verdict.RIGHT,
        departure.place,
        f"{_both(departure, form)}: it is rounding, off by {departure.relative:.2g} of its size here and by another "
        "amount at other points",
        "Look for large numbers that cancel on the way; gradproof.compare tells whether a plain version does better.",
    )


def departs(departure: Departure, form: Precision) -> Finding:
    """By much, and everywhere the same; but no difference of native values can tell."""
    return Finding(
        "precision",
        Verdict.UNDECIDED,
        departure.place,
        f"{_both(departure, form)}, and so at the points nearby; the function has too few digits in {form.name} to "
        "tell which of them is its own",
        f"Look for a branch on the dtype, a cast or a threshold in the rule that {form.name} alone meets.",
    )


def _both(departure: Departure, form: Precision) -> str:
    side = "gradient" if departure.mode == "reverse" else "tangent"
    return f"the {side} at {departure.place} is {departure.native:.6g} in {form.name}, {departure.wide:.6g} in float64"


def overflow(departure: Departure, form: Precision) -> Finding:
    return Finding(
        "overflow",
        Verdict.UNDECIDED,
        departure.place,
        f"the derivative at {departure.place} is {departure.native} in {form.name}, {departure.wide:.6g} in float64: "
        f"somewhere on the way a derivative is larger than {form.largest:g}, where {form.name} ends",
        "Scale the function or its cotangent down, or use a format with a larger range.",
    )


def worded(findings: tuple[Finding, ...], words: tuple[tuple[str, str], ...]) -> tuple[Finding, ...]:
    """The same findings in the words of the program's author, who may have no backward but a `jac`."""
    if not words:
        return findings

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


def missing_mode(mode: str, reason: Unsupported, settings: Settings) -> Finding:
    """A mode that does not exist is held against nobody who did not ask for it; a rule for it that raises, is."""
    if isinstance(reason, RuleRaised):
        hint = f"Mend the rule, or leave {mode} mode out with modes=."
        return Finding("raises", Verdict.WRONG, Place(), f"{mode} mode has a rule, but {reason}", hint)
    asked = settings.modes is not None and mode in settings.modes
    return unsupported(f"{mode} mode", str(reason), Verdict.UNSUPPORTED if asked else Verdict.RIGHT)


def not_taken(reason: Refused) -> Finding:
    """What a rule returned, and its framework did not take for a gradient."""
    hint = "Return one gradient for each input of forward, of its shape, or None."
    return Finding("attributes", Verdict.WRONG, Place(), str(reason), hint)


def no_outputs(skipped: Sequence[Skipped], who: str) -> Finding:
    """The function, or what maps its outputs, returned nothing that could be compared, as one does that lacks its
    return statement."""
    came = ", ".join(f"{one.path}: {one.reason}" for one in skipped if one.path.startswith("out")) or "nothing"
    sentence = f"{who} returns nothing that has a derivative ({came})"
    return Finding("unsupported", Verdict.UNSUPPORTED, Place(), sentence, "Return a floating or complex array.")


def budget_spent(reason: str) -> Finding:
    return Finding(
        "budget", Verdict.UNDECIDED, Place(), f"stopped before a verdict: {reason}", UNDECIDED_HINTS["budget"]
    )
