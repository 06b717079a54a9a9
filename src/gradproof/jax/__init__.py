"""The JAX adapter (a function of arrays, seen as a `Program`), and the drop-in for JAX's checker."""

from __future__ import annotations

from gradproof.jax.adapter import program_of
from gradproof.jax.dropin import (
    CheckFailed,
    NonDifferentiableWarning,
    UndecidedWarning,
    check_grads,
    check_jvp,
    check_vjp,
)
from gradproof.jax.jaxprogram import JaxProgram

__all__ = [
    "CheckFailed",
    "JaxProgram",
    "NonDifferentiableWarning",
    "UndecidedWarning",
    "check_grads",
    "check_jvp",
    "check_vjp",
    "program_of",
]
