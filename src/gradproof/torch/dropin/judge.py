"""From a program to a verdict, in the order of torch's checker: a failure is raised, a doubt becomes a warning."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from gradproof import precision
from gradproof.check import check_program
from gradproof.contracts.linear import SIZES, mixed
from gradproof.errors import (
    GradcheckError,
    NonDifferentiableWarning,
    OutputsChanged,
    UndecidedWarning,
    Unsupported,
)
from gradproof.evidence.wording import DROP_IN, worded
from gradproof.program import Array
from gradproof.result import Comparison, Cost, Finding, Result, Verdict
from gradproof.settings import Effort, Tolerance
from gradproof.torch.contracts.any_cotangent import check_any_cotangent
from gradproof.torch.contracts.attributes import check_looks, check_returned
from gradproof.torch.contracts.batched import check_batched_pull, check_batched_push
from gradproof.torch.contracts.patterns import check_patterns
from gradproof.torch.contracts.pulls import Gradients
from gradproof.torch.contracts.reentrant import WORDS as NOT_REENTRANT
from gradproof.torch.contracts.reentrant import check_reentrant
from gradproof.torch.contracts.subject import First, Subject
from gradproof.torch.contracts.subsets import check_each_alone
from gradproof.torch.contracts.undefined import check_undefined_cotangents, check_undefined_tangents
from gradproof.torch.contracts.watch import Watch
from gradproof.torch.contracts.zero import check_zero
from gradproof.torch.dropin.messages import changed_outputs, contract_message, failure_message, parameter_names
from gradproof.torch.dropin.options import ATOL, DEFAULT, RTOL, Options, seed
from gradproof.torch.modes import forward
from gradproof.torch.torchprogram import TorchProgram

# A fast check that ends in doubt is repeated entry by entry if the Jacobian has at most so many.
ENTRIES = 2**20
# A Jacobian of no more rows than this is looked at entry by entry in fast mode too, where there may be batches: probes
# take longer. Beyond, they take as long in most operators, and a tenth in those that turn out to have no batches.
SMALL = 240
# A Jacobian of more entries than this is not looked at entry by entry in slow mode either, but by so many probes: its
# arrays would fill the memory, and a probe overlooks no entry that slow mode would see.
MOST_ENTRIES, SEVERAL = 2**23, 4
# Findings that leave nothing to compare.
NOT_CHECKABLE = ("random", "nan-value", "nan-both")
# A gradient that is the same may be so many roundings off.
ROUNDINGS = 2**14
# With neither tolerance named, the one that a doubt names has shrunk with the gradient; this one lets it pass.
PASSES = f" It passes because it is within torch's own atol={ATOL:g} and rtol={RTOL:g}."


@dataclass(frozen=True, slots=True)
class Case:
    """What is judged: the user's function, its program, and what was asked for."""

    func: Callable[..., Any]
    program: TorchProgram
    options: Options

    @property
    def names(self) -> tuple[str, ...]:
        return parameter_names(self.func)

    @property
    def second_order(self) -> bool:
        return self.program.name.startswith("gradient of")


def judge(case: Case) -> Result:
    """Raise GradcheckError unless everything holds; what the derivatives were found to be."""
    __tracebackhide__ = True
    program, options = case.program, case.options
    gradients: Gradients = [None] * len(program.inputs)
    generator = np.random.default_rng(seed())
    # Of the size of torch's own, which nondet_tol is meant for.
    mixture = mixed(program.value.size, generator) / SIZES[-1]
    cotangents = program.call.outputs.tensors(mixture)
    if options.check_backward_ad:
        with program.scope:
            gradients, findings = check_reentrant(program, cotangents, options.nondet_tol)
            _raise_for(findings, case)
            program.remember(mixture, gradients)
            returned = check_returned(program)
            _raise_for(returned if options.check_grad_dtypes else (), case)
    result = _judge_derivatives(case)
    with program.scope:
        _judge_contracts(case, cotangents, gradients, generator)
    return result


