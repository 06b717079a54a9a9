"""jax.nn."""

from __future__ import annotations

from collections.abc import Iterator

import jax

from gradproof.jax.catalogue.entries import APART, MATRIX, POSITIVE, REAL, Entry, named, normal, uniform

SMOOTH = """sigmoid softplus silu swish log_sigmoid gelu mish squareplus identity tanh soft_sign"""


def entries() -> Iterator[Entry]:
    nn = "jax.nn"
    yield from named(nn, SMOOTH, REAL)
    yield from named(
        nn,
        "relu relu6 leaky_relu elu celu selu hard_sigmoid hard_silu hard_swish hard_tanh sparse_plus sparse_sigmoid",
        APART,
    )
    yield from named(nn, "softmax log_softmax logsumexp standardize logmeanexp", MATRIX)
    yield from named(nn, "glu", normal(3, 4))
    yield from named(nn, "log1mexp", POSITIVE)
    yield Entry("jax.nn.gelu(approximate=False)", (REAL,), lambda x: jax.nn.gelu(x, approximate=False))
    yield Entry(
        "jax.nn.softmax(where)",
        (MATRIX,),
        lambda x: jax.nn.softmax(x, where=(jax.numpy.arange(4) > 0), axis=-1),
    )
    yield Entry(
        "jax.nn.dot_product_attention",
        (normal(1, 3, 2, 4), normal(1, 5, 2, 4), normal(1, 5, 2, 4)),
        # Its softmax is one of float32 in every precision, so differences of its values tell no more than this.
        tolerance=2e-2,
    )
    yield Entry("jax.nn.logsumexp(b)", (MATRIX, uniform(0.5, 1.5, 4)), lambda x, b: jax.nn.logsumexp(x, axis=1, b=b))
