"""Mistakes in PyTorch's derivatives that sweeps found, each in a few lines: what autograd says, what the function does.

`docs/found-by-gradproof.md` tells about them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

F64 = torch.float64
STEP = 1e-6


def slope(fn: Callable[[Tensor], Tensor], x: Tensor, direction: Tensor) -> Tensor:
    """What the function does: a central difference."""
    return ((fn(x + STEP * direction) - fn(x - STEP * direction)) / (2 * STEP)).detach()


def pushed(fn: Callable[[Tensor], Tensor], x: Tensor, direction: Tensor) -> Tensor:
    """What forward mode says."""
    return torch.func.jvp(fn, (x,), (direction,))[1].detach()


def pulled(fn: Callable[[Tensor], Tensor], x: Tensor, direction: Tensor) -> Tensor:
    """What reverse mode says, as the derivative along the same direction."""
    return (torch.autograd.functional.jacobian(fn, x) * direction).flatten(-direction.ndim).sum(-1)


def cholesky_inverse() -> tuple[Tensor, Tensor]:
    """Forward mode, at a factor that is not diagonal."""
    factor = torch.tensor([[2.0, 0.0], [1.0, 1.0]], dtype=F64)
    along = torch.tensor([[1.0, 0.0], [0.0, 0.0]], dtype=F64)
    return pushed(torch.cholesky_inverse, factor, along), slope(torch.cholesky_inverse, factor, along)


def logcumsumexp() -> tuple[Tensor, Tensor]:
    """Forward mode, where a later number is much larger: the first output is the first input."""
    x = torch.tensor([0.0, 40.0], dtype=F64)
    along = torch.tensor([1.0, 0.0], dtype=F64)
    return pushed(lambda x: torch.logcumsumexp(x, 0), x, along), slope(lambda x: torch.logcumsumexp(x, 0), x, along)


def logcumsumexp_complex() -> tuple[Tensor, Tensor]:
    """Forward mode, at numbers whose exponential overflows; the function itself takes care of that."""
    x = torch.tensor([1000.0, 999.0], dtype=torch.complex128)
    along = torch.ones_like(x)
    return pushed(lambda x: torch.logcumsumexp(x, 0), x, along), slope(lambda x: torch.logcumsumexp(x, 0), x, along)


def max_unpool1d() -> tuple[Tensor, Tensor]:
    """Reverse mode, where two values go to the same place: one of them is lost, yet both have a gradient."""
    where = torch.tensor([[[0, 0]]])
    x = torch.tensor([[[1.0, 2.0]]], dtype=F64)
    along = torch.ones_like(x)

    def fn(x: Tensor) -> Tensor:
        return functional.max_unpool1d(x, where, 2)

    return pulled(fn, x, along), slope(fn, x, along)


def linear_cross_entropy_forward() -> tuple[Tensor, Tensor]:
    """Forward mode of the chunked form: said not to exist, but it is zero, without a word."""
    fn, x = _chunked()
    return pushed(fn, x, torch.ones_like(x)), slope(fn, x, torch.ones_like(x))


def linear_cross_entropy_second() -> tuple[str, Tensor]:
    """The second derivative of the chunked form."""
    fn, x = _chunked()

    def gradient(x: Tensor) -> Tensor:
        x = x.detach().requires_grad_()
        return torch.autograd.grad(fn(x), x, create_graph=True)[0]

    first = gradient(x)
    # In a larger expression, such as loss + penalty on the gradient, the penalty is then a constant.
    said = "a derivative" if first.requires_grad else "cut off from the graph"
    return said, slope(gradient, x, torch.ones_like(x))


def _chunked() -> tuple[Callable[[Tensor], Tensor], Tensor]:
    generator = torch.Generator().manual_seed(0)
    x, weight = (torch.randn(*shape, dtype=F64, generator=generator) for shape in ((8,), (4, 8)))
    options = torch.nn.LinearCrossEntropyOptions(batch_chunk_size=2)

    def fn(x: Tensor) -> Tensor:
        return functional.linear_cross_entropy(x, weight, torch.tensor(2), reduction="sum", options=options)

    return fn, x


def compressed_values() -> tuple[str, Tensor]:
    """The second derivative through `values()` of a CSR tensor."""
    rows, columns = torch.tensor([0, 1, 2]), torch.tensor([0, 1])

    def gradient(values: Tensor) -> Tensor:
        x = torch.sparse_csr_tensor(rows, columns, values, (2, 2)).detach().requires_grad_()
        return torch.autograd.grad((x.values() ** 3).sum(), x, create_graph=True)[0].values()

    point = torch.tensor([1.0, 2.0], dtype=F64)
    x = torch.sparse_csr_tensor(rows, columns, point, (2, 2)).requires_grad_()
    first = torch.autograd.grad((x.values() ** 3).sum(), x, create_graph=True)[0].values()
    said = "a derivative" if first.requires_grad else "cut off from the graph"
    return said, slope(gradient, point, torch.ones_like(point))


def as_strided_scatter() -> tuple[Tensor, Tensor]:
    """Reverse mode, for a cotangent that is a view into a larger tensor: it is read at the wrong place."""
    x, put = torch.zeros(3, dtype=F64, requires_grad=True), torch.zeros(1, dtype=F64)
    view = torch.tensor([5.0, 1.0, 1.0, 1.0], dtype=F64)[1:]
    out = torch.as_strided_scatter(x, put, (1,), (1,), 0)
    said = torch.autograd.grad(out, x, view)[0]
    return said, torch.tensor([0.0, 1.0, 1.0], dtype=F64)  # the first element is overwritten, the others stay


def native_layer_norm() -> tuple[Tensor, Tensor]:
    """Reverse mode of the mean that it returns: zero, without a word."""
    x = torch.tensor([[1.0, 2.0, 4.0]], dtype=F64)

    def fn(x: Tensor) -> Tensor:
        return torch.native_layer_norm(x, (3,), None, None, 1e-5)[1]

    return pulled(fn, x, torch.ones_like(x)), slope(fn, x, torch.ones_like(x))


def triangular_solve() -> tuple[Tensor, Tensor]:
    """Forward mode of the gradient, which also depends on the half of the matrix that does not count."""
    matrix = torch.tensor([[2.0, 0.0], [1.0, 1.0]], dtype=F64)
    along = torch.tensor([[0.0, 0.0], [1.0, 0.0]], dtype=F64)

    def gradient(matrix: Tensor) -> Tensor:
        right = torch.ones(2, 1, dtype=F64)
        return torch.func.grad(lambda a: torch.triangular_solve(right, a, upper=False).solution.sum())(matrix)

    return pushed(gradient, matrix, along), slope(gradient, matrix, along)


def scatter_reduce_prod() -> tuple[Tensor, Tensor]:
    """Forward mode of the product: no derivative, without a word; that of the sum is right."""
    index, source = torch.tensor([0, 0]), torch.tensor([5.0, 7.0], dtype=F64)
    x, along = torch.tensor([2.0, 3.0], dtype=F64), torch.tensor([1.0, 0.0], dtype=F64)

    def product(x: Tensor) -> Tensor:
        return x.scatter_reduce(0, index, source, "prod")

    return pushed(product, x, along), slope(product, x, along)


def logaddexp() -> tuple[Tensor, Tensor]:
    """The gradient by a side that is -inf: it is 0 whatever the other side is, and so is its derivative."""
    x, along = torch.tensor(0.5, dtype=F64), torch.tensor(1.0, dtype=F64)

    def gradient(x: Tensor) -> Tensor:
        return torch.func.grad(lambda y: torch.logaddexp(x, y))(torch.tensor(float("-inf"), dtype=F64))

    return torch.func.grad(gradient)(x), slope(gradient, x, along)


def weight_norm() -> tuple[Tensor, Tensor]:
    """The second derivative of g v / |v|, fused, as `parametrizations.weight_norm` calls it: |v| counts as fixed."""
    direction, along = torch.tensor([[3.0, 4.0]], dtype=F64), torch.tensor([[1.0, 0.0]], dtype=F64)
    size, weights = torch.ones(1, 1, dtype=F64), torch.tensor([[1.0, 2.0]], dtype=F64)

    def gradient(v: Tensor) -> Tensor:
        v = v if v.requires_grad else v.detach().requires_grad_()
        normed = torch._weight_norm(v, size, 0)
        return torch.autograd.grad((normed * weights).sum(), v, create_graph=True)[0]

    return pulled(gradient, direction, along), slope(gradient, direction, along)


def householder_product() -> tuple[Tensor, Tensor]:
    """Reverse mode at tau = 1 / |v|^2: the product is a polynomial, but its rule divides by tau |v|^2 - 1."""
    vectors, tau = torch.tensor([[1.0], [1.0]], dtype=F64), torch.tensor([0.5], dtype=F64)

    def product(tau: Tensor) -> Tensor:
        return torch.linalg.householder_product(vectors, tau)

    return pulled(product, tau, torch.ones_like(tau)), slope(product, tau, torch.ones_like(tau))


FOUND = (
    cholesky_inverse, logcumsumexp, logcumsumexp_complex, max_unpool1d, linear_cross_entropy_forward,
    linear_cross_entropy_second, compressed_values, as_strided_scatter, native_layer_norm, triangular_solve,
    scatter_reduce_prod, logaddexp, householder_product, weight_norm,
)  # fmt: skip


def main() -> None:
    warnings.simplefilter("ignore")
    print(f"torch {torch.__version__.partition('+')[0]}")
    for example in FOUND:
        said, is_so = example()
        print(f"\n{example.__name__}: {(example.__doc__ or '').splitlines()[0]}")
        print(f"  autograd     {_numbers(said)}\n  the function {_numbers(is_so)}")


def _numbers(x: Tensor | str) -> str:
    if isinstance(x, str):
        return x
    return str([complex(one) if x.is_complex() else round(float(one), 4) for one in x.flatten()[:8]])


if __name__ == "__main__":
    main()
