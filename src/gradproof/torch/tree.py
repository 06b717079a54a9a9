"""Structures of tensors: flatten with paths that read like Python, and rebuild."""

from __future__ import annotations

import copy
import dataclasses
import importlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

# torch keeps its registry of containers in a private module; this is the only place that touches it. Without it only
# the built-in containers, named tuples and dataclasses are structures.
try:
    _pytree: Any = importlib.import_module("torch.utils._pytree")
except ImportError:
    _pytree = None


@dataclasses.dataclass(frozen=True, slots=True)
class Tree:
    """A container: what it is (for comparison), how to rebuild it, and its children (None stands for a leaf)."""

    kind: object
    children: tuple[Tree | None, ...]
    build: Callable[[list[Any]], Any] = dataclasses.field(compare=False)


_ATOMS = frozenset({int, float, bool, complex, str, bytes, type(None), torch.dtype, torch.device})


def flatten(value: Any, path: str, found: list[tuple[str, Any]]) -> Tree | None:
    """Append the (path, leaf) pairs of `value` to `found`; return the structure that holds them."""
    if isinstance(value, torch.Tensor) or type(value) in _ATOMS:
        found.append((path, value))
        return None
    opened = _open(value)
    if opened is None:
        found.append((path, value))
        return None
    kind, steps, parts, build = opened
    children = tuple(flatten(part, path + step, found) for step, part in zip(steps, parts, strict=True))
    return Tree(kind, children, build)


def rebuild(tree: Tree | None, leaves: Iterator[Any]) -> Any:
    """The inverse of `flatten`, with other leaves."""
    if tree is None:
        return next(leaves)
    return tree.build([rebuild(child, leaves) for child in tree.children])


_Opened = tuple[object, list[str], list[Any], Callable[[list[Any]], Any]]


def _open(value: Any) -> _Opened | None:
    """One level of a container: what it is, the path step to each part, the parts, and how to put parts together."""
    kind = type(value)
    if kind is tuple or kind is list:
        return kind, [f"[{i}]" for i in range(len(value))], list(value), kind
    if kind is dict:
        keys = tuple(value)
        return (
            (kind, keys),
            [f"[{key!r}]" for key in keys],
            list(value.values()),
            lambda p: dict(zip(keys, p, strict=True)),
        )
    if isinstance(value, tuple):
        return _open_tuple(value)
    registered = _open_registered(value)
    if registered is None and dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _open_dataclass(value)
    return registered


def _open_tuple(value: Any) -> _Opened:
    """Named tuples, and torch's own return types such as that of `torch.max(x, 0)`."""
    kind = type(value)
    names: tuple[str, ...] = getattr(kind, "_fields", ()) or getattr(kind, "__match_args__", ())
    if len(names) != len(value):
        return kind, [f"[{i}]" for i in range(len(value))], list(value), kind
    make = getattr(kind, "_make", kind)
    return kind, [f".{name}" for name in names], list(value), make


def _open_dataclass(value: Any) -> _Opened:
    names = tuple(field.name for field in dataclasses.fields(value) if hasattr(value, field.name))

    def build(parts: list[Any]) -> Any:
        # Not `replace`: that would run the user's __post_init__ and miss fields with init=False.
        rebuilt = copy.copy(value)
        for name, part in zip(names, parts, strict=True):
            object.__setattr__(rebuilt, name, part)
        return rebuilt

    return (type(value), names), [f".{name}" for name in names], [getattr(value, name) for name in names], build


def _open_registered(value: Any) -> _Opened | None:
    """A container that torch's registry knows: OrderedDict, deque, and what users have registered."""
    if _pytree is None or type(value) not in _pytree.SUPPORTED_NODES:
        return None
    parts, spec = _pytree.tree_flatten(value, is_leaf=lambda node: node is not value)
    try:
        keyed, _ = _pytree.tree_flatten_with_path(value, is_leaf=lambda node: node is not value)
        steps = [_step(keys) for keys, _ in keyed]
    except ValueError:  # registered without names for its parts
        steps = [f"[{i}]" for i in range(len(parts))]
    return (type(value), spec), steps, parts, lambda p: _pytree.tree_unflatten(p, spec)


def _step(keys: tuple[Any, ...]) -> str:
    text = ""
    for key in keys:
        if hasattr(key, "name"):
            text += f".{key.name}"
        else:
            text += f"[{getattr(key, 'idx', getattr(key, 'key', key))!r}]"
    return text
