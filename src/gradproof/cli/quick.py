"""A quick look at one function: `pkg.mod:fn` and its arguments in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from gradproof.arrays import arrays_of
from gradproof.cases import Call, Case
from gradproof.cli.arguments import Reader
from gradproof.collect import load
from gradproof.errors import UsageError


@dataclass(frozen=True, slots=True)
class Look:
    """`function` is `pkg.mod:fn` or `file.py:fn`; `args` and `kwargs` are in the language of `--arg`; `derivative`
    names functions that were written by hand, each as `function` or by a name in the same module."""

    function: str
    args: tuple[str, ...]
    kwargs: tuple[tuple[str, str], ...]
    framework: str
    derivative: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """How one would write the call."""
        return f"{self.function}({', '.join([*self.args, *(f'{name}={text}' for name, text in self.kwargs)])})"

    def words(self, name: str) -> list[str]:  # noqa: ARG002  there is one case only
        """The same on the command line."""
        pairs = [("--arg", text) for text in self.args]
        pairs += [("--kwarg", f"{name}={text}") for name, text in self.kwargs]
        pairs += [("--derivative", f"{name}={path}") for name, path in self.derivative]
        return [self.function, *(word for pair in pairs for word in pair), "--framework", self.framework]

    def cases(self) -> Iterator[Case]:
        arrays = arrays_of(self.framework)
        self._call(Reader(arrays, 0))  # says what is wrong with the words before anything runs
        yield Case(self.name, lambda seed: self._call(Reader(arrays, seed)))

    def _call(self, reader: Reader) -> Call:
        positional = tuple(reader.read(text) for text in self.args)
        named = {name: reader.read(text) for name, text in self.kwargs}
        source = self.function.rpartition(":")[0]
        written = {n: _function(path if ":" in path else f"{source}:{path}") for n, path in self.derivative}
        return Call(_function(self.function), positional, named, {"derivative": written} if written else {})


def _function(path: str) -> Callable[..., Any]:
    """`pkg.mod:Class.apply`: what follows the colon is looked up step by step."""
    source, _, names = path.rpartition(":")
    found: Any = load(source)
    for name in names.split("."):
        if not hasattr(found, name):
            close = get_close_matches(name, [one for one in dir(found) if not one.startswith("_")])
            meant = f" (did you mean {' or '.join(close)}?)" if close else ""
            raise UsageError(f"{source} has no {names}{meant}; write gradproof check {source}:name --arg 'randn(3)'")
        found = getattr(found, name)
    if not callable(found):
        raise UsageError(
            f"{path} is of type {type(found).__name__}, not a function; write gradproof check {source}:name "
            "--arg 'randn(3)'"
        )
    function: Callable[..., Any] = found
    return function
