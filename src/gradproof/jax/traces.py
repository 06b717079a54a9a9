"""Programs that are compiled once, and used again for as long as tracing them gives the same operations.

Derivatives of derivatives run compiled only: no plain call would show that what was kept is stale. A trace shows it,
since all that Python does is done once more; and it takes a small part of the time of a compilation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax

from gradproof.jax.recipes import Recipe

Form = tuple[str, tuple[tuple[tuple[int, ...], Any], ...]]

# Of the batches that something has been compiled for: how many seconds that took.
Sizes = dict[int, float]


@dataclass(frozen=True, eq=False, slots=True)
class Program:
    """What was compiled, and the operations that it consists of."""

    recipe: Recipe
    run: Callable[..., Any]


@dataclass(frozen=True, eq=False, slots=True)
class Store:
    """The programs of one call, by name and form of the arguments; and the stores of calls that are derived from it."""

    programs: dict[Form, Program] = field(default_factory=dict)
    sizes: dict[str, Sizes] = field(default_factory=dict)
    derived: dict[object, Store] = field(default_factory=dict)

    def of(self, kind: object) -> Store:
        return self.derived.setdefault(kind, Store())


class Kept:
    """A compiled function that looks into a store before it compiles. `trusted`: somebody knows that nothing in there
    is stale."""

    def __init__(self, name: str, jitted: Any, store: Store, *, trusted: bool) -> None:
        self._name = name
        self._jitted = jitted
        self._store = store
        self._trusted = trusted
        self._found: dict[Form, Callable[..., Any]] = {}

    def __call__(self, *args: Any) -> Any:
        form = self._name, tuple((one.shape, one.dtype) for one in jax.tree.leaves(args))
        run = self._found.get(form)
        if run is None:
            run = self._found[form] = self._look(form, args)
        return run(*args)

    def _look(self, form: Form, args: tuple[Any, ...]) -> Callable[..., Any]:
        kept = self._store.programs.get(form)
        if kept is None or not self._trusted:
            recipe = Recipe(self._jitted.trace(*args).jaxpr)
            if kept is None or not recipe.same_as(kept.recipe):
                kept = self._store.programs[form] = Program(recipe, self._jitted)
        return kept.run
