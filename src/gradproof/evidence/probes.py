"""Signed probes: w . (J u) on both sides, for random directions u and w, at a cost that does not depend on the size.

A single wrong entry of size e shows as about e whatever N and M are, and the threshold is the error bar, not a
tolerance that grows with the size. A probe beyond its bar is no verdict yet: `bisect` looks for the entry.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gradproof.compare import CLEAR
from gradproof.evidence.bisect import Located, Suspect, locate
from gradproof.evidence.gathered import Gathered, Task
from gradproof.evidence.wording import kink_remark
from gradproof.norms import rms
from gradproof.precision import of
from gradproof.program import Array, Leaf, Spot
from gradproof.reference.estimate import Estimate, Kind
from gradproof.reference.field import projected
from gradproof.reference.ladder import Goal, first_look, refine
from gradproof.reference.steps import random_direction, signed
from gradproof.result import Comparison, Finding, Place, Power, Verdict

# Rounding errors on the analytic side add up like a random walk; this many standard deviations are granted.
ROUNDING_FACTOR = 8.0
# P(|signed sum| > 6 sigma) <= 2 exp(-18) = 3e-8 (Hoeffding).
SIGMAS = 6.0


@dataclass(frozen=True, slots=True)
class Probe:
    """One direction for each input leaf (rows of `directions`) and one for each output leaf (rows of `cotangents`)."""

    directions: Array
    cotangents: Array


@dataclass(frozen=True, slots=True)
class Outcome:
    """Both sides of one probe, arrays (input leaf, output leaf). `pulled` is what J^T w was, if it was asked for;
    `rounding` what the analytic side may be off by, `size` the root of the sum of squares of its terms, `largest` the
    largest of the vectors they came from."""

    probe: Probe
    pulled: Array | None
    numeric: Estimate
    analytic: dict[str, Array]
    rounding: Array
    size: Array
    largest: Array


def draw(task: Task) -> Probe:
    program = task.reference
    directions = np.zeros((len(program.inputs), program.point.size))
    displacement = random_direction(program, task.steps, task.generator)
    for row, leaf in zip(directions, program.inputs, strict=True):
        row[leaf.span] = displacement[leaf.span]
    cotangents = np.zeros((len(program.outputs), program.value.size))
    for row, leaf in zip(cotangents, program.outputs, strict=True):
        row[leaf.span] = signed(task.generator, leaf.size)
    return Probe(directions, cotangents)


def measure(task: Task, probe: Probe, pulled: Array | None, pushed: Array | None) -> Outcome:
    """`pulled` = rows J^T w for each output leaf, `pushed` = rows J u for each input leaf; None where not asked."""
    analytic: dict[str, Array] = {}
    size = np.zeros((len(probe.directions), len(probe.cotangents)))
    largest = np.zeros_like(size)
    for o, output in enumerate(task.program.outputs):
        for i, leaf in enumerate(task.program.inputs):
            if pulled is not None:
                terms = probe.directions[i, leaf.span] * pulled[o, leaf.span]
                analytic.setdefault("reverse", np.zeros_like(size))[i, o] = np.sum(terms)
                size[i, o] = np.sqrt(np.dot(terms, terms))
                largest[i, o] = _largest(pulled[o, leaf.span])
            if pushed is not None:
                terms = pushed[i, output.span] * probe.cotangents[o, output.span]
                analytic.setdefault("forward", np.zeros_like(size))[i, o] = np.sum(terms)
                size[i, o] = np.fmax(size[i, o], np.sqrt(np.dot(terms, terms)))
                if pulled is None:
                    largest[i, o] = _largest(pushed[i, output.span]) / max(
                        _largest(probe.directions[i, leaf.span]), 1e-300
                    )
    field = projected(task.reference, probe.cotangents)
    look = first_look(field, probe.directions)
    goal = Goal(0.5 * task.tolerance.relative * np.nan_to_num(size), 0.5 * task.tolerance.relative)
    numeric = refine(field, probe.directions, look, goal)
    coarsest = max((of(leaf.dtype).roundoff for leaf in task.program.inputs + task.program.outputs), default=0.0)
    return Outcome(probe, pulled, numeric, analytic, ROUNDING_FACTOR * coarsest * size, size, largest)


def _largest(values: Array) -> float:
    return float(np.max(np.abs(values), initial=0.0))


def gather(task: Task, outcomes: list[Outcome]) -> Gathered:
    """Judge every (mode, output, input) over all probes, and look for the entry where one disagrees."""
    comparisons = tuple(
        _judge_pair(task, mode, outcomes, o, i)
        for mode in outcomes[0].analytic
        for o in range(len(task.program.outputs))
        for i in range(len(task.program.inputs))
    )
    return Gathered(comparisons, tuple(_kinks(task, outcomes)), _power(task, outcomes, comparisons))


def _judge_pair(task: Task, mode: str, outcomes: list[Outcome], o: int, i: int) -> Comparison:
    output_leaf, input_leaf = task.program.outputs[o], task.program.inputs[i]
    analytic = np.array([outcome.analytic[mode][i, o] for outcome in outcomes])
    numeric = np.array([outcome.numeric.value[i, o] for outcome in outcomes])
    spread = np.array([outcome.numeric.spread[i, o] for outcome in outcomes])
    bar = np.array([outcome.numeric.bar[i, o] for outcome in outcomes])
    rounding = np.array([outcome.rounding[i, o] for outcome in outcomes])
    size = np.array([outcome.size[i, o] for outcome in outcomes])
    tolerance = task.tolerance.relative * size
    excess = np.maximum(np.abs(analytic - numeric) - spread, 0.0) - bar - rounding
    located = Located((), 0)
    verdict, reason = Verdict.RIGHT, ""
    if not np.isfinite(analytic).all() or np.nanmax(excess, initial=0.0) > 0.0:
        worst = int(np.argmax(np.nan_to_num(excess / np.maximum(bar, 1e-300), nan=np.inf)))
        pulled = outcomes[worst].pulled
        suspect = Suspect(
            mode,
            output_leaf,
            input_leaf,
            outcomes[worst].probe.directions[i],
            outcomes[worst].probe.cotangents[o],
            pulled[o] if mode == "reverse" and pulled is not None else None,
            float(analytic[worst] - numeric[worst]),
            float(bar[worst] + rounding[worst] + spread[worst]),
        )
        located = locate(task, suspect)
        # No in-tolerance deviations add up to this much, so some entry must be wrong even if it was not found.
        beyond = excess[worst] > SIGMAS * tolerance[worst] + CLEAR * bar[worst]
        verdict = Verdict.WRONG if located.found or beyond else Verdict.RIGHT
    if verdict is Verdict.RIGHT and (bar > np.maximum(tolerance, _negligible(task, numeric, bar, output_leaf))).any():
        verdict, reason = Verdict.UNDECIDED, _reason(task, outcomes, i, o)
    return Comparison(
        order=task.order,
        mode=mode,
        output=output_leaf,
        input=input_leaf,
        scope="probes",
        analytic=analytic,
        numeric=numeric,
        bar=bar + rounding,
        tolerance=tolerance,
        verdict=verdict,
        found=located.found,
        wrong=len(located.found),
        entries=output_leaf.size * input_leaf.size,
        reason=reason or located.remark,
        spread=spread if spread.any() else None,
    )


def _negligible(task: Task, numeric: Array, bar: Array, output: Leaf) -> Array:
    """As for exhaustive blocks: what is zero within its bar needs to be known only against the value's own size."""
    zero = np.abs(numeric) <= bar
    value = task.program.value[output.span]
    size = rms(value) * np.sqrt(max(value.size, 1))
    return np.where(zero, task.tolerance.relative * 2.0**-16 * size, 0.0)


