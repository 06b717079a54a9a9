"""A case: something to check, by name, made only when its turn comes.

Case files, catalogues, the command line and sweeps all deal in these. `@gradproof.case` makes them from a function:

    @gradproof.case(params={"n": [1, 8]}, seeds=3, order=2)
    def cube(n, rng):
        return Cube.apply, torch.tensor(rng.standard_normal(n))
"""

from __future__ import annotations

import inspect
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, Protocol, TypeVar, overload

from gradproof.errors import UsageError

# Filled in by the case itself; any other parameter without a default must be named in `params`.
SEED, RNG = "seed", "rng"
# Where a decorated function keeps its recipe; the function itself stays what it was.
MARK = "__gradproof_recipe__"
# Where a module keeps the recipes of its own top level: one whose name was taken by another is found here alone.
DEFINED = "__gradproof_recipes__"

# Those of `gradproof.check`; told here so that nothing is loaded to read a file of cases.
OPTIONS = (
    "derivative", "wrt", "modes", "order", "effort", "tolerance", "seed", "budget", "detail", "nondet_tol", "contracts",
    "bounds", "spaces", "output_map", "randomness", "expected_gradient_of", "lowest",
)  # fmt: skip

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Call:
    """A function and the arguments to check it at; `options` are keyword arguments of `gradproof.check`."""

    fn: Callable[..., Any]
    args: Any = ()
    kwargs: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    options: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class Traits:
    """What is known of a case before it is made; empty where nothing is. Sweeps select by these and group by them."""

    operator: str = ""
    family: str = ""
    dtype: str = ""
    device: str = ""


UNKNOWN = Traits()


@dataclass(frozen=True, slots=True)
class Case:
    """`name` is stable and unique in its catalogue. `make` builds the call, each time the same for the same seed."""

    name: str
    make: Callable[[int], Call]
    traits: Traits = UNKNOWN


class Catalogue(Protocol):
    """Anything that yields cases lazily. One that is also `Narrowable` or `Searchable` saves a sweep work."""

    def cases(self) -> Iterator[Case]: ...


@dataclass(frozen=True, eq=False, slots=True)
class Recipe:
    """A decorated function: one case for each combination of `params`, and of `seeds` where there are any."""

    function: Callable[..., Any]
    params: Mapping[str, tuple[Any, ...]]
    seeds: tuple[int, ...]
    options: Mapping[str, Any]

    @property
    def name(self) -> str:
        return self.function.__name__

    def cases(self) -> Iterator[Case]:
        columns = [list(zip(_labels(name, values), values, strict=True)) for name, values in self.params.items()]
        for row in itertools.product(*columns):
            parts = [f"{name}={label}" for name, (label, _) in zip(self.params, row, strict=True)]
            chosen = {name: value for name, (_, value) in zip(self.params, row, strict=True)}
            for seed in self.seeds or (None,):
                labels = parts if seed is None else [*parts, f"{SEED}={seed}"]
                suffix = f"[{','.join(labels)}]" if labels else ""
                yield Case(self.name + suffix, self._maker(chosen, seed), Traits(operator=self.name))

    def _maker(self, chosen: Mapping[str, Any], own: int | None) -> Callable[[int], Call]:
        def make(seed: int) -> Call:
            return self._called(dict(chosen), seed if own is None else own)

        return make

    def _called(self, arguments: dict[str, Any], seed: int) -> Call:
        wanted = inspect.signature(self.function).parameters
        if SEED in wanted:
            arguments[SEED] = seed
        if RNG in wanted:
            import numpy as np

            arguments[RNG] = np.random.default_rng(seed)
        return call_of(self.function(**arguments), self.name, self.options)


@overload
def case(function: F, /) -> F: ...
@overload
def case(
    *, params: Mapping[str, Iterable[Any]] = MappingProxyType({}), seeds: int | Iterable[int] = (), **options: Any
) -> Callable[[F], F]: ...
def case(
    function: F | None = None,
    /,
    *,
    params: Mapping[str, Iterable[Any]] = MappingProxyType({}),
    seeds: int | Iterable[int] = (),
    **options: Any,
) -> F | Callable[[F], F]:
    """Mark a function as a case for `gradproof check`. It returns `fn, args`, or `fn, args, kwargs`, or a `Call`.

    params: values by parameter name; every combination is a case of its own.
    seeds: how many (0, 1, ...) or which; the function takes `seed`, or `rng`, a NumPy generator of that seed. Without
        them it gets the seed of the run.
    options: those of `gradproof.check`, such as `order=2` or `tolerance=1e-4`.
    """

    def marked(function: F) -> F:
        recipe = Recipe(function, _params(params), _seeds(seeds), _options(options))
        _agree(recipe)
        setattr(function, MARK, recipe)
        if "<locals>" not in function.__qualname__:
            getattr(function, "__globals__", {}).setdefault(DEFINED, []).append(recipe)
        return function

    return marked if function is None else marked(function)


