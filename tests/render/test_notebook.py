"""What a notebook shows: the lines of the text, escaped, without script."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

import samples

from gradproof.render.text import headline, lines
from gradproof.result import Report


def text(fragment: str) -> str:
    return unescape(re.sub(r"<[^>]*>", "", fragment))


def test_a_result_shows_every_line_of_its_text() -> None:
    for result in samples.report().results:
        shown = text(result._repr_html_())
        assert headline(result) in shown
        assert all(line.text in shown for line in lines(result))


def test_nothing_runs_and_nothing_is_loaded() -> None:
    evil = replace(samples.scaled(), name="<img src=x onerror=alert(1)><script>alert(1)</script>")
    fragment = evil._repr_html_()
    assert "<script" not in fragment
    assert "<img" not in fragment
    assert text(fragment).startswith("WRONG <img src=x onerror=alert(1)><script>alert(1)</script>")
    assert set(re.findall(r"<(\w+)", fragment)) == {"div", "span", "strong", "table", "tbody", "tr", "td"}


def test_a_report_shows_one_line_for_each_result() -> None:
    shown = text(samples.report()._repr_html_())
    assert all(headline(result) in shown for result in samples.report().results)
    assert "… and 10 more" in text(Report((samples.right(),) * 60)._repr_html_())
