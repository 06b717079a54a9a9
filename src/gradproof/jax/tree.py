"""Structures of arrays: JAX's own pytrees, with paths that read like Python; plain dataclasses are opened too."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import jax


@dataclasses.dataclass(frozen=True, slots=True)
class Opened:
    """A dataclass that JAX does not know as a container: the object, and the structure of its fields."""

    kind: type
    names: tuple[str, ...]
    fields: Tree
    original: Any = dataclasses.field(compare=False)

    def built(self, leaves: Iterator[Any]) -> Any:
        # Not `replace`: that would run the user's __post_init__ and miss fields with init=False.
        rebuilt = copy.copy(self.original)
        for name, part in zip(self.names, rebuild(self.fields, leaves), strict=True):
            object.__setattr__(rebuilt, name, part)
        return rebuilt


@dataclasses.dataclass(frozen=True, slots=True)
class Tree:
    """JAX's description of a structure. `opened` has one entry for each of JAX's leaves: None for a true leaf."""

    definition: Any
    opened: tuple[Opened | None, ...]


_LEAF = Tree(jax.tree_util.tree_structure(0), (None,))


def flatten(value: Any, path: str, found: list[tuple[str, Any]]) -> Tree:
    """Append the (path, leaf) pairs of `value` to `found`; return the structure that holds them."""
    if isinstance(value, jax.Array):
        found.append((path, value))
        return _LEAF
    keyed, definition = jax.tree_util.tree_flatten_with_path(value)
    opened: list[Opened | None] = []
    for keys, leaf in keyed:
        at = path + "".join(map(_step, keys))
        if not isinstance(leaf, jax.Array) and dataclasses.is_dataclass(leaf) and not isinstance(leaf, type):
            names = tuple(field.name for field in dataclasses.fields(leaf) if hasattr(leaf, field.name))
            inner: list[tuple[str, Any]] = []
            fields = flatten(tuple(getattr(leaf, name) for name in names), "", inner)
            found += [(at + _named(step, names), part) for step, part in inner]
            opened.append(Opened(type(leaf), names, fields, leaf))
        else:
            found.append((at, leaf))
            opened.append(None)
    return Tree(definition, tuple(opened))


def rebuild(tree: Tree, leaves: Iterator[Any]) -> Any:
    """The inverse of `flatten`, with other leaves."""
    parts = [next(leaves) if opened is None else opened.built(leaves) for opened in tree.opened]
    return jax.tree_util.tree_unflatten(tree.definition, parts)


def is_structure(value: object) -> bool:
    """Whether this is a container to JAX, and not a leaf."""
    return not jax.tree_util.all_leaves([value])


def _named(path: str, names: Sequence[str]) -> str:
    """`[1]['w']` of the tuple of fields is `.weights['w']` of the object."""
    number, _, rest = path[1:].partition("]")
    return f".{names[int(number)]}{rest}"


def _step(key: Any) -> str:
    if isinstance(key, jax.tree_util.GetAttrKey):
        return f".{key.name}"
    return f"[{getattr(key, 'idx', getattr(key, 'key', key))!r}]"
