"""Which written rule is to blame in a network: the one that all wrong gradients come through, and no right one."""

from __future__ import annotations

from dataclasses import replace

from gradproof.evidence.gathered import Task
from gradproof.result import Comparison, Diagnosis, Finding, Verdict
from gradproof.routes import Route, routes_of

# More than so many rules narrow nothing down.
NAMED = 3
# Causes that say which mode is wrong, but not why.
VAGUE = ("reverse-only",)
# Causes that are seen through the operations around a rule as well, but show whose they are in its own arguments only.
SHINING_THROUGH = ("rank-one",)


def named(task: Task, comparisons: tuple[Comparison, ...], findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """The same findings; those of reverse mode without a cause of their own name the rules."""
    inputs = {c.input.path for c in comparisons if c.mode == "reverse" and c.verdict is not Verdict.RIGHT}
    wrong = frozenset(c.input.path for c in comparisons if c.mode == "reverse" and c.verdict is Verdict.WRONG)
    right = frozenset(c.input.path for c in comparisons if c.mode == "reverse") - inputs
    if task.order > 1 or not wrong or len(task.program.inputs) < 2:
        return findings
    suspects = [one for one in routes_of(task.program) if wrong <= one.inputs and not right & one.inputs]
    rules = list(dict.fromkeys(one.rule for one in suspects))
    if not 1 <= len(rules) <= NAMED:
        return findings
    diagnosis = _diagnosis(suspects, rules, "and no right one does" if right else "")
    return tuple(_with(one, diagnosis, wrong) for one in findings)


def _diagnosis(suspects: list[Route], rules: list[str], others: str) -> Diagnosis:
    name = " or ".join(rules)
    arguments = sorted({one.argument for one in suspects})
    place = f", as the gradient of tensor {arguments[0]} of its arguments" if len(rules) == len(arguments) == 1 else ""
    sentence = f"every wrong gradient comes through the backward of {name}{place}"
    hint = f"Check {name} by itself, with arguments like those that it gets here."
    return Diagnosis("rule", f"{sentence}{', ' if place and others else ' ' if others else ''}{others}", 1.0, hint)


def _with(finding: Finding, diagnosis: Diagnosis, wrong: frozenset[str]) -> Finding:
    before = finding.diagnosis
    where = finding.place.input
    if finding.code != "mismatch" or where is None or where.path not in wrong:
        return finding
    if before is None or before.code in SHINING_THROUGH:
        return replace(finding, diagnosis=diagnosis, hint=diagnosis.hint)
    if before.code not in VAGUE:
        return finding
    both = replace(diagnosis, sentence=f"{diagnosis.sentence}; {before.sentence}")
    return replace(finding, diagnosis=both, hint=both.hint)
