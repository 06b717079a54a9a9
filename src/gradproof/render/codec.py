"""Frozen dataclasses to plain JSON values and back, led by their annotations: a field's name is its key.

JSON has no NaN and no infinity: they are written as the strings "NaN", "Infinity" and "-Infinity". A key that is not
known is passed over, and one that is missing takes the field's default, so that reports of neighbouring versions read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from enum import Enum
from functools import cache
from json import JSONEncoder
from numbers import Integral, Real
from textwrap import shorten
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from gradproof.bounds import Bound
from gradproof.errors import UsageError
from gradproof.picture import Digest
from gradproof.result import Comparison
from gradproof.settings import Settings


@dataclass(frozen=True, slots=True)
class Described:
    """Stands for an object that a report cannot hold, such as an array or one of the user's own: how it prints."""

    text: str

    def __repr__(self) -> str:
        return self.text


# Fields that are written under another name, or as another type.
REPLACED: Mapping[tuple[type, str], tuple[str, Any]] = {
    (Comparison, "source"): ("numbers", Digest),
    (Bound, "low"): ("low", Described | None),
    (Bound, "high"): ("high", Described | None),
    (Settings, "spaces"): ("spaces", tuple[tuple[str, Described], ...]),
}

LONGEST = 200
_PLAIN = frozenset({NoneType, bool, str, int})


def encode(value: Any) -> Any:
    """Plain dicts, lists, strings, numbers and None. A sweep encodes a hundred values for every check, nearly all of
    them of the types that come first."""
    kind: type = type(value)
    if kind in _PLAIN:
        return value
    if kind is float:
        return _number(value)
    if isinstance(value, tuple):
        return [encode(one) for one in value]
    names = _names(kind)
    if not names:
        return _rare(value)
    written = _written if kind in _DESCRIBED else getattr
    return {key: encode(written(value, name)) for name, key in names}


def text(value: Any) -> str:
    """JSON text that `decode` reads as that of `encode`, but short and quickly made: fields that have their default are
    left out."""
    try:
        return _COMPILED.encode(value)
    except ValueError:  # a number that is not finite
        return _COMPILED.encode(encode(value))


def _shallow(value: Any) -> Any:
    """What `json` does not know, one level deep."""
    kind: type = type(value)
    names = _defaults(kind)
    if not names:
        return _rare(value)
    written = _written if kind in _DESCRIBED else getattr
    return {key: one for name, key, default in names if (one := written(value, name)) is not default}


_COMPILED = JSONEncoder(allow_nan=False, check_circular=False, separators=(",", ":"), default=_shallow)


def _rare(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, str):
        return value
    if isinstance(value, Real):
        return int(value) if isinstance(value, Integral) else _number(float(value))
    raise TypeError(f"{type(value).__name__} has no place in a report")


# Classes with fields that are written as how they print.
_DESCRIBED = (Bound, Settings)


def _written(owner: Any, name: str) -> Any:
    """The value of a field as its JSON type has it."""
    value = getattr(owner, name)
    if isinstance(owner, Bound) and name != "pattern":
        return value if value is None else _described(value)
    if isinstance(owner, Settings) and name == "spaces":
        return tuple((pattern, _described(space)) for pattern, space in value)
    return value


def _described(value: Any) -> Described:
    if isinstance(value, Described):
        return value
    # A bound that is one number is an array without dimensions.
    text = repr(value.item()) if getattr(value, "shape", None) == () else repr(value)
    return Described(shorten(text, LONGEST, placeholder=" ..."))


def decode(hint: Any, data: Any, where: str = "") -> Any:
    """The value of type `hint` that `encode` made this from. `where` is the way to it, for the message."""
    origin, arguments = get_origin(hint), get_args(hint)
    if is_dataclass(hint) and isinstance(hint, type):
        return _instance(hint, data, where)
    if origin in (Union, UnionType):
        return _either(arguments, data, where)
    if origin is tuple and isinstance(data, list) and (arguments[1:] == (...,) or len(arguments) == len(data)):
        hints = [arguments[0]] * len(data) if arguments[1:] == (...,) else arguments
        return tuple(decode(one, part, f"{where}[{k}]") for k, (one, part) in enumerate(zip(hints, data, strict=True)))
    if not _fits(hint, data):
        raise UsageError(f"the report is damaged: {where or 'it'} is {str(data)[:60]!r}, not {_named(hint)}")
    return hint(data) if isinstance(hint, type) else data


def _fits(hint: Any, data: Any) -> bool:
    """Whether a plain value is one of this type."""
    if get_origin(hint) is Literal:
        return data in get_args(hint)
    if hint is float:
        return data in ("NaN", "Infinity", "-Infinity") or _is(Real, data)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return data in [one.value for one in hint]
    return _is(Integral, data) if hint is int else hint in (str, bool) and isinstance(data, hint)


def _instance(hint: type, data: Any, where: str) -> Any:
    if not isinstance(data, dict):
        raise UsageError(f"the report is damaged: {where or 'it'} is not an object")
    hints = _hints(hint)
    given = {}
    for one in fields(hint):
        key, kind = _key(hint, one)
        if one.init and key in data:
            given[one.name] = decode(kind or hints[one.name], data[key], f"{where}.{key}".lstrip("."))
        elif one.init and one.default is MISSING and one.default_factory is MISSING:
            raise UsageError(f"the report is damaged: {where or 'it'} has no {key!r}")
    return hint(**given)


def _either(arguments: tuple[Any, ...], data: Any, where: str) -> Any:
    """The first type of a union that fits; where only one is left after None, its own message is the better one."""
    if data is None and NoneType in arguments:
        return None
    left = [one for one in arguments if one is not NoneType]
    for one in left[:-1]:
        try:
            return decode(one, data, where)
        except UsageError:
            continue
    return decode(left[-1], data, where)


def _key(owner: type, one: Field[Any]) -> tuple[str, Any]:
    return REPLACED.get((owner, one.name), (one.name, None))


@cache
def _names(owner: type) -> tuple[tuple[str, str], ...]:
    """Each field and its key; none where the class has no fields."""
    if not is_dataclass(owner):
        return ()
    return tuple((one.name, _key(owner, one)[0]) for one in fields(owner) if one.init)


@cache
def _defaults(owner: type) -> tuple[tuple[str, str, object], ...]:
    """The same with what a field is where nothing is said."""
    known = {one.name: one.default for one in fields(owner)} if is_dataclass(owner) else {}
    return tuple((name, key, known[name]) for name, key in _names(owner))


def _number(value: float) -> float | str:
    if math.isfinite(value):
        # A whole number is shorter without its ".0"; zero keeps its sign.
        return int(value) if value.is_integer() and 0 < abs(value) < 1e15 else value
    return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")


def _is(kind: type, data: Any) -> bool:
    return isinstance(data, kind) and not isinstance(data, bool)


def _named(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) else str(hint)


@cache
def _hints(owner: type) -> dict[str, Any]:
    return get_type_hints(owner)
