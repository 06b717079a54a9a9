"""Cases that leave by other ways than an error, among ordinary ones."""

import sys
import unittest
from collections.abc import Iterator
from typing import NoReturn

import light
import pytest

from gradproof.cases import Call, Case


def leave(_seed: int) -> NoReturn:
    sys.exit(3)


def interrupt(_seed: int) -> NoReturn:
    raise KeyboardInterrupt


def skip(_seed: int) -> Call:
    pytest.skip("no such device")


def skip_unittest(_seed: int) -> NoReturn:
    raise unittest.SkipTest("not today")


def undecodable(_seed: int) -> NoReturn:
    raise FileNotFoundError("there is no file \udcff.txt")


def cases() -> Iterator[Case]:
    yield light.case("first")
    yield from (Case(make.__name__, make) for make in (leave, interrupt, skip, skip_unittest, undecodable))
    yield light.case("last")


class Unlisted:
    """The listing leaves halfway."""

    def cases(self) -> Iterator[Case]:
        yield light.case("first")
        sys.exit(4)


class Offline:
    """The listing asks somebody who does not answer."""

    def cases(self) -> Iterator[Case]:
        yield light.case("first")
        raise ConnectionRefusedError("nobody there")


class Unwritable:
    """A name that no file can hold."""

    def cases(self) -> Iterator[Case]:
        yield light.case("first")
        yield light.case("half a character \udcff")
