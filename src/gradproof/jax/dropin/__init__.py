"""The drop-in for JAX's gradient checker: the same verbs and arguments, on gradproof's engine."""

from gradproof.errors import NonDifferentiableWarning, UndecidedWarning
from gradproof.jax.dropin.given import check_jvp, check_vjp
from gradproof.jax.dropin.grads import check_grads
from gradproof.jax.dropin.judge import CheckFailed

__all__ = [
    "CheckFailed",
    "NonDifferentiableWarning",
    "UndecidedWarning",
    "check_grads",
    "check_jvp",
    "check_vjp",
]
