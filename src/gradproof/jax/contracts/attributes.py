"""A gradient has the dtype of its input.

JAX (up to 0.10) looks at the shape of what a `custom_vjp` rule returns, not at its dtype, and hands it on as it is: to
the caller, or to the operation before this one, most of which raise a TypeError then.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from gradproof.jax.jaxprogram import JaxProgram
from gradproof.program import Spot
from gradproof.result import Finding, Place, Verdict

HINT = "Return a gradient of the input's dtype: JAX casts none, and most operations before this one would raise."


def check_attributes(program: JaxProgram) -> tuple[Finding, ...]:
    """Of the last pull. One that is only finer has lost nothing: a remark."""
    inputs = program.call.inputs
    return tuple(
        Finding(
            "attributes",
            Verdict.RIGHT if _is_finer(dtype, wanted) else Verdict.WRONG,
            Place(None, Spot(leaf.path)),
            f"the gradient of {leaf.path} is {dtype.name}, expected {leaf.dtype}",
            HINT,
        )
        for leaf, wanted, dtype in zip(inputs.leaves, inputs.dtypes, program.call.returned, strict=False)
        if dtype != wanted
    )


def _is_finer(dtype: np.dtype[Any], wanted: np.dtype[Any]) -> bool:
    """And of the same kind: real, or complex."""
    if not jnp.issubdtype(dtype, jnp.inexact):
        return False
    alike = jnp.issubdtype(dtype, jnp.complexfloating) == jnp.issubdtype(wanted, jnp.complexfloating)
    bits, least = (jnp.finfo(one).nmant for one in (dtype, wanted))  # type: ignore[no-untyped-call]
    return bool(alike and bits >= least)
