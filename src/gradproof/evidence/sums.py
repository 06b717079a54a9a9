"""The analytic side of signed probes: w . (J u), pair of leaves by pair of leaves."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from gradproof.contracts.adjoint import Modes
from gradproof.contracts.linear import FIRST, Combined, check_linear, combination, loudness
from gradproof.contracts.repeatable import check_repeated
from gradproof.contracts.side import FORWARD, REVERSE
from gradproof.evidence.gathered import Task, restricted
from gradproof.norms import Weighed, is_multiple, largest, rms
from gradproof.program import Array, Leaf
from gradproof.reference.rounding import FACTORS
from gradproof.reference.stencil import SHORT
from gradproof.result import Finding
from gradproof.sizes import size_of, unit_of

# Fewer rows than this are run alone: before a batch is believed, one of its rows is run by itself as well.
SEVERAL = 4


@dataclass(frozen=True, slots=True)
class Probe:
    """A direction for all inputs and a cotangent for all outputs; each pair of leaves uses its own parts of them.
    `way` is "inward" if the bounds allow to follow the direction one way only."""

    direction: Array
    cotangent: Array
    way: str = "both"

    def shorter(self, share: float) -> Probe:
        return self if share == 1.0 else Probe(share * self.direction, self.cotangent, self.way)

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

    def shorter(self, share: float) -> Sums:
        """Those of a probe so much shorter."""
        return Sums(share * self.total, share * self.size, self.largest)

    def enter(
        self, where: tuple[int, int], weights: Array, derivatives: Array, *, loud: float = 1.0, unit: float = 1.0
    ) -> None:
        """What a probe leaves out does not count, not even where it is not finite. The derivatives are `loud` times
        what they should be, and their largest is that of `unit`."""
        found = Weighed.of(weights, derivatives)
        if not math.isfinite(found.largest) and not weights.all():
            found = Weighed.of(weights, np.where(weights == 0, 0.0, derivatives))
        self.total[where] = found.total / loud
        self.size[where] = found.size / loud
        self.largest[where] = found.largest / loud / unit


@dataclass(frozen=True, slots=True)
class Pulled:
    """The sums of every probe, and what the contract found. `repeated`: a combination of all cotangents gave what they
    gave one by one, to the last digits; so whoever pulls the same twice would get the same twice."""

    sums: list[Sums]
    findings: tuple[Finding, ...] = ()
    repeated: bool = False


def part(vector: Array, leaf: Leaf) -> Array:
    """One row: the vector restricted to a leaf; no copy if that is all of it."""
    return vector[None] if leaf.size == vector.size else restricted(vector, leaf.span)


def pulls(task: Task, drawn: list[Probe]) -> Pulled:
    """J^T w for every probe and output leaf, each summed up at once, so that memory stays a few vectors whatever the
    number of leaves; and the contract on the pulls. One combination of all cotangents rides along."""
    program = task.program
    loud, quiet = loudness(program).loud, loudness(program).quiet
    pairs = [(probe, o, output) for probe in drawn for o, output in enumerate(program.outputs)]
    # All of the other sign: what the probes have in common is seen with both. The first, and largest, is 4.
    signs = combination(len(pairs), task.generator) if len(pairs) > 1 else FIRST
    weights = (np.abs(signs) * (quiet / 16)).tolist()
    linear = [_mixed(program.value.size, pairs, weights)] if "linear" in task.contracts else []
    gradients = _each(task, program.pull, chain(_loud(pairs, loud), linear), len(pairs) + len(linear))
    sums = {id(probe): _empty(task) for probe in drawn}
    probe, o, _ = pairs[0]
    expected, factor = next(gradients), weights[0] / loud
    _enter(task, probe, o, expected, sums[id(probe)], loud)
    for weight, (probe, o, _) in zip(weights[1:], pairs[1:], strict=True):
        gradient = next(gradients)
        _enter(task, probe, o, gradient, sums[id(probe)], loud)
        gradient *= weight / loud
        expected = _times(expected, factor)
        expected += gradient
        factor = 1.0
    found = [sums[id(probe)] for probe in drawn]
    if not linear:
        return Pulled(found)
    together = next(gradients)
    # Powers of two change no digit: of one cotangent alone, both are mostly the same.
    if is_multiple(together, expected, factor):
        return Pulled(found, repeated=True)
    expected = _times(expected, factor)
    combined = Combined(linear[0][0], together, expected)
    findings = check_linear(program, REVERSE, combined, task.linear, task.nondet_tol)
    return Pulled(found, findings, not (findings or check_repeated(program, expected, together)))


def _mixed(size: int, pairs: Sequence[tuple[Probe, int, Leaf]], weights: Sequence[float]) -> Array:
    """All cotangents combined: one row."""
    if len(pairs) == 1:
        return np.asarray(pairs[0][0].cotangent[None] * weights[0])
    mixed = np.zeros((1, size))
    for weight, (probe, _, output) in zip(weights, pairs, strict=True):
        mixed[0, output.span] += weight * probe.cotangent[output.span]
    return mixed


def _times(vector: Array, factor: float) -> Array:
    """In place."""
    if factor != 1.0:
        vector *= factor
    return vector


def pushes(task: Task, drawn: list[Probe]) -> tuple[list[Sums], tuple[Finding, ...]]:
    """The same by forward mode: J u for every probe and input leaf. The first probe is pushed once more, all leaves
    together, large and with the other sign."""
    program = task.program
    expected = np.zeros(program.value.size) if "linear" in task.contracts else None
    found = [_pushed(task, probe, expected if probe is drawn[0] else None) for probe in drawn]
    if expected is None:
        return found, ()
    direction = drawn[0].direction
    factor = -np.exp2(np.round(np.log2(loudness(program).loud / (rms(direction) or 1.0))))
    pushed = program.push(factor * direction[None])[0]
    expected *= factor

    def terms() -> Array:
        """Of each sum they are known in all, not one by one: what cancels is as large as the others."""
        size = np.zeros(program.value.size)
        for o, output in enumerate(program.outputs):
            size[output.span] = abs(factor) * float(found[0].size[:, o].max()) / np.sqrt(max(output.size, 1))
        return size

    return found, check_linear(program, FORWARD, Combined(factor * direction, pushed, expected, terms), task.linear)


def held_to_digits(task: Task, probe: Probe, asked: Container[str]) -> tuple[Finding, ...]:
    """The contract once more, in the modes that are asked for, with a multiple of the probe that changes all its
    digits: a rule may round what it is given, which no power of two shows and no unit vector."""
    program = task.program
    vectors = {REVERSE: probe.cotangent, FORWARD: probe.direction}
    findings: tuple[Finding, ...] = ()
    for side, vector in vectors.items():
        if side.mode in asked:
            once, other = (side.run(program, (factor * vector)[None])[0] for factor in FACTORS[:2])
            combined = Combined(FACTORS[1] * vector, other, FACTORS[1] / FACTORS[0] * once)
            findings += check_linear(program, side, combined, task.linear, task.nondet_tol)
    return findings


def modes(task: Task, drawn: list[Probe], analytic: list[dict[str, Sums]]) -> list[Modes]:
    """The same sums by both modes, for every pair of leaves."""
    program = task.program

    def change(probe: Probe, output: Leaf, leaf: Leaf) -> float:
        length = rms(probe.direction[leaf.span]) / unit_of(program, leaf.span)
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
    pairs = [(probe, o, one) for o, one in enumerate(task.program.outputs) if probe.cotangent[one.span].any()]
    loud = loudness(task.program).loud
    for (_, o, _), gradient in zip(pairs, _each(task, task.program.pull, _loud(pairs, loud), len(pairs)), strict=True):
        _enter(task, probe, o, gradient, found, loud)
    return found


def _each(task: Task, run: Callable[[Array], Array], rows: Iterable[Array], count: int) -> Iterator[Array]:
    """What each row gives: short ones all at once, others one after the other."""
    if SEVERAL <= count <= SHORT // (task.program.point.size + task.program.value.size):
        yield from run(np.concatenate(list(rows)))
    else:
        for row in rows:
            yield run(row)[0]


def _loud(pairs: Sequence[tuple[Probe, int, Leaf]], loud: float) -> Iterator[Array]:
    return (loud * part(probe.cotangent, output) for probe, _, output in pairs)


def _enter(task: Task, probe: Probe, o: int, gradient: Array, into: Sums, loud: float) -> None:
    """J^T w for one output leaf, loud, into the sums of all input leaves."""
    for i, leaf in enumerate(task.program.inputs):
        into.enter((i, o), probe.direction[leaf.span], gradient[leaf.span], loud=loud)


def _pushed(task: Task, probe: Probe, together: Array | None = None) -> Sums:
    """What all leaves give is added to `together`."""
    found = _empty(task)
    moved = [(i, leaf) for i, leaf in enumerate(task.program.inputs) if probe.direction[leaf.span].any()]
    rows = (part(probe.direction, leaf) for _, leaf in moved)
    for (i, leaf), tangent in zip(moved, _each(task, task.program.push, rows, len(moved)), strict=True):
        length = max(largest(probe.direction[leaf.span]), 1e-300)
        if together is not None:
            together += tangent
        for o, output in enumerate(task.program.outputs):
            found.enter((i, o), probe.cotangent[output.span], tangent[output.span], unit=length)
    return found


def _empty(task: Task) -> Sums:
    shape = (len(task.program.inputs), len(task.program.outputs))
    return Sums(np.zeros(shape), np.zeros(shape), np.zeros(shape))
