"""A suite as libraries have them: 50 uses of torch's checkers, right functions and deliberately wrong ones, under all
the names by which people reach them. It is copied into a folder and run by torch's checker and by ours."""

from __future__ import annotations

import importlib
from functools import partial

import pytest
import torch
import torch.nn.functional as F  # noqa: N812  as everybody does
from torch.autograd import gradcheck, gradgradcheck
from torch.autograd.gradcheck import GradcheckError
from torch.autograd.gradcheck import gradcheck as by_module

internal = importlib.import_module("torch.testing._internal.common_utils")


def numbers(*shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return (torch.rand(shape, generator=generator, dtype=torch.float64) + 0.5).to(dtype).requires_grad_()


class Scaled(torch.autograd.Function):
    """x ** 2 with a gradient that is `factor` times the right one."""

    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return ctx.factor * 2 * x * g, None


class Moody(torch.autograd.Function):
    """Right numbers, wrong manners: `mood` says which."""

    @staticmethod
    def forward(ctx, x, mood):
        ctx.mood = mood
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        extra = {"random": 1e-3 * torch.rand_like(g), "offset": torch.full_like(g, 0.1), "": 0}[ctx.mood]
        return 2 * g + extra, None


def rotate(image: torch.Tensor, angle: torch.Tensor) -> torch.Tensor:
    cos, sin, zero = angle.cos(), angle.sin(), torch.zeros_like(angle)
    matrix = torch.stack([torch.stack([cos, -sin, zero]), torch.stack([sin, cos, zero])])[None]
    grid = F.affine_grid(matrix, list(image.shape), align_corners=False)
    return F.grid_sample(image, grid, align_corners=False)


def blur(image: torch.Tensor) -> torch.Tensor:
    kernel = torch.tensor([1.0, 2.0, 1.0], dtype=image.dtype)
    return F.conv2d(image, (kernel[:, None] * kernel / 16)[None, None], padding=1)


def rgb_to_gray(image: torch.Tensor) -> torch.Tensor:
    return torch.einsum("c,bchw->bhw", torch.tensor([0.299, 0.587, 0.114], dtype=image.dtype), image)


RIGHT = {
    "sin": (torch.sin, (3,)),
    "exp": (torch.exp, (3,)),
    "matmul": (torch.matmul, (2, 3), (3, 2)),
    "softmax": (partial(torch.softmax, dim=-1), (2, 3)),
    "log_softmax": (partial(torch.log_softmax, dim=-1), (2, 3)),
    "layer_norm": (lambda x: F.layer_norm(x, (3,)), (2, 3)),
    "conv2d": (F.conv2d, (1, 1, 4, 4), (1, 1, 2, 2)),
    "blur": (blur, (1, 1, 4, 4)),
    "rgb_to_gray": (rgb_to_gray, (1, 3, 2, 2)),
    "rotate": (lambda image: rotate(image, torch.tensor(0.3, dtype=torch.float64)), (1, 1, 3, 3)),
    "interpolate": (partial(F.interpolate, scale_factor=2, mode="bilinear", align_corners=False), (1, 1, 2, 2)),
    "inverse": (lambda x: torch.linalg.inv(x @ x.mT + torch.eye(2, dtype=x.dtype)), (2, 2)),
    "logdet": (lambda x: torch.logdet(x @ x.mT + torch.eye(2, dtype=x.dtype)), (2, 2)),
    "norm": (torch.linalg.vector_norm, (4,)),
    "cumsum": (partial(torch.cumsum, dim=0), (4,)),
    "avg_pool": (partial(F.avg_pool2d, kernel_size=2), (1, 1, 4, 4)),
    "mse": (F.mse_loss, (3,), (3,)),
    "cosine": (F.cosine_similarity, (2, 3), (2, 3)),
}


@pytest.mark.parametrize("name", RIGHT)
def test_gradcheck(name):
    fn, *shapes = RIGHT[name]
    assert gradcheck(fn, tuple(numbers(*shape) for shape in shapes), raise_exception=True, fast_mode=True)


@pytest.mark.parametrize("name", ["sin", "matmul", "softmax", "layer_norm", "blur", "inverse", "mse", "cumsum"])
def test_gradgradcheck(name):
    fn, *shapes = RIGHT[name]
    assert gradgradcheck(fn, tuple(numbers(*shape) for shape in shapes))


@pytest.mark.parametrize("name", ["exp", "conv2d", "rotate", "norm"])
def test_by_attribute(name):
    fn, *shapes = RIGHT[name]
    assert torch.autograd.gradcheck(fn, tuple(numbers(*shape) for shape in shapes), eps=1e-6, atol=1e-4)


@pytest.mark.parametrize("name", ["log_softmax", "avg_pool"])
def test_by_module(name):
    fn, *shapes = RIGHT[name]
    assert by_module(fn, tuple(numbers(*shape) for shape in shapes), nondet_tol=1e-8)


@pytest.mark.parametrize("name", ["sin", "matmul"])
def test_by_torchs_own_test_helpers(name):
    fn, *shapes = RIGHT[name]
    assert internal.gradcheck(fn, tuple(numbers(*shape) for shape in shapes))
    assert internal.gradgradcheck(fn, tuple(numbers(*shape) for shape in shapes))


@pytest.mark.parametrize("factor", [-1.0, 0.0, 0.5, 1.1, 2.0])
@pytest.mark.parametrize("fast_mode", [False, True])
def test_a_wrong_gradient(factor, fast_mode):
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        gradcheck(Scaled.apply, (numbers(3), factor), fast_mode=fast_mode)


def test_a_wrong_gradient_without_an_exception():
    assert gradcheck(Scaled.apply, (numbers(3), 2.0), raise_exception=False) is False
    assert gradcheck(Scaled.apply, (numbers(3), 1.0), raise_exception=False) is True


@pytest.mark.parametrize("mood", ["random", "offset"])
def test_a_backward_without_manners(mood):
    with pytest.raises(RuntimeError, match=r"not reentrant|not multiplied|Jacobian mismatch"):
        torch.autograd.gradcheck(Moody.apply, (numbers(3), mood), atol=1.0, rtol=1.0)
    assert torch.autograd.gradcheck(Moody.apply, (numbers(3), ""))


def test_an_input_that_requires_no_grad():
    with pytest.raises(ValueError, match=r"requires? gradient"):
        gradcheck(torch.sin, (numbers(3).detach(),))


def test_a_mistake_that_stays():
    """Fails under either checker."""
    gradcheck(Scaled.apply, (numbers(2), 3.0))
