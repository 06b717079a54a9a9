"""What the core says in torch's words, in those of NumPy."""

from __future__ import annotations

WORDS = (
    ("a detach, a no_grad block, or a missing return value", "an array of zeros that is returned before it is filled"),
    ("use eval mode for dropout", "pass a generator that is seeded inside of the function"),
    ("saved tensors or the incoming gradient being overwritten", "a buffer that it adds to or state that it keeps"),
    ("a saved tensor that is changed in place, shifted", "a value that is changed in place, shifted"),
    ("torch.where", "np.where"),
    (".real, .imag or torch.complex", ".real, .imag or a conjugate"),
    ("relu, clamp(min=0)", "np.maximum(_, 0)"),
    ("hardshrink", "a threshold"),
)
