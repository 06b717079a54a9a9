"""Whether what looks wrong is the rounding of the analytic side.

Where terms cancel, a derivative that is zero comes out as some roundings of theirs, which may be far more than any
tolerance that fits a zero. Such a number is small beside other derivatives of the same function, and another one at
every point nearby; a wrong derivative changes as smoothly as a right one.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gradproof.precision import DOUBLE
from gradproof.program import Array, Tally
from gradproof.result import Comparison, Finding, Place, Result, Verdict
from gradproof.torch.dropin.options import ATOL, RTOL
from gradproof.torch.torchprogram import TorchProgram

# So many roundings of the largest derivative.
ROUNDINGS = 2**24
# How many points nearby, and how far away relative to the entries.
POINTS, AWAY = 8, 2.0**-5
# What is wrong may be so much larger than the difference between two of those points.
FACTOR = 4.0
# Of a Jacobian in which more rows, or columns, look wrong nothing is excused.
MOST = 256
HINT = "Say how much of that is accepted: atol=."


def settled(result: Result, program: TorchProgram, seed: int) -> Result | None:
    """The result without those entries, if nothing else is wrong with it. torch's own tolerance would pass them."""
    wrong = [one for one in result.comparisons if one.verdict is Verdict.WRONG]
    others = [one for one in result.findings if one.verdict is Verdict.WRONG and one.code != "mismatch"]
    if not wrong or others or program.call.forms.by_input or any(one.scope != "entries" for one in wrong):
        return None
    noise = ROUNDINGS * DOUBLE.roundoff * _largest(result)
    if not all(np.all(one.deviation[_wrong(one)] <= min(noise, ATOL)) for one in wrong):
        return None
    generator = np.random.default_rng(seed)
    try:
        away = [_near(program, generator) for _ in range(POINTS)]
        if not all(_jitters(one, program, away) for one in wrong):
            return None
    except Exception:  # noqa: BLE001  a point nearby may lie outside of the domain
        return None
    kept = tuple(one for one in result.findings if one.verdict is not Verdict.WRONG)
    told = tuple(_finding(one) for one in wrong)
    comparisons = tuple(
        replace(one, verdict=Verdict.UNDECIDED, reason="noise") if one.verdict is Verdict.WRONG else one
        for one in result.comparisons
    )
    return replace(result, verdict=Verdict.UNDECIDED, comparisons=comparisons, findings=kept + told)


def is_slight(comparison: Comparison) -> bool:
    """Whether all entries that were found wrong are within torch's own tolerance."""
    found = comparison.found
    return bool(found) and all(abs(one.analytic - one.numeric) <= ATOL + RTOL * abs(one.numeric) for one in found)


def _largest(result: Result) -> float:
    return max(float(np.max(np.abs(one.numeric), initial=0.0)) for one in result.comparisons)


def _wrong(comparison: Comparison) -> Array:
    with np.errstate(invalid="ignore"):
        return np.asarray(~(comparison.deviation <= comparison.tolerance + comparison.bar))


def _near(program: TorchProgram, generator: np.random.Generator) -> TorchProgram:
    point = program.point * (1.0 + AWAY * generator.uniform(-1.0, 1.0, program.point.size))
    return TorchProgram(program.call, program.name, point, Tally())


def _jitters(comparison: Comparison, program: TorchProgram, away: list[TorchProgram]) -> bool:
    wrong = _wrong(comparison)
    forward = comparison.mode == "forward"
    leaf, other, axis = (
        (comparison.input, comparison.output, 0) if forward else (comparison.output, comparison.input, 1)
    )
    lines = np.flatnonzero(wrong.any(axis=axis))
    if not 0 < lines.size <= MOST:
        return False
    size = program.point.size if forward else program.value.size
    unit = np.zeros((lines.size, size))
    unit[np.arange(lines.size), leaf.start + lines] = 1.0
    seen = np.stack([(one.push(unit) if forward else one.pull(unit))[:, other.span] for one in away])
    spread = np.ptp(seen, axis=0)
    deviation, mask = (
        (comparison.deviation.T[lines], wrong.T[lines]) if forward else (comparison.deviation[lines], wrong[lines])
    )
    return bool(np.all(deviation[mask] <= FACTOR * spread[mask]))


def _finding(comparison: Comparison) -> Finding:
    pair = f"d {comparison.output.path} / d {comparison.input.path}"
    largest = float(np.max(comparison.deviation[_wrong(comparison)]))
    sentence = (
        f"{pair} cannot be told below {largest:.2g}: where it is zero, the analytic value is the rounding of terms "
        "that cancel"
    )
    return Finding("noise", Verdict.UNDECIDED, Place(), sentence, HINT)
