"""The evidence that a plan asks for: every entry, stored entries or probes, by all modes that exist."""

from __future__ import annotations

from dataclasses import replace

from gradproof.contracts.adjoint import check_adjoint
from gradproof.contracts.side import REVERSE
from gradproof.contracts.symmetric import check_symmetric_by_probes
from gradproof.errors import BudgetSpent, Unsupported
from gradproof.evidence import exhaustive, probes, sparse
from gradproof.evidence.between import between_modes
from gradproof.evidence.crosswise import gather_crosswise
from gradproof.evidence.forward import columns
from gradproof.evidence.gathered import Gathered, Task
from gradproof.evidence.measure import draw, measure
from gradproof.evidence.plan import PROBES, Plan
from gradproof.evidence.sums import Sums, held_to_digits, modes, pulls, pushes
from gradproof.evidence.units import units
from gradproof.evidence.wording import missing_mode
from gradproof.program import Array
from gradproof.result import Finding, Verdict
from gradproof.settings import Settings


def evidence_of(task: Task, plan: Plan, settings: Settings) -> Gathered:
    if plan.grouping is None:
        return _exhaustive(task, settings) if plan.probes == 0 else _probe(task, plan, settings)
    # The author's own matrix is looked at as such; other modes, if any, by probes.
    others = tuple(mode for mode in task.modes if mode != sparse.MODE)
    gathered = sparse.gather(task, plan.grouping, ())
    if not others:
        return gathered
    further = _probe(replace(task, modes=others), replace(plan, probes=PROBES), settings)
    return Gathered(
        gathered.comparisons + further.comparisons,
        gathered.findings + further.findings,
        further.power or gathered.power,
    )


def _exhaustive(task: Task, settings: Settings) -> Gathered:
    """All rows by reverse mode and all columns by forward mode, whichever exist; then the numeric side."""
    if task.detail == "verdict":
        crosswise = gather_crosswise(task)
        if crosswise is not None:
            return crosswise
    analytic: dict[str, Array] = {}
    findings: tuple[Finding, ...] = ()
    for mode in task.modes:
        try:
            found = units(task, REVERSE) if mode == "reverse" else columns(task, analytic.get("reverse"))
            analytic[mode] = found.jacobian
            findings += found.findings
        except Unsupported as missing:
            findings += (missing_mode(mode, missing, settings),)
    gathered = exhaustive.gather(task, analytic, findings)
    between = between_modes(task, analytic, gathered)
    return gathered.with_findings(between) if between else gathered


def _probe(task: Task, plan: Plan, settings: Settings) -> Gathered:
    """One bar in ten or so is too narrow where all differences are of float32, and says that something is wrong where
    nothing is found; and one may be just too wide to tell: others are asked then. What is wrong shows in them too."""
    first = _probed(task, plan, settings)
    if any(one.verdict is Verdict.UNDECIDED for one in first.comparisons):
        try:
            second = _probed(task, plan, settings)
        except BudgetSpent:
            return first
        if second.comparisons and all(one.verdict is Verdict.RIGHT for one in second.comparisons):
            return second
    return first


def _probed(task: Task, plan: Plan, settings: Settings) -> Gathered:
    """A few signed probes of all leaves at once."""
    drawn = [draw(task) for _ in range(plan.probes)]
    flat = [part for parts in drawn for part in parts]
    findings: tuple[Finding, ...] = ()
    repeated = False
    analytic: list[list[dict[str, Sums]]] = [[{} for _ in parts] for parts in drawn]
    for mode in task.modes:
        try:
            if mode == "reverse":
                pulled = pulls(task, flat)
                sums, repeated = pulled.sums, pulled.repeated
                findings += pulled.findings
            else:
                sums, found = pushes(task, flat)
                findings += found
        except Unsupported as missing:
            findings += (missing_mode(mode, missing, settings),)
            continue
        for one, its in zip((side for parts in analytic for side in parts), sums, strict=True):
            one[mode] = its
    if not analytic[0][0] or any(finding.verdict is Verdict.WRONG for finding in findings):
        # A backward that is not even linear has no Jacobian to look for entries in.
        return Gathered((), findings, None)
    gathered = probes.gather(task, measure(task, drawn, analytic))
    if "linear" in task.contracts and any(one.unlocated for one in gathered.comparisons):
        nonlinear = held_to_digits(task, flat[0], {one.mode for one in gathered.comparisons if one.unlocated})
        if nonlinear:
            return Gathered((), findings + nonlinear, None)
    if gathered.plainly_right:
        sides = [side for parts in analytic for side in parts]
        if "adjoint" in task.contracts and len(sides[0]) == 2:
            findings += check_adjoint(task.program, modes(task, flat, sides), gathered.comparisons, task.tolerance)
        if "symmetric" in task.contracts and task.order > 1 and "reverse" in sides[0]:
            findings += check_symmetric_by_probes(task.program, task.generator, task.tolerance)
    return replace(gathered, findings=findings + gathered.findings, repeated=repeated)
