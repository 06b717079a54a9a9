"""PyTorch's databases: where they live, which dtypes their entries support, and the samples of an entry."""

from __future__ import annotations

import contextlib
import importlib
import random
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from gradproof.errors import UsageError

INTERNAL = "torch.testing._internal"
DATABASES = {
    "op_db": f"{INTERNAL}.common_methods_invocations",
    "custom_op_db": f"{INTERNAL}.custom_op_db",
    "autograd_function_db": f"{INTERNAL}.autograd_function_db",
    "hop_db": f"{INTERNAL}.hop_db",
    "module_db": f"{INTERNAL}.common_modules",
}
DTYPES = {
    name: getattr(torch, name)
    for name in ("float64", "complex128", "float32", "complex64", "bfloat16", "float16", "complex32")
}
# What is swept unless dtypes are named: the formats in which a derivative can be told to many digits.
USUAL_DTYPES = ("float64", "complex128")
USUAL_DEVICES = ("cpu",)
Size = Literal["small", "full"]
SIZES: tuple[Size, ...] = ("small", "full")


@cache
def entries(database: str) -> dict[str, Any]:
    """By name, in the database's order."""
    try:
        module = importlib.import_module(DATABASES[database])
    except ModuleNotFoundError as missing:
        raise UsageError(
            f"PyTorch's test support needs {missing.name}, which is not installed: pip install {missing.name}"
        ) from missing
    return {getattr(entry, "full_name", entry.name): entry for entry in getattr(module, database)}


def samples(op: Any, dtype: torch.dtype, device: str = "cpu", size: Size = "small") -> Iterator[Any]:
    """PyTorch's samples, which it seeds one by one. `size`: its tests give elementwise operators 20 x 20 elements, but
    5 x 5 where they use the slow mode."""
    with _own_streams():  # conjugated samples are drawn at once, before anybody seeds
        drawn = iter(
            op.sample_inputs(
                device,
                dtype,
                requires_grad=True,
                include_conjugated_inputs=op.test_conjugated_samples and dtype.is_complex,
                small_inputs_only=size == "small",
            )
        )
    while True:
        with _own_streams():
            sample = next(drawn, None)
        if sample is None:
            return
        yield sample


@contextlib.contextmanager
def _own_streams() -> Iterator[None]:
    """Seeded random streams that leave the caller's as they are."""
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002 - the stream that PyTorch's samples use
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        random.seed(0)
        np.random.seed(0)  # noqa: NPY002
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)  # noqa: NPY002


def is_skipped(entry: Any, test_class: str, test: str, dtype: torch.dtype, **parameters: object) -> bool:
    """Whether PyTorch leaves this test out on CPU. One that it expects to fail is run: checkers can agree on that."""
    for decorate in entry.get_decorators(test_class, test, "cpu", dtype, parameters):
        if type(decorate).__name__ == "onlyCUDA" or getattr(decorate, "__name__", "") == "onlyCUDA":
            return True

        def probe(_: object) -> None: ...

        if getattr(decorate(probe), "__unittest_skip__", False):
            return True
    return False


def is_variable(x: object) -> bool:
    return isinstance(x, Tensor) and x.requires_grad


def on_a_copy(inplace: Callable[..., object]) -> Callable[..., object]:
    """An in-place operator as a function that leaves its argument alone."""

    def run(target: Tensor, *args: object, **kwargs: object) -> object:
        return inplace(target.clone(), *args, **kwargs)

    return run
