"""What the command line asks for, validated once and passed whole; plain values that can be sent to other processes."""

from __future__ import annotations

import re
import secrets
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from gradproof.arrays import installed
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
    """Which cases, and how. `options` are those of `gradproof.check` that were given, `words` the same as they were
    written; the others are the cases' own."""

    sources: tuple[Source, ...]
    seed: int
    options: Mapping[str, Any]
    words: tuple[str, ...] = ()

    def command(self, job: Job) -> str:
        """What runs this one case again."""
        return shlex.join(["gradproof", "check", *job.source.words(job.name), *self.words, "--seed", str(self.seed)])

    def jobs(self) -> Iterator[Job]:
        """Each case once, however often it was named."""
        seen: set[str] = set()
        for source in self.sources:
            for case in source.cases():
                if case.name not in seen:
                    seen.add(case.name)
                    yield Job(source, case.name)


def _sources(targets: tuple[str, ...], given: Mapping[str, Any]) -> tuple[Source, ...]:
    found = tuple(_source(target, given) for target in targets)
    loose = [name for name in ("arg", "kwarg", "derivative") if given[f"{name}s" if name != "derivative" else name]]
    if loose and not all(isinstance(source, Look) for source in found):
        file = next(source.source for source in found if isinstance(source, Target))
        raise UsageError(
            f"--{loose[0]} belongs to a function, and {file} is a file of cases; write gradproof check {file}:NAME "
            "--arg 'randn(3)'"
        )
    return found


def _source(target: str, given: Mapping[str, Any]) -> Source:
    if "::" in target or not re.search(r":[A-Za-z_][\w.]*$", target):
        return Target.parsed(target)
    kwargs, written = _pairs("kwarg", given["kwargs"], "dim=0"), _pairs("derivative", given["derivative"], "jac=f_jac")
    # Derivatives that were written by hand are those of NumPy functions.
    framework = given["framework"] or ("numpy" if written else installed())
    return Look(target, given["args"], kwargs, framework, written)


def _pairs(option: str, texts: tuple[str, ...], example: str) -> tuple[tuple[str, str], ...]:
    pairs = []
    for text in texts:
        name, _, value = text.partition("=")
        if not name.strip().isidentifier() or not value:
            raise UsageError(f"--{option} {text!r} is not understood; write --{option} {example}")
        pairs.append((name.strip(), value.strip()))
    return tuple(pairs)


def request_of(targets: tuple[str, ...], given: Mapping[str, Any]) -> Request:
    """From what stands on the command line; everything is read and checked before anything runs."""
    written = {name: given[name] for name in _READ if given[name] is not None}
    options = {name: _READ[name](value) for name, value in written.items()}
    if given.get("html") is not None:
        options["detail"] = "plots"  # the page draws what they record
    Settings.validated(**options)
    words = tuple(word for name, value in written.items() for word in (f"--{name}", str(value)))
    sources = _sources(targets, given)
    return Request(sources, seed_of(given["seed"]), options, words)


def effort_of(text: str) -> Effort:
    """`auto`, `exhaustive` or a number of probes."""
    return Settings.validated(effort=int(text) if text.isdigit() else cast(Effort, text)).effort


def _modes(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(","))


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


_READ: dict[str, Callable[[Any], Any]] = {
    "order": int,
    "effort": effort_of,
    "modes": _modes,
    "tolerance": float,
    "budget": _budget,
}
