"""Which part of a catalogue is swept, read from the words of the command line."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from gradproof.cases import Case
from gradproof.errors import UsageError
from gradproof.selection import EVERYTHING, Selection
from gradproof.sweep.row import Ending
from gradproof.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Shard:
    """The cases whose name falls to `number` of `count`: the same ones on every machine, whatever else is swept."""

    number: int = 1
    count: int = 1

    def __post_init__(self) -> None:
        if self.count < 1:
            raise UsageError(f"there is no shard {self}; write 3/8 for the third of eight")
        if not 1 <= self.number <= self.count:
            raise UsageError(f"there is no shard {self}; write 1/{self.count} to {self.count}/{self.count}")

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def holds(self, name: str) -> bool:
        return self.count == 1 or _digest(name) % self.count == self.number - 1


@dataclass(frozen=True, slots=True)
class Filter:
    """`orders` (0,): as each case says. `limit` counts cases, after everything else. `case`: only the one of this name;
    empty: all."""

    selection: Selection = EVERYTHING
    orders: tuple[int, ...] = (0,)
    shard: Shard = Shard()
    limit: int | None = None
    case: str = ""

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise UsageError(f"limit={self.limit!r} is not understood; write a number of cases >= 1")

    def chosen(self, cases: Iterable[Case]) -> Iterator[Case]:
        wanted = (case for case in cases if self.selection.wants(case) and self.shard.holds(case.name))
        if self.case:
            return islice((case for case in wanted if case.name == self.case), 1)
        return islice(wanted, self.limit)


ALL = Filter()


# One text, with commas or without, or several.
Words = str | Iterable[str] | None


def words(text: Words) -> tuple[str, ...]:
    """`"float64,bfloat16"`, or several such words, one by one."""
    given = (text,) if isinstance(text, str) else tuple(text or ())
    return tuple(word.strip() for each in given for word in each.split(",") if word.strip())


def orders(given: int | str | Iterable[int] | None) -> tuple[int, ...]:
    """`"1,2"`, 2, (1, 2)."""
    if given is None:
        return (0,)
    numbers = words(given) if isinstance(given, str) else (given,) if isinstance(given, int) else tuple(given)
    try:
        found = tuple(sorted({int(number) for number in numbers}))
    except (TypeError, ValueError):
        found = ()
    if not found or found[0] < 1:
        raise UsageError(f"order={given!r} is not understood; write order=1, order=2 or order='1,2'")
    return found


def retried(given: Words) -> tuple[str, ...]:
    """`"error,too long"`: verdicts and endings, as the store has them. A command line has dashes for spaces."""
    named = tuple(word.replace("-", " ") for word in words(given))
    known = [one.value for one in (*Verdict, *Ending) if one is not Ending.FINISHED]
    for word in named:
        if word not in known:
            choice = ", ".join(one.replace(" ", "-") for one in known)
            raise UsageError(f"there is no row to retry that is {word!r}; write one of {choice}")
    return named


def shard(given: str | Shard | None) -> Shard:
    """`"3/8"`."""
    if given is None or isinstance(given, Shard):
        return given or Shard()
    number, slash, count = given.partition("/")
    if not (slash and number.strip().isdecimal() and count.strip().isdecimal()):
        raise UsageError(f"shard={given!r} is not understood; write shard='3/8' for the third of eight")
    return Shard(int(number), int(count))


def _digest(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()[:8], "big")
