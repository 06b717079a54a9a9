"""What stands behind an option, read before anything is loaded. What is refused is told as one would write it here."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from gradproof.errors import UsageError
from gradproof.settings import CONTRACTS, Budget, Effort, Settings
from gradproof.sweep import filters

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Option(Generic[T]):
    """`read` objects to its text with a ValueError; `write` is what would have been understood."""

    name: str
    read: Callable[[str], T]
    write: str

    def value(self, text: str) -> T:
        try:
            return self.read(text)
        except ValueError as refused:
            raise UsageError(f"--{self.name} {text} is not understood; write --{self.name} {self.write}") from refused


def _valid(name: str, value: Any) -> Any:
    """As `gradproof.check` would take it."""
    Settings.validated(**{name: value})
    return value


def _effort(text: str) -> Effort:
    return cast(Effort, _valid("effort", int(text) if text.isdecimal() else text))


def _modes(text: str) -> tuple[str, ...]:
    return cast(tuple[str, ...], _valid("modes", filters.words(text)))


def _contracts(text: str) -> tuple[str, ...]:
    named = filters.words(text)
    _valid("contracts", named[0] if named in (("all",), ("none",)) else named)
    if not named:
        raise ValueError(text)
    return named


def _seed(text: str) -> int:
    return secrets.randbits(32) if text == "random" else int(_valid("seed", int(text)))


def _budget(text: str) -> Budget:
    calls: int | None = None
    seconds: float | None = None
    for part in text.split(","):
        found = re.fullmatch(r"\s*(?:(\d+)|(\d*\.?\d+)\s*s)\s*", part)
        if not found:
            raise ValueError(text)
        calls, seconds = (int(found[1]), seconds) if found[1] else (calls, float(found[2]))
    return Budget(calls=calls, seconds=seconds)


ORDER = Option("order", lambda text: int(_valid("order", int(text))), "1, or --order 2 for second derivatives too")
ORDERS = Option("order", filters.orders, "1, 2, or 1,2 for a verdict on each")
EFFORT = Option("effort", _effort, "auto, exhaustive, or a number of probes: --effort 4")
MODES = Option("modes", _modes, "reverse, forward, or reverse,forward (functions of JAX have linearize too)")
TOLERANCE = Option("tolerance", lambda text: float(_valid("tolerance", float(text))), "1e-4 (relative, and >= 0)")
BUDGET = Option("budget", _budget, "200 (calls), 2.5s, or 200,2.5s")
RANDOMNESS = Option("randomness", lambda text: str(_valid("randomness", text)), "detect, or --randomness reseed")
SEED = Option("seed", _seed, "7, or --seed random")
NAMED_CONTRACTS = Option("contracts", _contracts, f"all, none, or some of {','.join(CONTRACTS)}")
SHARD = Option("shard", filters.shard, "3/8 for the third of eight")
