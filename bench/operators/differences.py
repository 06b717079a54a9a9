"""The known disagreements: one line each in differences.toml, with who is right and why."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

from bench.operators.checkers import Mode
from bench.operators.measure import Outcome

FILE = Path(__file__).with_name("differences.toml")


@dataclass(frozen=True)
class Pair:
    """Both checkers on one case in one mode."""

    mode: Mode
    ours: Outcome
    torch: Outcome

    @property
    def case(self) -> str:
        return self.ours.case

    @property
    def differs(self) -> bool:
        """What torch did not finish says nothing about us."""
        return self.torch.verdict not in {self.ours.verdict, "timeout"}


@dataclass(frozen=True)
class Difference:
    """A line of the file. `case`, `ours` and `torch` are globs (`*`, `?`); `mode` is slow, fast or `*`."""

    case: str
    mode: str
    ours: str
    torch: str
    right: Literal["ours", "torch", "both"]
    why: str

    def __post_init__(self) -> None:
        if self.right not in {"ours", "torch", "both"}:
            raise ValueError(f"{self.case}: right is {self.right!r}, it must be ours, torch or both")
        if not self.why or "\n" in self.why:
            raise ValueError(f"{self.case}: why must be one line")

    def explains(self, pair: Pair) -> bool:
        return (
            fnmatchcase(pair.case, self.case)
            and fnmatchcase(pair.mode, self.mode)
            and fnmatchcase(pair.ours.verdict, self.ours)
            and fnmatchcase(pair.torch.verdict, self.torch)
        )


def read(file: Path = FILE) -> list[Difference]:
    with file.open("rb") as stream:
        return [Difference(**line) for line in tomllib.load(stream)["differences"]]
