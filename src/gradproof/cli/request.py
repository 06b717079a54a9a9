"""What the command line asks for, validated once and passed whole; plain values that can be sent to other processes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gradproof.arrays import FRAMEWORKS, installed
from gradproof.cli.quick import Look
from gradproof.cli.values import BUDGET, EFFORT, MODES, ORDER, RANDOMNESS, SEED, TOLERANCE, Option
from gradproof.collect import Target
from gradproof.errors import UsageError

Source = Target | Look
# What `derivative=` may have; told here so that nothing is loaded for it.
DERIVATIVES = ("jac", "grad", "vjp", "jvp", "hess", "hessp")
# Of `gradproof.check`, by the same names.
_OPTIONS: tuple[Option[Any], ...] = (ORDER, EFFORT, MODES, TOLERANCE, BUDGET, RANDOMNESS)


@dataclass(frozen=True, slots=True)
class Job:
    """One case: where it is found, and its name there."""

    source: Source
    name: str


@dataclass(frozen=True, slots=True)
class Request:
    """Which cases, and how. `options` are those of `gradproof.check` that were given (the others are the cases' own),
    `words` the same as they were written, and the limits of a case."""

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
    _known(written)
    return Look(target, given["args"], kwargs, given["framework"] or _framework(target, written), written)


def _framework(target: str, written: tuple[tuple[str, str], ...]) -> str:
    """Derivatives that were written by hand are those of NumPy functions; what a framework defines takes its arrays."""
    package = re.split("[.:]", target)[0]
    return "numpy" if written else package if package in FRAMEWORKS else installed()


def _known(written: tuple[tuple[str, str], ...]) -> None:
    for name, value in written:
        if name not in DERIVATIVES:
            raise UsageError(
                f"--derivative {name}={value} is not understood; write --derivative jac={value}, or another "
                f"of {', '.join(DERIVATIVES)}"
            )


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
    written = {option: given[option.name] for option in _OPTIONS if given[option.name] is not None}
    options = {option.name: option.value(text) for option, text in written.items()}
    if given.get("html") is not None:
        options["detail"] = "plots"  # the page draws what they record
    limits = {name: f"{given[name]:.12g}" for name in ("seconds", "memory") if given[name] is not None}
    said = {option.name: text for option, text in written.items()} | limits
    words = tuple(word for name, text in said.items() for word in (f"--{name}", text))
    return Request(_sources(targets, given), SEED.value(given["seed"]), options, words)
