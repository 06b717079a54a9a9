"""What the command line asks for, validated once and passed whole; plain values that can be sent to other processes."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gradproof.cases import Case
from gradproof.cli.quick import Look
from gradproof.collect import Target
from gradproof.errors import UsageError
from gradproof.settings import Budget, Effort, Settings

Source = Target | Look


@dataclass(frozen=True, slots=True)
class Job:
    """One case: where it is found, and its name there."""

    source: Source
    name: str

    def case(self) -> Case:
        return next(case for case in self.source.cases() if case.name == self.name)


@dataclass(frozen=True, slots=True)
class Request:
    """Which cases, and how. `options` are those of `gradproof.check` that were given; the others are the cases' own."""

    sources: tuple[Source, ...]
    seed: int
    options: Mapping[str, Any]

    def jobs(self) -> Iterator[Job]:
        """Each case once, however often it was named."""
        seen: set[str] = set()
        for source in self.sources:
            for case in source.cases():
                if case.name not in seen:
                    seen.add(case.name)
                    yield Job(source, case.name)


def sources_of(
    targets: tuple[str, ...], args: tuple[str, ...], kwargs: tuple[str, ...], framework: str
) -> tuple[Source, ...]:
    found = tuple(_source(target, args, kwargs, framework) for target in targets)
    if (args or kwargs) and not all(isinstance(source, Look) for source in found):
        case = next(source.source for source in found if isinstance(source, Target))
        raise UsageError(
            f"--arg belongs to a function, and {case} is a file of cases; write gradproof check {case}:NAME --arg "
            f"'{(args or ('randn(3)',))[0]}'"
        )
    return found


def _source(target: str, args: tuple[str, ...], kwargs: tuple[str, ...], framework: str) -> Source:
    if "::" in target or not re.search(r":[A-Za-z_][\w.]*$", target):
        return Target.parsed(target)
    pairs = [text.partition("=") for text in kwargs]
    for name, _, text in pairs:
        if not name.strip().isidentifier() or not text:
            raise UsageError(f"--kwarg {name!r} is not understood; write --kwarg dim=0")
    return Look(target, args, tuple((name.strip(), text) for name, _, text in pairs), framework)


def options_of(
    order: int | None, effort: str | None, modes: str | None, tolerance: float | None, budget: str | None
) -> dict[str, Any]:
    """Those that were given, read and checked before anything runs."""
    read = {
        "order": order,
        "effort": None if effort is None else effort_of(effort),
        "modes": None if modes is None else tuple(part.strip() for part in modes.split(",")),
        "tolerance": tolerance,
        "budget": None if budget is None else _budget(budget),
    }
    given: dict[str, Any] = {name: value for name, value in read.items() if value is not None}
    Settings.validated(**given)
    return given


def effort_of(text: str) -> Effort:
    """`auto`, `exhaustive` or a number of probes."""
    effort: Effort = int(text) if text.isdigit() else text  # type: ignore[assignment]  validated next
    return Settings.validated(effort=effort).effort


def seed_of(text: str) -> int:
    """A whole number, or `random` for a fresh one."""
    if text == "random":
        return secrets.randbits(32)
    if not text.isdigit():
        raise UsageError(f"--seed {text} is not understood; write --seed 7, or --seed random")
    return int(text)


def _budget(text: str) -> Budget:
    calls: int | None = None
    seconds: float | None = None
    for part in text.split(","):
        found = re.fullmatch(r"\s*(?:(\d+)|(\d*\.?\d+)\s*s)\s*", part)
        if not found:
            raise UsageError(f"--budget {text} is not understood; write --budget 200 (calls), 2.5s, or 200,2.5s")
        calls, seconds = (int(found[1]), seconds) if found[1] else (calls, float(found[2]))
    return Budget(calls=calls, seconds=seconds)
