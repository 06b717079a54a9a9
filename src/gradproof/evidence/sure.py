"""The comparisons of a Jacobian that a glance left no doubt about: every entry is right, and nothing more to compute.

The numbers themselves are put together when somebody asks for them.
"""

from __future__ import annotations

from dataclasses import dataclass

from gradproof.agreement import CLEAR, entry_tolerance, tolerance_of_one
from gradproof.evidence.faint import faint_lines
from gradproof.evidence.gathered import Gathered, Task, distinct
from gradproof.evidence.glanced import Glanced
from gradproof.evidence.lines import scale_of
from gradproof.evidence.tops import Tops
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
    tops = [Tops.of(one, task.program.outputs) for one in distinct(analytic)]
    # One Jacobian may serve for two modes.
    strongest = {id(one.jacobian): [_strongest(task, one, glanced, *pair) for pair in pairs] for one in tops}
    for mode, jacobian in analytic.items():
        for (output, leaf), top in zip(pairs, strongest[id(jacobian)], strict=True):
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
    if tops:
        findings += faint_lines(task, tops[0], lambda: glanced.block(slice(0, task.steps.size), slice(0, size)))
    return Gathered(tuple(comparisons), findings, Power(worst, relative, 1.0) if relative > 0 else None, analytic)


def _strongest(task: Task, tops: Tops, glanced: Glanced, output: Leaf, leaf: Leaf) -> Entry | None:
    """The largest derivative of a block, both ways; None if the block is empty or all zero."""
    found = tops.largest(leaf, output)
    if found is None:
        return None
    i, j = found
    value, bar = glanced.at(leaf, i, j)
    tolerance = tolerance_of_one(value, float(glanced.scales[leaf.path][j]), task.tolerance)
    return Entry(Place(output.spot(j), leaf.spot(i)), float(tops.jacobian[i, j]), value, bar, tolerance)