def _judge_contracts(
    case: Case, cotangents: list[torch.Tensor], gradients: Gradients, generator: np.random.Generator
) -> None:
    __tracebackhide__ = True
    program, options = case.program, case.options
    if options.check_forward_ad and options.check_undefined_grad:
        _raise_for(check_undefined_tangents(program, generator), case)
    if options.check_batched_forward_grad:
        _raise_for(check_batched_push(program, generator), case)
    if not options.check_backward_ad:
        return
    if options.check_batched_grad and not program.pulled_twice:  # else a batch was held against a single pull already
        _raise_for(check_batched_pull(program, cotangents, gradients, generator), case)
    _raise_for(check_looks(program, gradients), case)
    _raise_for(check_zero(program, options.meaning), case)
    if options.check_undefined_grad:
        _judge_undefined(case, cotangents)
    _raise_for(check_any_cotangent(program, cotangents, gradients, options.nondet_tol), case)
    if not case.second_order:
        roundoff = precision.form_of(program).roundoff
        subject = Subject(program, generator, ROUNDINGS * roundoff, options.nondet_tol)
        subject.cotangents, subject.first = cotangents, First(gradients, Watch(()), [])
        _raise_for(check_each_alone(subject), case)
        _raise_for(check_patterns(subject), case)


def _judge_undefined(case: Case, cotangents: list[torch.Tensor]) -> None:
    __tracebackhide__ = True
    try:
        _raise_for(check_undefined_cotangents(case.program, cotangents), case)
    except GradcheckError:
        warnings.warn(
            "Backwards compatibility: New undefined gradient support checking feature found a failure; "
            "check_undefined_grad=False leaves it out.",
            UserWarning,
            stacklevel=6,
        )
        raise


def _judge_derivatives(case: Case) -> Result:
    __tracebackhide__ = True
    result = _checked(case)
    failing = [finding for finding in result.findings if _fails(finding, result)]
    tolerance = case.options.tolerance(case.program)
    if {finding.code for finding in failing} == {"raises"}:
        _raise_missing(case, result)
    if failing or any(_beyond(comparison, tolerance) for comparison in result.comparisons):
        if result.verdict is Verdict.UNDECIDED and case.program.raised is not None:
            raise case.program.raised  # the function's own exception says more than that nothing could be told
        if any(finding.code == "random" for finding in failing) and case.second_order:
            finding = failing[0]
            raise GradcheckError(f"{NOT_REENTRANT}: {finding.sentence}", result)
        if {finding.code for finding in failing} == {"nonlinear"}:
            # torch has words for the commonest case of this.
            with case.program.scope:
                _raise_for(check_zero(case.program, case.options.meaning), case)
        raise GradcheckError(failure_message(result, case.program, case.names), result)
    if result.verdict is Verdict.UNSUPPORTED:
        _raise_missing(case, result)
    for finding in result.findings:
        if finding.code == "kink":
            warnings.warn(finding.sentence, NonDifferentiableWarning, stacklevel=6)
        elif finding.verdict is Verdict.UNDECIDED:
            passes = PASSES if tolerance is DEFAULT else ""
            warnings.warn(f"{finding.sentence}.{passes} {finding.hint}", UndecidedWarning, stacklevel=6)
    return result


def _checked(case: Case) -> Result:
    result = _looked(case)
    return replace(result, findings=worded(result.findings, DROP_IN)) if result.findings else result


def _looked(case: Case) -> Result:
    program, options = case.program, case.options
    try:
        effort = _effort(program, options)
        result = check_program(program, options.settings(program, effort))
        if effort == 1 and program.point.size * program.value.size <= ENTRIES and _leaves_open(result):
            closer = check_program(program, options.settings(program, "exhaustive"))
            located = any(comparison.found for comparison in result.comparisons)
            return result if closer.ok and result.verdict is Verdict.WRONG and located else closer
    except OutputsChanged as changed:
        raise AssertionError(changed_outputs(changed, program, options)) from changed
    return result


