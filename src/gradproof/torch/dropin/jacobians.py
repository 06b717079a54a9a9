"""R22: the three Jacobian functions that torch deprecated and that users still import.

They promise one plain central difference with the caller's step, and one-hot reverse passes; no error bar, no verdict.
A target may be a tensor that the function reaches by other ways than its arguments, so it is moved in place.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from gradproof.torch.dropin.entry import as_tuple
from gradproof.torch.sparse import Pattern, opened, stored


def get_numerical_jacobian(
    fn: Callable[..., Any], inputs: Any, target: Any = None, eps: float = 1e-3, grad_out: float = 1.0
) -> tuple[torch.Tensor, ...]:
    """The numeric Jacobian of fn's first output, one (input entries, output entries) matrix for each tensor in
    `target` that requires grad (default: `inputs`). `fn` takes the inputs as one tuple."""
    _warn_of_age("get_numerical_jacobian")
    _check_grad_out(grad_out, "get_numerical_jacobian")
    inputs = as_tuple(inputs)

    def unpacked(*arguments: Any) -> Any:
        return fn(arguments)

    outputs = as_tuple(unpacked(*inputs))
    _refuse_complex(outputs, "get_numerical_jacobian")
    moved = [(i, one) for i, one in enumerate(inputs if target is None else as_tuple(target)) if _requires_grad(one)]
    return tuple(
        get_numerical_jacobian_wrt_specific_input(unpacked, i, inputs, outputs, eps, input=one)[0] for i, one in moved
    )


def get_numerical_jacobian_wrt_specific_input(
    fn: Callable[..., Any],
    input_idx: int,
    inputs: Any,
    outputs: Any,
    eps: float,
    input: torch.Tensor | None = None,
    is_forward_ad: bool = False,  # noqa: FBT001, FBT002  torch's signature
) -> tuple[torch.Tensor, ...]:
    """The same for one input, one matrix for each floating or complex output. `fn` takes the inputs as arguments. Where
    the input is complex the conjugate Wirtinger derivative."""
    tensor = inputs[input_idx] if input is None else input
    if not tensor.requires_grad:
        raise AssertionError("Expected input to have requires_grad=True")
    floating = [i for i, one in enumerate(as_tuple(outputs)) if _is_floating(one)]
    if not is_forward_ad:
        _refuse_complex([as_tuple(outputs)[i] for i in floating], "get_numerical_jacobian_wrt_specific_input")
    dtype = tensor.dtype if tensor.is_complex() else None
    jacobians = [
        one.new_zeros((tensor.numel(), one.numel()), dtype=dtype, layout=torch.strided)
        for one in (as_tuple(outputs)[i] for i in floating)
    ]

    def values() -> list[torch.Tensor]:
        results = as_tuple(fn(*inputs))
        return [results[i].detach().clone() for i in floating]

    for row, entry in _entries(tensor):
        along_real = _difference(values, entry, eps)
        along_imaginary = _difference(values, entry, eps, 1j) if tensor.is_complex() else None
        for k, jacobian in enumerate(jacobians):
            slope = along_real[k] if along_imaginary is None else along_real[k] + 1j * along_imaginary[k]
            jacobian[row] = slope.reshape(-1)
    return tuple(jacobians)


def get_analytical_jacobian(
    inputs: Any, output: torch.Tensor, nondet_tol: float = 0.0, grad_out: float = 1.0
) -> tuple[tuple[torch.Tensor, ...], bool, bool, bool]:
    """The Jacobian by reverse mode, one (input entries, output entries) matrix for each input that requires grad;
    whether a second run agrees within `nondet_tol`; whether all sizes, and all dtypes, are those of the inputs."""
    _warn_of_age("get_analytical_jacobian")
    _check_grad_out(grad_out, "get_analytical_jacobian")
    _refuse_complex([output], "get_analytical_jacobian")
    points = [one for one in as_tuple(inputs) if _requires_grad(one)]
    first, sizes, types = _rows(points, output)
    second, _, _ = _rows(points, output)
    spread = [float((one - other).abs().max()) for one, other in zip(first, second, strict=True) if one.numel()]
    return first, max(spread, default=0.0) <= nondet_tol, sizes, types


def _rows(points: Sequence[torch.Tensor], output: torch.Tensor) -> tuple[tuple[torch.Tensor, ...], bool, bool]:
    jacobians = tuple(one.new_zeros((one.numel(), output.numel()), layout=torch.strided) for one in points)
    sizes = types = True
    for column in range(output.numel()):
        cotangent = torch.zeros_like(output, memory_format=torch.contiguous_format)
        cotangent.view(-1)[column] = 1.0
        gradients = torch.autograd.grad(output, points, cotangent, retain_graph=True, allow_unused=True)
        for point, jacobian, gradient in zip(points, jacobians, gradients, strict=True):
            if gradient is not None:
                sizes &= gradient.shape == point.shape
                types &= gradient.dtype == point.dtype
                jacobian[:, column] = opened(gradient).reshape(-1)
    return jacobians, sizes, types


def _difference(
    values: Callable[[], list[torch.Tensor]], entry: torch.Tensor, eps: float, unit: complex = 1.0
) -> list[torch.Tensor]:
    with _moved(entry, -eps * unit):
        before = values()
    with _moved(entry, eps * unit):
        after = values()
    return [(two - one) / (2 * eps) for one, two in zip(before, after, strict=True)]


@contextmanager
def _moved(entry: torch.Tensor, step: complex) -> Iterator[None]:
    kept = entry.clone()
    try:
        entry.copy_(kept + step)
        yield
    finally:
        entry.copy_(kept)


def _entries(tensor: torch.Tensor) -> Iterator[tuple[int, torch.Tensor]]:
    """Each entry that can be moved, as a view that autograd does not see, with its place in the flattened tensor."""
    if tensor.layout is torch.strided:
        values, places = tensor.data, torch.arange(tensor.numel()).reshape(tensor.shape)
    else:
        values, places = stored(tensor).data, Pattern(tensor.detach()).places()
    for index in itertools.product(*(range(size) for size in values.shape)):
        yield int(places[index]), values[index]


def _requires_grad(value: object) -> bool:
    return isinstance(value, torch.Tensor) and value.requires_grad


def _is_floating(value: object) -> bool:
    return isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())


def _refuse_complex(outputs: Sequence[Any], name: str) -> None:
    if any(isinstance(one, torch.Tensor) and one.is_complex() for one in outputs):
        raise ValueError(f"Expected output to be non-complex: {name} has no meaning for complex outputs")


def _check_grad_out(grad_out: float, name: str) -> None:
    if grad_out != 1.0:
        raise ValueError(f"Expected grad_out to be 1.0, the only value that {name} takes; got {grad_out}")


def _warn_of_age(name: str) -> None:
    warnings.warn(
        f"`{name}` was part of PyTorch's private API and is deprecated there; gradproof.check(fn, inputs) compares the "
        "Jacobians for you, and torch.func.jacrev and jacfwd give them.",
        FutureWarning,
        stacklevel=3,
    )
