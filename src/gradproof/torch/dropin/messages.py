"""From a result to the text of the failure: torch's first line, which users match on, then all that is wrong."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gradproof.errors import OutputsChanged
from gradproof.program import Leaf, leaf_at
from gradproof.render.text import lines
from gradproof.result import Comparison, Finding, Result, Verdict
from gradproof.torch.dropin.options import Options
from gradproof.torch.torchprogram import TorchProgram

# Lines of a result that say how it was obtained; a failure says what and where.
_LEFT_OUT = ("skipped", "power", "checked", "cost", "replay")


def failure_message(result: Result, program: TorchProgram, names: Sequence[str]) -> str:
    told = replace(result, findings=tuple(one for one in result.findings if one.verdict is not Verdict.RIGHT))
    body = [f"  {line.label:<9} {line.text}" for line in lines(told) if line.label not in _LEFT_OUT]
    body += _legend(body, names)
    first_order = not result.name.startswith("gradient of")
    if first_order and any(comparison.scope == "probes" for comparison in result.comparisons):
        body.append(f"  {'replay':<9} gradproof.check(func, inputs, effort=1, seed={result.seed})")
    return "\n".join([_first_line(result, program), *body])


def contract_message(findings: Sequence[Finding], names: Sequence[str]) -> str:
    body = [findings[0].sentence]
    body += [f"  {'finding':<9} {finding.sentence}" for finding in findings[1:]]
    body += [f"  {'next':<9} {hint}" for hint in dict.fromkeys(finding.hint for finding in findings) if hint]
    return "\n".join([*body, *_legend(body, names)])


def changed_outputs(changed: OutputsChanged, program: TorchProgram, options: Options) -> str:
    nearby = program.point if changed.nearby is None else changed.nearby
    moved = np.flatnonzero(nearby != program.point)
    spots = [str(leaf_at(program.inputs, int(i)).spot(int(i))) for i in moved[:1]]
    where = f" on index {spots[0]}" if len(moved) == 1 else ""
    by = "" if options.eps is None else f" by {options.eps:g}"
    return (
        f"Expected `func` to return outputs with the same {changed.kind} when inputs are perturbed{where}{by}, but "
        f"got: {changed.before} and {changed.after}. {changed}"
    )


def parameter_names(func: Callable[..., Any]) -> tuple[str, ...]:
    """The names of the function's positional parameters, as far as they are known."""
    try:
        parameters = inspect.signature(func).parameters.values()
    except (TypeError, ValueError):
        return ()
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return tuple(parameter.name for parameter in parameters if parameter.kind in positional)


def _legend(body: Sequence[str], names: Sequence[str]) -> list[str]:
    """Which parameters the arguments in the text are."""
    numbers = sorted({int(found) for line in body for found in re.findall(r"args\[(\d+)\]", line)})
    known = [f"args[{i}] is {names[i]}" for i in numbers if i < len(names)]
    return [f"  {'where':<9} {', '.join(known)}"] if known else []


def _first_line(result: Result, program: TorchProgram) -> str:
    """In torch's words: the first failure, in its order: reverse before forward, output by output."""
    failed = [c for c in result.comparisons if c.verdict is Verdict.WRONG] or [
        c for c in result.comparisons if c.verdict is Verdict.UNDECIDED
    ]
    for finding in result.findings:
        if finding.code in ("random", "nan-value", "nan-both"):
            return _own_words(finding, program)
    nonlinear = [finding for finding in result.findings if finding.code in ("nonlinear", "nonlinear-forward")]
    if nonlinear and not any(c.verdict is Verdict.WRONG for c in failed):
        return _own_words(nonlinear[0], program)
    if not failed:
        return "Jacobian mismatch for output 0 with respect to input 0, since there is no derivative:"
    failed.sort(key=lambda c: c.mode == "forward")
    differentiable = _differentiable(program)
    constant = [c for c in failed if c.output not in differentiable]
    first = next((c for c in failed if c.output in differentiable), None)
    if first is None or (constant and not differentiable):
        return f"Numerical gradient for function expected to be zero: {constant[0].output.path} does not require grad"
    forward = "computed with forward mode " if first.mode == "forward" else ""
    output, given = differentiable.index(first.output), program.inputs.index(first.input)
    if first.verdict is Verdict.UNDECIDED:
        reason = f" ({first.reason})" if first.reason else ""
        return f"Jacobian {forward}for output {output} with respect to input {given} cannot be told{reason},"
    return f"{_prefix(first)}Jacobian {forward}mismatch for output {output} with respect to input {given},"


def _own_words(finding: Finding, program: TorchProgram) -> str:
    if finding.code == "random":
        return "The function is not deterministic: its gradient cannot be checked"
    if finding.code in ("nan-value", "nan-both"):
        return "The function is not finite at this point: its gradient cannot be checked"
    if finding.place.output is not None:
        output = [leaf.path for leaf in program.outputs].index(finding.place.output.path)
        where = f"output {output} with respect to input 0"
        return f"Jacobian computed with forward mode mismatch for {where}: jvp is not linear in the tangent,"
    paths = [leaf.path for leaf in program.inputs]
    path = finding.place.input.path if finding.place.input else paths[0]
    where = f"output 0 with respect to input {paths.index(path)}"
    return f"Jacobian mismatch for {where}: backward is not linear in grad_output,"


def _differentiable(program: TorchProgram) -> list[Leaf]:
    """The outputs that require grad, which are the ones torch counts."""
    values = program.graph.values
    return [leaf for leaf, value in zip(program.outputs, values, strict=True) if value.requires_grad]


def _prefix(comparison: Comparison) -> str:
    """In reverse mode complex outputs are judged part by part, in forward mode complex inputs; the imaginary first."""
    forward = comparison.mode == "forward"
    leaf = comparison.input if forward else comparison.output
    if not leaf.is_complex:
        return ""
    if comparison.scope == "entries":
        with np.errstate(invalid="ignore"):
            wrong = ~(comparison.deviation <= comparison.tolerance + comparison.bar)
        imaginary = bool((wrong[:, 1::2] if forward else wrong[1::2]).any())
    else:
        spots = [entry.place.input if forward else entry.place.output for entry in comparison.found]
        imaginary = any(spot is not None and spot.part == "imag" for spot in spots)
    part, side = ("imaginary" if imaginary else "real"), ("inputs" if forward else "outputs")
    return f"While considering the {part} part of complex {side} only, "
