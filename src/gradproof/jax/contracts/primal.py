"""The value that comes along with a derivative is the function's value.

`jax.value_and_grad` of a `custom_vjp` function takes its value from the forward pass that the author wrote, and `jvp`
takes it from the rule: neither need be what the function itself returns.
"""

from __future__ import annotations

import numpy as np

from gradproof.jax.jaxprogram import JaxProgram
from gradproof.norms import rms
from gradproof.precision import of
from gradproof.result import Finding, Place, Verdict

# The same operations in another order; more than this many roundings apart is another value.
ROUNDINGS = 256.0
RULES = {"reverse": "the forward pass of its reverse mode", "forward": "the rule of its forward mode"}


def check_primals(program: JaxProgram, absolute: float) -> tuple[Finding, ...]:
    """Of the modes that have been used. Values may differ by rounding, and by `absolute`."""
    findings = []
    for mode, primal in program.primals.items():
        if np.array_equal(primal, program.value, equal_nan=True):
            continue
        for leaf in program.outputs:
            value, other = program.value[leaf.span], primal[leaf.span]
            apart = np.abs(value - other)
            if np.nanmax(apart, initial=0.0) > absolute + ROUNDINGS * of(leaf.dtype).roundoff * rms(value):
                worst = int(np.nanargmax(apart))
                spot = leaf.spot(leaf.start + worst)
                findings.append(
                    Finding(
                        "primal",
                        Verdict.WRONG,
                        Place(spot, None),
                        f"{spot} is {value[worst]:.6g} when the function is called, but {RULES[mode]} gives "
                        f"{other[worst]:.6g}",
                        "Return the function's own value from the rule as well.",
                    )
                )
    return tuple(findings)
