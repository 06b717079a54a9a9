"""What a function does, as JAX sees it: whether that is all there is to see, and whether it is the same as before.

A function that consists of JAX's own operations alone is differentiated by JAX's own rules, and what was compiled of it
is what a plain call would give. A rule that somebody wrote, or a callback, is Python code that may look at anything.
"""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import jax
import numpy as np
from jax import api_util
from jax.extend import core, linear_util
from jax.interpreters import partial_eval

from gradproof.jax.leaves import Arrays

# What is compiled with the bodies that it is given; and what keeps that.
LOOPS = frozenset({"scan", "while", "cond", "custom_linear_solve"})
JITS = frozenset({"jit", "pjit"})
# What has a rule for reverse mode alone.
REVERSED = frozenset({"custom_vjp_call", "custom_vjp_call_jaxpr"})
# What has rules, in parameters of its own, for those who differentiate it: they do not run when it does.
RULED = REVERSED | {"custom_jvp_call"}


@dataclass(frozen=True, eq=False, slots=True)
class Recipe:
    """The operations of a traced function, with the constants that it took from elsewhere. Two are the same if they do
    the same when they run, whatever their derivatives are."""

    closed: Any

    @classmethod
    def of(cls, run: Any, arrays: Arrays) -> Recipe | None:
        """None where the function cannot be traced, or where not all of it can be seen."""
        try:
            closed = traced(run, arrays)
        except Exception:  # noqa: BLE001  whatever it is, it need not happen in a plain call
            return None
        return cls(closed) if _is_plain(closed.jaxpr) else None

    def same_as(self, other: Recipe) -> bool:
        return _same_closed(self.closed, other.closed, {})


def traced(run: Callable[[Arrays], Arrays], arrays: Arrays) -> Any:
    """A closed jaxpr. What the function raises when it is traced, this raises."""

    def function(*xs: Any) -> tuple[Any, ...]:
        return tuple(run(xs))

    try:
        return _quickly_traced(function, arrays)
    except Exception:  # noqa: BLE001  the quick way is not that of every version of JAX
        return jax.make_jaxpr(function)(*arrays)


def compiles_anew(run: Callable[[Arrays], Arrays], arrays: Arrays) -> bool:
    """Whether a plain call compiles something each time. Operations that have bodies, as loops do, are compiled with
    them, and bodies are mostly made in the call. A jit keeps what is inside, unless it is made in the call itself: then
    the next call has another one."""
    try:
        first = traced(run, arrays).jaxpr
        if _loops(first):
            return True
        jits = list(_jits(first))
        return bool(jits) and any(map(operator.is_not, jits, _jits(traced(run, arrays).jaxpr)))
    except Exception:  # noqa: BLE001  whatever it is, it need not happen in a plain call
        return False


def has_reverse_rules(run: Callable[[Arrays], Arrays], arrays: Arrays) -> bool:
    """Whether there is a `custom_vjp` function inside, which has no forward mode."""
    try:
        return _are_inside(traced(run, arrays).jaxpr)
    except Exception:  # noqa: BLE001  whatever it is, it need not happen in a plain call
        return False


def _are_inside(jaxpr: Any) -> bool:
    return any(eqn.primitive.name in REVERSED or any(map(_are_inside, bodies(eqn.params))) for eqn in jaxpr.eqns)


def _loops(jaxpr: Any) -> bool:
    return any(
        eqn.primitive.name in LOOPS or (eqn.primitive.name not in JITS and any(map(_loops, bodies(eqn.params))))
        for eqn in jaxpr.eqns
    )


def _jits(jaxpr: Any) -> Iterator[Any]:
    """What the outermost ones consist of."""
    for eqn in jaxpr.eqns:
        inside = bodies(eqn.params)
        if eqn.primitive.name in JITS:
            yield from inside
        else:
            for body in inside:
                yield from _jits(body)


def operations(jaxpr: Any) -> Iterator[Any]:
    """All that have no bodies; and those of the bodies of others."""
    for eqn in jaxpr.eqns:
        inside = bodies(eqn.params)
        if not inside:
            yield eqn
        for body in inside:
            yield from operations(body)


def bodies(params: Mapping[str, Any]) -> list[Any]:
    """The jaxprs among the parameters of an operation."""
    return [part for part in _parts(params) if isinstance(part, core.Jaxpr)]


def _quickly_traced(function: Callable[..., Any], arrays: Arrays) -> Any:
    """What `make_jaxpr` does, without what it does around that, which takes two times as long."""
    wrapped = linear_util.wrap_init(function, debug_info=_about(len(arrays)))
    jaxpr, _, constants, *_ = partial_eval.trace_to_jaxpr_dynamic(wrapped, [jax.typeof(one) for one in arrays])
    return core.ClosedJaxpr(jaxpr, constants)


