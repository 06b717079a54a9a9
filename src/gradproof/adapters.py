"""Which framework the user's arguments belong to.

An adapter is a module with `owns(fn, args, kwargs)` and `program_of(fn, args, kwargs, wrt)`. It is imported only when
its framework already is: arrays of a framework that nobody has imported cannot be among the arguments. Third parties
add one by an entry point of the group `gradproof.adapters`, named after the framework's top module.

Derivatives that the user wrote by hand come with the call, as `derivative=`; an adapter that can use them has
`program_with(fn, args, kwargs, wrt, derivative)` too, and gets every call that its framework owns.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol

from gradproof.around import Around, composed, reseeding
from gradproof.contracts.suite import Suite
from gradproof.errors import UsageError
from gradproof.program import Program

GROUP = "gradproof.adapters"
# Framework to adapter, in the order in which they are asked.
BUILT_IN = {
    "torch": "gradproof.torch.adapter",
    "jax": "gradproof.jax.adapter",
    "numpy": "gradproof.numpy.adapter",
}
# The package that a program's class comes from, to the function that holds it to its framework's own contracts.
SUITES = {f"gradproof.{framework}": f"gradproof.{framework}.contracts.suite" for framework in BUILT_IN}
PLAIN = Around()


class Adapter(Protocol):
    """What a framework's module offers."""

    def owns(self, fn: Callable[..., Any], args: Any, kwargs: Mapping[str, Any]) -> bool:
        """Whether some argument (or fn itself) is of this framework. Must not call fn."""

    def program_of(
        self, fn: Callable[..., Any], args: Any, kwargs: dict[str, Any], wrt: str | Sequence[str] | None
    ) -> Program: ...


def program_of(
    fn: Callable[..., Any],
    args: Any,
    kwargs: Mapping[str, Any] | None,
    wrt: str | Sequence[str] | None,
    derivative: Any = None,
    around: Around = PLAIN,
) -> Program:
    if not callable(fn):
        raise UsageError(f"the first argument must be the function to check, got {fn!r}; write check(fn, (x,))")
    if kwargs is not None and not isinstance(kwargs, Mapping):
        raise UsageError(
            f"kwargs must be a dict of keyword arguments, got {type(kwargs).__name__}; write check(fn, (x, y)) for "
            "two arguments, check(fn, (x,), {'scale': 2.0}) for keyword arguments"
        )
    named = dict(kwargs or {})
    loaded = [one for one in _known() if sys.modules.get(one[0])]
    for framework, load in loaded:
        adapter = load()
        if adapter.owns(fn, args, named):
            surrounded = _surrounded(adapter, fn, around)
            if derivative is None:
                return adapter.program_of(surrounded, args, named, wrt)
            return _with_derivative(framework, adapter)(surrounded, args, named, wrt, derivative)
    # Somebody says in its own words what is missing.
    if derivative is not None:
        framework, load = loaded[-1]
        return _with_derivative(framework, load())(fn, args, named, wrt, derivative)
    for framework, load in loaded:
        if framework in BUILT_IN:
            return load().program_of(fn, args, named, wrt)
    raise UsageError("none of the arguments is a tensor of a supported framework; write check(fn, (torch.randn(3),))")


def _with_derivative(framework: str, adapter: Adapter) -> Callable[..., Program]:
    found: Callable[..., Program] | None = getattr(adapter, "program_with", None)
    if found is None:
        raise UsageError(
            f"derivative= is for NumPy arrays; the arguments are {framework}'s, which differentiates the function "
            "itself; write check(fn, args) without it, or pass NumPy arrays"
        )
    return found


def suite_of(program: Program) -> Suite | None:
    """An adapter only translates; whoever judges its programs sits above it, and is found here."""
    return _suite(type(program).__module__.rpartition(".")[0])


@functools.cache
def _suite(package: str) -> Suite | None:
    return import_module(SUITES[package]).check_contracts if package in SUITES else None


def _surrounded(adapter: Adapter, fn: Callable[..., Any], around: Around) -> Callable[..., Any]:
    """An adapter may know better how to do things around a call (`composed`), and what streams its framework has
    (`reseeder`)."""
    if around.plain:
        return fn
    reseeder = getattr(adapter, "reseeder", None)
    before = reseeding(reseeder() if reseeder else None) if around.randomness == "reseed" else None
    result: Callable[..., Any] = getattr(adapter, "composed", composed)(fn, before, around.after)
    return result


@functools.cache
def _known() -> tuple[tuple[str, Callable[[], Adapter]], ...]:
    """Third parties come first: their arrays may be subclasses of a built-in framework's."""
    from importlib.metadata import entry_points  # brings the half of the standard library that deals with mail

    loads: list[tuple[str, Callable[[], Any]]] = [(entry.name, entry.load) for entry in entry_points(group=GROUP)]
    loads += [(name, functools.partial(import_module, path)) for name, path in BUILT_IN.items()]
    return tuple((name, functools.cache(load)) for name, load in loads)
