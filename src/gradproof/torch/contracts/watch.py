"""Look over the shoulder of custom rules during a reverse pass: what they are given, and what they leave behind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import torch
from torch import Tensor

from gradproof.torch.leaves import identical

Kept = tuple[str, Tensor, Tensor]


@dataclass(frozen=True, slots=True)
class Looks:
    """Of a gradient that a rule has returned, before the engine casts it or sums it."""

    dtype: torch.dtype
    layout: torch.layout
    shape: torch.Size


def looks_of(returned: Any) -> tuple[Looks | None, ...]:
    """Of all that a backward returned, one for each argument of forward; None for what is no tensor."""
    several = returned if isinstance(returned, tuple) else (returned,)
    return tuple([Looks(one.dtype, one.layout, one.shape) if isinstance(one, Tensor) else None for one in several])


@dataclass(eq=False)
class Watch:
    """`with Watch(nodes) as watch: <reverse pass>`. `cotangents` are copies of what each node was given, `returned` is
    how that looks which a rule in Python has returned, `overwritten` says in words what a node's backward wrote into.
    What it wrote into the buffers and parameters of modules is undone: they are the user's."""

    written: Sequence[Any]
    modules: Sequence[torch.nn.Module] = ()
    cotangents: dict[Any, tuple[Tensor | None, ...]] = field(default_factory=dict)
    returned: dict[Any, tuple[Looks | None, ...]] = field(default_factory=dict)
    overwritten: list[tuple[Any, str]] = field(default_factory=list)
    _saved: list[tuple[Any, Kept]] = field(default_factory=list)
    _held: list[Kept] = field(default_factory=list)
    _handles: list[Any] = field(default_factory=list)
    _looked_at: list[Any] = field(default_factory=list)

    def __enter__(self) -> Self:
        for node in self.written:
            self._saved += [(node, (name, tensor, tensor.detach().clone())) for name, tensor in _saved(node)]
            if isinstance(node, torch.autograd.function.BackwardCFunction):
                self._look_at(node)
            self._handles += [node.register_prehook(self._before(node)), node.register_hook(self._after(node))]
        for module in self.modules if self.written else ():
            held = [*module.named_buffers(prefix="buffers"), *module.named_parameters(prefix="params")]
            self._held += [(name, tensor, tensor.detach().clone()) for name, tensor in held]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        for node in self._looked_at:
            vars(node).pop("apply", None)  # there is none where it has run
        self._looked_at.clear()
        for node, (name, tensor, before) in self._saved:
            if not identical(tensor, before):
                self.overwritten.append((node, name))
        for name, tensor, before in self._held:
            if not identical(tensor, before):
                self.overwritten.append((None, name))
                tensor.data.copy_(before)
        self._saved.clear()
        self._held.clear()

    def _look_at(self, node: Any) -> None:
        """The engine (torch 2.13) asks a rule in Python for its `apply`. Hooks see what it has mended. The rule itself
        meets its ctx as it is."""

        def apply(*cotangents: Any) -> Any:
            del node.apply
            returned = node.apply(*cotangents)
            self.returned[node] = looks_of(returned)
            return returned

        node.apply = apply
        self._looked_at.append(node)

    def _before(self, node: Any) -> Any:
        def hook(cotangents: tuple[Tensor | None, ...]) -> None:
            self.cotangents[node] = tuple(None if one is None else one.detach().clone() for one in cotangents)

        return hook

    def _after(self, node: Any) -> Any:
        def hook(_: tuple[Tensor | None, ...], cotangents: tuple[Tensor | None, ...]) -> None:
            for before, after in zip(self.cotangents.get(node, ()), cotangents, strict=False):
                if before is not None and after is not None and not identical(after, before):
                    self.overwritten.append((node, "the incoming gradient"))

        return hook


def _saved(rule: Any) -> Iterator[tuple[str, Tensor]]:
    """The tensors that a rule keeps for its backward: saved ones, and attributes of ctx."""
    if not isinstance(rule, torch.autograd.function.BackwardCFunction):
        return  # an extension's are its own secret
    node: Any = rule
    try:
        saved = node.saved_tensors
    except RuntimeError:  # freed, or changed since: that is said where it is used
        saved = ()
    yield from ((f"saved tensor {i}", one) for i, one in enumerate(saved) if isinstance(one, Tensor))
    for name, value in vars(node).items():
        members = value if isinstance(value, (tuple, list)) else (value,)
        yield from ((f"ctx.{name}", one) for one in members if isinstance(one, Tensor))
