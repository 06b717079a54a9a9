"""One order of one program: gather the evidence, one mode after another, and turn it into comparisons and findings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from gradproof.adapters import suite_of
from gradproof.agreement import tolerance_for, tolerance_of_rule
from gradproof.contracts.repeatable import Repeats, Unrepeatable, check_pulls
from gradproof.contracts.suite import Kept, Reach, Terms
from gradproof.errors import BudgetSpent, Ended, Unsupported
from gradproof.evidence.gathered import Gathered, Task
from gradproof.evidence.nans import not_finite
from gradproof.evidence.native import departures, lacking, refused
from gradproof.evidence.plan import plans
from gradproof.evidence.trace import trace
from gradproof.evidence.wording import (
    budget_spent,
    departs,
    imprecise,
    missing_mode,
    overflow,
    undecided,
    unsupported,
)
from gradproof.examined import Examined
from gradproof.gathering import evidence_of
from gradproof.metered import Metered
from gradproof.picture import Trace
from gradproof.precision import SINGLE, form_of
from gradproof.program import offers_of
from gradproof.reference.rounding import leftovers
from gradproof.reference.widest import Pairing, RoundsInside, in_single, widest, without_casts
from gradproof.result import Comparison, Finding, Verdict
from gradproof.settings import Settings
from gradproof.tasks import shows_itself, task_of

# Contracts about the numbers that are compared anyway.
HERE = frozenset({"linear", "adjoint", "symmetric"})
# A share of a native derivative that rounding does not take away everywhere.
MUCH = 0.25
# The others, after what was gathered.
Own = Callable[[Gathered], Kept]


def examine(program: Metered, settings: Settings, order: int, generator: np.random.Generator) -> Examined:
    if program.point.size == 0 or program.value.size == 0:
        return Examined(notes=("there are no entries: inputs or outputs are empty",), empty=True)
    repeats = Repeats(program, settings.nondet_tol)

    def task_for(pairing: Pairing, repeats: Repeats) -> Task:
        return task_of(pairing.program, pairing.reference, repeats, settings, order, generator)

    try:
        if not shows_itself(program):
            repeats.ask()
        try:
            pairing = widest(program, generator, draws=settings.randomness == "reseed")
            turn = partial(_turn_inside, program, pairing, partial(task_for, repeats=repeats))
            doubted = repeats if pairing.casts == "left out" else repeats.leading_to(turn)
            judged = _in_its_formats(task_for(pairing, doubted), settings, pairing.note)
            if judged.verdict is not Verdict.RIGHT and doubted is not repeats:
                doubted.ask()  # the numbers of its own format may be what is off
        except RoundsInside as found:
            pairing = found.pairing
            judged = _in_its_formats(task_for(pairing, repeats), settings, pairing.note)
    except Unrepeatable as found:
        return Examined(findings=found.findings)
    except BudgetSpent as spent:
        return Examined(findings=(budget_spent(str(spent)),), notes=program.notes)
    return judged


def _turn_inside(program: Metered, pairing: Pairing, task_for: Callable[[Pairing], Task]) -> None:
    """What is the rounding of larger numbers is to be judged by their size. What is cast to a narrower format inside
    moves in stairs, which leave doubts that are gone without that; or at the numbers of that format alone, where nobody
    can do without: in a kernel."""
    generator = task_for(pairing).generator
    terms = leftovers(pairing.reference, generator)
    if terms:
        pairing, program = pairing.made_of(terms), program.made_of(terms)
    other = without_casts(program, generator)
    if other is not None and refused(task_for(other)):
        other = None
    found = in_single(other or pairing, generator) or other
    if found is not None or terms:
        raise RoundsInside(found or pairing)


def _in_its_formats(task: Task, settings: Settings, note: tuple[str, ...]) -> Examined:
    """One format, or two, as far as the rule exists in both."""
    program = task.program
    own = partial(_own_contracts, task, program, settings)
    if task.reference is program:
        return _judged(task, settings, note, own)
    gone = lacking(task)
    left = replace(task, modes=tuple(mode for mode in task.modes if mode not in gone))
    if not left.modes:
        return _judged(task, settings, note, own)
    try:
        judged = _judged_in_both(left, settings, note, own)
    except (Ended, Unsupported):
        raise
    except Exception:
        reason = refused(left)
        if not reason:
            raise
        form = form_of(program).name
        judged = _judged(left, settings, (f"the rule runs in {form} alone, the function in float64: {reason}",), own)
    return replace(judged, findings=judged.findings + tuple(missing_mode(*one, settings) for one in gone.items()))


def _judged_in_both(task: Task, settings: Settings, note: tuple[str, ...], own: Own) -> Examined:
    """Below double precision: the rule in float64, then its own numbers, which count where they differ from those."""
    from gradproof.diagnose.findings import explained, only_in, only_rounding

    repeats = task.repeats.of(task.reference)  # what a narrow format rounds away may be a doubt here
    linear = tolerance_of_rule(settings, task.reference)
    tolerance = tolerance_for(linear, settings, task.reference, task.reference)
    wide = replace(task, program=task.reference, tolerance=tolerance, linear=linear, repeats=repeats, role="copy")
    rule = _judged(wide, settings, note, lambda _: Kept())
    form = form_of(task.program)
    found = departures(task, plans(task.program, task.reference, settings)[-1].probes, rule.jacobians)
    beyond = [one for one in found if one.steady or one.scattered]
    remarks = tuple(overflow(one, form) for one in found if one.overflow)
    # What is not known to the digits of float64, or rounded there, may be right to those of the format.
    rounded = rule.verdict is Verdict.WRONG and only_rounding(task, rule.findings, rule.comparisons, form)
    if beyond or rounded or rule.verdict is Verdict.UNDECIDED:
        native = _judged(task, settings, note, own)
        if not beyond and native.verdict is Verdict.RIGHT:
            return native
        # Half precision has so few digits that what scatters is no mistake, nor in float32 where no entry is off.
        clear = form.bits >= SINGLE.bits and any(one.verdict is Verdict.WRONG for one in native.comparisons)
        clear &= not all(one.explained for one in beyond)
        if beyond and (clear or settings.tolerance is not None or any(one.steady for one in beyond)):
            said = native.findings if rule.verdict is Verdict.WRONG else only_in(form, native.findings, beyond)
            if rule.verdict is native.verdict is Verdict.RIGHT:
                said += tuple(departs(one, form) for one in beyond if one.steady and one.relative > MUCH)
            return replace(native, findings=said)
        remarks += tuple(imprecise(one, form) for one in beyond)
    kept = own(Gathered((), (), None))
    # A mistake of the rule shows in float64; one of its native numbers may hide in their rounding.
    power = rule.power
    if power is not None and rule.verdict is Verdict.RIGHT:
        power = power.at_least(task.tolerance.relative)
    own_leaves = {leaf.path: leaf for leaf in task.program.inputs + task.program.outputs}
    return replace(
        rule,
        comparisons=tuple(
            replace(one, output=own_leaves[one.output.path], input=own_leaves[one.input.path])
            for one in rule.comparisons
        ),
        findings=rule.findings + remarks + explained(task, kept.findings),
        notes=rule.notes + kept.notes,
        power=power,
    )


def _judged(task: Task, settings: Settings, note: tuple[str, ...], own: Own) -> Examined:
    """One program, one tolerance: gather what the plans ask for, and say what was found."""
    program = task.program
    gathered: Gathered | None = None
    reason = ""
    for plan in plans(program, task.reference, settings):
        try:
            gathered = evidence_of(task, plan, settings)
            reason = gathered.manner or plan.reason
        except BudgetSpent as spent:
            if gathered is None:
                raise
            reason += f"; {spent}"
    assert gathered is not None
    findings = not_finite(task) + gathered.findings
    if not gathered.comparisons and all(finding.verdict is Verdict.RIGHT for finding in findings):
        findings += (unsupported(f"a derivative of order {task.order}", "no mode of it exists", Verdict.UNSUPPORTED),)
        reason = "nothing"
    kept = own(gathered)
    said = {(finding.code, finding.place) for finding in findings}
    findings += tuple(finding for finding in kept.findings if (finding.code, finding.place) not in said)
    findings = _with_causes(task, gathered.comparisons, findings)
    findings += tuple(undecided(c, task.tolerance) for c in gathered.comparisons if c.verdict is Verdict.UNDECIDED)
    prefix = f"order {task.order}: " if settings.order > 1 else ""
    traces: tuple[Trace, ...] = ()
    if task.detail == "plots":
        # A stream of its own, so that asking for plots changes no verdict.
        stream = np.random.default_rng([settings.seed, task.order])
        traces = trace(task, gathered.comparisons, findings, stream)
    exact = task.exact.notes if task.exact else ()
    notes = (prefix + reason, *note, *exact, *program.notes, *kept.notes)
    return Examined(
        gathered.comparisons,
        findings,
        notes,
        gathered.power,
        traces=traces,
        jacobians=gathered.jacobians,
    )


def _with_causes(task: Task, comparisons: tuple[Comparison, ...], findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """And one for each wrong block. What looks for causes is loaded where there may be one: most checks need none."""
    if not findings and all(one.verdict is not Verdict.WRONG for one in comparisons):
        return findings
    from gradproof.diagnose.findings import as_exact, explained, mismatches

    findings = as_exact(explained(task, findings), comparisons)
    return findings + mismatches(task, comparisons, findings)


def _own_contracts(task: Task, program: Metered, settings: Settings, gathered: Gathered) -> Kept:
    """Those of the program's framework, which are about the rule itself: the first order says it all."""
    unasked = "reverse" in offers_of(program).modes and "reverse" not in task.modes
    if task.order > 1 or unasked or HERE.issuperset(settings.contracts):
        return Kept()
    rule = program.rule
    suite = suite_of(rule)
    reach: Reach = "point" if settings.bounds or settings.spaces else "anywhere"
    seed = (settings.seed, 0)
    terms = Terms(
        settings.contracts,
        task.tolerance,
        settings.nondet_tol,
        seed,
        program.affords,
        reach,
        gathered.repeated,
        program.terms,
    )
    try:
        if suite is not None:
            return suite(rule, terms)
        if "repeatable" in settings.contracts:
            return Kept(check_pulls(program, terms.generator, settings.nondet_tol))
    except (BudgetSpent, Unsupported) as missing:
        return Kept(notes=(f"contracts left out: {missing}",))
    return Kept()
