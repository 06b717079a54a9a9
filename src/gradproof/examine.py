"""One order of one program: gather the evidence, one mode after another, and turn it into comparisons and findings."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gradproof.agreement import tolerance_for
from gradproof.contracts.linear import check_linear, combination, loudness
from gradproof.contracts.repeatable import check_values
from gradproof.diagnose.findings import explained, mismatches, only_in, only_rounding
from gradproof.errors import BudgetSpent, Unsupported
from gradproof.evidence import exhaustive, probes
from gradproof.evidence.gathered import Gathered, Task
from gradproof.evidence.native import departures
from gradproof.evidence.plan import Plan, plans
from gradproof.evidence.wording import budget_spent, imprecise, not_finite, overflow, undecided, unsupported
from gradproof.metered import Metered
from gradproof.precision import DOUBLE, SINGLE, coarsest
from gradproof.program import Array
from gradproof.reference.steps import coordinate_steps, fixed_steps, signed
from gradproof.reference.widest import widest
from gradproof.result import Comparison, Finding, Power, Verdict, worst_of
from gradproof.settings import MODES, Settings


@dataclass(frozen=True, slots=True)
class Examined:
    """What one order gave; orders are joined. `empty`: there was not a single derivative to look at."""

    comparisons: tuple[Comparison, ...] = ()
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    power: Power | None = None
    empty: bool = False

    @property
    def verdict(self) -> Verdict:
        return worst_of([one.verdict for one in self.comparisons] + [one.verdict for one in self.findings])

    def joined(self, other: Examined) -> Examined:
        weaker = max((p for p in (self.power, other.power) if p), key=lambda power: power.relative, default=None)
        return Examined(
            self.comparisons + other.comparisons,
            self.findings + other.findings,
            tuple(dict.fromkeys(self.notes + other.notes)),
            weaker,
            self.empty or other.empty,
        )


def examine(program: Metered, settings: Settings, order: int, generator: np.random.Generator) -> Examined:
    if program.point.size == 0 or program.value.size == 0:
        return Examined(notes=("there are no entries: inputs or outputs are empty",), empty=True)
    findings = check_values(program, settings.jitter)
    if findings:
        return Examined(findings=findings)
    try:
        reference, note = widest(program, generator)
        task = _task(program, reference, settings, order, generator)
        if reference is program:
            return _judged(task, settings, note)
        return _judged_in_both(task, settings, note)
    except BudgetSpent as spent:
        return Examined(findings=(budget_spent(str(spent)),), notes=program.notes)


def _task(program: Metered, reference: Metered, settings: Settings, order: int, generator: np.random.Generator) -> Task:
    return Task(
        program,
        reference,
        settings.modes or MODES,
        tolerance_for(settings, program),
        order,
        generator,
        coordinate_steps(reference) if settings.step is None else fixed_steps(reference, settings.step),
    )


def _judged_in_both(task: Task, settings: Settings, note: tuple[str, ...]) -> Examined:
    """Below double precision: the rule in float64, then its numbers in their own format against those. Where the two
    do not give the same derivatives, those in their own format are what the user asked about."""
    rule = _judged(
        replace(task, program=task.reference, tolerance=tolerance_for(settings, task.reference)), settings, note
    )
    form = coarsest(task.program.inputs + task.program.outputs)
    found = departures(task, plans(task.program, settings)[-1].probes)
    lost = tuple(overflow(one, form) for one in found if one.overflow)
    if lost:
        return replace(rule, findings=rule.findings + lost)
    beyond = [one for one in found if one.steady or one.scattered]
    # What is not known to the digits of float64, or rounded there, may be right to those of the format.
    rounded = only_rounding(rule.findings, rule.comparisons, task.tolerance.relative)
    if not beyond and rule.verdict is not Verdict.UNDECIDED and not (rule.verdict is Verdict.WRONG and rounded):
        return rule
    native = _judged(task, settings, note)
    if not beyond:
        return native if native.verdict is Verdict.RIGHT else rule
    clear = form.bits >= SINGLE.bits and any(one.verdict is Verdict.WRONG for one in native.comparisons)
    if clear or settings.tolerance is not None or any(one.steady for one in beyond):
        said = native.findings if rule.verdict is Verdict.WRONG else only_in(form, native.findings, beyond)
        return replace(native, findings=said)
    # Half precision has so few digits that what scatters is no mistake, and float32 where no entry is off by itself.
    return replace(rule, findings=rule.findings + tuple(imprecise(one, form) for one in beyond))


def _judged(task: Task, settings: Settings, note: tuple[str, ...]) -> Examined:
    """One program, one tolerance: gather what the plans ask for, and say what was found."""
    program = task.program
    gathered: Gathered | None = None
    reason = ""
    for plan in plans(program, settings):
        try:
            gathered, reason = (
                (_exhaustive(task, settings) if plan.probes == 0 else _probe(task, plan, settings)),
                plan.reason,
            )
        except BudgetSpent as spent:
            if gathered is None:
                raise
            reason += f"; {spent}"
    assert gathered is not None
    findings = not_finite(program) + gathered.findings
    if not gathered.comparisons and all(finding.verdict is Verdict.RIGHT for finding in findings):
        findings += (unsupported(f"a derivative of order {task.order}", "no mode of it exists", Verdict.UNSUPPORTED),)
    findings = explained(task, findings)
    findings += mismatches(task, gathered.comparisons, findings)
    findings += tuple(undecided(c) for c in gathered.comparisons if c.verdict is Verdict.UNDECIDED)
    prefix = f"order {task.order}: " if settings.order > 1 else ""
    return Examined(gathered.comparisons, findings, (prefix + reason, *note, *program.notes), gathered.power)


def _exhaustive(task: Task, settings: Settings) -> Gathered:
    """All rows by reverse mode and all columns by forward mode, whichever exist; then the numeric side."""
    analytic: dict[str, Array] = {}
    findings: tuple[Finding, ...] = ()
    for mode in task.modes:
        try:
            if mode == "reverse":
                analytic[mode], found = _rows(task)
                findings += found
            else:
                analytic[mode] = exhaustive.columns(task)
        except Unsupported as missing:
            findings += (_missing(mode, missing, settings),)
    return exhaustive.gather(task, analytic, findings)


def _rows(task: Task) -> tuple[Array, tuple[Finding, ...]]:
    """The Jacobian by reverse mode, as (N, M), and what the contract says about the pulls. One mixed cotangent of
    signed, unequal entries is pulled alone, as the user would; the same, but small, rides along with the rows."""
    program = task.program
    count = program.value.size
    mixed = combination(count, task.generator) * np.abs(signed(task.generator, count))
    alone = program.pull(mixed[None])[0]
    quiet = loudness(program).quiet
    pulled = program.pull(np.vstack([np.eye(count), quiet * mixed]))
    rows = pulled[:-1]
    expected = np.einsum("k,ki->i", mixed, rows)
    size = np.sqrt(np.einsum("k,ki->i", mixed**2, rows**2)) if coarsest(program.inputs) is not DOUBLE else None
    findings = check_linear(program, mixed, alone, expected, task.tolerance, size)
    if not findings:
        quietly = None if size is None else quiet * size
        findings = check_linear(program, quiet * mixed, pulled[-1], quiet * expected, task.tolerance, quietly)
    return np.ascontiguousarray(rows.T), findings


def _probe(task: Task, plan: Plan, settings: Settings) -> Gathered:
    """A few signed probes of all leaves at once."""
    drawn = [probes.draw(task) for _ in range(plan.probes)]
    findings: tuple[Finding, ...] = ()
    analytic: list[dict[str, probes.Sums]] = [{} for _ in drawn]
    for mode in task.modes:
        try:
            if mode == "reverse":
                sums, found = probes.pulls(task, drawn)
                findings += found
            else:
                sums = probes.pushes(task, drawn)
        except Unsupported as missing:
            findings += (_missing(mode, missing, settings),)
            continue
        for one, its in zip(analytic, sums, strict=True):
            one[mode] = its
    if not analytic[0] or any(finding.verdict is Verdict.WRONG for finding in findings):
        # A backward that is not even linear has no Jacobian to look for entries in.
        return Gathered((), findings, None)
    outcomes = [probes.measure(task, probe, sides) for probe, sides in zip(drawn, analytic, strict=True)]
    gathered = probes.gather(task, outcomes)
    return Gathered(gathered.comparisons, findings + gathered.findings, gathered.power)


def _missing(mode: str, missing: Unsupported, settings: Settings) -> Finding:
    asked = settings.modes is not None and mode in settings.modes
    return unsupported(f"{mode} mode", str(missing), Verdict.UNSUPPORTED if asked else Verdict.RIGHT)
