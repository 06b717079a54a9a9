"""What the core says in torch's words, in those of JAX."""

from __future__ import annotations

WORDS = (
    (
        "a detach, a no_grad block, or a missing return value",
        "a stop_gradient, a value that passes through NumPy or an integer, or a bwd that returns None or zeros",
    ),
    ("use eval mode for dropout", "pass the same PRNG key to every call"),
    ("saved tensors or the incoming gradient being overwritten", "state that a callback or the rule itself keeps"),
    ("a saved tensor that is changed in place, shifted", "a residual that is shifted"),
    ("torch.where", "jnp.where"),
    (".real, .imag or torch.complex", "jnp.real, jnp.imag or lax.complex"),
    ("relu, clamp(min=0)", "jax.nn.relu, jnp.maximum(_, 0)"),
    ("hardshrink", "a threshold"),
)
