"""A report as one HTML file that opens offline: markup from here, looks and behaviour from the files beside it.

Nothing in it asks the network for anything, and the browser is told so: the content security policy allows the three
scripts of the page by their hashes, styles, and images that the plots make themselves.
"""

from __future__ import annotations

import base64
import hashlib
import os
from importlib import import_module, resources

from gradproof.errors import UsageError
from gradproof.render.digest import digested
from gradproof.render.html.markup import Markup, joined
from gradproof.render.html.overview import about, filters, headline, room, strip, table
from gradproof.render.html.program import numbers
from gradproof.render.writing import put
from gradproof.result import Report


def page(report: Report) -> str:
    """The whole file as text."""
    report = digested(report)
    scripts = {"plotly": plotly_source(), "plots": _asset("plots.js"), "report": _asset("report.js")}
    parts = {
        "policy": joined(_policy(list(scripts.values()))),
        "title": joined(f"gradproof: {headline(report)}"),
        "style": Markup(_asset("report.css")),
        "verdict": joined(report.verdict.value),
        "headline": joined(headline(report)),
        "strip": joined(strip(report)),
        "filters": filters(report),
        "table": table(report),
        "about": about(report),
        # One line for each program: a thousand elements would take the browser far longer than one.
        "numbers": Markup("\n".join(numbers(result, room(report)) for result in report.results)),
        **{name: Markup(text) for name, text in scripts.items()},
    }
    # Split first and fill in after, so that nothing a part contains is taken for a slot.
    pieces = _asset("report.html").split("{{")
    filled = [pieces[0]]
    for piece in pieces[1:]:
        name, rest = piece.split("}}", 1)
        filled += [parts[name.strip()], rest]
    return "".join(filled)


def write(report: Report, path: str | os.PathLike[str]) -> None:
    """Write the page to a file."""
    put(page(report), path)


def plotly_source() -> str:
    """The plotting library, to be put into the page."""
    try:
        offline = import_module("plotly.offline")
    except ImportError as missing:
        raise UsageError(
            'an HTML report needs plotly, which is not installed; run: pip install "gradproof[html]"'
        ) from missing
    source: str = offline.get_plotlyjs()
    # Inside a script element these would end it, or change how its end is found; in JavaScript strings and regular
    # expressions, the only places where they can stand, the escaped form means the same.
    return source.replace("</script", "<\\/script").replace("<!--", "\\x3c!--")


def _policy(scripts: list[str]) -> str:
    hashes = " ".join(f"'sha256-{_hash(script)}'" for script in scripts)
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _asset(name: str) -> str:
    return (resources.files("gradproof.render.html") / name).read_text("utf-8")
