"""jax.numpy: reductions, products, shapes, selections, Fourier transforms."""

from __future__ import annotations

from collections.abc import Iterator

import jax.numpy as jnp

from gradproof.jax.catalogue.entries import (
    APART,
    COMPLEX,
    MATRIX,
    POSITIVE,
    REAL,
    VECTOR,
    Entry,
    apart,
    complex_normal,
    integers,
    named,
    normal,
    uniform,
)


def entries() -> Iterator[Entry]:
    yield from _reductions()
    yield from _products()
    yield from _shapes()
    yield from _selections()
    yield from _fourier()


def _reductions() -> Iterator[Entry]:
    np = "jax.numpy"
    yield from named(np, "sum mean std var nansum nanmean nanstd nanvar cumsum nancumsum trace", MATRIX)
    yield from named(np, "prod nanprod cumprod nancumprod", POSITIVE)
    yield from named(np, "sum mean std var prod cumsum cumprod", COMPLEX, suffix="(complex)")
    yield from named(np, "max min amax amin nanmax nanmin median nanmedian ptp", APART)
    yield Entry("jax.numpy.average", (REAL, uniform(0.5, 1.5, 3)), lambda x, w: jnp.average(x, axis=1, weights=w))
    yield Entry("jax.numpy.cumulative_sum", (REAL,), lambda x: jnp.cumulative_sum(x, axis=1))
    yield Entry("jax.numpy.cumulative_prod", (POSITIVE,), lambda x: jnp.cumulative_prod(x, axis=1))
    for name in ("quantile", "nanquantile", "percentile", "nanpercentile"):
        scale = 100 if "percent" in name else 1
        function = getattr(jnp, name)
        yield Entry(f"{np}.{name}", (apart(7),), lambda x, function=function, scale=scale: function(x, 0.37 * scale))
    yield Entry("jax.numpy.trapezoid", (MATRIX,))
    yield Entry("jax.numpy.cov", (MATRIX,))
    yield Entry("jax.numpy.corrcoef", (MATRIX,))
    yield Entry("jax.numpy.diff", (MATRIX,), lambda x: jnp.diff(x, n=2))
    yield Entry("jax.numpy.ediff1d", (VECTOR,))
    yield Entry("jax.numpy.gradient", (MATRIX,), lambda x: jnp.gradient(x, axis=1))
    yield Entry("jax.numpy.apply_along_axis", (MATRIX,), lambda x: jnp.apply_along_axis(jnp.sum, 1, x * x))
    yield Entry("jax.numpy.apply_over_axes", (MATRIX,), lambda x: jnp.apply_over_axes(jnp.sum, x * x, [0, 1]))
    yield Entry(
        "jax.numpy.histogram", (uniform(0.5, 1.5, 4),), lambda w: jnp.histogram(jnp.arange(4.0), 2, weights=w)[0]
    )
    yield Entry("jax.numpy.bincount", (REAL,), lambda w: jnp.bincount(jnp.arange(6) % 3, w.ravel(), length=3))


def _products() -> Iterator[Entry]:
    np = "jax.numpy"
    yield from named(np, "dot matmul", normal(2, 3), normal(3, 4))
    yield from named(np, "dot matmul vdot inner", complex_normal(3), complex_normal(3), suffix="(complex)")
    yield from named(np, "vdot inner outer vecdot convolve correlate kron", VECTOR, VECTOR)
    yield Entry("jax.numpy.matvec", (MATRIX, normal(4)))
    yield Entry("jax.numpy.vecmat", (normal(3), MATRIX))
    yield Entry("jax.numpy.cross", (normal(2, 3), normal(2, 3)))
    yield Entry("jax.numpy.tensordot", (normal(2, 3, 2), normal(3, 2, 4)))
    yield Entry("jax.numpy.einsum", (normal(2, 3), normal(3, 4)), lambda x, y: jnp.einsum("ij,jk->ki", x, y))


