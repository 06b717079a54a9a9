"""jax.numpy.linalg and jax.scipy.linalg."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax.numpy as jnp
from jax.scipy import linalg as sl

from gradproof.jax.catalogue.entries import (
    MATRIX,
    VECTOR,
    Entry,
    complex_normal,
    named,
    normal,
    positive_matrix,
    spread_matrix,
    triangular_matrix,
)

SQUARE, SPD, LOWER = spread_matrix(3), positive_matrix(3), triangular_matrix(3)


def _symmetric(function: Callable[..., Any]) -> Callable[..., Any]:
    """Of a symmetric matrix: the function itself says what an asymmetric change means."""
    return lambda x: function((x + x.T) / 2)


def entries() -> Iterator[Entry]:
    np = "jax.numpy.linalg"
    yield from named(np, "norm matrix_norm vector_norm pinv svdvals matrix_transpose diagonal trace", MATRIX)
    yield from named(np, "det slogdet inv cond", SQUARE)
    yield from named(np, "inv det", complex_normal(3, 3), suffix="(complex)")
    yield from named(np, "cross", normal(2, 3), normal(2, 3))
    yield from named(np, "outer vecdot", VECTOR, VECTOR)
    yield from named(np, "matmul", normal(2, 3), normal(3, 2))
    yield from named(np, "tensordot", normal(2, 3, 2), normal(3, 2, 2))
    yield from named(np, "solve", SQUARE, normal(3, 2))
    yield Entry(f"{np}.lstsq", (normal(4, 3), normal(4)), lambda a, b: jnp.linalg.lstsq(a, b)[0])
    yield Entry(f"{np}.cholesky", (SPD,), _symmetric(jnp.linalg.cholesky))
    yield Entry(f"{np}.eigh", (SPD,), _symmetric(lambda x: tuple(jnp.linalg.eigh(x))))
    yield Entry(f"{np}.eigvalsh", (SPD,), _symmetric(jnp.linalg.eigvalsh))
    yield Entry(f"{np}.eigvals", (SPD,), lambda x: jnp.sort(jnp.linalg.eigvals(x).real))
    yield Entry(f"{np}.qr", (normal(4, 3),), lambda x: tuple(jnp.linalg.qr(x)))
    yield Entry(f"{np}.svd", (MATRIX,), lambda x: tuple(jnp.linalg.svd(x, full_matrices=False)))
    yield Entry(f"{np}.matrix_power", (SQUARE,), lambda x: jnp.linalg.matrix_power(x, 3))
    yield Entry(f"{np}.multi_dot", (normal(2, 3), normal(3, 4), normal(4, 2)), lambda *x: jnp.linalg.multi_dot(x))
    yield Entry(f"{np}.tensorinv", (spread_matrix(4),), lambda x: jnp.linalg.tensorinv(x.reshape(2, 2, 4), ind=2))
    yield Entry(
        f"{np}.tensorsolve", (spread_matrix(4), normal(4)), lambda x, b: jnp.linalg.tensorsolve(x.reshape(4, 2, 2), b)
    )
    yield from _scipy()


def _scipy() -> Iterator[Entry]:
    np = "jax.scipy.linalg"
    yield from named(np, "det inv expm", SQUARE)
    yield from named(np, "solve", SQUARE, normal(3, 2))
    yield from named(np, "block_diag", normal(2, 2), normal(1, 3))
    yield from named(np, "toeplitz", VECTOR, VECTOR)
    yield Entry(f"{np}.cholesky", (SPD,), _symmetric(sl.cholesky))
    yield Entry(f"{np}.cho_factor", (SPD,), _symmetric(lambda x: jnp.triu(sl.cho_factor(x)[0])))
    yield Entry(f"{np}.cho_solve", (LOWER, normal(3)), lambda x, b: sl.cho_solve((x, True), b))
    yield Entry(f"{np}.eigh", (SPD,), _symmetric(sl.eigh))
    yield Entry(f"{np}.lu", (SQUARE,), lambda x: sl.lu(x)[1:])
    yield Entry(f"{np}.lu_factor", (SQUARE,), lambda x: sl.lu_factor(x)[0])
    yield Entry(f"{np}.lu_solve", (SQUARE, normal(3)), lambda x, b: sl.lu_solve(sl.lu_factor(x), b))
    yield Entry(f"{np}.qr", (normal(4, 3),), lambda x: sl.qr(x, mode="economic"))
    yield Entry(f"{np}.solve_triangular", (LOWER, normal(3)), lambda x, b: sl.solve_triangular(x, b, lower=True))
    yield Entry(f"{np}.svd", (MATRIX,), lambda x: sl.svd(x, full_matrices=False))
    yield Entry(f"{np}.polar", (SQUARE,), sl.polar)
    yield Entry(f"{np}.expm_frechet", (SQUARE, normal(3, 3)), sl.expm_frechet)
