"""The JAX adapter (a function of arrays, seen as a `Program`)."""
