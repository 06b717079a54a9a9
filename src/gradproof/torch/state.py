"""What a module had for its parameters and buffers in a call, for the reverse passes through the graph of that call.

A call of a module with other parameters leaves the module as it was. But a backward may call it again: the adjoint of
an ODE's solver does, a layer that solves for a fixed point, a checkpoint. It must meet the tensors that forward had, or
the parameters seem to have no gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import torch

T = TypeVar("T")


class Values(list[torch.Tensor]):
    """What the call of a module gave, and who has the tensors that it was called with."""

    __slots__ = ("_of",)

    def __init__(self, tensors: Iterable[torch.Tensor], module: torch.nn.Module, state: dict[str, Any]) -> None:
        super().__init__(tensors)
        self._of = _Around(module), {f"inner.{name}": tensor for name, tensor in state.items()}

    def restored(self, run: Callable[[], T]) -> T:
        """`run` while the module has them."""
        around, state = self._of
        # A dict of its own: torch (2.13) writes into it what the module has on the way out.
        result: T = torch.func.functional_call(around, dict(state), (run,))
        return result

    def followed_by(self, tensors: Iterable[torch.Tensor]) -> Values:
        """Other tensors that were made of these, whose graph goes through the same."""
        found = Values.__new__(Values)
        list.__init__(found, tensors)
        found._of = self._of
        return found


class _Around(torch.nn.Module):
    """A module whose call is the call of something else: the one thing that torch exchanges parameters for."""

    def __init__(self, inner: torch.nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, run: Callable[[], T]) -> T:
        return run()


def as_called(values: Sequence[torch.Tensor], run: Callable[[], T]) -> T:
    """`run` as if it were a part of the call that gave these values."""
    return values.restored(run) if isinstance(values, Values) else run()
