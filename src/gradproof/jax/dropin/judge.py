"""From a program to an exception: a failure is raised, a doubt becomes a warning."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gradproof.check import check_program
from gradproof.errors import GradcheckError, NonDifferentiableWarning, OutputsChanged, UndecidedWarning, Unsupported
from gradproof.evidence.wording import DROP_IN, worded
from gradproof.jax.contracts.primal import check_primals
from gradproof.jax.dropin.options import Options
from gradproof.jax.jaxprogram import JaxProgram
from gradproof.recording import told
from gradproof.result import Comparison, Finding, Result, Verdict, worst_of


class CheckFailed(GradcheckError, AssertionError):
    """A derivative is wrong, or could not be checked. `result` holds everything that was found."""


def judge(program: JaxProgram, modes: Sequence[str], options: Options, err_msg: str = "") -> None:
    """Raise CheckFailed unless all these modes are right."""
    __tracebackhide__ = True
    result = _checked(program, modes, options, err_msg)
    if any(_fails(finding, program) for finding in result.findings) or any(map(_beyond, result.comparisons)):
        if result.verdict is Verdict.UNDECIDED and program.raised is not None:
            raise program.raised  # the function's own exception says more than that nothing could be told
        raise CheckFailed(_headed(err_msg, str(result)), result)
    if result.verdict is Verdict.UNSUPPORTED:
        _raise_missing(program, modes, result, err_msg)
    for finding in result.findings:
        if finding.code == "kink":
            warnings.warn(finding.sentence, NonDifferentiableWarning, stacklevel=4)
        elif finding.verdict is Verdict.UNDECIDED:
            warnings.warn(f"{finding.sentence}. {finding.hint}", UndecidedWarning, stacklevel=4)


def _checked(program: JaxProgram, modes: Sequence[str], options: Options, err_msg: str) -> Result:
    __tracebackhide__ = True
    try:
        result = check_program(program, options.settings(program, modes))
    except OutputsChanged as changed:
        raise CheckFailed(_headed(err_msg, str(changed))) from changed
    # In reverse mode it is among the contracts of the check.
    found = check_primals(program, options.absolute(program)) if "reverse" not in modes else ()
    verdict = worst_of([result.verdict, *(finding.verdict for finding in found)])
    return told(replace(result, findings=worded(result.findings, DROP_IN) + found, verdict=verdict))


def _headed(err_msg: str, text: str) -> str:
    return f"{err_msg}\n{text}" if err_msg else text


def _fails(finding: Finding, program: JaxProgram) -> bool:
    """Whether a finding is a failure by itself. Doubt about a block is judged by its deviation instead. An output that
    is infinite, such as the maximum of an empty window, is constant to JAX."""
    if finding.verdict in (Verdict.WRONG, Verdict.ERROR):
        return True
    if finding.code == "nan-value":
        return bool(np.isnan(program.value).any())
    return finding.verdict is Verdict.UNDECIDED and finding.code in ("random", "nan-both")


def _beyond(comparison: Comparison) -> bool:
    """A block that cannot be told passes only if it is within the tolerance all the same."""
    if comparison.verdict is not Verdict.UNDECIDED:
        return False
    with np.errstate(invalid="ignore"):
        within = comparison.deviation <= comparison.tolerance
    return not bool(np.all(within | (comparison.bar <= comparison.tolerance)))


def _raise_missing(program: JaxProgram, modes: Sequence[str], result: Result, err_msg: str) -> None:
    """A mode that does not exist: what JAX raised reaches the caller."""
    __tracebackhide__ = True
    try:
        if "reverse" in modes:
            program.pull(np.ones((1, program.value.size)))
        if "forward" in modes:
            program.push(np.ones((1, program.point.size)))
    except Unsupported as missing:
        if missing.__cause__ is not None:
            raise missing.__cause__ from None
    raise CheckFailed(_headed(err_msg, str(result)), result)