@functools.lru_cache
def _about(arguments: int) -> Any:
    """What JAX would say of the function in its messages, which reach nobody here: making it takes as long as tracing
    a small function."""
    return api_util.debug_info("gradproof", lambda *_: (), (0.0,) * arguments, {})


def _is_plain(jaxpr: Any) -> bool:
    """Whether there are only JAX's own operations inside, and none that runs somebody's Python code."""
    return all(
        eqn.primitive in _own_primitives()
        and not eqn.primitive.name.startswith("custom_")
        and all(_is_plain(part) if isinstance(part, core.Jaxpr) else not _is_code(part) for part in _parts(eqn.params))
        for eqn in jaxpr.eqns
    )


def _is_code(value: object) -> bool:
    """Whether this may run anything: not a type, a mesh, or a plain function of JAX."""
    if isinstance(value, FunctionType) and value.__closure__ is None and value.__module__.startswith("jax."):
        return False
    return callable(value) and not isinstance(value, (type, jax.sharding.Mesh))


def _parts(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        value = tuple(value.values())
    if isinstance(value, (tuple, list)):
        for one in value:
            yield from _parts(one)
    else:
        yield value.jaxpr if isinstance(value, core.ClosedJaxpr) else value


@functools.cache
def _own_primitives() -> frozenset[Any]:
    """Those that JAX's modules define. The rules of others are somebody's Python code too."""
    modules = [module for name, module in list(sys.modules.items()) if name.startswith("jax.")]
    return frozenset(one for module in modules for one in vars(module).values() if isinstance(one, core.Primitive))


# Which variable of the second stands for which one of the first.
Names = dict[Any, Any]


def _same(one: Any, other: Any, names: Names) -> bool:
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    for kinds, alike in _ALIKE:
        if isinstance(one, kinds):
            return alike(one, other, names)
    return bool(one == other)


def _same_numbers(one: Any, other: Any, _: Names) -> bool:
    if (np.shape(one), getattr(one, "dtype", None)) != (np.shape(other), getattr(other, "dtype", None)):
        return False
    if jax.numpy.issubdtype(getattr(one, "dtype", np.float64), jax.dtypes.prng_key):
        one, other = jax.random.key_data(one), jax.random.key_data(other)
    first, second = np.asarray(one), np.asarray(other)
    return bool(np.array_equal(first, second, equal_nan=first.dtype.kind in "fc"))


def _same_all(one: Sequence[Any], other: Sequence[Any], names: Names) -> bool:
    return len(one) == len(other) and all(_same(a, b, names) for a, b in zip(one, other, strict=True))


def _same_dicts(one: dict[Any, Any], other: dict[Any, Any], names: Names) -> bool:
    return one.keys() == other.keys() and all(_same(one[key], other[key], names) for key in one)


def _same_closed(one: Any, other: Any, names: Names) -> bool:
    return _same_jaxpr(one.jaxpr, other.jaxpr, names) and _same_all(one.consts, other.consts, names)


def _same_literals(one: Any, other: Any, names: Names) -> bool:
    return bool(one.aval == other.aval) and _same(one.val, other.val, names)


def _same_jaxpr(one: Any, other: Any, _: Names) -> bool:
    if one is other:
        return True
    ours, theirs = (*one.constvars, *one.invars), (*other.constvars, *other.invars)
    if len(one.eqns) != len(other.eqns) or _kinds(ours) != _kinds(theirs):
        return False
    names: Names = dict(zip(ours, theirs, strict=True))
    for eqn, its in zip(one.eqns, other.eqns, strict=True):
        alike = eqn.primitive is its.primitive and _same_all(eqn.invars, its.invars, names)
        if not (alike and _same_dicts(_run(eqn), _run(its), names) and _kinds(eqn.outvars) == _kinds(its.outvars)):
            return False
        names.update(zip(eqn.outvars, its.outvars, strict=True))
    return _same_all(one.outvars, other.outvars, names)


def _run(eqn: Any) -> dict[str, Any]:
    """The parameters that tell what runs."""
    if eqn.primitive.name not in RULED:
        return dict(eqn.params)
    return {name: one for name, one in eqn.params.items() if isinstance(one, (core.Jaxpr, core.ClosedJaxpr))}


def _kinds(variables: Sequence[Any]) -> list[Any]:
    return [variable.aval for variable in variables]


_ALIKE: tuple[tuple[Any, Callable[[Any, Any, Names], bool]], ...] = (
    (core.Var, lambda one, other, names: names.get(one) is other),
    (core.Literal, _same_literals),
    (core.Jaxpr, _same_jaxpr),
    (core.ClosedJaxpr, _same_closed),
    ((tuple, list), _same_all),
    (dict, _same_dicts),
    ((jax.Array, np.ndarray, np.generic, float, complex), _same_numbers),
)
