"""Wrong `custom_vjp` and `custom_jvp` rules by the diagnosis that they must get, with the right one beside them.

Written as text: `x`, `y` are the inputs, `g`, `h` the cotangents, `u`, `v` the tangents. JAX's reverse mode is the
transpose, so complex rules have no conjugate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Rule:
    """One function with a wrong rule, and its right twin. `mode` is that of the rule."""

    code: str
    shapes: tuple[Shape, ...]
    value: str
    wrong: str
    right: str
    mode: str = "reverse"
    dtype: str = "float64"

    @property
    def name(self) -> str:
        return f"{self.mode} {self.code}: {self.wrong}"

    def args(self) -> tuple[jax.Array, ...]:
        generator = np.random.default_rng(3)
        drawn = [generator.standard_normal(shape) for shape in self.shapes]
        if self.dtype == "complex128":
            drawn = [x + 1j * generator.standard_normal(x.shape) for x in drawn]
        return tuple(jnp.asarray(x, self.dtype) for x in drawn)

    def function(self, which: str) -> Callable[..., Any]:
        """`which` is "wrong" or "right"."""
        names = "xy"[: len(self.shapes)]
        value = _compiled(", ".join(names), self.value)
        text = self.wrong if which == "wrong" else self.right
        if self.mode == "reverse":
            return _reverse(value, _compiled(f"{', '.join(names)}, g, h=None", text))
        return _forward(value, _compiled(", ".join([*names, *"uv"[: len(names)]]), text))


def _compiled(names: str, expression: str) -> Callable[..., Any]:
    compiled: Callable[..., Any] = eval(f"lambda {names}: {expression}", {"jnp": jnp, "nn": jax.nn})  # our own text
    return compiled


def _reverse(value: Callable[..., Any], rule: Callable[..., Any]) -> Callable[..., Any]:
    @jax.custom_vjp
    def written(*inputs: Any) -> Any:
        return value(*inputs)

    def backward(inputs: Any, cotangent: Any) -> Any:
        gradients = rule(*inputs, *(cotangent if isinstance(cotangent, tuple) else (cotangent,)))
        return gradients if isinstance(gradients, tuple) else (gradients,)

    written.defvjp(lambda *inputs: (value(*inputs), inputs), backward)
    return written


def _forward(value: Callable[..., Any], rule: Callable[..., Any]) -> Callable[..., Any]:
    @jax.custom_jvp
    def written(*inputs: Any) -> Any:
        return value(*inputs)

    written.defjvp(lambda inputs, tangents: (value(*inputs), rule(*inputs, *tangents)))
    return written


GRID, SQUARE, ROW = ((4, 5),), ((4, 4),), ((6,),)
BROADCAST = ((4, 5), (5,))
COS, SCALE = "g * jnp.cos(x)", "(g * y, (g * x).sum(0))"
SOFTMAX = "nn.softmax(x) * (g - (g * nn.softmax(x)).sum(-1, keepdims=True))"
COMPLEX = "complex128"

RULES = (
    Rule("detached", GRID, "jnp.sin(x)", "0 * g", COS),
    Rule("detached", ((6,), (6,)), "x * y", "(g * y, None)", "(g * y, g * x)"),
    Rule("factor", GRID, "jnp.sin(x)", "-g * jnp.cos(x)", COS),
    Rule("factor", GRID, "x ** 2", "g * x", "2 * g * x"),
    Rule("factor", GRID, "jnp.exp(x)", "1.01 * g * jnp.exp(x)", "g * jnp.exp(x)"),
    Rule("mean-for-sum", BROADCAST, "x * y", "(g * y, (g * x).mean(0))", SCALE),
    Rule("sum-missing", BROADCAST, "x * y", "(g * y, (g * x)[0])", SCALE),
    Rule("wrong-axis", ((5, 5), (5,)), "x * y", "(g * y, (g * x).sum(1))", SCALE),
    Rule("one-of-batch", BROADCAST, "x * y", "(g * y, (g[:1] * x).sum(0))", SCALE),
    Rule("transposed", SQUARE, "jnp.sin(x)", "(g * jnp.cos(x)).T", COS),
    Rule("transposed", ((4, 4), (4, 4)), "x @ y", "(g @ y, x.T @ g)", "(g @ y.T, x.T @ g)"),
    Rule("transposed", GRID, "jnp.cumsum(x, -1)", "jnp.cumsum(g, -1)", "jnp.cumsum(g[:, ::-1], -1)[:, ::-1]"),
    Rule("shifted", ROW, "x ** 3", "jnp.roll(3 * g * x ** 2, 1)", "3 * g * x ** 2"),
    Rule("permuted", ROW, "x ** 3", "(3 * g * x ** 2)[::-1]", "3 * g * x ** 2"),
    Rule("swapped-inputs", ((3, 4), (3, 4)), "x * y", "(g * x, g * y)", "(g * y, g * x)"),
    Rule("conjugate", ROW, "x * x", "2 * g * jnp.conj(x)", "2 * g * x", dtype=COMPLEX),
    Rule("complex-part", ROW, "x * x", "(2 * g * x).real + 0j", "2 * g * x", dtype=COMPLEX),
    Rule("mean-kept", GRID, "x - x.mean(-1, keepdims=True)", "g", "g - g.mean(-1, keepdims=True)"),
    Rule("mean-removed", GRID, "jnp.sin(x)", "g * jnp.cos(x) - (g * jnp.cos(x)).mean(-1, keepdims=True)", COS),
    Rule("offset", ROW, "jnp.sin(x)", "g * jnp.cos(x) + 0.5 * g.sum()", COS),
    Rule("extra-term", GRID, "jnp.sin(x)", "g * (jnp.cos(x) + 0.1 * x)", COS),
    Rule("precision", GRID, "jnp.sin(x)", "(g * jnp.cos(x)).astype('float16').astype('float64')", COS),
    Rule("entry", GRID, "jnp.sin(x)", "g * jnp.cos(x) * jnp.where(jnp.arange(20).reshape(4, 5) == 7, 1.05, 1.0)", COS),
    Rule("entry", GRID, "nn.softmax(x)", f"({SOFTMAX}) * (jnp.arange(20).reshape(4, 5) != 13)", SOFTMAX),
    Rule("slice", GRID, "jnp.sin(x)", "g * jnp.cos(x) * (jnp.arange(5) != 4)", COS),
    Rule("block", ((12,),), "jnp.sin(x)", "g * jnp.cos(x) * jnp.where(jnp.arange(12) < 6, 1.0, -1.0)", COS),
    Rule("region", GRID, "jnp.sin(x)", "g * jnp.cos(x) * jnp.where(x < 0, 1.1, 1.0)", COS),
    Rule("output-entry", ((5,), (5, 5)), "y @ x", "((g * (jnp.arange(5) != 2)) @ y, g[:, None] * x)",
         "(g @ y, g[:, None] * x)"),
    Rule("stale", ((10,),), "jnp.sin(x)", "g * jnp.cos(x + 0.01)", COS),
    Rule("cotangent-ignored", GRID, "jnp.sin(x)", "jnp.cos(x)", COS),
    Rule("cotangent-offset", GRID, "jnp.sin(x)", "g * jnp.cos(x) + 0.1", COS),
    Rule("cotangent-abs", GRID, "jnp.sin(x)", "jnp.abs(g) * jnp.cos(x)", COS),
    Rule("cotangent-one-sided", GRID, "jnp.sin(x)", "jnp.maximum(g, 0) * jnp.cos(x)", COS),
    Rule("cotangent-sign", GRID, "jnp.sin(x)", "jnp.sign(g) * jnp.cos(x)", COS),
    Rule("cotangent-power", GRID, "jnp.sin(x)", "g * jnp.abs(g) * jnp.cos(x)", COS),
    Rule("cotangent-clipped", GRID, "jnp.sin(x)", "jnp.clip(g, -1, 1) * jnp.cos(x)", COS),
    Rule("cotangent-threshold", GRID, "jnp.sin(x)", "jnp.where(jnp.abs(g) < 0.1, 0, g) * jnp.cos(x)", COS),
    Rule("cotangent-joint", ROW, "(jnp.sin(x), jnp.exp(x))",
         "(g * jnp.cos(x) + h * jnp.exp(x)) * jnp.where(g.any() & h.any(), 1.5, 1.0)",
         "g * jnp.cos(x) + h * jnp.exp(x)"),
    Rule("detached", GRID, "jnp.sin(x)", "0 * u", "u * jnp.cos(x)", mode="forward"),
    Rule("factor", GRID, "jnp.sin(x)", "-u * jnp.cos(x)", "u * jnp.cos(x)", mode="forward"),
    Rule("factor", GRID, "jnp.exp(x)", "1.01 * u * jnp.exp(x)", "u * jnp.exp(x)", mode="forward"),
    Rule("transposed", SQUARE, "jnp.sin(x)", "(u * jnp.cos(x)).T", "u * jnp.cos(x)", mode="forward"),
    Rule("shifted", ROW, "x ** 3", "jnp.roll(3 * u * x ** 2, 1)", "3 * u * x ** 2", mode="forward"),
    Rule("permuted", ROW, "x ** 3", "(3 * u * x ** 2)[::-1]", "3 * u * x ** 2", mode="forward"),
    Rule("swapped-inputs", ((3, 4), (3, 4)), "x * y", "u * x + v * y", "u * y + v * x", mode="forward"),
    Rule("conjugate", ROW, "x * x", "2 * u * jnp.conj(x)", "2 * u * x", mode="forward", dtype=COMPLEX),
    Rule("extra-term", GRID, "jnp.sin(x)", "u * (jnp.cos(x) + 0.1 * x)", "u * jnp.cos(x)", mode="forward"),
    Rule("entry", GRID, "jnp.sin(x)", "u * jnp.cos(x) * jnp.where(jnp.arange(20).reshape(4, 5) == 7, 1.05, 1.0)",
         "u * jnp.cos(x)", mode="forward"),
    Rule("slice", GRID, "jnp.sin(x)", "u * jnp.cos(x) * (jnp.arange(5) != 4)", "u * jnp.cos(x)", mode="forward"),
    Rule("region", GRID, "jnp.sin(x)", "u * jnp.cos(x) * jnp.where(x < 0, 1.1, 1.0)", "u * jnp.cos(x)", mode="forward"),
    Rule("stale", ((10,),), "jnp.sin(x)", "u * jnp.cos(x + 0.01)", "u * jnp.cos(x)", mode="forward"),
    Rule("tangent-ignored", GRID, "jnp.sin(x)", "jnp.cos(x)", "u * jnp.cos(x)", mode="forward"),
    Rule("tangent-offset", GRID, "jnp.sin(x)", "u * jnp.cos(x) + 0.1", "u * jnp.cos(x)", mode="forward"),
    Rule("tangent-abs", GRID, "jnp.sin(x)", "jnp.abs(u) * jnp.cos(x)", "u * jnp.cos(x)", mode="forward"),
    Rule("tangent-one-sided", GRID, "jnp.sin(x)", "jnp.maximum(u, 0) * jnp.cos(x)", "u * jnp.cos(x)", mode="forward"),
    Rule("tangent-sign", GRID, "jnp.sin(x)", "jnp.sign(u) * jnp.cos(x)", "u * jnp.cos(x)", mode="forward"),
    Rule("tangent-power", GRID, "jnp.sin(x)", "u * jnp.abs(u) * jnp.cos(x)", "u * jnp.cos(x)", mode="forward"),
    Rule("tangent-clipped", GRID, "jnp.sin(x)", "jnp.clip(u, -1, 1) * jnp.cos(x)", "u * jnp.cos(x)", mode="forward"),
    Rule("tangent-threshold", GRID, "jnp.sin(x)", "jnp.where(jnp.abs(u) < 0.1, 0, u) * jnp.cos(x)", "u * jnp.cos(x)",
         mode="forward"),
    Rule("tangent-joint", ROW * 2, "jnp.sin(x) + jnp.exp(y)",
         "(u * jnp.cos(x) + v * jnp.exp(y)) * jnp.where(u.any() & v.any(), 1.5, 1.0)",
         "u * jnp.cos(x) + v * jnp.exp(y)", mode="forward"),
)  # fmt: skip
