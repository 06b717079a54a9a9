"""Wrong gradients, planted: small mistakes put into the right backward pass of common functions, at any size.

A `Function` is a forward pass with its right backward pass; a `Mistake` turns the right gradient of one input into a
wrong one and says which entries it spoils. A `Case` is one mistake in one function: `case.build(n, seed)` makes the
wrong program at about n elements, `twin(function, n, seed)` the right one. All are custom autograd Functions with a
reverse mode only, so that nothing here can be batched over inputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from gradproof.result import Result, Verdict

Tensors = tuple[Tensor, ...]


# ---- the functions: (forward, right backward)


@dataclass(frozen=True)
class Function:
    """`inputs(draw, n)` makes about n elements each; `backward(inputs, cotangents)` is the right gradient."""

    name: str
    inputs: Callable[[Callable[..., Tensor], int], Tensors]
    forward: Callable[..., Tensors]
    backward: Callable[[Tensors, Tensors], Tensors]
    sizes: tuple[int, ...] = (16, 576, 25_600)

    def point(self, n: int, seed: int) -> Tensors:
        """Normal numbers, with a few entries set so that every mistake has something to spoil."""
        generator = torch.Generator().manual_seed(1000 + seed)

        def draw(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
            tensor = torch.randn(shape, generator=generator, dtype=dtype)
            flat = tensor.view(-1)
            for position, value in zip((1, 2, 3), (-1.3, 1.6, 6.0), strict=True):
                flat[position] = value  # one below 0, one above 1, one far larger than all others
            for at in PICKS:
                flat[_pick(at, tensor)] = 0.7  # a derivative that is not small by accident
            return tensor

        return self.inputs(draw, n)


def _side(n: int) -> int:
    return math.isqrt(n)


def _layernorm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensors:
    return (_normalised(x)[0] * weight + bias,)


def _normalised(x: Tensor) -> tuple[Tensor, Tensor]:
    centred = x - x.mean(-1, keepdim=True)
    deviation = (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt()
    return centred / deviation, deviation


def _layernorm_back(inputs: Tensors, cotangents: Tensors) -> Tensors:
    (x, weight, _), (w,) = inputs, cotangents
    unit, deviation = _normalised(x)
    g = w * weight
    g = g - g.mean(-1, keepdim=True) - unit * (g * unit).mean(-1, keepdim=True)
    return g / deviation, (w * unit).sum(0), w.sum(0)


def _softmax_back(inputs: Tensors, cotangents: Tensors) -> Tensors:
    p, w = inputs[0].softmax(-1), cotangents[0]
    return (p * (w - (p * w).sum(-1, keepdim=True)),)


def _stencil(x: Tensor, kernel: Tensor) -> Tensors:
    """A periodic convolution: y[i] = sum_k kernel[k] * x[i - k]."""
    return (sum((kernel[k] * x.roll(k) for k in range(len(kernel))), torch.zeros_like(x)),)


def _stencil_back(inputs: Tensors, cotangents: Tensors) -> Tensors:
    (x, kernel), (w,) = inputs, cotangents
    reach = range(len(kernel))
    slopes = torch.stack([(w * x.roll(k)).sum() for k in reach])
    return sum((kernel[k] * w.roll(-k) for k in reach), torch.zeros_like(x)), slopes


def _gate_back(inputs: Tensors, cotangents: Tensors) -> Tensors:
    (a, b), (w,) = inputs, cotangents
    s = b.sigmoid()
    return w * s, w * a * s * (1 - s)


def _pair_back(inputs: Tensors, cotangents: Tensors) -> Tensors:
    (x, y), (v, w) = inputs, cotangents
    return v * y + w * x.cos(), v * x + 2 * w * y


def _square(draw: Callable[..., Tensor], n: int) -> Tensor:
    return draw(_side(n), _side(n))


ANY_SIZE = (16, 576, 25_600, 1_000_000)

FUNCTIONS = {
    function.name: function
    for function in (
        Function(
            "sin",
            lambda draw, n: (_square(draw, n),),
            lambda x: (x.sin(),),
            lambda xs, ws: (ws[0] * xs[0].cos(),),
            ANY_SIZE,
        ),
        Function(
            "cube",
            lambda draw, n: (draw(n),),
            lambda x: (x**3,),
            lambda xs, ws: (3 * ws[0] * xs[0] ** 2,),
            ANY_SIZE,
        ),
        Function(
            "exp",
            lambda draw, n: (draw(n),),
            lambda x: ((x / 2).exp(),),
            lambda xs, ws: (ws[0] * (xs[0] / 2).exp() / 2,),
        ),
        Function(
            "gate",
            lambda draw, n: (_square(draw, n), _square(draw, n)),
            lambda a, b: (a * b.sigmoid(),),
            _gate_back,
        ),
        Function("softmax", lambda draw, n: (_square(draw, n),), lambda x: (x.softmax(-1),), _softmax_back, ANY_SIZE),
        Function(
            "matmul",
            lambda draw, n: (_square(draw, n), _square(draw, n)),
            lambda a, b: (a @ b,),
            lambda xs, ws: (ws[0] @ xs[1].T, xs[0].T @ ws[0]),
        ),
        Function(
            "linear",
            lambda draw, n: (_square(draw, n), _square(draw, n), draw(_side(n))),
            lambda x, weight, bias: (x @ weight.T + bias,),
            lambda xs, ws: (ws[0] @ xs[1], ws[0].T @ xs[0], ws[0].sum(0)),
        ),
        Function(
            "layernorm",
            lambda draw, n: (_square(draw, n), draw(_side(n)), draw(_side(n))),
            _layernorm,
            _layernorm_back,
        ),
        Function(
            "logsumexp",
            lambda draw, n: (draw(n),),
            lambda x: (x.logsumexp(0),),
            lambda xs, ws: (ws[0] * xs[0].softmax(0),),
            ANY_SIZE,
        ),
        Function(
            "cumsum",
            lambda draw, n: (_square(draw, n),),
            lambda x: (x.cumsum(-1),),
            lambda xs, ws: (ws[0].flip(-1).cumsum(-1).flip(-1),),
            ANY_SIZE,
        ),
        Function("stencil", lambda draw, n: (draw(n), draw(5)), _stencil, _stencil_back, ANY_SIZE),
        Function(
            "scale",
            lambda draw, n: (_square(draw, n), draw(_side(n))),
            lambda x, row: (x * row,),
            lambda xs, ws: (ws[0] * xs[1], (ws[0] * xs[0]).sum(0)),
        ),
        Function(
            "pair",
            lambda draw, n: (draw(n), draw(n)),
            lambda x, y: (x * y, x.sin() + y.square()),
            _pair_back,
        ),
        Function(
            "product",
            lambda draw, n: (draw(n, dtype=torch.complex128), draw(n, dtype=torch.complex128)),
            lambda a, b: (a * b,),
            lambda xs, ws: (ws[0] * xs[1].conj(), ws[0] * xs[0].conj()),
        ),
    )
}


# ---- the mistakes


@dataclass(frozen=True)
class Call:
    """One backward call: what a mistake may look at."""

    function: Function
    inputs: Tensors
    cotangents: Tensors
    leaf: int

    @property
    def x(self) -> Tensor:
        return self.inputs[self.leaf]

    @property
    def w(self) -> Tensor:
        return self.cotangents[0]

    @property
    def typical(self) -> Tensor:
        """The mean size of the right gradient, for one fixed cotangent of mixed signs."""
        mixed = tuple(torch.arange(w.numel(), dtype=w.dtype).cos().view(w.shape) for w in self.cotangents)
        return self.right(cotangents=mixed).abs().mean()

    def right(self, inputs: Tensors | None = None, cotangents: Tensors | None = None) -> Tensor:
        return self.function.backward(inputs or self.inputs, cotangents or self.cotangents)[self.leaf]


@dataclass(frozen=True)
class Mistake:
    """`apply` is the wrong gradient; `where(x)` marks the entries it spoils (None: any of them)."""

    name: str
    kind: str
    apply: Callable[[Call], Tensor]
    where: Callable[[Tensor], Tensor] | None = None
    output: int | None = None
    output_at: str | None = None


PICKS = ("first", "middle", "last", "random")


def _pick(at: str, x: Tensor) -> int:
    """A flat position; the random one is drawn from the size alone, and is none of the others in a large tensor."""
    n = x.numel()
    if at == "random":
        return 4 + (2_654_435_761 * n >> 7) % max(n // 2 - 5, 1) if n > 8 else n - 1
    return {"first": 0, "middle": n // 2, "last": n - 1}[at]


def _largest(x: Tensor) -> Tensor:
    return _at([int(x.argmax())], x)


def _at(positions: list[int], x: Tensor) -> Tensor:
    mask = torch.zeros(x.shape, dtype=torch.bool)
    mask.view(-1)[positions] = True
    return mask


def whole(name: str, change: Callable[[Tensor], Tensor], kind: str = "whole") -> Mistake:
    return Mistake(name, kind, lambda call: change(call.right()))


def part(name: str, kind: str, where: Callable[[Tensor], Tensor], change: Callable[[Tensor], Tensor]) -> Mistake:
    def apply(call: Call) -> Tensor:
        g = call.right()
        return torch.where(where(call.x), change(g), g)

    return Mistake(name, kind, apply, where)


def entry(at: str, name: str, factor: float) -> Mistake:
    return part(f"{at} entry {name}", "entry", lambda x: _at([_pick(at, x)], x), lambda g: factor * g)


def bent(name: str, bend: Callable[[Tensor], Tensor], kind: str = "nonlinear", output: int | None = None) -> Mistake:
    """The cotangents (or that of one output) are changed before the right backward pass."""

    def apply(call: Call) -> Tensor:
        chosen = range(len(call.cotangents)) if output is None else (output,)
        return call.right(cotangents=tuple(bend(w) if k in chosen else w for k, w in enumerate(call.cotangents)))

    return Mistake(name, kind, apply, output=output)


def added(
    name: str, kind: str, term: Callable[[Call], Tensor], where: Callable[[Tensor], Tensor] | None = None
) -> Mistake:
    return Mistake(name, kind, lambda call: call.right() + term(call), where)


def _two(x: Tensor) -> Tensor:
    return _at([_pick("first", x), _pick("random", x)], x)


def _opposite(call: Call) -> Tensor:
    """+e at one entry, -e at another, both in the derivative of the first output element."""
    error = torch.zeros_like(call.x).view(-1)
    error[_pick("first", call.x)], error[_pick("random", call.x)] = 1.0, -1.0
    size = 0.1 * call.typical
    return size * call.w.reshape(-1)[0] * error.view(call.x.shape)


def _alternating(call: Call) -> Tensor:
    """+e, -e, +e, ... over all entries: every row of the error sums to zero."""
    signs = 1.0 - 2.0 * (torch.arange(call.x.numel()) % 2)
    size = 0.1 * call.typical
    return size * call.w.reshape(-1)[0] * signs.view(call.x.shape)


def _swapped(g: Tensor) -> Tensor:
    flat = g.clone().view(-1)
    i, j = 1, _pick("random", g)
    flat[i], flat[j] = g.reshape(-1)[j], g.reshape(-1)[i]
    return flat.view(g.shape)


def _one_output(call: Call) -> Tensor:
    w = call.w.clone().contiguous()
    w.view(-1)[_pick("random", w)] *= 1.5
    return call.right(cotangents=(w, *call.cotangents[1:]))


def _jointly(call: Call) -> Tensor:
    g = call.right()
    return 1.5 * g if all(bool(w.any()) for w in call.cotangents) else g


MISTAKES = {
    mistake.name: mistake
    for mistake in (
        whole("negated", lambda g: -g),
        whole("doubled", lambda g: 2 * g),
        whole("halved", lambda g: g / 2),
        whole("zero", torch.zeros_like),
        whole("1.01 times", lambda g: 1.01 * g),
        whole("plus a constant", lambda g: g + 0.1),
        added("extra term", "whole", lambda call: 0.1 * call.w * call.x),
        Mistake("stale point", "whole", lambda call: call.right(inputs=tuple(x + 0.01 for x in call.inputs))),
        *(entry(at, "5 % off", 1.05) for at in PICKS),
        entry("middle", "dead", 0.0),
        entry("random", "dead", 0.0),
        entry("first", "flipped", -1.0),
        entry("random", "flipped", -1.0),
        part(
            "a row 10 % off", "row", lambda x: (torch.arange(len(x)) == 1)[:, None].expand(x.shape), lambda g: 1.1 * g
        ),
        part(
            "a dead row",
            "row",
            lambda x: (torch.arange(len(x)) == len(x) - 1)[:, None].expand(x.shape),
            lambda g: 0 * g,
        ),
        part(
            "a column 10 % off", "column", lambda x: (torch.arange(x.shape[-1]) == 2).expand(x.shape), lambda g: 1.1 * g
        ),
        part(
            "a dead block",
            "block",
            lambda x: (torch.arange(len(x)) < 2)[:, None] & (torch.arange(x.shape[-1]) < 2),
            lambda g: 0 * g,
        ),
        part(
            "the second half negated", "block", lambda x: _at(list(range(x.numel() // 2, x.numel())), x), lambda g: -g
        ),
        whole("rolled by one", lambda g: g.roll(1, -1), "permutation"),
        whole("transposed", lambda g: g.T, "permutation"),
        whole("flipped", lambda g: g.flip(-1), "permutation"),
        Mistake(
            "two entries swapped",
            "permutation",
            lambda call: _swapped(call.right()),
            lambda x: _at([1, _pick("random", x)], x),
        ),
        added("an opposite pair", "cancelling", _opposite, _two),
        added("alternating signs", "cancelling", _alternating),
        whole("the mean taken off", lambda g: g - g.mean(), "cancelling"),
        part("10 % off below 0", "region", lambda x: x < 0, lambda g: 1.1 * g),
        part("dead above 1", "region", lambda x: x > 1, lambda g: 0 * g),
        part("half at the largest", "region", _largest, lambda g: g / 2),
        bent("|g|", torch.abs),
        bent("g clamped to ±1", lambda w: w.clamp(-1, 1)),
        bent("g clamped at 0", lambda w: w.clamp(min=0)),
        bent("g |g|", lambda w: w * w.abs()),
        bent("sign of g", torch.sign),
        bent("g ignored", torch.ones_like),
        Mistake("wrong when both outputs count", "nonlinear", _jointly),
        bent("first output forgotten", torch.zeros_like, "output", 0),
        bent("second output forgotten", torch.zeros_like, "output", 1),
        bent("second output doubled", lambda w: 2 * w, "output", 1),
        Mistake("one output element 50 % off", "output", _one_output, output=0, output_at="random"),
        Mistake("mean for sum", "batch", lambda call: call.right() / call.inputs[0].shape[0]),
        Mistake(
            "first of the batch for all",
            "batch",
            lambda call: call.right(cotangents=tuple(w[:1].expand(w.shape) for w in call.cotangents)),
        ),
        Mistake(
            "summed over the wrong axis",
            "broadcasting",
            lambda call: (call.w * call.inputs[0]).sum(1) if call.function.name == "scale" else call.w.sum(1),
        ),
        Mistake("softmax without its sum", "whole", lambda call: call.w * call.x.softmax(-1)),
        Mistake(
            "layernorm without the mean",
            "whole",
            lambda call: call.right() + (call.w * call.inputs[1]).mean(-1, keepdim=True) / _normalised(call.x)[1],
        ),
        Mistake("cumsum for its adjoint", "whole", lambda call: call.w.cumsum(-1)),
        Mistake("stencil for its adjoint", "whole", lambda call: _stencil(call.w, call.inputs[1])[0]),
        Mistake("matmul without transpose", "permutation", lambda call: call.w @ call.inputs[1]),
        Mistake("no conjugate", "complex", lambda call: call.w * call.inputs[1 - call.leaf]),
        whole("imaginary part dropped", lambda g: torch.complex(g.real, torch.zeros_like(g.imag)), "complex"),
        whole("imaginary part negated", torch.conj, "complex"),
        whole("real part doubled", lambda g: torch.complex(2 * g.real, g.imag), "complex"),
    )
}


# ---- the catalogue: which mistake goes into which input of which function


_PLAN: dict[tuple[str, int], str] = {
    ("sin", 0): """negated; zero; 1.01 times; extra term; stale point; first entry 5 % off; middle entry 5 % off;
        last entry 5 % off; random entry 5 % off; random entry dead; a row 10 % off; a column 10 % off; a dead block;
        transposed; flipped; two entries swapped; an opposite pair; 10 % off below 0; half at the largest; |g|;
        g clamped to ±1; g ignored; one output element 50 % off""",
    ("cube", 0): """doubled; halved; plus a constant; first entry flipped; random entry 5 % off; rolled by one;
        the second half negated; alternating signs; dead above 1; g clamped at 0; sign of g""",
    ("exp", 0): """negated; stale point; last entry 5 % off; an opposite pair; the mean taken off; g |g|;
        one output element 50 % off""",
    ("gate", 0): "zero; random entry 5 % off; 10 % off below 0; |g|",
    ("gate", 1): "negated; 1.01 times; random entry dead; a dead row; transposed; an opposite pair; g clamped to ±1",
    ("softmax", 0): """negated; doubled; softmax without its sum; random entry 5 % off; middle entry dead; a dead row;
        a column 10 % off; rolled by one; two entries swapped; alternating signs; half at the largest; |g|;
        first of the batch for all""",
    ("matmul", 0): "matmul without transpose; a row 10 % off; first of the batch for all; g clamped at 0",
    ("matmul", 1): "negated; 1.01 times; random entry 5 % off; a column 10 % off; transposed; two entries swapped",
    ("linear", 0): "zero; one output element 50 % off",
    ("linear", 1): "halved; random entry flipped; transposed; a dead block",
    ("linear", 2): "mean for sum; first of the batch for all; last entry 5 % off; summed over the wrong axis",
    ("layernorm", 0): "layernorm without the mean; negated; random entry 5 % off; a dead row; stale point",
    ("layernorm", 1): "mean for sum; first of the batch for all; middle entry dead; rolled by one",
    ("layernorm", 2): "first entry 5 % off; mean for sum; the mean taken off",
    ("logsumexp", 0): """negated; first entry 5 % off; random entry dead; rolled by one; flipped; an opposite pair;
        alternating signs; half at the largest; g ignored; |g|""",
    ("cumsum", 0): """cumsum for its adjoint; rolled by one; random entry 5 % off; a dead row; the mean taken off;
        sign of g; one output element 50 % off""",
    ("stencil", 0): "stencil for its adjoint; random entry 5 % off; last entry 5 % off; rolled by one; dead above 1",
    ("stencil", 1): "flipped; first entry 5 % off; 1.01 times; g clamped to ±1",
    ("scale", 0): "doubled; a column 10 % off; random entry flipped",
    ("scale", 1): "summed over the wrong axis; mean for sum; first of the batch for all; last entry 5 % off; zero",
    ("pair", 0): """second output forgotten; first output forgotten; random entry 5 % off;
        wrong when both outputs count""",
    ("pair", 1): "second output doubled; random entry dead; first output forgotten; alternating signs",
    ("product", 0): "no conjugate; imaginary part dropped; random entry 5 % off; real part doubled",
    ("product", 1): "imaginary part negated; no conjugate; negated; random entry dead",
}  # fmt: skip


@dataclass(frozen=True)
class Subject:
    """A program with a wrong gradient, and the truth about it. `spoilt` marks wrong entries of the input `path`."""

    fn: Callable[..., Tensor | Tensors]
    args: Tensors
    path: str
    spoilt: Tensor | None
    output: int | None
    output_index: tuple[int, ...] | None

    @property
    def indices(self) -> tuple[tuple[int, ...], ...] | None:
        """The wrong entries when they are at most two, else None."""
        if self.spoilt is None or int(self.spoilt.sum()) > 2:
            return None
        return tuple(tuple(map(int, index)) for index in self.spoilt.nonzero())


@dataclass(frozen=True)
class Case:
    function: Function
    leaf: int
    mistake: Mistake

    @property
    def name(self) -> str:
        return f"{self.function.name}[{self.leaf}]: {self.mistake.name}"

    @property
    def kind(self) -> str:
        return self.mistake.kind

    @property
    def sizes(self) -> tuple[int, ...]:
        return self.function.sizes

    def build(self, n: int, seed: int = 0) -> Subject:
        args = self.function.point(n, seed)
        spoilt = self.mistake.where(args[self.leaf]) if self.mistake.where else None
        output = self.mistake.output if self.function.name == "pair" else None
        index = None
        if self.mistake.output_at is not None:
            first = self.function.forward(*args)[0]
            index = tuple(map(int, _at([_pick(self.mistake.output_at, first)], first).nonzero()[0]))
        path = f"args[{self.leaf}]"
        return Subject(_operator(self.function, self.mistake, self.leaf), args, path, spoilt, output, index)


def twin(function: Function, n: int, seed: int = 0) -> Subject:
    """The same program with its right gradient."""
    return Subject(_operator(function, None, 0), function.point(n, seed), "", None, None, None)


def _operator(function: Function, mistake: Mistake | None, leaf: int) -> Callable[..., Tensor | Tensors]:
    class Planted(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *inputs: Tensor) -> Tensor | Tensors:
            ctx.save_for_backward(*inputs)
            outputs = function.forward(*inputs)
            return outputs if len(outputs) > 1 else outputs[0]

        @staticmethod
        def backward(ctx, *cotangents: Tensor) -> Tensors:
            inputs = ctx.saved_tensors
            gradients = list(function.backward(inputs, cotangents))
            if mistake is not None:
                gradients[leaf] = mistake.apply(Call(function, inputs, cotangents, leaf))
            return tuple(gradients)

    def planted(*inputs: Tensor) -> Tensor | Tensors:
        return Planted.apply(*inputs)

    planted.__name__ = planted.__qualname__ = function.name
    return planted


def _planned() -> Iterator[Case]:
    for (function, leaf), names in _PLAN.items():
        for name in names.split(";"):
            yield Case(FUNCTIONS[function], leaf, MISTAKES[" ".join(name.split())])


CASES = tuple(_planned())


# A sample for a million elements: one of each kind that a single pass over the data can have.
LARGE = tuple(
    case
    for case in CASES
    if case.name
    in {
        "sin[0]: negated",
        "sin[0]: random entry 5 % off",
        "sin[0]: last entry 5 % off",
        "sin[0]: an opposite pair",
        "sin[0]: |g|",
        "cube[0]: rolled by one",
        "cube[0]: dead above 1",
        "softmax[0]: negated",
        "softmax[0]: a dead row",
        "logsumexp[0]: random entry dead",
        "cumsum[0]: random entry 5 % off",
        "stencil[1]: first entry 5 % off",
    }
)


# ---- what the diagnosis may say


_PLACED = {"entry", "output-entry"}
# By mistake, or else by kind: the codes that are true of it. An empty set: no recogniser knows this one.
DIAGNOSES: dict[str, set[str]] = {
    "negated": {"factor"},
    "doubled": {"factor"},
    "halved": {"factor"},
    "1.01 times": {"factor"},
    "zero": {"detached"},
    "plus a constant": {"cotangent-offset"},
    "extra term": {"extra-term"},
    "stale point": {"stale"},
    "softmax without its sum": {"rank-one"},
    "layernorm without the mean": {"mean-kept"},
    "cumsum for its adjoint": {"transposed"},
    "stencil for its adjoint": {"transposed"},
    "entry": _PLACED,
    "row": {"slice"},
    "column": {"slice"},
    "block": {"block"},
    "rolled by one": {"shifted"},
    "transposed": {"transposed"},
    "matmul without transpose": {"transposed"},
    "flipped": {"permuted"},
    "two entries swapped": {"permuted"},
    "an opposite pair": _PLACED,
    "alternating signs": {"output-entry"},
    "the mean taken off": {"mean-removed"},
    "region": {"region", "entry"},
    "|g|": {"cotangent-abs"},
    "g clamped to ±1": {"cotangent-clipped"},
    "g clamped at 0": {"cotangent-one-sided"},
    "g |g|": {"cotangent-power"},
    "sign of g": {"cotangent-sign"},
    "g ignored": {"cotangent-ignored"},
    "wrong when both outputs count": {"cotangent-joint"},
    "first output forgotten": {"detached"},
    "second output forgotten": {"detached"},
    "second output doubled": {"factor"},
    "one output element 50 % off": _PLACED,
    "mean for sum": {"mean-for-sum"},
    "first of the batch for all": {"one-of-batch"},
    "summed over the wrong axis": {"wrong-axis", "transposed"},
    "no conjugate": {"conjugate"},
    "imaginary part negated": {"conjugate"},
    "imaginary part dropped": {"complex-part"},
    "real part doubled": {"complex-part"},
}
# exp(x + d) is exp(x) times a constant: no number can tell.
ALSO_TRUE = {"exp[0]: stale point": {"factor"}}


def acceptable(case: Case) -> set[str]:
    """The codes of the diagnoses that are true of this case."""
    own = DIAGNOSES.get(case.mistake.name)
    return (DIAGNOSES[case.kind] if own is None else own) | ALSO_TRUE.get(case.name, set())


def diagnosed(result: Result) -> set[str]:
    """The codes that were given."""
    return {finding.diagnosis.code for finding in result.findings if finding.diagnosis is not None}


# ---- the judge of the judge


def fault(result: Result, subject: Subject) -> str:
    """What the checker got wrong about this wrong program, in a few words; empty when nothing."""
    if result.verdict is not Verdict.WRONG:
        return f"missed: {result.verdict}"
    places = [finding.place for finding in result.wrong]
    blocks = [block for block in result.comparisons if block.verdict is Verdict.WRONG]
    places += [entry.place for block in blocks for entry in block.found]
    blamed = {place.input.path for place in places if place.input} | {block.input.path for block in blocks}
    if subject.path not in blamed:
        return f"leaf not named: blames {sorted(blamed)}"
    if blamed != {subject.path}:
        return f"another leaf blamed: {sorted(blamed)}"
    indices = {place.input.index for place in places if place.input and place.input.index is not None}
    outputs = {place.output.index for place in places if place.output and place.output.index is not None}
    if subject.spoilt is not None:
        innocent = [index for index in indices if not subject.spoilt[index]]
        if innocent:
            return f"innocent entries blamed: {innocent[:3]}"
    if subject.indices is not None and not indices & set(subject.indices):
        return f"index not named: {sorted(indices)[:3]} for {subject.indices}"
    if subject.output_index is not None and outputs != {subject.output_index}:
        return f"output index not named: {sorted(outputs)[:3]} for {subject.output_index}"
    if subject.output is not None:
        named = {place.output.path for place in places if place.output} | {block.output.path for block in blocks}
        if not named or not all(path.endswith(f"[{subject.output}]") for path in named):
            return f"output leaf not named: {sorted(named)}"
    return ""
