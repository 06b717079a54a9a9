"""Checks in several threads. torch has one level of dual numbers for the whole process; a check of a module puts other
tensors into it, and one of captured tensors moves them in place. Threads that want the same take turns.

A turn is held while the user's function runs, which may have threads of its own that wait for it. So nobody waits
without an end, or without a word.
"""

from __future__ import annotations

import functools
import threading
import warnings
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import torch

from gradproof.errors import Unsupported

P = ParamSpec("P")
T = TypeVar("T")
PATIENCE = 60.0  # seconds
_DUALS = threading.RLock()
_CHANGED = threading.Condition()
_HELD: dict[int, list[int]] = {}  # by the id of what is held: the thread, and how often


def duals_in_turn(section: Callable[P, T]) -> Callable[P, T]:
    """Around a function that opens a dual level. Nobody else's level can be waited for: torch refuses a second one."""

    @functools.wraps(section)
    def alone(*args: P.args, **kwargs: P.kwargs) -> T:
        if not _DUALS.acquire(timeout=PATIENCE):
            raise Unsupported(f"another thread has been in forward mode for {PATIENCE:g} s, which torch has once only")
        try:
            return section(*args, **kwargs)
        finally:
            _DUALS.release()

    return alone


class Turn:
    """A reusable, nestable scope in which no other thread has one with any of the same modules or tensors. All of them
    are taken at once, so two threads cannot each hold what the other one wants."""

    __slots__ = ("_depth", "_keys", "_owner", "objects")

    def __init__(self, objects: Sequence[Any]) -> None:
        self.objects = objects  # alive as long as their ids are in use
        self._keys = list(dict.fromkeys(map(id, objects)))
        self._owner, self._depth = 0, 0

    def __enter__(self) -> None:
        me = threading.get_ident()
        if self._owner == me:
            self._depth += 1
            return
        with _CHANGED:
            while not _CHANGED.wait_for(lambda: self._free(me), PATIENCE):
                warnings.warn(
                    f"waiting for another thread, which has checked the same module or tensors for {PATIENCE:g} s",
                    RuntimeWarning,
                    stacklevel=2,
                )
            for key in self._keys:
                _HELD.setdefault(key, [me, 0])[1] += 1
        self._owner, self._depth = me, 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if self._depth:
            return
        self._owner = 0
        with _CHANGED:
            for key in self._keys:
                holder = _HELD[key]
                holder[1] -= 1
                if not holder[1]:
                    del _HELD[key]
            _CHANGED.notify_all()

    def _free(self, me: int) -> bool:
        return all(key not in _HELD or _HELD[key][0] == me for key in self._keys)


def turn_of(fn: Callable[..., Any], arguments: Sequence[tuple[str, Any]]) -> Turn | None:
    """What a check of `fn` changes meanwhile: where a module keeps its parameters, and parameters among the arguments,
    which are mostly those of a module that `fn` calls. None for most functions."""
    # The class of parameters asks in Python whether something is one.
    others = [value for _, value in arguments if type(value) is not torch.Tensor]
    objects = [value for value in others if isinstance(value, torch.nn.Parameter)]
    if isinstance(fn, torch.nn.Module):
        places = [module._parameters for module in fn.modules()]
        with Turn(places):  # another thread may have put its own tensors there
            objects += fn.parameters()
        return Turn([*places, *objects])
    return Turn(objects) if objects else None
