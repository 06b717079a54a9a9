"""Structures of arrays: flatten with paths that read like Python, rebuild, and match another value against one."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gradproof.errors import UsageError


@dataclasses.dataclass(frozen=True, slots=True)
class Tree:
    """A container: what it is (for comparison), the keys and path steps of its parts, the parts (None stands for a
    leaf), and how to put parts together."""

    kind: object
    keys: tuple[Any, ...]
    steps: tuple[str, ...]
    children: tuple[Tree | None, ...]
    build: Callable[[list[Any]], Any] = dataclasses.field(compare=False)

    @property
    def count(self) -> int:
        """The number of leaves."""
        return sum(leaf_count(child) for child in self.children)


def leaf_count(tree: Tree | None) -> int:
    return 1 if tree is None else tree.count


def flatten(value: Any, path: str, found: list[tuple[str, Any]]) -> Tree | None:
    """Append the (path, leaf) pairs of `value` to `found`; return the structure that holds them."""
    opened = _open(value)
    if opened is None:
        found.append((path, value))
        return None
    kind, keys, steps, parts, build = opened
    children = tuple(flatten(part, path + step, found) for step, part in zip(steps, parts, strict=True))
    return Tree(kind, keys, steps, children, build)


def rebuild(tree: Tree | None, leaves: Iterator[Any]) -> Any:
    """The inverse of `flatten`, with other leaves."""
    if tree is None:
        return next(leaves)
    return tree.build([rebuild(child, leaves) for child in tree.children])


def matched(tree: Tree | None, value: Any, what: str) -> list[Any]:
    """The leaves of a value that must have this structure; a list may stand for a tuple, and None for any part."""
    if value is None:
        return [None] * leaf_count(tree)
    if tree is None:
        return [value]
    if isinstance(value, Mapping) and set(value) == set(tree.keys):
        parts = [value[key] for key in tree.keys]
    elif isinstance(value, (tuple, list)) and len(value) == len(tree.children):
        parts = list(value)
    elif dataclasses.is_dataclass(value) and all(hasattr(value, str(key)) for key in tree.keys):
        parts = [getattr(value, str(key)) for key in tree.keys]
    else:
        raise UsageError(
            f"{what} is {_described(value)}, but must have {len(tree.children)} parts: {', '.join(tree.steps)}; "
            "return the structure of what is differentiated, with an array (or None for zero) in each place"
        )
    pairs = zip(tree.steps, tree.children, parts, strict=True)
    return [leaf for step, child, part in pairs for leaf in matched(child, part, what + step)]


_Opened = tuple[object, tuple[Any, ...], tuple[str, ...], list[Any], Callable[[list[Any]], Any]]


def _open(value: Any) -> _Opened | None:
    """One level of a container."""
    kind = type(value)
    if isinstance(value, dict):
        keys = tuple(value)
        return kind, keys, tuple(f"[{k!r}]" for k in keys), list(value.values()), lambda p: _filled(value, keys, p)
    names: tuple[str, ...] = getattr(kind, "_fields", ())
    if isinstance(value, tuple) and len(names) == len(value) and hasattr(kind, "_make"):
        return kind, names, tuple(f".{name}" for name in names), list(value), kind._make
    if kind is tuple or kind is list:
        places = tuple(range(len(value)))
        return kind, places, tuple(f"[{i}]" for i in places), list(value), kind
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = tuple(field.name for field in dataclasses.fields(value) if hasattr(value, field.name))
        parts = [getattr(value, name) for name in names]
        return kind, names, tuple(f".{name}" for name in names), parts, lambda p: _replaced(value, names, p)
    return None


def _filled(value: dict[Any, Any], keys: tuple[Any, ...], parts: list[Any]) -> Any:
    made = dict(zip(keys, parts, strict=True))
    if type(value) is dict:
        return made
    filled = copy.copy(value)
    filled.update(made)
    return filled


def _replaced(value: Any, names: tuple[str, ...], parts: list[Any]) -> Any:
    # Not `replace`: that would run the user's __post_init__ and miss fields with init=False.
    rebuilt = copy.copy(value)
    for name, part in zip(names, parts, strict=True):
        object.__setattr__(rebuilt, name, part)
    return rebuilt


def _described(value: Any) -> str:
    if isinstance(value, (tuple, list, Mapping)):
        return f"a {type(value).__name__} of {len(value)}"
    shape = getattr(value, "shape", None)
    return f"a {type(value).__name__}" + (f" of shape {shape}" if shape is not None else "")