def _shapes() -> Iterator[Entry]:
    np = "jax.numpy"
    yield from named(
        np,
        "ravel transpose matrix_transpose flip fliplr flipud rot90 atleast_1d atleast_2d atleast_3d array asarray "
        "tril triu diag diagonal diagflat unstack",
        MATRIX,
    )
    yield from named(
        np, "concatenate concat stack vstack hstack dstack column_stack block", lambda g: [MATRIX(g), MATRIX(g)]
    )
    yield from named(np, "append", VECTOR, VECTOR)
    yield from named(np, "meshgrid broadcast_arrays", VECTOR, normal(1))
    for name, call in {
        "reshape": lambda x: jnp.reshape(x, (4, 3)),
        "permute_dims": lambda x: jnp.permute_dims(x, (1, 0)),
        "swapaxes": lambda x: jnp.swapaxes(x, 0, 1),
        "moveaxis": lambda x: jnp.moveaxis(x, 0, 1),
        "rollaxis": lambda x: jnp.rollaxis(x, 1),
        "expand_dims": lambda x: jnp.expand_dims(x, 1),
        "squeeze": lambda x: jnp.squeeze(x[:, None]),
        "broadcast_to": lambda x: jnp.broadcast_to(x, (2, 3, 4)),
        "roll": lambda x: jnp.roll(x, 2, axis=1),
        "tile": lambda x: jnp.tile(x, (2, 1)),
        "repeat": lambda x: jnp.repeat(x, 2, axis=0),
        "pad": lambda x: jnp.pad(x, 1, mode="reflect"),
        "resize": lambda x: jnp.resize(x, (3, 5)),
        "split": lambda x: jnp.split(x, 2, axis=1),
        "array_split": lambda x: jnp.array_split(x, 2),
        "hsplit": lambda x: jnp.hsplit(x, 2),
        "vsplit": lambda x: jnp.vsplit(x, 3),
        "dsplit": lambda x: jnp.dsplit(x[..., None], 1),
        "insert": lambda x: jnp.insert(x, 1, 0.5, axis=0),
        "delete": lambda x: jnp.delete(x, 1, axis=0),
        "astype": lambda x: jnp.astype(x, x.dtype),
        "full": lambda x: jnp.full((2, 3), x[0, 0]),
        "full_like": lambda x: jnp.full_like(x, x[0, 0]),
        "linspace": lambda x: jnp.linspace(x[0], x[1], 5),
        "logspace": lambda x: jnp.logspace(x[0, 0], x[1, 0], 4),
        "geomspace": lambda x: jnp.geomspace(x[0, 0] ** 2 + 1, x[1, 0] ** 2 + 2, 4),
        "fill_diagonal": lambda x: jnp.fill_diagonal(x, x[0, 1], inplace=False),
    }.items():
        yield Entry(f"{np}.{name}", (MATRIX,), call)


def _selections() -> Iterator[Entry]:
    np = "jax.numpy"
    yield from named(np, "sort", APART)
    yield Entry(f"{np}.partition", (apart(6),), lambda x: jnp.sort(jnp.partition(x, 2)))
    yield Entry(f"{np}.take", (MATRIX, integers(3, 4)), lambda x, i: jnp.take(x, i, axis=0))
    yield Entry(f"{np}.take_along_axis", (MATRIX, integers(3, 2, 4)), lambda x, i: jnp.take_along_axis(x, i, axis=0))
    yield Entry(f"{np}.choose", (MATRIX, integers(3, 4)), lambda x, i: jnp.choose(i, list(x)))
    yield Entry(f"{np}.compress", (MATRIX,), lambda x: jnp.compress(jnp.array([True, False, True]), x, axis=0, size=2))
    yield Entry(f"{np}.extract", (VECTOR,), lambda x: jnp.extract(jnp.arange(5) > 2, x, size=2))
    yield Entry(
        f"{np}.put_along_axis",
        (MATRIX, normal(1, 4)),
        lambda x, v: jnp.put_along_axis(x, jnp.array([[0, 2, 1, 1]]), v, axis=0, inplace=False),
    )
    yield Entry(f"{np}.put", (VECTOR, normal(2)), lambda x, v: jnp.put(x, jnp.array([1, 3]), v, inplace=False))
    yield Entry(f"{np}.place", (VECTOR, normal(2)), lambda x, v: jnp.place(x, jnp.arange(5) > 2, v, inplace=False))
    for name in ("set", "add", "multiply", "divide", "power", "min", "max"):
        yield Entry(
            f"{np}.ndarray.at({name})",
            (uniform(0.5, 1.0, 5), uniform(1.5, 2.0, 2)),
            lambda x, v, name=name: getattr(x.at[jnp.array([1, 3])], name)(v, unique_indices=True),
        )


def _fourier() -> Iterator[Entry]:
    fft = "jax.numpy.fft"
    yield from named(fft, "fft ifft fft2 ifft2 fftn ifftn fftshift ifftshift", COMPLEX)
    yield from named(fft, "rfft rfft2 rfftn ihfft", MATRIX)
    yield from named(fft, "irfft irfft2 irfftn hfft", complex_normal(3, 4))
