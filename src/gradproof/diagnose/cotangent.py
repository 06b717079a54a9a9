"""In what way a backward fails to be linear in the cotangent: ignored, clipped, made positive, ... A few more pulls."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gradproof.norms import rms
from gradproof.precision import BRAIN, DOUBLE, HALF, SINGLE, coarsest
from gradproof.program import Array, Leaf, Program
from gradproof.result import Diagnosis

Pull = Callable[[Array], Array]

SMALL, LARGE = 2.0**-20, 2.0**20
# A format is recognised by so many different numbers, and grants a few roundings.
DISTINCT = 4
ROUNDINGS = 4.0
HINTS = {
    "cotangent-ignored": "Multiply by the incoming gradient in backward; it is not always one.",
    "cotangent-offset": "Look for a constant that backward adds to the result.",
    "cotangent-abs": "Look for abs, a square or a norm of the incoming gradient.",
    "cotangent-one-sided": "Look for relu, clamp(min=0) or a comparison applied to the incoming gradient.",
    "cotangent-sign": "Look for sign, or a division by the norm, of the incoming gradient.",
    "cotangent-power": "Look for the incoming gradient being multiplied by itself.",
    "cotangent-clipped": "Clip gradients in the training loop, not in backward: the chain rule needs them as they are.",
    "precision": "Look for a cast to a narrower format in backward; or pass a tolerance= that grants its rounding.",
    "cotangent-joint": "Look for a condition in backward on the incoming gradients of several outputs.",
}


def cotangent(program: Program, leaf: Leaf, generator: np.random.Generator) -> Diagnosis | None:
    """What backward does to the cotangent on its way to the gradient of this leaf."""
    close = 1e-6 if coarsest(program.inputs + program.outputs) is DOUBLE else 2e-2
    size = program.value.size
    first, second = (_mixed(generator, size) for _ in range(2))

    def pull(vector: Array) -> Array:
        return np.array(program.pull(vector[None])[0, leaf.span])

    with np.errstate(all="ignore"):
        drawn = (first, second)
        found = _kind(pull, drawn, close) or _joint(program, pull, drawn, close) or _rounded(program, pull, drawn)
    return Diagnosis(found[0], f"on its way to {leaf.path}, {found[1]}", 1.0, HINTS[found[0]]) if found else None


def _mixed(generator: np.random.Generator, size: int) -> Array:
    """Both signs, sizes around one: some below, some above."""
    return np.where(generator.random(size) < 0.5, -1.0, 1.0) * np.exp2(generator.uniform(-3.0, 3.0, size))


def _same(one: Array, other: Array, close: float) -> bool:
    """NaN is never the same."""
    return bool(np.max(np.abs(one - other), initial=0.0) <= close * max(rms(one), rms(other)))


def _kind(pull: Pull, drawn: tuple[Array, Array], close: float) -> tuple[str, str] | None:
    w = drawn[0]
    nothing, plain, minus, twice = pull(0 * w), pull(w), pull(-w), pull(2 * w)
    if nothing.any():
        return _constant(pull, drawn, (nothing, plain), close)
    odd, even = _same(minus, -plain, close), _same(minus, plain, close)
    degree = next((d for d in (0, 1, 2, 3) if _same(twice, 2.0**d * plain, close)), None)
    if degree == 1:
        return _one_sided(pull, drawn, (plain, minus), close) if not odd else None
    if degree == 0 and odd and not even and _same(pull(SMALL * w), plain, close):
        text = "only the sign or the direction of the cotangent counts, not its size: 2 g gives what g gives"
        return "cotangent-sign", text
    if degree is not None and degree >= 2:
        return "cotangent-power", f"the cotangent enters to the power {degree}: 2 g gives {2**degree} times what g does"
    return _clipped(pull, w, close) if odd else None


def _clipped(pull: Pull, w: Array, close: float) -> tuple[str, str] | None:
    tiny, tinier = pull(SMALL * w) / SMALL, pull(SMALL * SMALL * w) / (SMALL * SMALL)
    if _same(tiny, tinier, close) and _same(pull(LARGE * w), pull(2 * LARGE * w), close):
        return "cotangent-clipped", "the cotangent is clipped: small ones pass as they are, large ones do not grow"
    return None


def _constant(
    pull: Pull, drawn: tuple[Array, Array], pulled: tuple[Array, Array], close: float
) -> tuple[str, str] | None:
    (w, v), (nothing, plain) = drawn, pulled
    other = pull(v)
    if _same(plain, nothing, close) and _same(other, nothing, close):
        return "cotangent-ignored", "the cotangent is ignored: every one, zero too, gives the same gradient"
    if _same(pull(w + v) - nothing, (plain - nothing) + (other - nothing), close):
        return (
            "cotangent-offset",
            "a constant is added that does not depend on the cotangent: zero gives a gradient too",
        )
    return None


def _one_sided(
    pull: Pull, drawn: tuple[Array, Array], pulled: tuple[Array, Array], close: float
) -> tuple[str, str] | None:
    """f(w) - f(-w) is linear when positive and negative numbers are each treated linearly, in different ways."""
    (w, v), (plain, minus) = drawn, pulled
    if _same(minus, plain, close):
        return "cotangent-abs", "only the size of the cotangent counts, not its sign: g and -g give the same"
    if not _same(pull(w + v) - pull(-w - v), plain - minus + pull(v) - pull(-v), 10 * close):
        return None
    for sign, name in ((-1.0, "negative"), (1.0, "positive")):
        if not pull(sign * np.abs(w)).any():
            return "cotangent-one-sided", f"{name} cotangents are dropped"
    return "cotangent-one-sided", "positive and negative cotangents are treated differently"


def _joint(program: Program, pull: Pull, drawn: tuple[Array, Array], close: float) -> tuple[str, str] | None:
    """Linear in the cotangent of each output alone, but not in all together."""
    if len(program.outputs) < 2:
        return None
    w, v = drawn
    total = np.zeros_like(pull(w))
    for leaf in program.outputs:
        one, other = np.zeros_like(w), np.zeros_like(v)
        one[leaf.span], other[leaf.span] = w[leaf.span], v[leaf.span]
        alone = pull(one)
        if not _same(alone + pull(other), pull(one + other), close):
            return None
        total += alone
    if _same(total, pull(w), close):
        return None
    return "cotangent-joint", "the cotangents of several outputs together give something else than their sum"


def _rounded(program: Program, pull: Pull, drawn: tuple[Array, Array]) -> tuple[str, str] | None:
    """Linear but for the rounding of a narrower format, of which every number is one."""
    w, v = drawn
    one, other, both = pull(w), pull(v), pull(w + v)
    if np.unique(np.abs(one)).size < DISTINCT:
        return None
    for narrow in (BRAIN, HALF, SINGLE):
        fits = all(np.array_equal(narrow.round(numbers), numbers) for numbers in (one, other, both))
        if fits and narrow.roundoff > coarsest(program.inputs + program.outputs).roundoff:
            allowed = ROUNDINGS * narrow.roundoff * np.maximum(np.abs(one), np.abs(other))
            if (np.abs(one + other - both) <= allowed + narrow.roundoff * rms(both)).all():
                return "precision", f"every number is rounded to {narrow.name}, and linear but for that"
    return None
