"""jax.lax: primitives, windows, indexing, control flow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from gradproof.jax.catalogue.entries import (
    ABOVE_ONE,
    APART,
    COMPLEX,
    MATRIX,
    POSITIVE,
    REAL,
    RIGHT_HALF,
    UNIT,
    VECTOR,
    Entry,
    apart,
    between_integers,
    named,
    normal,
    positive_matrix,
    spread_matrix,
    triangular_matrix,
    uniform,
)

ANALYTIC = "exp expm1 sin cos tan sinh cosh tanh neg square logistic"


def entries() -> Iterator[Entry]:
    yield from _elementwise()
    yield from _arrays()
    yield from _windows()
    yield from _indexing()
    yield from _control()
    yield from _linalg()


def _elementwise() -> Iterator[Entry]:
    name = "jax.lax"
    yield from named(name, f"{ANALYTIC} exp2 atan asinh erf erfc bessel_i0e bessel_i1e", REAL)
    yield from named(name, ANALYTIC, COMPLEX, suffix="(complex)")
    yield from named(name, "conj real imag", COMPLEX)
    yield from named(name, "log log1p sqrt rsqrt abs", RIGHT_HALF, suffix="(complex)")
    yield from named(name, "log log1p sqrt rsqrt cbrt lgamma digamma reciprocal", POSITIVE)
    yield from named(name, "asin acos atanh erf_inv", UNIT)
    yield from named(name, "acosh", ABOVE_ONE)
    yield from named(name, "abs sign", APART)
    yield from named(name, "floor ceil round", between_integers(2, 3))
    yield from named(name, "add sub mul complex", REAL, REAL)
    yield from named(name, "div pow atan2", POSITIVE, POSITIVE)
    # The first argument is the order, which only has values at whole numbers.
    yield Entry(f"{name}.polygamma", (POSITIVE,), lambda x: lax.polygamma(jnp.full_like(x, 2.0), x))
    yield from named(name, "max min", APART, apart(2, 3, away=0.05))
    yield from named(name, "rem", uniform(2.2, 2.8, 2, 3), uniform(0.9, 1.05, 2, 3))
    yield from named(name, "igamma igammac", POSITIVE, uniform(0.5, 2.5, 2, 3))
    yield Entry("jax.lax.zeta", (POSITIVE,), lambda q: lax.zeta(jnp.full_like(q, 2.5), q))
    yield Entry("jax.lax.betainc", (uniform(0.1, 0.9, 3),), _incomplete_beta)
    yield Entry("jax.lax.integer_pow", (REAL,), lambda x: lax.integer_pow(x, 3))
    yield Entry(
        "jax.lax.clamp", (APART,), lambda x: lax.clamp(jnp.asarray(-0.33, x.dtype), x, jnp.asarray(0.37, x.dtype))
    )
    yield Entry("jax.lax.select", (REAL, REAL), lambda x, y: lax.select(jnp.arange(6).reshape(2, 3) % 2 == 0, x, y))
    yield Entry("jax.lax.select_n", (REAL, REAL), lambda x, y: lax.select_n(jnp.arange(6).reshape(2, 3) % 2, x, y))
    yield Entry("jax.lax.convert_element_type", (REAL,), lambda x: lax.convert_element_type(x, x.dtype))
    yield Entry("jax.lax.optimization_barrier", (REAL,), lambda x: lax.optimization_barrier(x * x))  # type: ignore[no-untyped-call]


def _incomplete_beta(x: jax.Array) -> jax.Array:
    return lax.betainc(jnp.full_like(x, 1.5), jnp.full_like(x, 2.5), x)


def _arrays() -> Iterator[Entry]:
    name = "jax.lax"
    yield from named(name, "dot batch_matmul", normal(2, 3), normal(3, 2))
    yield from named(name, "cumsum cumlogsumexp", MATRIX)
    yield from named(name, "cumprod", POSITIVE)
    yield from named(name, "cummax cummin", APART)
    yield from named(name, "sort", APART)
    for word, call in {
        "dot_general": lambda x: lax.dot_general(x, x, (((0,), (0,)), ((1,), (1,)))),
        "reshape": lambda x: lax.reshape(x, (4, 3)),
        "transpose": lambda x: lax.transpose(x, (1, 0)),
        "rev": lambda x: lax.rev(x, (1,)),
        "broadcast": lambda x: lax.broadcast(x, (2,)),
        "broadcast_in_dim": lambda x: lax.broadcast_in_dim(x, (2, 3, 4), (1, 2)),
        "squeeze": lambda x: lax.squeeze(x[None], (0,)),
        "expand_dims": lambda x: lax.expand_dims(x, (1,)),
        "concatenate": lambda x: lax.concatenate([x, x * x], 0),
        "pad": lambda x: lax.pad(x, jnp.zeros((), x.dtype), ((1, 0, 1), (0, -1, 0))),
        "reduce": lambda x: lax.reduce(x, jnp.zeros((), x.dtype), lax.add, (0,)),
        "reduce_max": lambda x: lax.reduce_max(x, (1,)),
        "reduce_min": lambda x: lax.reduce_min(x, (1,)),
        "reduce_sum": lambda x: lax.reduce_sum(x, (1,)),
        "reduce_prod": lambda x: lax.reduce_prod(x, (1,)),
        "split": lambda x: lax.split(x, (1, 3), axis=1),
        "tile": lambda x: lax.tile(x, (2, 1)),
        "top_k": lambda x: lax.top_k(x, 2)[0],
        "associative_scan": lambda x: lax.associative_scan(jnp.multiply, x, axis=1),
    }.items():
        yield Entry(f"{name}.{word}", (apart(3, 4, away=0.03),), call)
    yield Entry("jax.lax.sort_key_val", (apart(6), normal(6)), lax.sort_key_val)
    yield Entry("jax.lax.fft", (COMPLEX,), lambda x: lax.fft(x, "FFT", (3,)))
    yield Entry("jax.lax.collapse", (normal(2, 2, 3),), lambda x: lax.collapse(x, 0, 2) ** 2)


def _windows() -> Iterator[Entry]:
    image, kernel = normal(1, 2, 5, 5), normal(3, 2, 2, 2)
    yield Entry("jax.lax.conv", (image, kernel), lambda x, k: lax.conv(x, k, (1, 1), "SAME"))
    yield Entry(
        "jax.lax.conv_general_dilated",
        (image, kernel),
        lambda x, k: lax.conv_general_dilated(x, k, (2, 1), ((0, 0), (0, 0)), lhs_dilation=(1, 2), rhs_dilation=(2, 1)),
    )
    yield Entry(
        "jax.lax.conv_with_general_padding",
        (image, kernel),
        lambda x, k: lax.conv_with_general_padding(x, k, (1, 2), ((1, 0), (0, 1)), None, None),
    )
    yield Entry(
        "jax.lax.conv_transpose",
        (normal(1, 3, 3, 2), normal(2, 2, 2, 3)),
        lambda x, k: lax.conv_transpose(x, k, (2, 2), "SAME"),
    )
    yield Entry(
        "jax.lax.conv_general_dilated_patches",
        (image,),
        lambda x: lax.conv_general_dilated_patches(x, (2, 2), (1, 1), "VALID"),
    )
    yield Entry(
        "jax.lax.reduce_window(add)", (MATRIX,), lambda x: lax.reduce_window(x, 0.0, lax.add, (2, 2), (1, 1), "VALID")
    )
    yield Entry(
        "jax.lax.reduce_window(max)",
        (apart(4, 4),),
        lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (1, 1), "VALID"),
    )


def _indexing() -> Iterator[Entry]:
    for word, call in {
        "slice": lambda x: lax.slice(x, (0, 1), (3, 4), (2, 1)),
        "slice_in_dim": lambda x: lax.slice_in_dim(x, 1, 3),
        "index_in_dim": lambda x: lax.index_in_dim(x, 1),
        "dynamic_slice": lambda x: lax.dynamic_slice(x, (1, 2), (2, 2)),
        "dynamic_slice_in_dim": lambda x: lax.dynamic_slice_in_dim(x, 1, 2),
        "dynamic_index_in_dim": lambda x: lax.dynamic_index_in_dim(x, 2),
        "dynamic_update_slice": lambda x: lax.dynamic_update_slice(x, x[:1, :2] ** 2, (1, 1)),
        "dynamic_update_slice_in_dim": lambda x: lax.dynamic_update_slice_in_dim(x, x[:1] ** 2, 1, 0),
        "dynamic_update_index_in_dim": lambda x: lax.dynamic_update_index_in_dim(x, x[0] ** 2, 2, 0),
        "gather": lambda x: lax.gather(
            x, jnp.array([[2], [0], [2]]), lax.GatherDimensionNumbers((1,), (0,), (0,)), slice_sizes=(1, 3)
        ),
        "index_take": lambda x: lax.index_take(x, jnp.array([[2, 0, 2]]), (0,)),
    }.items():
        yield Entry(f"jax.lax.{word}", (MATRIX,), call)
    for word in ("scatter", "scatter_add", "scatter_sub", "scatter_mul", "scatter_min", "scatter_max"):
        yield Entry(
            f"jax.lax.{word}",
            (uniform(0.5, 1.0, 5), uniform(1.5, 2.0, 2)),
            lambda x, v, word=word: getattr(lax, word)(
                x, jnp.array([[1], [3]]), v, lax.ScatterDimensionNumbers((), (0,), (0,)), unique_indices=True
            ),
        )


def _control() -> Iterator[Entry]:
    yield Entry(
        "jax.lax.scan", (normal(3), normal(4, 3)), lambda c, x: lax.scan(lambda a, b: (jnp.sin(a) * b, a + b), c, x)
    )
    yield Entry("jax.lax.map", (MATRIX,), lambda x: lax.map(lambda row: row * jnp.sum(row), x))
    yield Entry("jax.lax.cond", (VECTOR,), lambda x: lax.cond(x[0] > -9, jnp.sin, jnp.cos, x))
    yield Entry("jax.lax.switch", (VECTOR,), lambda x: lax.switch(1, [jnp.cos, jnp.sin, jnp.tan], x))
    yield Entry("jax.lax.fori_loop", (VECTOR,), lambda x: lax.fori_loop(0, 3, lambda _, v: jnp.sin(v) * x, x))
    yield Entry(
        "jax.lax.while_loop",
        (VECTOR,),
        lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, jnp.sin(c[1]) * x), (0, x))[1],
    )
    yield Entry(
        "jax.lax.custom_linear_solve",
        (spread_matrix(3), normal(3)),
        lambda a, b: lax.custom_linear_solve(
            lambda x: a @ x,
            b,
            lambda _, b: jnp.linalg.solve(lax.stop_gradient(a), b),
            lambda _, b: jnp.linalg.solve(lax.stop_gradient(a).T, b),
        ),
    )
    yield Entry("jax.lax.custom_root", (uniform(1.0, 2.0, 3),), _root)
    yield Entry("jax.checkpoint", (VECTOR,), jax.checkpoint(lambda v: jnp.sin(v) * jnp.sum(v)))


def _root(a: Any) -> Any:
    """The square root of a, by Newton's method."""

    def solve(f: Callable[..., Any], start: Any) -> Any:
        return lax.fori_loop(0, 40, lambda _, x: x - f(x) / (2 * x), start)

    return lax.custom_root(lambda x: x * x - a, jnp.ones_like(a), solve, lambda g, y: y / g(jnp.ones_like(y)))


