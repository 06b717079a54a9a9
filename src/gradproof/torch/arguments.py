"""Tensors for the command line, and torch's global random stream."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from numpy.typing import NDArray

from gradproof.errors import UsageError


def array(values: NDArray[Any], dtype: str) -> torch.Tensor:
    """A tensor of this format."""
    wanted = getattr(torch, dtype, None)
    if not isinstance(wanted, torch.dtype):
        raise UsageError(f"dtype={dtype} is not one of torch's; write dtype=float64, float32, bfloat16 or complex128")
    return torch.tensor(values).to(wanted)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Of the CPU and of every device; both are given back as they were."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield
