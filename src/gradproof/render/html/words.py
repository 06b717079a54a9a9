"""How verdicts, places and numbers are put in a page, in one way everywhere."""

from __future__ import annotations

import math
import re

from gradproof.render.html.markup import Markup, tag
from gradproof.render.numbers import last_digit, number, two_digits, with_bar
from gradproof.result import Comparison, Entry, Verdict

# A sign and a word beside the colour, for those who see none.
SIGN = {
    Verdict.RIGHT: "✓",
    Verdict.UNSUPPORTED: "–",
    Verdict.UNDECIDED: "?",
    Verdict.WRONG: "✗",
    Verdict.ERROR: "!",
}


def badge(verdict: Verdict) -> Markup:
    sign = tag("span", SIGN[verdict], aria_hidden="true")
    return tag("span", sign, " ", verdict.value, class_=f"badge {verdict.value}")


def breakable(name: str) -> list[Markup | str]:
    """The name of a program, which a narrow column may fold between its parts sooner than anywhere else."""
    return [piece for part in re.split(r"(?<=::)|(?<=[/,])|(?=\[)", name) for piece in (part, Markup("<wbr>"))][:-1]


def code(text: str) -> Markup:
    return tag("code", text)


def fate(comparison: Comparison) -> Verdict:
    """Of a block. Where the function is not finite a finding says so, and no entry is held against the block; but it is
    not right for that."""
    known = comparison.verdict is not Verdict.RIGHT or math.isfinite(comparison.excess)
    return comparison.verdict if known else Verdict.UNDECIDED


def block_name(comparison: Comparison) -> str:
    order = "" if comparison.order == 1 else f", order {comparison.order}"
    return f"d {comparison.output.path} / d {comparison.input.path} ({comparison.mode}{order})"


def shape_of(shape: tuple[int, ...]) -> str:
    return " × ".join(map(str, shape)) if shape else "a number"


def tolerances(excess: float) -> str:
    """How many tolerances off, for a narrow column."""
    if not math.isfinite(excess):
        return "∞"
    return f"{excess:,.0f}" if 100 <= excess < 1e6 else two_digits(excess)


def analytic(entry: Entry) -> str:
    return number(entry.analytic, last_digit(entry))


def numeric(entry: Entry) -> str:
    place = last_digit(entry)
    if entry.spread > 0:
        low, high = entry.numeric - entry.spread, entry.numeric + entry.spread
        return f"{number(low, place)} to {number(high, place)} ± {two_digits(entry.bar)} (kink)"
    return with_bar(entry.numeric, entry.bar, place)
