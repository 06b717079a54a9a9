"""Two cases, and then the listing itself fails."""

from collections.abc import Iterator

import light

from gradproof.cases import Case


def cases() -> Iterator[Case]:
    yield light.case("first")
    yield light.case("second")
    raise RuntimeError("the third cannot be named")
