"""Where outputs bend like a kink along a displacement: second differences at two steps.

The second difference f(x+d) + f(x-d) - 2 f(x) of a smooth function falls with the square of the step, that of a kink
with the step itself, and that of a jump not at all. From two steps, what is left after curvature has been taken off.
"""

from __future__ import annotations

from dataclasses import dataclass

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


# The second difference of a kink falls to CLOSER of itself. One that stays above this is a jump, or noise.
ABRUPT = 0.25


@dataclass(frozen=True, slots=True)
class Bends:
    """Masks (k, M): which outputs bend along each displacement, or leave the domain on a side; which of them do so in
    the way of jumps and noise."""

    bent: Mask
    abrupt: Mask


@np.errstate(invalid="ignore", over="ignore")
def bends(program: Program, displacements: Array, outputs: Indices | None = None) -> Bends:
    """(k, N) -> for all outputs, or some of them."""
    value = program.value if outputs is None else program.value[outputs]
    roundoff = _roundoffs(program) if outputs is None else _roundoffs(program)[outputs]
    result = np.empty((len(displacements), value.size), dtype=bool)
    abrupt = np.empty_like(result)
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
        abrupt[first : first + batch] = np.abs(near) > ABRUPT * np.abs(far)
    # Of an output that is not finite at the point itself nothing can be said along any direction.
    result &= np.isfinite(value)
    return Bends(result, result & abrupt)


def _roundoffs(program: Program) -> Array:
    result = np.empty(program.value.size)
    for leaf in program.outputs:
        result[leaf.span] = precision.of(leaf.dtype).roundoff
    return result
