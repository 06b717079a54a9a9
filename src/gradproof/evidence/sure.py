"""The comparisons of a Jacobian that a glance left no doubt about: every entry is right, and nothing more to compute.

The numbers themselves are put together when somebody asks for them.
"""

from __future__ import annotations

from dataclasses import dataclass

from gradproof.agreement import CLEAR, entry_tolerance, tolerance_of_one
from gradproof.evidence.faint import faint_lines
from gradproof.evidence.gathered import Gathered, Task
from gradproof.evidence.glanced import Glanced, largest
from gradproof.evidence.lines import scale_of
from gradproof.program import Array, Leaf
from gradproof.result import Comparison, Entry, Finding, Place, Power, Table, Verdict
from gradproof.settings import Tolerance


@dataclass(frozen=True, eq=False, slots=True)
class Deferred:
    """The source of one block's table."""

    jacobian: Array
    glanced: Glanced
    granted: Tolerance
    inputs: slice
    outputs: slice

    def __call__(self) -> Table:
        numeric = self.glanced.block(self.inputs, self.outputs)
        scale = scale_of(numeric.value, CLEAR * numeric.bar, self.granted)
        tolerance = entry_tolerance(numeric.value, scale, self.granted)
        return Table(self.jacobian[self.inputs, self.outputs].T, numeric.value.T, numeric.bar.T, tolerance.T)


def gather_sure(task: Task, analytic: dict[str, Array], glanced: Glanced, findings: tuple[Finding, ...]) -> Gathered:
    comparisons = []
    worst, relative, size = 0.0, 0.0, task.program.value.size
    pairs = [(output, leaf) for output in task.program.outputs for leaf in task.program.inputs]
    tops: dict[int, list[Entry | None]] = {}  # one Jacobian may serve for two modes
    for mode, jacobian in analytic.items():
        if id(jacobian) not in tops:
            tops[id(jacobian)] = [_strongest(task, jacobian, glanced, *pair) for pair in pairs]
        for (output, leaf), top in zip(pairs, tops[id(jacobian)], strict=True):
            # What is zero within its bar has no size that an error could be a share of.
            if top is not None and abs(top.numeric) > top.bar:
                error = top.tolerance + glanced.widest(leaf, output, abs(top.analytic))
                if error / abs(top.numeric) >= relative:
                    worst, relative = error, error / abs(top.numeric)
            comparisons.append(
                Comparison(
                    order=task.order,
                    mode=mode,
                    output=output,
                    input=leaf,
                    scope="entries",
                    source=Deferred(jacobian, glanced, task.tolerance, leaf.span, output.span),
                    verdict=Verdict.RIGHT,
                    entries=leaf.size * output.size,
                    strongest=top,
                )
            )
    findings += faint_lines(task, analytic, lambda: glanced.block(slice(0, task.steps.size), slice(0, size)))
    return Gathered(tuple(comparisons), findings, Power(worst, relative, 1.0) if relative > 0 else None, analytic)


def _strongest(task: Task, jacobian: Array, glanced: Glanced, output: Leaf, leaf: Leaf) -> Entry | None:
    """The largest derivative of a block, both ways; None if the block is empty or all zero."""
    found = largest(jacobian, leaf, output)
    if found is None:
        return None
    i, j = found
    value, bar = glanced.at(leaf, i, j)
    tolerance = tolerance_of_one(value, float(glanced.scales[leaf.path][j]), task.tolerance)
    return Entry(Place(output.spot(j), leaf.spot(i)), float(jacobian[i, j]), value, bar, tolerance)
