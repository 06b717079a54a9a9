"""jax.scipy.special, and the densities of jax.scipy.stats."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import jax.numpy as jnp
from jax.scipy import special, stats

from gradproof.jax.catalogue.entries import (
    MATRIX,
    POSITIVE,
    PROBABILITY,
    REAL,
    UNIT,
    VECTOR,
    Draw,
    Entry,
    named,
    normal,
    positive_matrix,
    uniform,
)


def entries() -> Iterator[Entry]:
    sp = "jax.scipy.special"
    yield from named(sp, "erf erfc expit i0 i0e i1 i1e log_ndtr ndtr", REAL)
    yield from named(sp, "digamma gamma gammaln entr exp1 expi loggamma factorial sici spence fresnel", POSITIVE)
    yield from named(sp, "gammasgn", POSITIVE)
    yield from named(sp, "erfinv", UNIT)
    yield from named(sp, "logit ndtri", PROBABILITY)
    yield from named(sp, "beta betaln xlogy xlog1py rel_entr kl_div poch", POSITIVE, uniform(0.5, 2.5, 3))
    yield from named(sp, "logsumexp softmax log_softmax", MATRIX)
    yield from named(sp, "gammainc gammaincc", POSITIVE, uniform(0.5, 2.5, 3))
    yield Entry(f"{sp}.betainc", (PROBABILITY,), lambda x: special.betainc(1.5, 2.5, x))
    yield Entry(
        f"{sp}.betainc(a, b)", (uniform(1.0, 2.0, 3), uniform(1.0, 2.0, 3)), lambda a, b: special.betainc(a, b, 0.3)
    )
    yield Entry(f"{sp}.multigammaln", (uniform(3.0, 5.0, 4),), lambda a: special.multigammaln(a, 3))
    yield Entry(f"{sp}.polygamma", (POSITIVE,), lambda x: special.polygamma(2, x))
    yield Entry(f"{sp}.zeta", (POSITIVE,), lambda q: special.zeta(2.5, q))
    yield Entry(f"{sp}.expn", (POSITIVE,), lambda x: special.expn(3, x))
    yield Entry(f"{sp}.hyp1f1", (uniform(0.5, 1.5, 4),), lambda x: special.hyp1f1(1.2, 2.3, x))
    yield Entry(f"{sp}.hyp2f1", (uniform(0.1, 0.5, 4),), lambda x: special.hyp2f1(1.2, 0.7, 2.3, x))
    # In float32 its values are NaN below 4 (docs/found-in-jax.md).
    yield Entry(f"{sp}.bessel_jn", (uniform(5.0, 9.0, 2, 3),), lambda x: special.bessel_jn(x, v=2))
    yield from _densities()


LOCATED = "norm cauchy laplace logistic"
# Their densities raise when they are differentiated by the scale (docs/found-in-jax.md).
GUMBEL = "gumbel_l gumbel_r"


def _densities() -> Iterator[Entry]:
    st = "jax.scipy.stats"
    for family in LOCATED.split():
        for kind in ("logpdf", "pdf", "cdf", "logcdf"):
            if hasattr(getattr(stats, family), kind):
                yield Entry(f"{st}.{family}.{kind}", (REAL, normal(3), uniform(0.5, 1.5, 3)))
    for family in GUMBEL.split():
        for kind in ("logpdf", "pdf", "cdf", "logcdf"):
            if hasattr(getattr(stats, family, None), kind):
                run = functools.partial(getattr(getattr(stats, family), kind), scale=1.3)
                yield Entry(f"{st}.{family}.{kind}", (REAL, normal(3)), run)
    shaped: dict[str, tuple[Draw, ...]] = {
        "beta": (PROBABILITY, uniform(1.2, 2.5, 3), uniform(1.2, 2.5, 3)),
        "gamma": (POSITIVE, uniform(1.2, 2.5, 3)),
        "t": (REAL, uniform(1.2, 4.0, 3)),
        "chi2": (POSITIVE, uniform(1.2, 4.0, 3)),
        "expon": (POSITIVE,),
        "pareto": (uniform(1.5, 3.0, 2, 3), uniform(1.2, 2.5, 3)),
        "vonmises": (REAL, uniform(0.5, 1.5, 3)),
        "gennorm": (uniform(0.2, 1.5, 2, 3), uniform(1.2, 2.5, 3)),
        "truncnorm": (UNIT, uniform(-2.0, -1.0, 3), uniform(1.0, 2.0, 3)),
    }
    for family, draws in shaped.items():
        yield Entry(f"{st}.{family}.logpdf", draws)
    yield Entry(f"{st}.poisson.logpmf", (POSITIVE,), lambda mu: stats.poisson.logpmf(jnp.array([0, 2, 5]), mu))
    yield Entry(f"{st}.bernoulli.logpmf", (PROBABILITY,), lambda p: stats.bernoulli.logpmf(jnp.array([0, 1, 1]), p))
    yield Entry(f"{st}.geom.logpmf", (PROBABILITY,), lambda p: stats.geom.logpmf(jnp.array([1, 2, 3]), p))
    yield Entry(f"{st}.nbinom.logpmf", (PROBABILITY,), lambda p: stats.nbinom.logpmf(jnp.array([0, 2, 3]), 4.0, p))
    yield Entry(
        f"{st}.multivariate_normal.logpdf",
        (normal(3), normal(3), positive_matrix(3)),
        lambda x, mean, cov: stats.multivariate_normal.logpdf(x, mean, (cov + cov.T) / 2),
    )
    yield Entry(f"{st}.gaussian_kde", (normal(6), VECTOR), lambda data, x: stats.gaussian_kde(data)(x))
