"""What a framework's own contracts are asked, and what they answer. The core finds them through `adapters`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from gradproof.result import Finding
from gradproof.settings import CONTRACTS, Tolerance

# Whether contracts may call the function at other points, or the user has confined its arguments.
Reach = Literal["anywhere", "point"]


@dataclass(frozen=True)
class Terms:
    """Which contracts, how much may differ, what random numbers are drawn from, whether so many more calls can be paid
    for, and where they may be. `repeated`: pulls that were made already gave the same twice, to the last digits.
    `made_of`: the size of the terms that each output is made of, as far as it is known (see `sizes`)."""

    names: tuple[str, ...]
    tolerance: Tolerance
    nondet_tol: float
    seed: tuple[int, ...]
    affords: Callable[[int], bool] = lambda _: True
    reach: Reach = "anywhere"
    repeated: bool = False
    made_of: tuple[float, ...] = ()

    @cached_property
    def generator(self) -> np.random.Generator:
        """A stream of its own: what else is drawn does not depend on the contracts. Most draw nothing from it."""
        return np.random.default_rng(self.seed)

    @property
    def by_hand(self) -> bool:
        """Whether the user named them: then the price is known to be wanted."""
        return self.names != CONTRACTS


@dataclass(frozen=True, slots=True)
class Kept:
    """What was found, and a note on what was looked at."""

    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()


# A framework's suite: its program, and the terms.
Suite = Callable[[Any, Terms], Kept]