def call_of(returned: Any, name: str, options: Mapping[str, Any]) -> Call:
    """What a case function returned, as a Call; its own options win."""
    if isinstance(returned, Call):
        return Call(returned.fn, returned.args, returned.kwargs, {**options, **returned.options})
    if isinstance(returned, tuple) and len(returned) in (2, 3) and callable(returned[0]):
        return Call(returned[0], returned[1], returned[2] if len(returned) == 3 else {}, options)
    shown = f"a tuple of {len(returned)}" if isinstance(returned, tuple) else type(returned).__name__
    raise UsageError(
        f"case {name} returned {shown}; return the function and its arguments: `return fn, (x, y)`, "
        "`return fn, (x,), {'dim': 0}`, or a gradproof.Call"
    )


def _labels(name: str, values: tuple[Any, ...]) -> list[str]:
    """One for each value: short, the same in every run, no two alike, without what a shell would trip over."""
    labels = [str(getattr(value, "__name__", value)).replace(" ", "").replace("\n", "") for value in values]
    count = Counter(labels)
    alike = {label for label in labels if count[label] > 1 or "at0x" in label}
    numbered = [f"{name}{i}" if label in alike else label for i, label in enumerate(labels)]
    return numbered if len(set(numbered)) == len(numbered) else [f"{name}{i}" for i in range(len(labels))]


def _params(params: Mapping[str, Iterable[Any]]) -> dict[str, tuple[Any, ...]]:
    given: object = params
    if not isinstance(given, Mapping) or any(isinstance(v, str) or not isinstance(v, Iterable) for v in given.values()):
        raise UsageError(f"params={params!r} is not understood; write params={{'n': [1, 8], 'dtype': [torch.float64]}}")
    return {str(name): tuple(values) for name, values in params.items()}


def _seeds(seeds: object) -> tuple[int, ...]:
    listed = range(seeds) if isinstance(seeds, int) and not isinstance(seeds, bool) else seeds
    if isinstance(listed, Iterable):
        listed = tuple(listed)
        if not listed and not isinstance(seeds, tuple):  # the empty tuple stands for what was not said
            raise UsageError(
                f"seeds={seeds!r} asks for no case at all; write seeds=3 for 0, 1 and 2, or seeds=(7, 11), or leave "
                "it out for the seed of the run"
            )
        if all(isinstance(seed, int) and not isinstance(seed, bool) and seed >= 0 for seed in listed):
            return tuple(dict.fromkeys(listed))
    raise UsageError(f"seeds={seeds!r} is not understood; write seeds=3 for 0, 1 and 2, or seeds=(7, 11)")


def _options(options: dict[str, Any]) -> dict[str, Any]:
    if "seed" in options:
        seed = options["seed"]
        raise UsageError(f"@gradproof.case has no option 'seed'; write seeds=({seed!r},), or gradproof check --seed")
    expect_known(options)
    return options


def expect_known(options: Iterable[str]) -> None:
    """Object to what `gradproof.check` would not take."""
    for name in options:
        if name not in OPTIONS:
            near = get_close_matches(name, ("params", "seeds", *OPTIONS), n=1)
            meant = f"write {near[0]}=" if near else f"take one of {', '.join(OPTIONS)}: @gradproof.case(order=2)"
            raise UsageError(f"there is no option {name!r}; {meant}")


def _agree(recipe: Recipe) -> None:
    """It is a function, and its parameters are those that will be filled in."""
    if inspect.isclass(recipe.function) or not hasattr(recipe.function, "__qualname__"):
        raise UsageError(f"@gradproof.case marks functions, not {recipe.function!r}; write def NAME(): return fn, args")
    if "." in recipe.function.__qualname__.rpartition("<locals>.")[2]:
        raise UsageError(
            f"case {recipe.function.__qualname__} is a method, and cases are plain functions; write "
            f"def {recipe.name}() outside of the class"
        )
    wanted = inspect.signature(recipe.function).parameters
    needed = {name for name, one in wanted.items() if one.default is one.empty and "VAR" not in one.kind.name}
    missing = sorted(needed - recipe.params.keys() - {SEED, RNG})
    if missing:
        raise UsageError(
            f"case {recipe.name} takes {missing[0]!r}, which nobody fills in; write "
            f"@gradproof.case(params={{{missing[0]!r}: [...]}}), or call it seed or rng"
        )
    empty = [name for name, values in recipe.params.items() if not values]
    if empty:
        raise UsageError(
            f"case {recipe.name} would never run: params={{{empty[0]!r}: []}} has no value; write "
            f"params={{{empty[0]!r}: [1, 8]}}, or take the decorator away"
        )
    extra = [name for name in recipe.params if name not in wanted]
    if extra and not any(one.kind is one.VAR_KEYWORD for one in wanted.values()):
        corrected = f"def {recipe.name}({', '.join([*wanted, extra[0]])})"
        raise UsageError(f"case {recipe.name} does not take {extra[0]!r}, which params gives; write {corrected}")
    if recipe.seeds and not {SEED, RNG} & wanted.keys():
        corrected = f"def {recipe.name}({', '.join([*wanted, RNG])})"
        raise UsageError(f"case {recipe.name} has seeds, but takes neither seed nor rng; write {corrected}")
