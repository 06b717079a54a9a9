"""The operations that random programs are made of, in tables by what they need.

An operation that does not fit what it is given raises, and another one is drawn. None looks at anything but its
operands: indices and masks come from shapes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

Operation = Callable[..., Tensor]
Along = Callable[[Tensor, int], Tensor]


@dataclass(frozen=True)
class Operations:
    """By what they need: a value, a value and a dimension, two values. `broadcast`: whether two always broadcast."""

    of_one: dict[str, Operation]
    along: dict[str, Along]
    of_two: dict[str, Operation]
    broadcast: bool = True


def _index(count: int) -> Tensor:
    """Some more than once, some never."""
    return torch.arange(count).square().remainder(count)


def _mask(x: Tensor) -> Tensor:
    return (torch.arange(x.numel()) % 3 == 1).reshape(x.shape)


def _rows(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """As matrices with rows of one length."""
    length = min(x.shape[-1], y.shape[-1])
    return x.reshape(-1, x.shape[-1])[:, :length], y.reshape(-1, y.shape[-1])[:, :length]


def _gram(x: Tensor) -> Tensor:
    rows = x.reshape(-1, x.shape[-1])
    rows = rows / (1 + rows.abs().square().mean()).sqrt()
    return rows @ rows.mH + torch.eye(len(rows), dtype=x.dtype)


def _in_place(x: Tensor) -> Tensor:
    result = x.clone()
    result.mul_(x).add_(1)
    result[..., :1] = 2 * result[..., -1:]
    return result


def _assigned(x: Tensor, y: Tensor) -> Tensor:
    result = x.clone()
    result[..., 0] = y.mean()
    return result.sub_(y.sum())


def _product(x: Tensor, y: Tensor) -> Tensor:
    one, other = _rows(x, y)
    return one @ other.mT


def _attention(x: Tensor, y: Tensor) -> Tensor:
    queries, keys = _rows(x, y)
    return functional.scaled_dot_product_attention(queries[None], keys[None], keys.sin()[None])[0]


def _convolution(x: Tensor, y: Tensor) -> Tensor:
    rows, kernel = x.reshape(-1, 1, x.shape[-1]), y.reshape(-1)[:3].reshape(1, 1, -1)
    return functional.conv1d(rows, kernel, padding=1).flatten(1)


def _solution(x: Tensor, y: Tensor) -> Tensor:
    matrix = _gram(x)
    return torch.linalg.solve(matrix, y.reshape(-1)[: len(matrix)])


def _loss(x: Tensor, y: Tensor) -> Tensor:
    one, other = _rows(x, y)
    logits = one[: len(other)] + other[: len(one)]
    return functional.cross_entropy(logits, _index(logits.shape[-1])[torch.arange(len(logits)) % logits.shape[-1]])


SMOOTH: dict[str, Operation] = {
    "sin": torch.sin,
    "cos": torch.cos,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "softplus": functional.softplus,
    "gelu": functional.gelu,
    "silu": functional.silu,
    "mish": functional.mish,
    "logsigmoid": functional.logsigmoid,
    "erf": torch.erf,
    "atan": torch.atan,
    "square": torch.square,
    "cube": lambda x: x**3,
    "hyperbola": lambda x: (1 + x * x).sqrt(),
    "lorentz": lambda x: 1 / (1 + x * x),
    "log1p": lambda x: torch.log1p(x * x),
    "exp": lambda x: torch.exp(torch.tanh(x)),
    "scale": lambda x: 1.7 * x,
    "shift": lambda x: x + 0.3,
}
KINKED: dict[str, Operation] = {
    "relu": functional.relu,
    "abs": torch.abs,
    "leaky": lambda x: functional.leaky_relu(x, 0.1),
    "clamp": lambda x: x.clamp(-1, 1),
    "shrink": lambda x: functional.softshrink(x, 0.2),
}
ALONG: dict[str, Along] = {
    "sum": lambda x, d: x.sum(d),
    "mean": lambda x, d: x.mean(d),
    "logsumexp": lambda x, d: x.logsumexp(d),
    "softmax": lambda x, d: x.softmax(d),
    "cumsum": lambda x, d: x.cumsum(d),
    "norm": lambda x, d: (0.1 + x.square().sum(d)).sqrt(),
    "var": lambda x, d: x.var(d, unbiased=False),
    "prod": lambda x, d: x.prod(d),
    "flip": lambda x, d: x.flip(d),
    "roll": lambda x, d: x.roll(1, d),
    "difference": lambda x, d: x - x.roll(1, d),
    "layer_norm": lambda x, d: functional.layer_norm(x.movedim(d, -1), (x.shape[d],)).movedim(-1, d),
}
SELECTING: dict[str, Along] = {
    "amax": lambda x, d: x.amax(d),
    "sort": lambda x, d: x.sort(d)[0],
}
OF_TWO: dict[str, Operation] = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "gate": lambda x, y: x * torch.sigmoid(y),
    "div": lambda x, y: x / (1.5 + torch.sin(y)),
    "hypot": lambda x, y: (x * x + y * y + 0.1).sqrt(),
}
# What programs of models and of physics have besides.
WIDE: dict[str, Operation] = {
    "elu": functional.elu,
    "hardswish": functional.hardswish,
    "softsign": functional.softsign,
    "asinh": torch.asinh,
    "power": lambda x: (x * x + 0.1) ** 0.7,
    "lgamma": lambda x: torch.lgamma(1.5 + torch.sigmoid(x)),
    "erfinv": lambda x: torch.erfinv(0.5 * torch.tanh(x)),
    "where": lambda x: torch.where(x > 0, x, x.sin()),
    "masked_fill": lambda x: x.masked_fill(_mask(x), 0.5),
    "in place": _in_place,
    "total": torch.sum,
    "largest": torch.max,
    "vector_norm": torch.linalg.vector_norm,
    "rms": lambda x: x / (x.abs().square().mean() + 1e-5).sqrt(),
    "transpose": lambda x: x.transpose(0, 1),
    "flatten": lambda x: x.flatten(),
    "tril": torch.tril,
    "diagonal": torch.diagonal,
    "outer": lambda x: x.flatten()[:, None] * x.flatten()[::2],
    "cholesky": lambda x: torch.linalg.cholesky(_gram(x)),
    "inverse": lambda x: torch.linalg.inv(_gram(x)),
    "logdet": lambda x: torch.linalg.slogdet(_gram(x))[1],
    "matrix_exp": lambda x: torch.linalg.matrix_exp(torch.tanh(x)),
    # Not near i, where 1 + z * z is next to nothing and lost in float32.
    "complex": lambda x: torch.complex(x, 0.5 * x.cos()),
    "fft": torch.fft.fft,
    "rfft": torch.fft.rfft,
    "real": torch.real,
    "imag": torch.imag,
    "conj": lambda x: x.conj().resolve_conj(),
    "modulus": lambda x: (x * x.conj()).real,
}
WIDE_ALONG: dict[str, Along] = {
    "cat": lambda x, d: torch.cat([x, x.sin()], d),
    "stack": lambda x, d: torch.stack([x, x * x], d),
    "pad": lambda x, d: functional.pad(x.movedim(d, -1), (1, 2), value=0.7).movedim(-1, d),
    "index_select": lambda x, d: x.index_select(d, _index(x.shape[d])),
    "index_add": lambda x, d: x.index_add(d, _index(x.shape[d]), x.cos()),
    "gather": lambda x, d: x.gather(d, _index(x.shape[d]).reshape([-1] + [1] * (x.dim() - 1 - d)).expand(x.shape)),
    "scatter_add": lambda x, d: torch.zeros_like(x).scatter_add(
        d, _index(x.shape[d]).reshape([-1] + [1] * (x.dim() - 1 - d)).expand(x.shape), x
    ),
    "rows": lambda x, d: x.movedim(d, 0)[_index(x.shape[d])],
    "cumprod": lambda x, d: x.cumprod(d),
    "log_softmax": lambda x, d: x.log_softmax(d),
    "normalize": lambda x, d: x / (0.1 + x.abs().square().sum(d, keepdim=True)).sqrt(),
    "diff": lambda x, d: x.diff(dim=d),
    "glu": functional.glu,
    "unfold": lambda x, d: x.unfold(d, 2, 1),
    "repeat": lambda x, d: x.repeat_interleave(2, d),
    "cummax": lambda x, d: x.cummax(d)[0],
    "median": lambda x, d: x.median(d)[0],
    "topk": lambda x, d: x.topk(2, d)[0],
}
WIDE_OF_TWO: dict[str, Operation] = {
    "matmul": _product,
    "einsum": lambda x, y: torch.einsum("ij,kj->ik", *_rows(x, y)),
    "cdist": lambda x, y: torch.cdist(*_rows(x, y)),
    "attention": _attention,
    "conv1d": _convolution,
    "solve": _solution,
    "cross_entropy": _loss,
    "assign": _assigned,
    "maximum": torch.maximum,
    "where greater": lambda x, y: torch.where(x > 0, x * y, -y),
    "atan2": torch.atan2,
    "lerp": lambda x, y: torch.lerp(x, y, 0.3),
    "logaddexp": torch.logaddexp,
    "smooth_l1": lambda x, y: functional.smooth_l1_loss(*torch.broadcast_tensors(x, y)),
    "polar": lambda x, y: torch.complex(x * y.cos(), x * y.sin()),
}

WITHOUT_KINKS = Operations(SMOOTH, ALONG, OF_TWO)
PLAIN = Operations({**SMOOTH, **KINKED}, {**ALONG, **SELECTING}, OF_TWO)
EVERYTHING = Operations(
    {**SMOOTH, **KINKED, **WIDE},
    {**ALONG, **SELECTING, **WIDE_ALONG},
    {**OF_TWO, **WIDE_OF_TWO},
    broadcast=False,
)
