"""Where outputs bend like a kink along a displacement: second differences at two steps.

The second difference f(x+d) + f(x-d) - 2 f(x) of a smooth function falls with the square of the step, that of a kink
with the step itself, and that of a jump not at all. From two steps, what is left after curvature has been taken off.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gradproof import precision
from gradproof.program import Array, Program
from gradproof.reference.field import CHUNK
from gradproof.reference.stencil import FLOOR_FACTOR

Mask = NDArray[np.bool_]
Indices = NDArray[np.intp]

# The second step, relative to the first.
CLOSER = 1.0 / 16
# A kink shows by at least this share of the slope; one that is smaller changes no verdict.
VISIBLE = 1e-6
# Both second differences carry the roundings of four values each, the closer one 1/CLOSER^2 times as many.
ROUNDINGS = 4 * FLOOR_FACTOR * (CLOSER**-2 + 1) / (1 / CLOSER - 1)


@np.errstate(invalid="ignore", over="ignore")
def bent(program: Program, displacements: Array, outputs: Indices | None = None) -> Mask:
    """(k, N) -> for each displacement, which of the outputs bend, or leave the domain on a side: (k, M)."""
    value = program.value if outputs is None else program.value[outputs]
    roundoff = _roundoffs(program) if outputs is None else _roundoffs(program)[outputs]
    result = np.empty((len(displacements), value.size), dtype=bool)
    batch = max(1, CHUNK // (4 * (program.point.size + program.value.size)))
    for first in range(0, len(displacements), batch):
        some = displacements[first : first + batch]
        points = np.concatenate([program.point + t * some for t in (1.0, -1.0, CLOSER, -CLOSER)])
        sides = program.values(points).reshape(4, len(some), -1)
        up, down, up_near, down_near = sides if outputs is None else sides[:, :, outputs]
        far, near = up + down - 2.0 * value, up_near + down_near - 2.0 * value
        kink = np.abs(near * CLOSER**-2 - far) * (1.0 / (1.0 / CLOSER - 1.0))
        size = np.maximum(np.abs(value), np.maximum(np.abs(up), np.abs(down)))
        room = VISIBLE * 0.5 * np.abs(up - down) + ROUNDINGS * roundoff * size
        result[first : first + batch] = ~(kink <= room)
    # Of an output that is not finite at the point itself nothing can be said along any direction.
    return np.asarray(result & np.isfinite(value))


def _roundoffs(program: Program) -> Array:
    result = np.empty(program.value.size)
    for leaf in program.outputs:
        result[leaf.span] = precision.of(leaf.dtype).roundoff
    return result
