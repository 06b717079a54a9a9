"""Properties that a function and its derivatives have in JAX, checked without any step: one file each."""
