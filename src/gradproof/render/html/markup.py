"""HTML that is escaped by construction: plain strings are text, and only `tag` makes markup of them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from html import escape
from typing import Any

EMPTY = frozenset({"br", "input", "meta"})


class Markup(str):
    """Finished HTML. Everything else that is a string is text."""

    __slots__ = ()


Child = str | Iterable["Child"] | None


def tag(name: str, *children: Child, **attributes: str | int | None) -> Markup:
    """An element. `class_` and `for_` are written without their underscore, `data_x` as `data-x`; an attribute of "" is
    a bare one, and one of None is left out."""
    written = "".join(_attribute(key, value) for key, value in attributes.items() if value is not None)
    if name in EMPTY:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{joined(children)}</{name}>")


def joined(children: Child) -> Markup:
    """Children one after another; text is escaped."""
    if children is None:
        return Markup()
    if isinstance(children, Markup):
        return children
    if isinstance(children, str):
        return Markup(escape(_printable(children), quote=False))
    return Markup("".join(joined(child) for child in children))


def text_of(value: Any) -> Markup:
    """One line of JSON for a script to read. No `<` is left that could end the element, or begin a comment in it."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _attribute(key: str, value: str | int) -> str:
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value == "" else f' {name}="{escape(_printable(str(value)), quote=True)}"'


def _printable(text: str) -> str:
    """Control characters and lone surrogates have no place in a page; they are shown as Python would."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or one == "\n" else repr(one)[1:-1] for one in text)
