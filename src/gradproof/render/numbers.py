"""Numbers as people read them: as many digits as are known, and no more."""

from __future__ import annotations

import math

from gradproof.result import Entry


def count_of(count: int, noun: str) -> str:
    plural = {"push": "pushes", "property": "properties"}.get(noun, noun + "s")
    return f"{count} {noun if count == 1 else plural}"


def with_bar(value: float, bar: float, place: int) -> str:
    """`value ± bar`: the bar to two digits, the value no further than the bar reaches, nor than 10**place, where it is
    known better than anybody needs."""
    last = max(place, _exponent(bar) - 1) if 0 < bar < math.inf else place
    return f"{number(value, last)} ± {two_digits(bar)}"


def number(value: float, place: int) -> str:
    """The value with its last digit at 10**place, at most 17 digits in all."""
    if not math.isfinite(value):
        return str(value)
    if value == 0:
        return "0"
    digits = min(max(_exponent(value) - place + 1, 1), 17)
    return _bare(f"{value:#.{digits}g}")


def last_digit(entry: Entry) -> int:
    """Where to cut both numbers: six digits, or three past the first in which they differ."""
    sizes = [abs(x) for x in (entry.analytic, entry.numeric) if math.isfinite(x) and x != 0]
    place = _exponent(max(sizes, default=1.0)) - 5
    gap = abs(entry.analytic - entry.numeric)
    return min(place, _exponent(gap) - 2) if 0 < gap < math.inf else place


def two_digits(size: float) -> str:
    return _bare(f"{size:#.2g}") if math.isfinite(size) and size != 0 else f"{size:g}"


def _bare(digits: str) -> str:
    """Drop the point that the `#` format leaves at the end of a whole number."""
    return digits.removesuffix(".").replace(".e", "e")


def _exponent(value: float) -> int:
    return math.floor(math.log10(abs(value))) if value != 0 and math.isfinite(value) else 0
