"""Second derivatives of which one half is missing, or counted by halves."""

from __future__ import annotations

import numpy as np

from gradproof.diagnose.exhibit import Exhibit, extent, fit
from gradproof.result import Diagnosis

MIRROR = "Fill both triangles: H + H.T - diag(diag(H))."
ONCE = (
    "Look for the mean of two triangles of which one is empty, for a 1/2 that belongs to the diagonal alone, or for a "
    "pair that is added twice."
)


def halved(exhibit: Exhibit) -> Diagnosis | None:
    """Right on the diagonal, and beside it only on one side; or by a factor of two."""
    leaf = exhibit.input
    if exhibit.output.path != f"grad({leaf.path})" or leaf.is_complex or not exhibit.complete:
        return None
    measured = exhibit.measured
    # Which one is not said: a rule that multiplies by a Hessian may be asked for its rows or its columns.
    for triangle in (np.tril(measured), np.triu(measured)):
        found = fit(exhibit, triangle)
        if found is not None:
            sentence = f"one triangle of the Hessian of {leaf.path} is empty ({extent(exhibit, found)})"
            return Diagnosis("hessian-triangle", sentence, found.explained, MIRROR)
    diagonal = np.diag(np.diag(measured))
    for factor, name in ((0.5, "1/2 of"), (2.0, "2 times")):
        found = fit(exhibit, diagonal + factor * (measured - diagonal))
        if found is not None:
            sentence = (
                f"off its diagonal the Hessian of {leaf.path} is {name} what it should be ({extent(exhibit, found)})"
            )
            return Diagnosis("hessian-off-diagonal", sentence, found.explained, ONCE)
    return None
