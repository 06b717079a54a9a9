"""Leave the world as it was: random states of torch and NumPy, grad mode, default dtype, training flags."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

import numpy as np
import torch

from gradproof.streams import NumpyStream
from gradproof.torch.turns import Turn


class Modes:
    """A reusable, nestable scope: grad mode, default dtype and training flags are what they were on the way out,
    whatever the way out is. Enough around a function that draws no random numbers, inside of a `Purity`. `reading`
    makes one more scope to be in meanwhile; what is `held` no other thread has."""

    __slots__ = ("_flags", "_held", "_modules", "_reading")

    def __init__(
        self,
        modules: Sequence[torch.nn.Module] = (),
        reading: Callable[[], AbstractContextManager[object]] | None = None,
        held: Turn | None = None,
    ) -> None:
        self._modules = tuple(modules)
        self._reading = reading
        self._held = held
        self._flags: list[tuple[Any, ...]] = []

    def __enter__(self) -> None:
        if self._held is not None:
            self._held.__enter__()
        training = [module.training for module in self._modules] if self._modules else ()
        self._flags.append((torch.is_grad_enabled(), torch.get_default_dtype(), training, self._entered()))

    def _entered(self) -> Sequence[AbstractContextManager[object]]:
        """The scopes inside of this one; mostly none."""
        inference = torch.is_inference_mode_enabled()
        if self._reading is None and not inference:
            return ()
        inner: list[AbstractContextManager[object]] = [torch.inference_mode(mode=False)] if inference else []
        if self._reading is not None:
            inner.append(self._reading())
        for one in inner:
            one.__enter__()
        return inner

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        grad, dtype, training, inner = self._flags.pop()
        torch._C._set_grad_enabled(grad)
        if torch.get_default_dtype() is not dtype:
            torch.set_default_dtype(dtype)
        if self._modules:
            for module, flag in zip(self._modules, training, strict=True):
                module.training = flag
        if inner:
            for one in reversed(inner):
                one.__exit__(None, None, None)
        if self._held is not None:
            self._held.__exit__()


class Purity(Modes):
    """The same for the random states of torch and NumPy too."""

    __slots__ = ("_random",)

    def __init__(
        self,
        modules: Sequence[torch.nn.Module] = (),
        reading: Callable[[], AbstractContextManager[object]] | None = None,
        held: Turn | None = None,
    ) -> None:
        super().__init__(modules, reading, held)
        self._random: list[tuple[torch.Tensor, Any, NumpyStream]] = []

    def __enter__(self) -> None:
        super().__enter__()
        cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None  # type: ignore[no-untyped-call]
        self._random.append((torch.get_rng_state(), cuda, NumpyStream()))

    def moved(self) -> bool:
        """Inside the scope: whether a random stream has been used since it was entered."""
        rng, cuda, numpy_state = self._random[-1]
        if not torch.equal(torch.get_rng_state(), rng) or numpy_state.moved():
            return True
        after = torch.cuda.get_rng_state_all() if cuda is not None else []
        return any(not torch.equal(one, other) for one, other in zip(cuda or [], after, strict=True))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        rng, cuda, numpy_state = self._random.pop()
        torch.set_rng_state(rng)
        if cuda is not None:
            torch.cuda.set_rng_state_all(cuda)
        numpy_state.restore()
        super().__exit__(kind, error, trace)


def streams(devices: Iterable[torch.device]) -> tuple[torch.device, ...]:
    """The devices whose random numbers a function of tensors on these may use."""
    return tuple({torch.device("cpu"), *devices})


def move_on(drawn: Sequence[torch.device]) -> None:
    """Take a number from each stream that a call has drawn from: what comes after it must not get the same ones."""
    for device in drawn:
        torch.rand(1, device=device)
    if drawn:
        np.random.random()  # noqa: NPY002  the stream that the user's function would use
