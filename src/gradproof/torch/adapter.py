"""`program_of`: a torch function or module at a point, as a `Program`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch.nn.parameter import is_lazy

from gradproof.errors import UsageError
from gradproof.program import Tally
from gradproof.torch.calls import UserCall
from gradproof.torch.captured import captured_paths
from gradproof.torch.composed import composed, reseeder
from gradproof.torch.forms import Meaning
from gradproof.torch.names import name_of
from gradproof.torch.selection import chosen, foreign
from gradproof.torch.storage import OUT_OF_BOUNDS, with_storage
from gradproof.torch.torchprogram import TorchProgram
from gradproof.torch.tree import Tree, flatten
from gradproof.torch.turns import Turn, turn_of

__all__ = ["composed", "name_of", "owns", "program_of", "reseeder"]


def owns(fn: Callable[..., Any], args: Any, kwargs: Mapping[str, Any]) -> bool:
    """A module, or any tensor among the arguments."""
    if isinstance(fn, torch.nn.Module) or isinstance(args, torch.Tensor):
        return True
    if type(args) in (tuple, list) and any(isinstance(value, torch.Tensor) for value in args):
        return True
    found: list[tuple[str, Any]] = []
    flatten((args, dict(kwargs)), "", found)
    return any(isinstance(value, torch.Tensor) for _, value in found)


def program_of(
    fn: Callable[..., Any],
    args: Any,
    kwargs: dict[str, Any] | None = None,
    wrt: str | Sequence[str] | None = None,
    meaning: Meaning = Meaning.MASKED,
) -> TorchProgram:
    """`args`: one tensor, a tuple or list of positional arguments, or any other structure as the only argument.
    `meaning`: what the coordinates of sparse arguments are."""
    if not callable(fn):
        raise UsageError(f"fn must be callable, got {type(fn).__name__}: gradproof.check(torch.sin, x)")
    if isinstance(fn, torch.jit.ScriptModule):
        fn = functools.partial(fn)  # torch cannot call it with other parameters, so it counts as a plain function
    if kwargs is not None and not isinstance(kwargs, dict):
        raise UsageError(f"kwargs must be a dict, got {type(kwargs).__name__}: gradproof.check(fn, args, {{'dim': 0}})")
    positional = tuple(args) if type(args) in (tuple, list) else (args,)
    arguments: list[tuple[str, Any]] = []
    # A dict of keyword arguments is rebuilt as one, and so `kwargs['bias']` is the path of one of them.
    sides = flatten(positional, "args", arguments), flatten(dict(kwargs or {}), "kwargs", arguments)
    tree = Tree(tuple, sides, tuple)
    held = turn_of(fn, arguments)
    with held or nullcontext():
        found = _found(fn, positional, (tree, arguments), functools.partial(chosen, wrt=wrt), meaning, held)
    found.skipped += foreign(arguments)
    return found


def _found(
    fn: Callable[..., Any],
    positional: tuple[Any, ...],
    arguments: tuple[Tree | None, Sequence[tuple[str, Any]]],
    choice: Callable[..., frozenset[str]],
    meaning: Meaning,
    held: Turn | None,
) -> TorchProgram:
    named = arguments[1]
    params: list[tuple[str, torch.Tensor]] = []
    buffers: list[tuple[str, torch.Tensor]] = []
    if isinstance(fn, torch.nn.Module):
        params = [(f"params.{name}", param) for name, param in fn.named_parameters()]
        buffers = [(f"buffers.{name}", buffer) for name, buffer in fn.named_buffers()]
    for path, tensor in (*params, *buffers):
        if is_lazy(tensor):
            raise UsageError(f"{path} is lazy and has no shape yet; run the module once first: module(x)")
    wanted = choice(named, params)
    program = functools.partial(_traced, arguments, [*params, *buffers], wanted, meaning)
    placed: Callable[..., Any] | None = None
    try:
        first = program(fn, held)
    except RuntimeError as error:
        placed = with_storage(fn, positional) if OUT_OF_BOUNDS in str(error) else None
        if placed is None:
            raise
    if placed is not None:
        fn, first = placed, program(placed, held)
    if not first.traced.any_graph:
        # A module that the function makes of its arguments registers parameters, not copies of them.
        kept = frozenset(path for path, value in named if path in wanted and type(value) is torch.nn.Parameter)
        again = program(fn, held, registered=kept) if kept else first
        first = again if again.traced.any_graph else first
    # Only the graph of a first call shows which tensors fn reaches past its arguments.
    originals = [one for one in (*named, *params) if one[0] in wanted]
    captured = captured_paths(first.traced.nodes, originals)
    if not captured:
        return first
    held = Turn([*(held.objects if held else ()), *(tensor for path, tensor in originals if path in captured)])
    with held:
        return program(fn, held, captured)


def _traced(
    arguments: tuple[Tree | None, Sequence[tuple[str, Any]]],
    state: Sequence[tuple[str, torch.Tensor]],
    wanted: frozenset[str],
    meaning: Meaning,
    fn: Callable[..., Any],
    held: Turn | None,
    captured: frozenset[str] = frozenset(),
    registered: frozenset[str] = frozenset(),
) -> TorchProgram:
    call = UserCall(fn, arguments, state, wanted, meaning, captured, registered)
    call.held = held
    return TorchProgram(call, name_of(fn), call.point(), Tally())