def _reason(task: Task, outcomes: list[Outcome], i: int, o: int) -> str:
    kinds = {int(outcome.numeric.kind[i, o]) for outcome in outcomes}
    if Kind.JUMP in kinds:
        return "jump"
    if Kind.EDGE in kinds:
        return "domain"
    return "precision" if any(of(leaf.dtype).bits < 53 for leaf in task.reference.inputs) else "noise"


def _kinks(task: Task, outcomes: list[Outcome]) -> list[Finding]:
    for outcome in outcomes:
        for i, o in np.argwhere(outcome.numeric.kind == Kind.KINK):
            place = Place(Spot(task.program.outputs[o].path), Spot(task.program.inputs[i].path))
            value, spread = float(outcome.numeric.value[i, o]), float(outcome.numeric.spread[i, o])
            return [kink_remark(place, 1, value - spread, value + spread)]
    return []


def _power(task: Task, outcomes: list[Outcome], comparisons: tuple[Comparison, ...]) -> Power | None:
    """A single wrong entry e_ji contributes e_ji u_i w_j with |w_j| >= 0.5: what exceeds the widest slack is seen."""
    worst, relative = 0.0, 0.0
    for comparison in comparisons:
        i = task.program.inputs.index(comparison.input)
        o = task.program.outputs.index(comparison.output)
        if not comparison.entries or comparison.verdict is not Verdict.RIGHT:
            continue
        smallest = min(
            float(np.min(np.abs(outcome.probe.directions[i, comparison.input.span]))) for outcome in outcomes
        )
        largest = max(float(outcome.largest[i, o]) for outcome in outcomes)
        slack = float(np.max(comparison.bar + comparison.deviation))
        error = max(slack / (0.5 * smallest), task.tolerance.relative * largest)
        if largest > 0 and error / largest >= relative:
            worst, relative = error, error / largest
    return Power(worst, relative, 0.0) if relative > 0 else None
