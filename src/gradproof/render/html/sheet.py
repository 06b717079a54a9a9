"""Tables that a narrow screen shows in lines: cells carry the name of their column, and the roles of a table stay."""

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
    heads = [tag("th", name, scope="col", role="columnheader", class_=as_class(of)) for name, of in columns]
    lines = [tag("tr", [cell(*one) for one in zip(columns, row, strict=False)], role="row") for row in rows]
    whole = tag(
        "table",
        caption,
        tag("thead", tag("tr", heads, role="row"), role="rowgroup"),
        tag("tbody", lines, role="rowgroup"),
        class_=kind,
        role="table",
    )
    return tag("div", whole, class_="scroll", tabindex="0", role="region", aria_label=label)


def cell(column: tuple[str, str], content: Child) -> Markup:
    name, of = column
    if of == "row":
        return tag("th", content, scope="row", role="rowheader")
    return tag("td", content, class_=as_class(of), role="cell", data_label=name)


def as_class(of: str) -> str | None:
    return None if of in ("", "row") else of
