"""Rules that people wrote: what they lead to in a graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from gradproof.routes import Route
from gradproof.torch.graph import Graph, name_of, rule_name

# What leads from the point to the arguments of a function that is given copies of it.
COPIES = {"torch::autograd::AccumulateGrad", "CloneBackward0"}


def routes(graph: Graph, paths: Sequence[str]) -> tuple[Route, ...]:
    """Which points lie behind which argument of which written rule. Who checks one rule by itself knows which it is."""
    nodes, written = graph.nodes, graph.written
    if not written or (len(written) == 1 and all(node is written[0] or name_of(node) in COPIES for node in nodes)):
        return ()
    bits: dict[Any, int] = {}
    for k, point in enumerate(graph.points):
        if point.requires_grad:
            node = torch.autograd.graph.get_gradient_edge(point).node
            bits[node] = bits.get(node, 0) | 1 << k
    behind = _behind(written, bits)
    found = []
    for node in written:
        for argument, (further, _) in enumerate(node.next_functions):
            mask = 0 if further is None else behind[further]
            if mask:
                inputs = frozenset(path for k, path in enumerate(paths) if mask >> k & 1)
                found.append(Route(rule_name(node), argument, inputs))
    return tuple(found)


def _behind(starts: Sequence[Any], bits: dict[Any, int]) -> dict[Any, int]:
    """Of every node the points that it leads to, one bit each. No recursion: a graph may be deeper than the stack."""
    known: dict[Any, int] = {}
    waiting = list(starts)
    while waiting:
        node = waiting[-1]
        nexts = [further for further, _ in node.next_functions if further is not None]
        open_ones = [further for further in nexts if further not in known]
        if node in known or not open_ones:
            waiting.pop()
            own = bits.get(node, 0)
            for further in nexts:
                own |= known.get(further, 0)
            known[node] = own
        else:
            waiting += open_ones
    return known
