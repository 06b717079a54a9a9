"""Which inputs a gradient reaches through the rules that people wrote, for adapters that can tell (`routes`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gradproof.program import Program, rule_of


@dataclass(frozen=True, slots=True)
class Route:
    """What a rule gives for one of its arguments, counting arrays only, goes on to these inputs, by their paths."""

    rule: str
    argument: int
    inputs: frozenset[str]


def routes_of(program: Program) -> tuple[Route, ...]:
    found: Callable[[], tuple[Route, ...]] | None = getattr(rule_of(program), "routes", None)
    return () if found is None else found()
