"""The analytic side of signed probes: w . (J u), pair of leaves by pair of leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gradproof.contracts.adjoint import Modes
from gradproof.contracts.linear import check_linear, combination, loudness
from gradproof.evidence.gathered import Task, restricted
from gradproof.norms import dot, largest, rms
from gradproof.program import Array, Leaf
from gradproof.result import Finding
from gradproof.sizes import size_of


@dataclass(frozen=True, slots=True)
class Probe:
    """A direction for all inputs and a cotangent for all outputs; each pair of leaves uses its own parts of them.
    `way` is "inward" if the bounds allow to follow the direction one way only."""

    direction: Array
    cotangent: Array
    way: str = "both"

    def without(self, entries: Sequence[tuple[int, int]]) -> Probe:
        """The same without these inputs and outputs."""
        if not entries:
            return self
        direction, cotangent = self.direction.copy(), self.cotangent.copy()
        for i, j in entries:
            direction[i] = cotangent[j] = 0.0
        return Probe(direction, cotangent, self.way)


@dataclass(frozen=True, slots=True)
class Sums:
    """The analytic side of one probe in one mode, arrays (input leaf, output leaf): the sum over all entries, the root
    of the sum of squares of its terms, and the largest derivative among the vectors that they came from."""

    total: Array
    size: Array
    largest: Array

    def enter(self, where: tuple[int, int], weights: Array, derivatives: Array, unit: float = 1.0) -> None:
        """What a probe leaves out does not count, not even where it is not finite."""
        terms = weights * derivatives
        top = largest(derivatives)
        if not np.isfinite(top) and not weights.all():
            terms = np.where(weights == 0, 0.0, terms)
            top = largest(np.where(weights == 0, 0.0, derivatives))
        self.total[where] = np.sum(terms)
        self.size[where] = np.sqrt(dot(terms, terms))
        self.largest[where] = top / unit


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
        found = _empty(task)
        for o, output in enumerate(program.outputs):
            gradient = _pulled(task, probe, (o, output), found)
            weight = next(weights) * scale.quiet
            gradient *= weight
            expected = gradient if expected is None else np.add(expected, gradient, out=expected)
            mixed[0, output.span] += weight * probe.cotangent[output.span]
        sums.append(found)
    del gradient  # at a million coordinates every vector counts
    assert expected is not None
    if "linear" not in task.contracts:
        return sums, ()
    return sums, check_linear(program, mixed[0], program.pull(mixed)[0], expected, task.tolerance, task.nondet_tol)


def pushes(task: Task, drawn: list[Probe]) -> list[Sums]:
    """The same by forward mode: J u for every probe and input leaf."""
    return [_pushed(task, probe) for probe in drawn]


def modes(task: Task, drawn: list[Probe], analytic: list[dict[str, Sums]]) -> list[Modes]:
    """The same sums by both modes, for every pair of leaves."""
    program = task.program

    def change(probe: Probe, output: Leaf, leaf: Leaf) -> float:
        length = rms(probe.direction[leaf.span]) / (rms(program.point[leaf.span]) or 1.0)
        return size_of(program) * length * float(np.sqrt(output.size * leaf.size))

    return [
        Modes(
            output,
            leaf,
            np.array([one["reverse"].total[i, o] for one in analytic]),
            np.array([one["forward"].total[i, o] for one in analytic]),
            np.array([max(sums.size[i, o] for sums in one.values()) for one in analytic]),
            np.array([change(probe, output, leaf) for probe in drawn]),
        )
        for o, output in enumerate(program.outputs)
        for i, leaf in enumerate(program.inputs)
    ]


def sums_of(task: Task, mode: str, probe: Probe) -> Sums:
    """One probe in one mode, without the contract."""
    if mode == "forward":
        return _pushed(task, probe)
    found = _empty(task)
    for o, output in enumerate(task.program.outputs):
        if probe.cotangent[output.span].any():
            _pulled(task, probe, (o, output), found)
    return found


def _pulled(task: Task, probe: Probe, numbered: tuple[int, Leaf], into: Sums) -> Array:
    """J^T w for one output leaf, entered into the sums of all input leaves."""
    o, output = numbered
    loud = loudness(task.program).loud
    gradient: Array = task.program.pull(loud * part(probe.cotangent, output))[0]
    gradient /= loud
    for i, leaf in enumerate(task.program.inputs):
        into.enter((i, o), probe.direction[leaf.span], gradient[leaf.span])
    return gradient


def _pushed(task: Task, probe: Probe) -> Sums:
    found = _empty(task)
    for i, leaf in enumerate(task.program.inputs):
        if not probe.direction[leaf.span].any():
            continue
        tangent = task.program.push(part(probe.direction, leaf))[0]
        length = max(largest(probe.direction[leaf.span]), 1e-300)
        for o, output in enumerate(task.program.outputs):
            found.enter((i, o), probe.cotangent[output.span], tangent[output.span], length)
    return found


def _empty(task: Task) -> Sums:
    shape = (len(task.program.inputs), len(task.program.outputs))
    return Sums(np.zeros(shape), np.zeros(shape), np.zeros(shape))
