# ruff: noqa: ARG005  all parts of a rule take the same arguments, needed or not
"""The functions of the scenarios, each with a right rule, and with a wrong one where that is what is looked for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradproof.conformance.backend import Backend, Rule


def numbers(*shape: int, dtype: str = "float64", seed: int = 0) -> NDArray[Any]:
    """Drawn from a fixed stream, none of them near zero."""
    generator = np.random.default_rng([seed, *shape])
    drawn = generator.uniform(0.3, 1.7, shape) * generator.choice([-1.0, 1.0], shape)
    if dtype.startswith("complex"):
        return np.asarray(drawn * np.exp(1j * generator.uniform(0.2, 1.2, shape)), dtype)
    return np.asarray(drawn, dtype)


def spoiled(array: Any, b: Backend, place: int, factor: float) -> Any:
    """One element of the flattened array multiplied."""
    where = b.array(np.arange(int(np.prod(array.shape))).reshape(tuple(array.shape)))
    return b.xp.where(where == place, factor * array, array)


SINE = Rule(
    "sine",
    lambda b, x: b.xp.sin(x),
    lambda b, w, x: (w * b.xp.cos(x),),
    lambda b, v, x: v[0] * b.xp.cos(x),
)


def sine_spoiled_at(place: int) -> Rule:
    return replace(SINE, vjp=lambda b, w, x: (spoiled(w * b.xp.cos(x), b, place, 1.05),), jvp=None)


PRODUCT = Rule(
    "product",
    lambda b, x, y: x * b.xp.sin(y),
    lambda b, w, x, y: (w * b.xp.sin(y), w * x * b.xp.cos(y)),
    lambda b, v, x, y: v[0] * b.xp.sin(y) + v[1] * x * b.xp.cos(y),
)
PRODUCT_WRONG = replace(PRODUCT, vjp=lambda b, w, x, y: (w * b.xp.sin(y), w * x * b.xp.sin(y)), jvp=None)
PUSHED_WRONG = replace(PRODUCT, jvp=lambda b, v, x, y: v[0] * b.xp.sin(y) - v[1] * x * b.xp.cos(y))

TWO_OUTPUTS = Rule(
    "two outputs",
    lambda b, x, y: (x * y, b.xp.sin(x)),
    lambda b, w, x, y: (w[0] * y + w[1] * b.xp.cos(x), w[0] * x),
    lambda b, v, x, y: (v[0] * y + v[1] * x, v[0] * b.xp.cos(x)),
)
TWO_OUTPUTS_WRONG = replace(TWO_OUTPUTS, vjp=lambda b, w, x, y: (w[0] * y - w[1] * b.xp.cos(x), w[0] * x), jvp=None)


def _layer(b: Backend, p: Any, x: Any) -> Any:
    return {"y": p["gain"][0] * x + p["bias"], "s": b.xp.sum(b.xp.sin(x))}


def _layer_back(b: Backend, w: Any, p: Any, x: Any, factor: float = 1.0) -> Any:
    own = {"gain": [w["y"] * x], "bias": factor * w["y"]}
    return own, w["y"] * p["gain"][0] + w["s"] * b.xp.cos(x)


LAYER = Rule("layer", _layer, _layer_back)
LAYER_WRONG = replace(LAYER, vjp=lambda b, w, p, x: _layer_back(b, w, p, x, factor=1.5))

# Complex: from complex to complex, to real, from real, and not complex-differentiable.
SQUARE = Rule("square", lambda b, z: z * z, lambda b, w, z: (2 * w * b.xp.conj(z),))
SQUARE_WRONG = replace(SQUARE, vjp=lambda b, w, z: (2 * w * z,))
POWER = Rule("power", lambda b, z: b.xp.real(z * b.xp.conj(z)), lambda b, w, z: (2 * w * z,))
POWER_WRONG = replace(POWER, vjp=lambda b, w, z: (2 * w * b.xp.conj(z),))
TURN = Rule("turn", lambda b, x: b.xp.exp(1j * x), lambda b, w, x: (b.xp.real(b.xp.conj(1j * b.xp.exp(1j * x)) * w),))
TURN_WRONG = replace(TURN, vjp=lambda b, w, x: (b.xp.real(1j * b.xp.exp(1j * x) * w),))
MIRROR = Rule("mirror", lambda b, z: b.xp.conj(z) * z * z, lambda b, w, z: (_mirror_back(b, w, z),))
MIRROR_WRONG = replace(MIRROR, vjp=lambda b, w, z: (_mirror_back(b, w, b.xp.conj(z)),))


def _mirror_back(b: Backend, w: Any, z: Any) -> Any:
    """Of f = conj(z) z^2: conj(df/dz) w + (df/d conj z) conj(w)."""
    conj = b.xp.conj
    return conj(2 * z * conj(z)) * w + z * z * conj(w)


# Second order: the first derivative is right, and what it is made of may be cut off from the point.
CUBE = Rule("cube", lambda b, x: b.xp.sum(x * x * x), lambda b, w, x: (3 * w * x * x,), None, lambda b, p, x: 6 * x * p)
CUBE_WRONG = replace(
    CUBE,
    vjp=lambda b, w, x: (3 * w * b.constant(x) * x,),
    hessp=lambda b, p, x: 3 * x * p,
)

NOT_LINEAR = replace(SINE, vjp=lambda b, w, x: (b.xp.where(w < 0, -w, w) * b.xp.cos(x),), jvp=None)
LOGARITHM = Rule("logarithm", lambda b, x: b.xp.log(x), lambda b, w, x: (w / x,))
