"""Things done around each call of a torch function or module."""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import torch

from gradproof import around
from gradproof.around import After, Before
from gradproof.torch.names import name_of


def reseeder() -> Before:
    """Puts torch's streams, on all devices, back to where they are now."""
    cpu = torch.get_rng_state()
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None  # type: ignore[no-untyped-call]

    def before() -> None:
        torch.set_rng_state(cpu)
        if cuda is not None:
            torch.cuda.set_rng_state_all(cuda)

    return before


def composed(fn: Callable[..., Any], before: Before | None, after: After | None) -> Callable[..., Any]:
    """A module stays one, so that its parameters keep their names: a shallow copy, which shares all but its hooks."""
    if not isinstance(fn, torch.nn.Module) or isinstance(fn, torch.jit.ScriptModule):
        call = around.composed(fn, before, after)
        call.__qualname__ = name_of(fn)
        return call
    module = copy.copy(fn)
    module._forward_hooks = OrderedDict(fn._forward_hooks)
    module._forward_hooks_with_kwargs = OrderedDict(fn._forward_hooks_with_kwargs)
    module._forward_pre_hooks = OrderedDict(fn._forward_pre_hooks)
    module._forward_pre_hooks_with_kwargs = OrderedDict(fn._forward_pre_hooks_with_kwargs)
    if before is not None:
        module.register_forward_pre_hook(lambda _module, _args: before(), prepend=True)
    if after is not None:
        module.register_forward_hook(lambda _module, _args, result: after(result))
    return module