def _effort(program: TorchProgram, options: Options) -> Effort:
    if options.fast_mode:
        rows = 2 * program.point.size + program.value.size
        if rows > SMALL or program.call.forms.reason:
            return 1
    return "exhaustive" if program.point.size * program.value.size <= MOST_ENTRIES else SEVERAL


def _leaves_open(result: Result) -> bool:
    """Whether a look at every entry would tell more: doubt, no comparison at all, the place of a kink, which part of a
    complex number, or what may be rounding."""
    if result.verdict is Verdict.UNDECIDED or any(found.code in ("nonlinear", "kink") for found in result.findings):
        return True
    if any(comparison.verdict is Verdict.RIGHT and comparison.reason for comparison in result.comparisons):
        return True  # a deviation was seen and not found
    wrong = [comparison for comparison in result.comparisons if comparison.verdict is Verdict.WRONG]
    return any(c.output.is_complex or c.input.is_complex or not c.found or _is_slight(c) for c in wrong)


def _is_slight(comparison: Comparison) -> bool:
    """Whether all entries that were found wrong are within torch's own tolerance."""
    found = comparison.found
    return bool(found) and all(abs(one.analytic - one.numeric) <= ATOL + RTOL * abs(one.numeric) for one in found)


def _fails(finding: Finding, result: Result) -> bool:
    """Whether a finding is a failure by itself. Doubt about a block is judged by its deviation instead."""
    if finding.verdict in (Verdict.WRONG, Verdict.ERROR):
        return True
    return finding.verdict is Verdict.UNDECIDED and (finding.code in NOT_CHECKABLE or not result.comparisons)


def _beyond(comparison: Comparison, tolerance: Tolerance | None) -> bool:
    """A block that cannot be told passes only if it is within the tolerance all the same, which is then the one that
    torch would hold it to: its own absolute part does not shrink with the block."""
    if comparison.verdict is not Verdict.UNDECIDED:
        return False
    granted = comparison.tolerance
    if tolerance is not None:
        absolute = tolerance.ceiling if tolerance.ceiling < float("inf") else 0.0
        granted = np.maximum(granted, absolute + tolerance.relative * np.abs(comparison.numeric))
    with np.errstate(invalid="ignore"):
        within = comparison.deviation <= granted
    return not bool(np.all(within | (comparison.bar <= comparison.tolerance)))


def _raise_missing(case: Case, result: Result) -> None:
    """A mode that does not exist: what torch raised reaches the caller. Where torch would go round a dead end without
    a word, such as a backward that is marked as once differentiable, the check has failed."""
    try:
        if case.options.check_backward_ad:
            case.program.pull(np.ones((1, case.program.value.size)))
        if case.options.check_forward_ad and not case.program.call.forms.no_push:
            _push(case.program, np.ones(case.program.point.size))
    except Unsupported as missing:
        if missing.__cause__ is not None:
            raise missing.__cause__ from None
    raise GradcheckError(failure_message(result, case.program, case.names), result)


def _push(program: TorchProgram, tangent: Array) -> None:
    """Anew, whatever the program knows of forward mode: it keeps the reason, not the exception."""
    call = program.call
    with program.scope, torch.enable_grad():
        points = call.forms.copies([point.detach() for point in program.traced.points])
        forward(program.run_dual, points, call.forms.arguments(call.inputs.tensors(tangent)))


def _raise_for(findings: Sequence[Finding], case: Case) -> None:
    __tracebackhide__ = True
    if findings:
        raise GradcheckError(contract_message(findings, case.names), _of_contract(case, tuple(findings)))


def _of_contract(case: Case, findings: tuple[Finding, ...]) -> Result:
    """A property that failed, whatever the numbers say."""
    program, tally = case.program, case.program.tally
    return Result(
        name=program.name,
        verdict=Verdict.WRONG,
        comparisons=(),
        findings=findings,
        skipped=program.skipped,
        notes=(),
        power=None,
        cost=Cost(tally.evaluations, tally.pulls, tally.pushes, 0.0),
        seed=seed(),
        settings=case.options.settings(program, "auto"),
    )
