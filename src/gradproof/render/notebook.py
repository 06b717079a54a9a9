"""A result in a notebook cell: static HTML without script, in the colours of the notebook, light or dark."""

from __future__ import annotations

from gradproof.render.html.markup import Markup, tag
from gradproof.render.text import headline, lines
from gradproof.result import Report, Result, Verdict

# Mid tones that read on white and on black (contrast of at least 4.5 with white letters on them).
COLOUR = {
    Verdict.RIGHT: "#1d7a46",
    Verdict.UNSUPPORTED: "#4f6b82",
    Verdict.UNDECIDED: "#8a5e00",
    Verdict.WRONG: "#b3261e",
    Verdict.ERROR: "#8a2a9c",
}
MONO = "font-family:ui-monospace,Menlo,Consolas,monospace"
# More results than this are counted.
LISTED = 50


def fragment(result: Result) -> str:
    """The same lines as the text, as a small table."""
    rows = [
        tag(
            "tr",
            tag("td", line.label, style="padding:1px 12px 1px 0;text-align:left;vertical-align:top;opacity:.7"),
            tag("td", line.text, style=f"padding:1px 0;text-align:left;white-space:pre-wrap;{MONO};font-size:.92em"),
            style="background:none",
        )
        for line in lines(result)
    ]
    head = tag("div", _badge(result.verdict), " ", tag("strong", headline(result)))
    return tag(
        "div", head, tag("table", tag("tbody", rows), style="margin:.3em 0 0;border:0"), style="line-height:1.45"
    )


def overview(report: Report) -> str:
    """One line for each result."""
    listed = report.results[:LISTED]
    items = [tag("div", _badge(result.verdict), " ", headline(result), style="margin:2px 0") for result in listed]
    rest = len(report.results) - len(listed)
    return tag("div", items, tag("div", f"… and {rest:,} more") if rest > 0 else None)


def _badge(verdict: Verdict) -> Markup:
    style = (
        f"background:{COLOUR[verdict]};color:#fff;border-radius:99px;padding:1px 9px;font-size:.85em;font-weight:600"
    )
    return tag("span", str(verdict), style=style)