def _linalg() -> Iterator[Entry]:
    la = lax.linalg
    spd = positive_matrix(3)
    yield Entry("jax.lax.linalg.cholesky", (spd,), lambda x: la.cholesky((x + x.T) / 2))
    yield Entry("jax.lax.linalg.eigh", (spd,), lambda x: la.eigh((x + x.T) / 2))
    yield Entry("jax.lax.linalg.lu", (spread_matrix(3),), lambda x: la.lu(x)[0])
    yield Entry("jax.lax.linalg.qr", (normal(4, 3),), lambda x: la.qr(x, full_matrices=False))
    yield Entry("jax.lax.linalg.svd", (MATRIX,), lambda x: la.svd(x, full_matrices=False))
    yield Entry(
        "jax.lax.linalg.triangular_solve",
        (triangular_matrix(3), normal(3, 2)),
        lambda a, b: la.triangular_solve(a, b, left_side=True, lower=True),
    )
    yield Entry(
        "jax.lax.linalg.tridiagonal_solve",
        (uniform(0.1, 0.5, 4), uniform(2.0, 3.0, 4), uniform(0.1, 0.5, 4), normal(4, 2)),
        lambda low, middle, up, b: la.tridiagonal_solve(low.at[0].set(0), middle, up.at[-1].set(0), b),
    )
