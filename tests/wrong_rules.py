"""Wrong backward passes by the diagnosis that they must get, two or more of each, with the right one beside them.

They are written as text, so that docs/diagnoses.md can show just what was run. `x`, `y` are the inputs, `g`, `h` the
cotangents; a forward rule (`jvp`) has tangents `dx`, `dy`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Rule:
    """One function with a wrong rule, and its right twin."""

    code: str
    shapes: tuple[Shape, ...]
    forward: str
    wrong: str
    right: str
    dtype: torch.dtype = torch.float64
    jvp: tuple[str, str] | None = None  # the wrong and the right one
    options: tuple[tuple[str, object], ...] = ()

    @property
    def blamed(self) -> str:
        """The text that is wrong: the forward rule, where backward is right."""
        return self.jvp[0] if self.jvp and self.wrong == self.right else self.wrong

    @property
    def name(self) -> str:
        return f"{self.code}: {self.blamed}"

    def args(self, seed: int = 0) -> tuple[Tensor, ...]:
        generator = torch.Generator().manual_seed(seed)
        return tuple(torch.randn(shape, generator=generator, dtype=self.dtype) for shape in self.shapes)

    def function(self, which: str) -> Callable[..., Any]:
        """`which` is "wrong" or "right"."""
        names = ", ".join("xyz"[: len(self.shapes)])
        backward = self.wrong if which == "wrong" else self.right
        jvp = None if self.jvp is None else self.jvp[0 if which == "wrong" else 1]
        tangents = ", ".join("d" + name for name in names.split(", "))
        return _operator(
            _compiled(names, self.forward),
            _compiled(f"{names}, g, h=None", backward),
            _compiled(f"{names}, {tangents}", jvp) if jvp else None,
        )


def _compiled(names: str, expression: str) -> Callable[..., Any]:
    compiled: Callable[..., Any] = eval(f"lambda {names}: {expression}", {"torch": torch})  # our own text
    return compiled


def _operator(
    forward: Callable[..., Any], backward: Callable[..., Any], jvp: Callable[..., Any] | None
) -> Callable[..., Any]:
    class Written(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *inputs: Tensor) -> Any:
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)
            return forward(*inputs)

        @staticmethod
        def backward(ctx, *cotangents: Tensor) -> Any:
            return backward(*ctx.saved_tensors, *cotangents)

    if jvp is not None:
        Written.jvp = staticmethod(lambda ctx, *tangents: jvp(*ctx.saved_tensors, *tangents))  # type: ignore[method-assign]

    def written(*inputs: Tensor) -> Any:
        return Written.apply(*inputs)

    return written


GRID, SQUARE, ROW = ((4, 5),), ((4, 4),), ((6,),)
BROADCAST = ((4, 5), (5,))
COS, MUL, SCALE = "g * x.cos()", "(g * y, g * x)", "(g * y, (g * x).sum(0))"
SOFTMAX = "x.softmax(-1) * (g - (g * x.softmax(-1)).sum(-1, keepdim=True))"
COMPLEX = torch.complex128
BATCHED = ((2, 3, 6),)
NORMED = "x / x.norm(dim=-1, keepdim=True)"
NORMED_BACK = f"(g - {NORMED} * (g * {NORMED}).sum(-1, keepdim=True)) / x.norm(dim=-1, keepdim=True)"
# Sums and means over three segments of eight rows.
SUMS = "torch.nn.functional.one_hot(torch.tensor([0, 2, 1, 0, 2, 2, 0, 2])).double().T"
MEANS = f"({SUMS} / {SUMS}.sum(1, keepdim=True))"
MEANS_BACK = f"(({MEANS}.T @ g) * x).sum(1)"
KEPT = "torch.tensor([1.0, 0, 1, 1, 0, 1])"  # as an ignored class or padding leaves them

RULES = (
    Rule("detached", GRID, "x.sin()", "0 * g", COS),
    Rule("detached", ((6,), (6,)), "x * y", "(g * y, None)", MUL),
    Rule("factor", GRID, "x.sin()", "-g * x.cos()", COS),
    Rule("factor", GRID, "x ** 2", "g * x", "2 * g * x"),
    Rule("factor", GRID, "x.mean()", "g * x / x * torch.ones_like(x)", "g * torch.ones_like(x) / 20"),
    Rule("factor", GRID, "x.exp()", "1.01 * g * x.exp()", "g * x.exp()"),
    Rule("factor-of-each", ((4, 5), (4, 1)), "x.sin() * y.exp()",
         "(g * x.cos(), (g * x.sin()).sum(1, True) * y.exp())",
         "(g * x.cos() * y.exp(), (g * x.sin()).sum(1, True) * y.exp())"),
    Rule("factor-of-each", BATCHED, NORMED, f"({NORMED_BACK}) / x.norm(dim=-1, keepdim=True)", NORMED_BACK),
    Rule("factor-of-each", ((8, 3), (8,)), f"{MEANS} @ (x * y[:, None])", f"({SUMS}.T @ g * y[:, None], {MEANS_BACK})",
         f"({MEANS}.T @ g * y[:, None], {MEANS_BACK})"),
    Rule("factor-of-each", ((8, 3), (8,)), f"{MEANS} @ (x * y[:, None])", f"({MEANS}.T @ g, {MEANS_BACK})",
         f"({MEANS}.T @ g * y[:, None], {MEANS_BACK})"),
    Rule("mean-for-sum", BROADCAST, "x * y", "(g * y, (g * x).mean(0))", SCALE),
    Rule("mean-for-sum", BROADCAST, "x + y", "(g, g.mean(0))", "(g, g.sum(0))"),
    Rule("sum-missing", BROADCAST, "x * y", "(g * y, (g * x)[0])", SCALE),
    Rule("sum-missing", BROADCAST, "x + y", "(g, g[-1])", "(g, g.sum(0))"),
    Rule("sum-missing", ((3, 4), (4, 4)), "((x @ y) * x).sum(-1)",
         "(g[:, None] * (x @ (y + y.T)), g[0] * torch.outer(x[0], x[0]))",
         "(g[:, None] * (x @ (y + y.T)), torch.einsum('n,ni,nj->ij', g, x, x))"),
    Rule("wrong-axis", ((5, 5), (5,)), "x * y", "(g * y, (g * x).sum(1))", SCALE),
    Rule("wrong-axis", ((5, 5), (5,)), "x.exp() * y", "(g * y * x.exp(), (g * x.exp()).sum(-1))",
         "(g * y * x.exp(), (g * x.exp()).sum(0))"),
    Rule("wrong-axis", ((5, 5), (5,)), "x + y", "(g, g.sum(1))", "(g, g.sum(0))"),
    Rule("one-of-batch", BROADCAST, "x * y", "(g * y, (g[:1] * x).sum(0))", SCALE),
    Rule("one-of-batch", GRID, "x.exp()", "g * x[:1].exp()", "g * x.exp()"),
    Rule("transposed", SQUARE, "x.sin()", "(g * x.cos()).T", COS),
    Rule("transposed", ((4, 4), (4, 4)), "x @ y", "(g @ y, x.T @ g)", "(g @ y.T, x.T @ g)"),
    Rule("transposed", GRID, "x.cumsum(-1)", "g.cumsum(-1)", "g.flip(-1).cumsum(-1).flip(-1)"),
    Rule("shifted", ROW, "x ** 3", "(3 * g * x ** 2).roll(1)", "3 * g * x ** 2"),
    Rule("shifted", GRID, "torch.sin(x)", "g.roll(1, 0) * x.roll(1, 0).cos()", COS),
    Rule("permuted", ROW, "x ** 3", "(3 * g * x ** 2).flip(0)", "3 * g * x ** 2"),
    Rule("permuted", GRID, "x.sin()", "(g * x.cos())[[1, 0, 2, 3]]", COS),
    Rule("permuted", ((6, 2),), "x.sin()", "(g * x.cos()).flip(1)", COS),
    Rule("swapped-inputs", ((3, 4), (3, 4)), "x * y", "(g * x, g * y)", MUL),
    Rule("swapped-inputs", ((6,), (6,)), "x.sin() + 3 * y.exp()", "(3 * g * y.exp(), g * x.cos())",
         "(g * x.cos(), 3 * g * y.exp())"),
    Rule("conjugate", ((5,), (5,)), "x * y", "(g * y, g * x.conj())", "(g * y.conj(), g * x.conj())", COMPLEX),
    Rule("conjugate", ROW, "x * x", "2 * g * x", "2 * g * x.conj()", COMPLEX),
    Rule("complex-part", ROW, "x * x", "torch.complex((2 * g * x.conj()).real, 0 * g.real)", "2 * g * x.conj()",
         COMPLEX),
    Rule("complex-part", ROW, "x.exp()", "torch.complex((g * x.exp().conj()).real, 2 * (g * x.exp().conj()).imag)",
         "g * x.exp().conj()", COMPLEX),
    Rule("mean-kept", GRID, "x - x.mean(-1, keepdim=True)", "g", "g - g.mean(-1, keepdim=True)"),
    Rule("mean-kept", ROW, "(x - x.mean()) ** 2", "2 * g * (x - x.mean())",
         "2 * g * (x - x.mean()) - (2 * g * (x - x.mean())).mean()"),
    Rule("mean-removed", ROW, "x.cumsum(0)", "g.flip(0).cumsum(0).flip(0) - g.flip(0).cumsum(0).mean()",
         "g.flip(0).cumsum(0).flip(0)"),
    Rule("mean-removed", GRID, "x.sin()", "g * x.cos() - (g * x.cos()).mean(-1, keepdim=True)", COS),
    Rule("offset", ROW, "x.sin().cumsum(0)", "x.cos() * g.flip(0).cumsum(0).flip(0) + 0.1 * g.sum()",
         "x.cos() * g.flip(0).cumsum(0).flip(0)"),
    Rule("offset", ROW, "x.sin()", "g * x.cos() + 0.5 * g.sum()", COS),
    Rule("extra-term", GRID, "x.sin()", "g * (x.cos() + 0.1 * x)", COS),
    Rule("extra-term", ROW, "x.exp()", "g * x.exp() - 0.01 * g * x", "g * x.exp()"),
    Rule("rank-one", GRID, "x.softmax(-1)", "g * x.softmax(-1)", SOFTMAX),
    Rule("rank-one", GRID, "x.softmax(-1)", "x.softmax(-1) * (g - g.mean(-1, keepdim=True))", SOFTMAX),
    Rule("rank-one", ((9,),), "x / x.norm() + 1", "g / x.norm()", "g / x.norm() - x * (g * x).sum() / x.norm() ** 3"),
    Rule("dropped", ROW, "x[1:] * x[:-1]", "torch.cat([g * x[1:], g[-1:] * x[-2:-1]])",
         "torch.nn.functional.pad(g * x[1:], (0, 1)) + torch.nn.functional.pad(g * x[:-1], (1, 0))"),
    Rule("dropped", ROW, "x[[0, 1, 2, 0, 3, 1, 4, 0, 5]].exp()",
         "torch.stack([(g * x[[0, 1, 2, 0, 3, 1, 4, 0, 5]].exp())[k] for k in (7, 5, 2, 4, 6, 8)])",
         "torch.zeros_like(x).index_add(0, torch.tensor([0, 1, 2, 0, 3, 1, 4, 0, 5]), "
         "g * x[[0, 1, 2, 0, 3, 1, 4, 0, 5]].exp())"),
    Rule("dropped", ((6, 5),), "x.exp().sum()", f"g * x.exp() * {KEPT}[:, None]", "g * x.exp()"),
    Rule("leaked", ((6,), (6, 6)), "y.tril(-1) @ x", "(g @ y.tril(), (g[:, None] * x).tril(-1))",
         "(g @ y.tril(-1), (g[:, None] * x).tril(-1))"),
    Rule("leaked", ((6,), (6, 6)), "y.tril().triu(-1) @ x", "(g @ y.tril(), (g[:, None] * x).tril().triu(-1))",
         "(g @ y.tril().triu(-1), (g[:, None] * x).tril().triu(-1))"),
    Rule("leaked", ((6, 5),), f"(x.exp().sum(-1) * {KEPT}).sum()", "g * x.exp()", f"g * x.exp() * {KEPT}[:, None]"),
    Rule("precision", GRID, "x.sin()", "(g * x.cos()).half().double()", COS),
    Rule("precision", GRID, "x.exp()", "(g * x.exp()).float().double()", "g * x.exp()", options=(("tolerance", 1e-9),)),
    Rule("entry", GRID, "x.sin()", "g * x.cos() * torch.where(torch.arange(20).view(4, 5) == 7, 1.05, 1.0)", COS),
    Rule("entry", GRID, "x.softmax(-1)", f"({SOFTMAX}) * (torch.arange(20).view(4, 5) != 13)", SOFTMAX),
    Rule("slice", GRID, "x.sin()", "g * x.cos() * (torch.arange(5) != 4)", COS),
    Rule("slice", GRID, "x.softmax(-1)", f"({SOFTMAX}) * torch.tensor([[1.0], [1.1], [1.0], [1.0]])", SOFTMAX),
    Rule("block", ((12,),), "x.sin()", "torch.cat([g[:6] * x[:6].cos(), -g[6:] * x[6:].cos()])", COS),
    Rule("block", ((5, 6),), "x.exp()",
         "g * x.exp() * ~((torch.arange(5) < 2)[:, None] & (torch.arange(6) < 3))", "g * x.exp()"),
    Rule("region", GRID, "x.sin()", "g * x.cos() * torch.where(x < 0, 1.1, 1.0)", COS),
    Rule("region", GRID, "x ** 3", "3 * g * x ** 2 * (x.abs() < 1)", "3 * g * x ** 2"),
    Rule("output-entry", GRID, "x.cumsum(-1)",
         "(g * torch.where(torch.arange(20).view(4, 5) == 14, 1.5, 1.0)).flip(-1).cumsum(-1).flip(-1)",
         "g.flip(-1).cumsum(-1).flip(-1)"),
    Rule("output-entry", ((5,), (5, 5)), "y @ x", "((g * (torch.arange(5) != 2)) @ y, g[:, None] * x)",
         "(g @ y, g[:, None] * x)"),
    Rule("output-slice", ((6,), (6, 4, 6)), "y @ x",
         "(torch.einsum('ij,ijk->k', g * torch.tensor([[1.0]] * 5 + [[0.0]]), y), g[..., None] * x)",
         "(torch.einsum('ij,ijk->k', g, y), g[..., None] * x)"),
    Rule("output-slice", ((4, 5, 3), (3,)), "x @ y",
         "(g[..., None] * y, torch.einsum('ij,ijk->k', g * (1.0 + (torch.arange(5) == 1)), x))",
         "(g[..., None] * y, torch.einsum('ij,ijk->k', g, x))"),
    Rule("output-block", ((6,), (20, 6)), "y @ x", "((g * (torch.arange(20) < 12)) @ y, g[:, None] * x)",
         "(g @ y, g[:, None] * x)"),
    Rule("output-block", ((20, 3), (3,)), "x @ y",
         "(g[:, None] * y, (g * torch.where(torch.arange(20) < 8, 2.0, 1.0)) @ x)", "(g[:, None] * y, g @ x)"),
    Rule("stale", ((10,),), "x.sin()", "g * (x + 0.01).cos()", COS),
    Rule("stale", ((3, 4), (3, 4)), "x.sin() * y", "(g * x.cos() * y, g * (1.5 * x).sin())",
         "(g * x.cos() * y, g * x.sin())"),
    Rule("stale", ((10,),), "x.sin()", "g * x.sin().cos()", COS),
    Rule("reverse-only", GRID, "x.exp() + x", "g * x.exp() * x.cos()", "g * x.exp() + g",
         jvp=("dx * x.exp() + dx", "dx * x.exp() + dx")),
    Rule("reverse-only", ROW, "x.sigmoid()", "g * x.sigmoid() ** 2", "g * x.sigmoid() * (1 - x.sigmoid())",
         jvp=("dx * x.sigmoid() * (1 - x.sigmoid())", "dx * x.sigmoid() * (1 - x.sigmoid())")),
    Rule("forward-only", GRID, "x.exp() + x", "g * x.exp() + g", "g * x.exp() + g",
         jvp=("dx * x.exp() * x.cos()", "dx * x.exp() + dx")),
    Rule("forward-only", ROW, "x.sigmoid()", "g * x.sigmoid() * (1 - x.sigmoid())",
         "g * x.sigmoid() * (1 - x.sigmoid())",
         jvp=("dx * x.sigmoid() ** 2", "dx * x.sigmoid() * (1 - x.sigmoid())")),
    Rule("cotangent-ignored", GRID, "x.sin()", "x.cos()", COS),
    Rule("cotangent-ignored", ROW, "x.logsumexp(0)", "x.softmax(0)", "g * x.softmax(0)"),
    Rule("cotangent-offset", GRID, "x.sin()", "g * x.cos() + 0.1", COS),
    Rule("cotangent-offset", ROW, "x ** 2", "2 * g * x + x", "2 * g * x"),
    Rule("cotangent-abs", GRID, "x.sin()", "g.abs() * x.cos()", COS),
    Rule("cotangent-abs", ROW, "x.logsumexp(0)", "g.abs() * x.softmax(0)", "g * x.softmax(0)"),
    Rule("cotangent-one-sided", GRID, "x.sin()", "g.clamp(min=0) * x.cos()", COS),
    Rule("cotangent-one-sided", ROW, "x ** 3", "3 * torch.where(g < 0, 0.1 * g, g) * x ** 2", "3 * g * x ** 2"),
    Rule("cotangent-sign", GRID, "x.sin()", "g.sign() * x.cos()", COS),
    Rule("cotangent-sign", ROW, "x ** 3", "3 * g / (g.norm() + (g.norm() == 0)) * x ** 2", "3 * g * x ** 2"),
    Rule("cotangent-power", GRID, "x.sin()", "g * g.abs() * x.cos()", COS),
    Rule("cotangent-power", ROW, "x.exp()", "g ** 3 * x.exp()", "g * x.exp()"),
    Rule("cotangent-clipped", GRID, "x.sin()", "g.clamp(-1, 1) * x.cos()", COS),
    Rule("cotangent-clipped", ROW, "x.exp()", "g * (1 / g.norm().clamp(min=1e-30)).clamp(max=1) * x.exp()",
         "g * x.exp()"),
    Rule("cotangent-threshold", GRID, "x.sin()", "torch.nn.functional.hardshrink(g, 0.1) * x.cos()", COS),
    Rule("cotangent-threshold", ROW, "x.exp()", "torch.where(g.abs() < 1, 0 * g, g) * x.exp()", "g * x.exp()"),
    Rule("cotangent-inexact", GRID, "x.sin()", "g * x.cos() * (1 + 0.001 * (37 * g + 5 * x).sin())", COS),
    Rule("cotangent-inexact", ROW, "x.exp()", "g * x.exp() * (1 + 0.0003 * (50 * g * x).cos())", "g * x.exp()"),
    Rule("cotangent-joint", ROW, "(x.sin(), x.exp())",
         "(g * x.cos() + h * x.exp()) * (1.5 if g.any() and h.any() else 1)", "g * x.cos() + h * x.exp()"),
    Rule("cotangent-joint", ROW, "(x.sin(), x.exp())",
         "g * x.cos() + (h * x.exp() if not g.any() else 0)", "g * x.cos() + h * x.exp()"),
)  # fmt: skip

# The same mistakes in forward rules, whose backward is right.
SUM, TERMS = "x.sin() + y.exp()", "(g * x.cos(), g * y.exp())"
RULES += tuple(
    Rule(f"tangent-{kind}", shapes, forward, backward, backward, jvp=(wrong, right))
    for kind, shapes, forward, backward, wrong, right in (
        ("ignored", GRID, "x.sin()", COS, "x.cos()", "dx * x.cos()"),
        ("ignored", ROW, "x.exp()", "g * x.exp()", "torch.ones_like(dx) * x.exp()", "dx * x.exp()"),
        ("offset", GRID, "x.sin()", COS, "dx * x.cos() + 0.1", "dx * x.cos()"),
        ("offset", ROW, "x ** 2", "2 * g * x", "2 * dx * x + x", "2 * dx * x"),
        ("abs", GRID, "x.sin()", COS, "dx.abs() * x.cos()", "dx * x.cos()"),
        ("abs", ROW, "x.logsumexp(0)", "g * x.softmax(0)", "(dx * x.softmax(0)).sum().abs()",
         "(dx * x.softmax(0)).sum()"),
        ("one-sided", GRID, "x.sin()", COS, "dx.clamp(min=0) * x.cos()", "dx * x.cos()"),
        ("one-sided", ROW, "x ** 3", "3 * g * x ** 2", "3 * torch.where(dx < 0, 0.1 * dx, dx) * x ** 2",
         "3 * dx * x ** 2"),
        ("sign", GRID, "x.sin()", COS, "dx.sign() * x.cos()", "dx * x.cos()"),
        ("sign", ROW, "x ** 3", "3 * g * x ** 2", "3 * dx / (dx.norm() + (dx.norm() == 0)) * x ** 2",
         "3 * dx * x ** 2"),
        ("power", GRID, "x.sin()", COS, "dx * dx.abs() * x.cos()", "dx * x.cos()"),
        ("power", ROW, "x.exp()", "g * x.exp()", "dx ** 3 * x.exp()", "dx * x.exp()"),
        ("clipped", GRID, "x.sin()", COS, "dx.clamp(-1, 1) * x.cos()", "dx * x.cos()"),
        ("clipped", ROW, "x.exp()", "g * x.exp()", "dx / dx.norm().clamp(min=100) * 100 * x.exp()", "dx * x.exp()"),
        ("threshold", GRID, "x.sin()", COS, "torch.nn.functional.hardshrink(dx, 0.1) * x.cos()", "dx * x.cos()"),
        ("threshold", ROW, "x.exp()", "g * x.exp()", "torch.where(dx.abs() < 1, 0 * dx, dx) * x.exp()",
         "dx * x.exp()"),
        ("inexact", GRID, "x.sin()", COS, "dx * x.cos() * (1 + 0.01 * (37 * dx + 5 * x).sin())", "dx * x.cos()"),
        ("inexact", ROW, "x.exp()", "g * x.exp()", "dx * x.exp() * (1 + 0.003 * (50 * dx * x).cos())", "dx * x.exp()"),
        ("joint", ROW * 2, SUM, TERMS, "(dx * x.cos() + dy * y.exp()) * (1.5 if dx.any() and dy.any() else 1)",
         "dx * x.cos() + dy * y.exp()"),
        ("joint", ROW * 2, SUM, TERMS, "dx * x.cos() + (dy * y.exp() if not dx.any() else 0)",
         "dx * x.cos() + dy * y.exp()"),
    )
)  # fmt: skip
