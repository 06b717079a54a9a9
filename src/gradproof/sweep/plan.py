"""What a sweep is asked to do: which cases, and how each one is checked."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from typing import Any

from gradproof.settings import Effort, Settings
from gradproof.sweep.filters import ALL, Filter
from gradproof.sweep.row import Key


@dataclass(frozen=True, slots=True)
class Terms:
    """How every case is checked; where this says nothing (None), the case's own options hold."""

    modes: tuple[str, ...] | None = None
    effort: Effort | None = None
    tolerance: float | None = None
    contracts: tuple[str, ...] | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        self.settings(Key("", "", 1))  # to object now, and not in the first of many workers

    @classmethod
    def stored(cls, text: str) -> Terms:
        """From the JSON of its fields, which has lists for tuples."""
        given: dict[str, Any] = json.loads(text)
        return cls(**given | {name: tuple(value) for name, value in given.items() if isinstance(value, list)})

    def seed_of(self, key: Key) -> int:
        """Its own for every case, and the same wherever and whenever the case is run."""
        return zlib.crc32(f"{self.seed}/{key.case}".encode("utf-8", "surrogatepass"))

    def options(self, key: Key) -> dict[str, Any]:
        """Those of `gradproof.check`; they win over the case's own."""
        given: dict[str, Any] = {
            "modes": self.modes,
            "effort": self.effort,
            "tolerance": self.tolerance,
            "contracts": self._contracts(),
        }
        if key.order:
            given |= {"order": key.order, "lowest": key.order}
        return {name: value for name, value in given.items() if value is not None} | {"seed": self.seed_of(key)}

    def settings(self, key: Key) -> Settings:
        return Settings.validated(**self.options(key))

    def _contracts(self) -> str | tuple[str, ...] | None:
        """`all` and `none` are words for all of them."""
        return self.contracts[0] if self.contracts in (("all",), ("none",)) else self.contracts


@dataclass(frozen=True, slots=True)
class Plan:
    """The whole of it, in plain words. `retry`: verdicts and endings of which the rows of an earlier run are made
    again."""

    catalogues: tuple[str, ...]
    filter: Filter = ALL
    terms: Terms = Terms()
    retry: tuple[str, ...] = ()
