"""One check of a sweep: what it is about (`Item`), how it came to an end (`Ending`), what it gave (`Row`)."""

from __future__ import annotations

import enum
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from gradproof.cases import UNKNOWN, Traits
from gradproof.result import Verdict


@dataclass(frozen=True, slots=True)
class Key:
    """What makes a row unique. `order` is 0 where the case itself says up to which order it is checked."""

    catalogue: str
    case: str
    order: int

    def __str__(self) -> str:
        return f"{self.case}, order {self.order}" if self.order else self.case

    def among(self, catalogues: Collection[str]) -> str:
        """With its catalogue, where there are several: two of them may well have cases of the same name."""
        return str(self) if len(catalogues) < 2 or self.case == self.catalogue else f"{self.catalogue}::{self}"


@dataclass(frozen=True, slots=True)
class Item:
    """A check to be made. Plain words, so that it travels: the worker builds the case again from its name."""

    key: Key
    traits: Traits = UNKNOWN


class Ending(enum.Enum):
    """How a check ended. NOT_FOUND: it was listed, but the worker could not load it. KILLED: its process was ended from
    outside, by nobody knows whom."""

    FINISHED = "finished"
    RAISED = "raised"
    CRASHED = "crashed"
    TOO_LONG = "too long"
    TOO_MUCH_MEMORY = "too much memory"
    NOT_LISTED = "not listed"
    NOT_FOUND = "not found"
    KILLED = "killed"

    def __str__(self) -> str:
        return self.value


# These say nothing of the case: the next run tries again.
PASSING = (Ending.NOT_LISTED, Ending.NOT_FOUND, Ending.KILLED)


@dataclass(frozen=True, slots=True)
class Row:
    """`code`, `message` and `diagnosis` belong to the loudest finding; `digits` are those of the least exact block;
    `seconds` are those of the clock, `processor` those of the processor, which others do not slow; `result` is the
    whole result as JSON; `output` what the check printed, where it did not come to its end."""

    item: Item
    verdict: Verdict
    ending: Ending
    code: str = ""
    message: str = ""
    diagnosis: str = ""
    digits: float | None = None
    calls: int = 0
    seconds: float = 0.0
    processor: float = 0.0
    result: str = ""
    output: str = ""

    def plain(self) -> tuple[Any, ...]:
        """The same in plain values, one after the other: those of a store's columns."""
        key, traits = self.item.key, self.item.traits
        return (
            key.catalogue, key.case, key.order, traits.operator, traits.family, traits.dtype, traits.device,
            self.verdict.value, self.ending.value, self.code, self.message, self.diagnosis,
            self.digits, self.calls, self.seconds, self.processor, self.result, self.output,
        )  # fmt: skip

    def __reduce__(self) -> tuple[Any, ...]:
        """Tens of thousands of rows travel from the workers."""
        return row_from, (self.plain(),)


def row_from(plain: Sequence[Any]) -> Row:
    item = Item(Key(*plain[:3]), Traits(*plain[3:7]))
    return Row(item, Verdict(plain[7]), Ending(plain[8]), *plain[9:])
