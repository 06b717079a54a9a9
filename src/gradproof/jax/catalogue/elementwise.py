"""jax.numpy, element by element."""

from __future__ import annotations

from collections.abc import Iterator

import jax.numpy as jnp

from gradproof.jax.catalogue.entries import (
    ABOVE_ONE,
    APART,
    COMPLEX,
    POSITIVE,
    REAL,
    RIGHT_HALF,
    UNIT,
    Entry,
    between_integers,
    complex_normal,
    fixed,
    integers,
    named,
    normal,
    uniform,
)

ANALYTIC = "sin cos tan sinh cosh tanh exp expm1 square negative positive conj real imag"


def entries() -> Iterator[Entry]:
    np = "jax.numpy"
    yield from named(
        np,
        f"{ANALYTIC} arctan atan arcsinh asinh exp2 sinc deg2rad rad2deg degrees radians conjugate i0 nan_to_num copy",
        REAL,
    )
    yield from named(np, ANALYTIC, COMPLEX, suffix="(complex)")
    yield from named(np, "abs absolute fabs cbrt sign reciprocal", APART)
    yield from named(np, "floor ceil trunc rint round around", between_integers(2, 3))
    yield from named(np, "log log2 log10 log1p sqrt", POSITIVE)
    yield from named(
        np, "log log10 log1p sqrt reciprocal angle abs exp2 arctan arcsinh", RIGHT_HALF, suffix="(complex)"
    )
    yield from named(np, "arcsin asin arccos acos arctanh atanh", UNIT)
    yield from named(np, "arccosh acosh", ABOVE_ONE)
    yield from named(np, "add subtract multiply logaddexp logaddexp2", REAL, normal(3))
    yield from named(np, "add subtract multiply", COMPLEX, complex_normal(3), suffix="(complex)")
    yield from named(np, "divide true_divide power pow float_power", POSITIVE, uniform(0.5, 2.0, 3))
    yield from named(np, "divide power", RIGHT_HALF, complex_normal(3), suffix="(complex)")
    yield from named(np, "maximum minimum fmax fmin", APART, fixed(0.02))
    yield from named(np, "arctan2 atan2 hypot", POSITIVE, uniform(0.5, 2.0, 3))
    yield from named(np, "mod remainder fmod floor_divide divmod", uniform(2.2, 2.8, 2, 3), uniform(0.9, 1.05, 3))
    yield from named(np, "copysign", POSITIVE, uniform(0.5, 2.0, 3))
    yield Entry("jax.numpy.ldexp", (REAL, integers(4, 2, 3)), wrt="args[0]")
    yield Entry("jax.numpy.clip", (APART,), lambda x: jnp.clip(x, -0.33, 0.37))
    yield Entry("jax.numpy.heaviside", (APART, normal(2, 3)), wrt="args[0]")
    yield Entry("jax.numpy.modf", (between_integers(2, 3),))
    yield Entry("jax.numpy.frexp", (uniform(0.55, 0.95, 2, 3),), lambda x: jnp.frexp(x)[0])
    yield Entry("jax.numpy.where", (REAL, REAL), lambda x, y: jnp.where(jnp.arange(3) > 0, x, y))
    yield Entry(
        "jax.numpy.select",
        (REAL, REAL),
        lambda x, y: jnp.select([jnp.arange(3) == 0, jnp.arange(3) == 1], [x, y], 2 * x),
    )
    yield Entry(
        "jax.numpy.piecewise",
        (APART,),
        lambda x: jnp.piecewise(x, [x < 0.02, x >= 0.02], [lambda v: -v, lambda v: v**2]),
    )
    yield Entry(
        "jax.numpy.interp", (uniform(0.1, 0.3, 4), normal(5)), lambda x, y: jnp.interp(x, jnp.arange(5.0) / 2, y)
    )
    yield Entry("jax.numpy.unwrap", (uniform(-1.0, 1.0, 6),))
    yield Entry("jax.numpy.polyval", (normal(4), REAL))
    yield from named(np, "polyadd polysub polymul", normal(4), normal(3))
    yield from named(np, "polyder polyint", normal(5))
    yield Entry("jax.numpy.polydiv", (uniform(1.0, 2.0, 5), uniform(1.0, 2.0, 3)))
    yield Entry("jax.numpy.polyfit", (normal(6),), lambda y: jnp.polyfit(jnp.arange(6.0, dtype=y.dtype), y, 2))
    yield Entry("jax.numpy.vander", (uniform(0.5, 1.5, 4),), lambda x: jnp.vander(x, 3))
    yield Entry("jax.numpy.vectorize", (REAL,), jnp.vectorize(lambda v: v * jnp.sin(v)))
