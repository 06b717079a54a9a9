"""Check every example and show what a user sees. Ends with status 0 if all verdicts are the expected ones."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cube
import gated
import huber
import layer_norm
import million
from rich.console import Console
from rich.text import Text

import gradproof
from gradproof import Verdict


@dataclass(frozen=True)
class Example:
    heading: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    expected: Verdict
    order: int = 1


EXAMPLES = (
    Example("A right custom Function, first and second order", cube.cube, cube.arguments(), Verdict.RIGHT, order=2),
    Example("A layer norm whose backward forgets a term", layer_norm.layer_norm, layer_norm.arguments(), Verdict.WRONG),
    Example("A Huber loss that is wrong in one tail only", huber.huber, huber.arguments(), Verdict.WRONG),
    Example("A right nn.Module, with its parameters", gated.module(), gated.arguments(), Verdict.RIGHT),
    Example("A million entries, one of them 5 % off", million.softplus, million.arguments(), Verdict.WRONG),
)


def main() -> int:
    """Run all examples; the number of unexpected verdicts is the exit status."""
    # A pipe has no width of its own; 80 columns would fold the longer lines for no reason.
    console = Console(width=None if sys.stdout.isatty() else 120)
    unexpected = 0
    for example in EXAMPLES:
        result = gradproof.check(example.function, example.arguments, order=example.order, seed=0)
        console.print(Text(f"\n{example.heading}", style="underline"))
        console.print(result)
        if result.verdict is not example.expected:
            unexpected += 1
            console.print(Text(f"expected {example.expected}, got {result.verdict}", style="bold red"))
    console.print(Text(f"\n{len(EXAMPLES) - unexpected} of {len(EXAMPLES)} verdicts are as expected"))
    return unexpected


if __name__ == "__main__":
    sys.exit(main())
