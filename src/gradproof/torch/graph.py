"""The graph that autograd keeps of a call: what it leads to, and what its nodes are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from gradproof.errors import first_line
from gradproof.program import Array
from gradproof.torch.calls import Call
from gradproof.torch.leaves import identical

# How the node of a custom operator with a registered backward is called, before the operator's own name.
OPERATOR = "GeneratedBackwardFor_"


@dataclass(frozen=True, eq=False)
class Graph:
    """A call that was made as the user would make it: the values, and the points that autograd made them from."""

    points: Sequence[torch.Tensor]
    values: Sequence[torch.Tensor]

    @cached_property
    def nodes(self) -> tuple[Any, ...]:
        return tuple(nodes(self.values))

    @cached_property
    def written(self) -> tuple[Any, ...]:
        """The nodes that are no operators of torch's own: custom Functions, and those of extensions."""
        return tuple([node for node in self.nodes if _is_written(node)])

    @property
    def any_graph(self) -> bool:
        """Whether autograd connects any value with the points."""
        return any(value.requires_grad for value in self.values)

    @cached_property
    def dead_end(self) -> str:
        """What a node says that stands for 'no derivative here'; nothing if there is none.

        A backward marked with @once_differentiable leaves such a node, which has no way on to the inputs: asked for
        gradients of given inputs, torch 2.13 goes round it and silently returns None.
        """
        return next((_message_of(node) for node in self.nodes if node.name() == "torch::autograd::Error"), "")


@dataclass(frozen=True, eq=False)
class Traced(Graph):
    """`writes`: whether the function wrote into its inputs at all; `overwritten` are those that have other numbers but
    the same node of the graph: they were changed behind autograd's back."""

    writes: bool
    overwritten: tuple[int, ...]


def trace(call: Call, point: Array) -> Traced:
    """Call the function as the user would, and keep the graph."""
    with torch.enable_grad():
        points = call.forms.points(call.inputs, point)
        # Copies, because a leaf of the graph may not be overwritten, and the function may overwrite its inputs.
        copies = call.forms.copies(points)
        before = [(copy._version, copy.grad_fn) for copy in copies]
        values = call.one(copies)
    overwritten = [
        i
        for i, (given, copy, (_, node)) in enumerate(zip(points, copies, before, strict=True))
        if copy.grad_fn is node and not (call.forms.by_input or identical(copy, given))
    ]
    writes = any(copy._version != version for copy, (version, _) in zip(copies, before, strict=True))
    return Traced(points, values, writes, tuple(overwritten))


def nodes(values: Sequence[torch.Tensor]) -> Iterator[Any]:
    """All nodes of the graph behind `values`, each once."""
    waiting: list[Any] = list(dict.fromkeys([value.grad_fn for value in values if value.grad_fn is not None]))
    seen = set(waiting)
    while waiting:
        node = waiting.pop()
        yield node
        for further, _ in node.next_functions:
            if further is not None and further not in seen:
                seen.add(further)
                waiting.append(further)


def forwardless(graph: Sequence[Any]) -> str:
    """Why there is no forward mode through these nodes. A custom operator can register a backward only: asked for a
    tangent, torch 2.13 goes round it and silently returns none."""
    for node in graph:
        if is_operator(node):
            return f"{rule_name(node)} is an operator without a forward rule"
    return ""


def _is_written(node: Any) -> bool:
    """Whether a rule is the work of somebody outside of torch. Its own Functions, such as those of compiled graphs and
    of checkpoints, are its own business."""
    name = name_of(node)
    if name.startswith(OPERATOR) or "CppNode" in name:
        return True
    if not isinstance(node, torch.autograd.function.BackwardCFunction):
        return False
    module = getattr(getattr(node, "_forward_cls", None), "__module__", "") or ""
    return module.split(".")[0] != "torch" or module.startswith("torch.testing")


def is_operator(node: Any) -> bool:
    """Whether a node belongs to an operator that somebody registered."""
    return name_of(node).startswith(OPERATOR)


def rule_name(node: Any) -> str:
    """What the user calls the rule that a node belongs to."""
    return name_of(node).removeprefix(OPERATOR).removesuffix("Backward")


def name_of(node: Any) -> str:
    """A rule in Python has the name of its class. Asked for its own, one of torch 2.6 raises once its graph is gone."""
    return type(node).__name__ if isinstance(node, torch.autograd.function.BackwardCFunction) else str(node.name())


def _message_of(node: Any) -> str:
    try:
        node(torch.zeros(()))
    except RuntimeError as error:
        return first_line(error)
    return "a backward is not differentiable"
