"""A quick look at one function: `pkg.mod:fn` and its arguments in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, is_dataclass
from difflib import get_close_matches
from typing import Any

from gradproof.arrays import arrays_of
from gradproof.cases import MARK, Call, Case
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
        self._agree(self._call(Reader(arrays, 0)))  # says what is wrong with the words before anything runs
        yield Case(self.name, lambda seed: self._call(Reader(arrays, seed)))

    @property
    def hint(self) -> str:
        """The next step where the call itself fails."""
        return f"Arrays are written --arg 'randn(3)', and are those of {self.framework}; --framework names another."

    def _agree(self, call: Call) -> None:
        """What can be told without the call being made is told as one would write it on the command line."""
        source, _, name = self.function.rpartition(":")
        if hasattr(call.fn, MARK):
            raise UsageError(f"{name} is a case; write gradproof check {source}::{name}")
        # An object that is called may have parameters of its own.
        if not (self.args or self.kwargs or hasattr(call.fn, "parameters") or is_dataclass(call.fn)):
            raise UsageError(
                f"{self.function} is given no argument; write gradproof check {self.function} --arg 'randn(3)'"
            )
        if self.framework == "numpy" and not self.derivative:
            raise UsageError(
                f"NumPy does not differentiate {name}; name the derivative that you wrote: --derivative jac=NAME, or "
                "take the arrays of a framework that does: --framework torch"
            )
        if self.framework != "numpy" and self.derivative:
            raise UsageError(
                f"--derivative belongs to functions of NumPy arrays, and {self.framework} differentiates by itself; "
                "leave out one of --derivative and --framework"
            )

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
