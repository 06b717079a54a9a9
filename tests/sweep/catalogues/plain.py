"""Twenty right cases in two dtypes, two wrong ones, names in several scripts. PLAIN_SECONDS makes each one slow."""

import os
import time
from collections.abc import Iterator

import light

from gradproof.cases import Case


def cases() -> Iterator[Case]:
    for number in range(20):
        dtype = "float64" if number % 2 else "float32"
        yield slow(light.case(f"square/{dtype}/{number}", operator="square", family="powers", dtype=dtype))
    for name in ("neg/a", "négatif/ü", "负/🙂"):
        yield slow(light.case(name, operator=name.split("/")[0], family="signs"))
    yield slow(light.case("cubé/0", slope=3.0, operator="cubé", family="powers"))
    yield slow(light.case("cubé/1", slope=3.0, operator="cubé", family="powers"))


def slow(case: Case) -> Case:
    def make(seed: int) -> object:
        time.sleep(float(os.environ.get("PLAIN_SECONDS", "0")))
        return case.make(seed)

    return Case(case.name, make, case.traits)  # type: ignore[arg-type]
