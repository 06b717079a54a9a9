"""Signed probes: w . (J u) on both sides, for random directions u and w, at a cost that does not depend on the size.

A single wrong entry of size e shows as about e whatever N and M are, and the threshold is the error bar, not a
tolerance that grows with the size. A probe beyond its bar is no verdict yet: `bisect` looks for the entry.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gradproof.agreement import CLEAR
from gradproof.contracts.linear import check_linear, combination, loudness
from gradproof.evidence.bisect import Located, Suspect, locate
from gradproof.evidence.gathered import Gathered, Task, restricted
from gradproof.evidence.wording import kink_remark
from gradproof.norms import dot, largest, rms
from gradproof.precision import DOUBLE, coarsest
from gradproof.program import Array, Leaf, Spot
from gradproof.reference.estimate import Estimate, Kind
from gradproof.reference.field import by_leaf
from gradproof.reference.glance import PROBE, glance
from gradproof.reference.ladder import Goal, first_look, refine
from gradproof.reference.steps import random_direction, signed, step_exponent
from gradproof.result import Comparison, Finding, Place, Power, Table, Verdict

# Rounding errors on the analytic side add up like a random walk; this many standard deviations are granted.
ROUNDING_FACTOR = 8.0
# P(|signed sum| > 6 sigma) <= 2 exp(-18) = 3e-8 (Hoeffding).
SIGMAS = 6.0
# A deviation beyond a glance's bar is measured again, with a bar of its own that is up to so many times wider.
DOUBTED = 32.0


@dataclass(frozen=True, slots=True)
class Probe:
    """A direction for all inputs and a cotangent for all outputs; each pair of leaves uses its own parts of them."""

    direction: Array
    cotangent: Array


@dataclass(frozen=True, slots=True)
class Sums:
    """The analytic side of one probe in one mode, arrays (input leaf, output leaf): the sum over all entries, the root
    of the sum of squares of its terms, and the largest derivative among the vectors that they came from."""

    total: Array
    size: Array
    largest: Array


@dataclass(frozen=True, slots=True)
class Outcome:
    """Both sides of one probe; `rounding` is what the analytic side may be off by, arrays (input leaf, output leaf)."""

    probe: Probe
    numeric: Estimate
    analytic: dict[str, Sums]
    size: Array
    rounding: Array


def draw(task: Task) -> Probe:
    direction = random_direction(task.reference, task.steps, task.generator)
    return Probe(direction, signed(task.generator, task.program.value.size))


def part(vector: Array, leaf: Leaf) -> Array:
    """One row: the vector restricted to a leaf; no copy if that is all of it."""
    return vector[None] if leaf.size == vector.size else restricted(vector, leaf.span)


def pulls(task: Task, drawn: list[Probe]) -> tuple[list[Sums], tuple[Finding, ...]]:
    """J^T w for every probe and output leaf, one at a time and summed up at once, so that memory stays a few vectors
    whatever the number of leaves; and the contract on the pulls. One combination of all cotangents rides along."""
    program = task.program
    scale = loudness(program)
    weights = iter(combination(len(drawn) * len(program.outputs), task.generator))
    expected: Array | None = None
    mixed = np.zeros((1, program.value.size))
    sums: list[Sums] = []
    for probe in drawn:
        found = _empty_sums(task)
        for o, output in enumerate(program.outputs):
            gradient = program.pull(scale.loud * part(probe.cotangent, output))[0]
            gradient /= scale.loud
            for i, leaf in enumerate(program.inputs):
                terms = probe.direction[leaf.span] * gradient[leaf.span]
                _enter(found, (i, o), terms, largest(gradient[leaf.span]))
            weight = next(weights) * scale.quiet
            gradient *= weight
            expected = gradient if expected is None else np.add(expected, gradient, out=expected)
            mixed[0, output.span] += weight * probe.cotangent[output.span]
        sums.append(found)
    del gradient, terms  # at a million coordinates every vector counts
    assert expected is not None
    return sums, check_linear(program, mixed[0], program.pull(mixed)[0], expected, task.tolerance)


def pushes(task: Task, drawn: list[Probe]) -> list[Sums]:
    """The same by forward mode: J u for every probe and input leaf."""
    program = task.program
    sums = []
    for probe in drawn:
        found = _empty_sums(task)
        for i, leaf in enumerate(program.inputs):
            tangent = program.push(part(probe.direction, leaf))[0]
            length = max(largest(probe.direction[leaf.span]), 1e-300)
            for o, output in enumerate(program.outputs):
                terms = tangent[output.span] * probe.cotangent[output.span]
                _enter(found, (i, o), terms, largest(tangent[output.span]) / length)
        sums.append(found)
    return sums


def _empty_sums(task: Task) -> Sums:
    shape = (len(task.program.inputs), len(task.program.outputs))
    return Sums(np.zeros(shape), np.zeros(shape), np.zeros(shape))


def _enter(sums: Sums, where: tuple[int, int], terms: Array, top: float) -> None:
    sums.total[where] = np.sum(terms)
    sums.size[where] = np.sqrt(dot(terms, terms))
    sums.largest[where] = top


def measure(task: Task, probe: Probe, analytic: dict[str, Sums]) -> Outcome:
    """The numeric side of a probe, input leaf by input leaf: a glance, and the ladder where that leaves a doubt."""
    size = np.nan_to_num(np.maximum.reduce([sums.size for sums in analytic.values()]))
    roundoff = coarsest(task.program.inputs + task.program.outputs).roundoff
    field = by_leaf(task.reference, probe.cotangent)
    rows = []
    for i, leaf in enumerate(task.program.inputs):
        displacement = part(probe.direction, leaf)
        seen = glance(field, displacement, PROBE.within(task.tolerance.finest))
        known = seen.bar(size[[i]])
        granted = _granted(task, size[i], leaf)
        enough = [
            max(granted[o], _negligible(task, seen.slope[0, o], known[0, o], output))
            for o, output in enumerate(task.program.outputs)
        ]
        if (known[0] <= enough).all() and all(
            seen.agrees(sums.total[[i]], size[[i]]).all() for sums in analytic.values()
        ):
            rows.append(Estimate.smooth(seen.slope, known))
        else:
            goal = Goal(0.5 * granted[None], 0.5 * task.tolerance.finest)
            rows.append(refine(field, displacement, first_look(field, displacement), goal))
    return Outcome(probe, Estimate.stacked(rows), analytic, size, ROUNDING_FACTOR * roundoff * size)


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
    analytic = np.array([outcome.analytic[mode].total[i, o] for outcome in outcomes])
    numeric = np.array([outcome.numeric.value[i, o] for outcome in outcomes])
    spread = np.array([outcome.numeric.spread[i, o] for outcome in outcomes])
    bar = np.array([outcome.numeric.bar[i, o] for outcome in outcomes])
    rounding = np.array([outcome.rounding[i, o] for outcome in outcomes])
    tolerance = _granted(task, np.array([outcome.size[i, o] for outcome in outcomes]), input_leaf)
    gap = np.array([one.numeric.gap(one.analytic[mode].total)[i, o] for one in outcomes])
    excess = np.abs(gap) - bar - rounding
    located = Located(())
    verdict, reason = Verdict.RIGHT, ""
    if not np.isfinite(analytic).all() or np.nanmax(excess, initial=0.0) > 0.0:
        worst = int(np.argmax(np.nan_to_num(excess / np.maximum(bar, 1e-300), nan=np.inf)))
        suspect = Suspect(
            mode,
            output_leaf,
            input_leaf,
            part(outcomes[worst].probe.direction, input_leaf)[0],
            part(outcomes[worst].probe.cotangent, output_leaf)[0],
            float(gap[worst]),
            float(bar[worst] + rounding[worst]),
        )
        located = locate(task, suspect)
        # No in-tolerance deviations add up to this much, so some entry must be wrong even if it was not found.
        beyond = excess[worst] > SIGMAS * _loosest(task, tolerance[worst]) + CLEAR * bar[worst]
        verdict = Verdict.WRONG if located.found or beyond else Verdict.RIGHT
    if verdict is Verdict.RIGHT and bar[0] > max(tolerance[0], _negligible(task, numeric[0], bar[0], output_leaf)):
        verdict, reason = Verdict.UNDECIDED, _reason(task, outcomes, i, o)
    return Comparison(
        order=task.order,
        mode=mode,
        output=output_leaf,
        input=input_leaf,
        scope="probes",
        source=Table(analytic, numeric, bar + rounding, tolerance, spread if spread.any() else None),
        verdict=verdict,
        found=located.found,
        wrong=len(located.found),
        entries=output_leaf.size * input_leaf.size,
        reason=reason or located.remark,
    )


def _granted(task: Task, size: Array, leaf: Leaf) -> Array:
    """How far sums of these sizes may be off: an absolute tolerance counts as at the entry that shows least."""
    granted = task.tolerance.finest * size
    if task.tolerance.absolute and leaf.size:
        granted = granted + 0.25 * task.tolerance.absolute * float(np.min(task.steps[leaf.span]))
    return np.asarray(granted)


def _loosest(task: Task, granted: float) -> float:
    """`granted` is for the strictest part of the tolerance; this is what the most generous part would grant."""
    tolerance = task.tolerance
    return granted * max(tolerance.relative, tolerance.of_block) / tolerance.finest if tolerance.finest else granted


def _negligible(task: Task, numeric: float, bar: float, output: Leaf) -> float:
    """As for exhaustive blocks: what is zero within its bar needs to be known only against the value's own size."""
    if abs(numeric) > bar:
        return 0.0
    value = task.program.value[output.span]
    return (
        task.tolerance.finest * 2.0 ** step_exponent(task.reference) * rms(value) * float(np.sqrt(max(value.size, 1)))
    )


