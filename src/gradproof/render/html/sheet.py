"""Tables that a narrow screen shows in lines: each cell carries the name of its column."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gradproof.render.html.markup import Child, Markup, tag


def sheet(
    columns: Sequence[tuple[str, str]],
    rows: Iterable[Sequence[Child]],
    kind: str,
    label: str,
    caption: Markup | None = None,
) -> Markup:
    """A column has a name and is "row", which names its row, "number" or "". Cells beyond the columns are left out."""
    heads = [tag("th", name, scope="col", class_="number" if of == "number" else None) for name, of in columns]
    lines = [tag("tr", [_cell(*one) for one in zip(columns, row, strict=False)]) for row in rows]
    whole = tag("table", caption, tag("thead", tag("tr", heads)), tag("tbody", lines), class_=kind)
    return tag("div", whole, class_="scroll", tabindex="0", role="region", aria_label=label)


def _cell(column: tuple[str, str], content: Child) -> Markup:
    name, of = column
    if of == "row":
        return tag("th", content, scope="row")
    return tag("td", content, class_=of or None, data_label=name)
