"""Cases that do to their process what should not be done, among others that are right."""

import ctypes
import os
from collections.abc import Callable, Iterator

import light
import numpy as np

from gradproof.cases import Call, Case


def segfault() -> None:
    os.write(1, b"about to read nothing")
    ctypes.string_at(0)


def abort() -> None:
    os.abort()


def leave() -> None:
    os._exit(7)


def endless() -> None:
    os.write(2, b"round and round")
    while True:
        pass


def huge() -> None:
    np.ones(100 * 2**30 // 8)


def growing() -> None:
    kept = []
    while True:
        kept.append(np.ones(2**24 // 8))


def raising() -> None:
    raise KeyError("no such thing")


def unimportable() -> None:
    import broken  # noqa: F401


DISASTERS: dict[str, Callable[[], None]] = {
    each.__name__: each for each in (segfault, abort, leave, endless, huge, growing, raising, unimportable)
}


def cases() -> Iterator[Case]:
    for name, happen in DISASTERS.items():
        yield light.case(f"before {name}")
        yield Case(name, lambda seed, happen=happen: _made(happen))
    yield light.case("Größe/尺寸/🙂")
    yield Case("thousands", lambda seed: Call(thousands))


def _made(happen: Callable[[], None]) -> Call:
    happen()
    raise AssertionError("it should have happened")


def thousands() -> object:
    """Three thousand outputs of one number each."""
    from programs import HandProgram

    count = 3000
    weights = np.linspace(1.0, 2.0, count)
    return HandProgram(
        lambda rows: rows[:, :1] * weights, weights[:, None], np.array([0.7]), output_shapes=((),) * count
    )
