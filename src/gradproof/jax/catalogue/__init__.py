"""Differentiable functions of JAX, each with sample arguments in its domain.

`JaxCatalogue("float32").cases()` yields a `gradproof.cases.Case` for each, under names such as `jax.numpy.sin`.
"""

from gradproof.jax.catalogue.catalogue import JaxCatalogue
from gradproof.jax.catalogue.functions import Functions

__all__ = ["Functions", "JaxCatalogue"]
