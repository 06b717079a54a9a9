"""Contracts that need no numeric side: the modes against each other, and a Hessian against its transpose."""

from __future__ import annotations

from gradproof.contracts.adjoint import blocks, check_adjoint
from gradproof.contracts.symmetric import check_symmetric
from gradproof.evidence.gathered import Gathered, Task
from gradproof.program import Array
from gradproof.result import Finding


def between_modes(task: Task, analytic: dict[str, Array], gathered: Gathered) -> tuple[Finding, ...]:
    """They are held where the numbers are right."""
    found: tuple[Finding, ...] = ()
    if not gathered.plainly_right:
        return found
    if "adjoint" in task.contracts and len(analytic) == 2 and analytic["reverse"] is not analytic["forward"]:
        pairs = blocks(task.program, analytic["reverse"], analytic["forward"])
        found += check_adjoint(task.program, pairs, gathered.comparisons, task.tolerance)
    if "symmetric" in task.contracts and task.order > 1 and analytic:
        jacobian = next(iter(analytic.values()))
        found += check_symmetric(task.program, jacobian, task.tolerance)
    return found