def _reason(task: Task, outcomes: list[Outcome], i: int, o: int) -> str:
    kinds = {int(outcome.numeric.kind[i, o]) for outcome in outcomes}
    if Kind.JUMP in kinds:
        return "jump"
    if Kind.EDGE in kinds:
        return "domain"
    return "precision" if coarsest(task.reference.inputs) is not DOUBLE else "noise"


def _kinks(task: Task, outcomes: list[Outcome]) -> list[Finding]:
    for outcome in outcomes:
        for i, o in np.argwhere(outcome.numeric.kind == Kind.KINK):
            place = Place(Spot(task.program.outputs[o].path), Spot(task.program.inputs[i].path))
            value, spread = float(outcome.numeric.value[i, o]), float(outcome.numeric.spread[i, o])
            return [kink_remark(place, 1, value - spread, value + spread)]
    return []


def _power(task: Task, outcomes: list[Outcome], comparisons: tuple[Comparison, ...]) -> Power | None:
    """A single wrong entry e_ji contributes e_ji u_i w_j to the first probe, with |u_i| at least half of its step and
    |w_j| at least 0.5: what exceeds the slack is seen."""
    worst, relative = 0.0, 0.0
    for comparison in comparisons:
        i = task.program.inputs.index(comparison.input)
        o = task.program.outputs.index(comparison.output)
        if not comparison.entries or comparison.verdict is not Verdict.RIGHT:
            continue
        top = float(outcomes[0].analytic[comparison.mode].largest[i, o])
        slack = DOUBTED * float(comparison.bar[0] + comparison.deviation[0])
        error = slack / (0.25 * float(np.min(task.steps[comparison.input.span])))
        error = max(error, task.tolerance.absolute + task.tolerance.relative * top)
        if top > 0 and error / top >= relative:
            worst, relative = error, error / top
    return Power(worst, relative, 0.0) if relative > 0 else None
