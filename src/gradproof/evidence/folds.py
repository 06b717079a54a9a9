"""Where the function is not smooth along a probe: which outputs bend, and along which coordinates.

A kink on one coordinate must not hide the others. So the outputs that bend and the coordinates along which they do are
set apart: what is left is probed as ever, and the coordinates are looked at one by one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gradproof.evidence.gathered import Task
from gradproof.evidence.sums import Probe, part
from gradproof.program import Array, Indices, Leaf, Mask
from gradproof.reference.bends import bends, lasting_bends

# So many coordinates are followed to the end. Of more, half as many are picked.
MOST = 16
# Where vectors are longer than this, every step takes long, and fewer are followed.
LONG = 2**20
# Many kinks beside the point, as those of a long list that is sorted, are passed by along a probe that is so much
# shorter, if that leaves so many times fewer.
NEARER, FEWER = 2.0**-12, 8


@dataclass(frozen=True, slots=True)
class Column:
    """A coordinate, and the outputs that bend along it."""

    coordinate: int
    outputs: Indices


@dataclass(frozen=True, slots=True)
class Fold:
    """`outputs` (M,) bend along the direction, `inputs` (N,) are the coordinates to blame; `columns` are those that
    were singled out: all of them, unless `crowded`."""

    outputs: Mask
    inputs: Mask
    columns: tuple[Column, ...]
    crowded: bool

    def pieces(self, probe: Probe) -> list[Probe]:
        """The smooth rest of a probe: all inputs to the outputs that do not bend; the harmless inputs to those that do;
        and each singled-out coordinate to those that do not bend along it."""
        if probe.way == "inward":
            return [probe]
        straight = np.where(self.outputs, 0.0, probe.cotangent)
        others = np.where(self.outputs, probe.cotangent, 0.0)
        found = [Probe(probe.direction, straight), Probe(np.where(self.inputs, 0.0, probe.direction), others)]
        for column in self.columns:
            rest = others.copy()
            rest[column.outputs] = 0.0
            if rest.any():
                alone = np.zeros_like(probe.direction)
                alone[column.coordinate] = probe.direction[column.coordinate]
                found.append(Probe(alone, rest))
        return [piece for piece in found if piece.cotangent.any() and piece.direction.any()]


def find_fold(task: Task, probe: Probe, modes: tuple[str, ...]) -> Fold | None:
    """None where nothing bends, or everything does in the way of noise, which is for the ladder to deal with."""
    outputs = np.zeros(task.program.value.size, dtype=bool)
    inputs = np.zeros(task.steps.size, dtype=bool)
    columns: list[Column] = []
    crowded = False
    for leaf in task.program.inputs:
        if not probe.direction[leaf.span].any():
            continue
        seen = lasting_bends(task.reference, part(probe.direction, leaf))
        along = seen.bent[0]
        if not along.any():
            continue
        noisy = 2 * np.count_nonzero(seen.abrupt) > np.count_nonzero(along)
        suspects = _suspects(task, probe, leaf, along, modes)
        search = _Search(task, probe.direction, np.flatnonzero(along), suspects, _most(task) // 2 if not noisy else 0)
        found, rest = search.descend()
        if rest and noisy:
            return None
        outputs |= along
        columns += found
        for column in found:
            inputs[column.coordinate] = True
        for coordinates in rest:
            inputs[coordinates] = True
            crowded = True
    return Fold(outputs, inputs, tuple(columns), crowded) if outputs.any() else None


def nearer_fold(task: Task, probe: Probe) -> Fold | None:
    """The same along a probe that is `NEARER`, where what still bends is a crowd, whatever it depends on. None where
    most of what bends along the usual one does so along this one as well."""
    far = np.count_nonzero(bends(task.reference, probe.direction[None]).bent)
    if far <= MOST:
        return None
    near = bends(task.reference, NEARER * probe.direction[None]).bent[0]
    if FEWER * np.count_nonzero(near) > far:
        return None
    return Fold(near, np.full(task.steps.size, near.any()), (), crowded=bool(near.any()))


def with_loudest(task: Task, fold: Fold, probe: Probe) -> Fold:
    """Of a crowd, the coordinates with the largest gradients too: a value outside the hull is likely to be one."""
    rows = np.flatnonzero(fold.outputs)
    gradient = np.abs(task.program.pull(np.where(fold.outputs, probe.cotangent, 0.0)[None])[0])
    gradient = np.nan_to_num(np.where(fold.inputs, gradient, 0.0), nan=np.inf)
    known = {column.coordinate for column in fold.columns}
    loudest = np.argsort(-gradient, kind="stable")[: _most(task) // 2]
    top = [int(i) for i in loudest if gradient[i] > 0 and int(i) not in known]
    search = _Search(task, probe.direction, rows, np.asarray(top, dtype=np.intp))
    return replace(fold, columns=fold.columns + tuple(search.columns()))


def _suspects(task: Task, probe: Probe, leaf: Leaf, bent: Mask, modes: tuple[str, ...]) -> Indices:
    """The coordinates of a leaf among which those to blame are: a few of millions, so that the search is short. They
    are guessed, then tried: those that the bent outputs depend on by the gradient, and, as the gradient at a kink may
    be zero, those that stand where the outputs do. If something bends along the others too, it is all coordinates."""
    some = np.zeros(leaf.size, dtype=bool)
    if "reverse" in modes:
        some |= task.program.pull(np.where(bent, probe.cotangent, 0.0)[None])[0][leaf.span] != 0.0
    for output in task.program.outputs:
        if output.size == leaf.size:
            some |= bent[output.span]
    others = np.zeros((1, probe.direction.size))
    others[0, leaf.span] = np.where(some, 0.0, probe.direction[leaf.span])
    if bends(task.reference, others, np.flatnonzero(bent)).bent.any():
        return np.arange(leaf.start, leaf.stop)
    return leaf.start + np.flatnonzero(some)


def _most(task: Task) -> int:
    return MOST if task.steps.size + task.program.value.size <= LONG else MOST // 8


Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Part:
    """Suspects that stand next to each other, and which of the outputs in question bend along them, or may."""

    span: Span
    outputs: Mask

    def halves(self) -> list[_Part]:
        first, last = self.span
        middle = (first + last) // 2
        return (
            [self] if last - first == 1 else [_Part((first, middle), self.outputs), _Part((middle, last), self.outputs)]
        )


@dataclass(frozen=True, slots=True)
class _Search:
    task: Task
    direction: Array
    outputs: Indices
    suspects: Indices
    picked: int = 0

    def descend(self) -> tuple[list[Column], list[Indices]]:
        """The coordinates to blame; of a crowd only some, and the parts that the crowd is in."""
        parts = [_Part((0, self.suspects.size), np.ones(self.outputs.size, dtype=bool))]
        crowd: list[Indices] = []
        while any(last - first > 1 for first, last in (part.span for part in parts)):
            if crowd:
                parts = self._either_half(parts)
                continue
            parts = self._bending([half for part in parts for half in part.halves()])
            if len(parts) > _most(self.task):
                crowd = [self.suspects[slice(*part.span)] for part in parts]
                parts = _picked(parts, self.picked)
        return [self._column(part) for part in (self._bending(parts) if crowd else parts)], crowd

    def columns(self) -> list[Column]:
        """All suspects along which outputs bend."""
        every = np.ones(self.outputs.size, dtype=bool)
        alone = [_Part((first, first + 1), every) for first in range(self.suspects.size)]
        return [self._column(part) for part in self._bending(alone)]

    def _either_half(self, parts: list[_Part]) -> list[_Part]:
        """Of each a half along which outputs bend: the first, or else the second, which need not be tried."""
        pairs = [part.halves() for part in parts]
        first = {part.span: part for part in self._bending([halves[0] for halves in pairs])}
        return [first.get(halves[0].span, halves[-1]) for halves in pairs]

    def _column(self, part: _Part) -> Column:
        return Column(int(self.suspects[part.span[0]]), self.outputs[part.outputs])

    def _bending(self, parts: list[_Part]) -> list[_Part]:
        """Those along which outputs bend, with these outputs. Parts that bend different outputs are moved together, one
        set at a time where vectors are long: each output tells by itself on which side its kink is."""
        sets = _disjoint(parts)
        most = max(1, 2**20 // self.direction.size)
        found: dict[Span, Mask] = {}
        for start in range(0, len(sets), most):
            some = sets[start : start + most]
            rows = np.zeros((len(some), self.direction.size))
            for row, together in zip(rows, some, strict=True):
                for moved in (self.suspects[slice(*one.span)] for one in together):
                    row[moved] = self.direction[moved]
            for together, bent in zip(some, bends(self.task.reference, rows, self.outputs).bent, strict=True):
                found |= {part.span: bent & part.outputs for part in together}
        return [_Part(part.span, found[part.span]) for part in parts if found[part.span].any()]


def _disjoint(parts: list[_Part]) -> list[list[_Part]]:
    """Sets of parts that have no output in common."""
    sets: list[list[_Part]] = []
    taken: list[Mask] = []
    for one in parts:
        k = next((k for k, mask in enumerate(taken) if not (mask & one.outputs).any()), len(sets))
        if k == len(sets):
            sets.append([])
            taken.append(np.zeros_like(one.outputs))
        sets[k].append(one)
        taken[k] |= one.outputs
    return sets


def _picked(parts: list[_Part], count: int) -> list[_Part]:
    """Some of the parts, from all over the leaf."""
    if len(parts) <= count:
        return parts
    return [parts[i] for i in np.linspace(0, len(parts) - 1, count).astype(int)]
