"""Filters, catalogues, plans: what is chosen, and what is said to a choice that cannot be."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import light
import pytest

from gradproof.cases import Call, Case, Traits
from gradproof.errors import UsageError
from gradproof.selection import Selection
from gradproof.sweep import catalogues, filters
from gradproof.sweep.catalogues import Finder
from gradproof.sweep.filters import Filter, Shard
from gradproof.sweep.plan import Terms
from gradproof.sweep.row import Key

FOLDER = Path(__file__).parent / "catalogues"
PLAIN = str(FOLDER / "plain.py")


def names(chosen: Filter) -> list[str]:
    return [case.name for case in chosen.chosen(catalogues.load(PLAIN).cases())]


def test_shards_share_all_cases_and_overlap_in_none() -> None:
    parts = [names(Filter(shard=Shard(k, 8))) for k in range(1, 9)]
    assert sorted(itertools.chain.from_iterable(parts)) == sorted(names(Filter()))
    assert max(map(len, parts)) < 12


def test_a_shard_does_not_depend_on_what_else_is_chosen() -> None:
    whole = set(names(Filter(shard=Shard(1, 2))))
    part = names(Filter(Selection(operators=("square",)), shard=Shard(1, 2)))
    assert set(part) == {name for name in whole if name.startswith("square")}


def test_operators_dtypes_and_the_limit() -> None:
    assert names(Filter(Selection(operators=("n*", "cubé")))) == ["neg/a", "négatif/ü", "cubé/0", "cubé/1"]
    assert len(names(Filter(Selection(dtypes=("float32",))))) == 10
    assert names(Filter(Selection(devices=("cuda",)))) == []
    assert names(Filter(limit=2)) == ["square/float32/0", "square/float64/1"]


@pytest.mark.parametrize(
    ("given", "read"), [("1,2", (1, 2)), (2, (2,)), ((2, 1, 2), (1, 2)), (None, (0,)), (" 1 , 2", (1, 2))]
)
def test_orders_are_read(given: Any, read: tuple[int, ...]) -> None:
    assert filters.orders(given) == read


@pytest.mark.parametrize("given", ["", "0", "one", 0, "1;2"])
def test_orders_that_are_none(given: Any) -> None:
    with pytest.raises(UsageError, match=r"order=.* is not understood"):
        filters.orders(given)


def test_words_and_shards_are_read() -> None:
    assert filters.words("float64, bfloat16") == ("float64", "bfloat16")
    assert filters.words(("a,b", "c")) == ("a", "b", "c")
    assert filters.words(None) == ()
    assert filters.shard("3/8") == Shard(3, 8)
    assert str(Shard(3, 8)) == "3/8"
    for bad in ("3", "3/", "a/b", "-1/2"):
        with pytest.raises(UsageError, match="is not understood"):
            filters.shard(bad)
    with pytest.raises(UsageError, match="no shard 9/8"):
        filters.shard("9/8")
    with pytest.raises(UsageError, match="limit=0"):
        Filter(limit=0)


def test_terms_object_early_and_give_each_case_its_own_seed() -> None:
    with pytest.raises(UsageError, match="modes="):
        Terms(modes=("sideways",))
    terms = Terms(effort="exhaustive", seed=1)
    first, second = Key("c", "a", 2), Key("c", "b", 2)
    assert terms.seed_of(first) != terms.seed_of(second)
    assert terms.seed_of(first) != Terms(seed=2).seed_of(first)
    settings = terms.settings(first)
    assert (settings.effort, settings.order, settings.lowest) == ("exhaustive", 2, 2)
    assert terms.options(Key("c", "a", 0)) == {"effort": "exhaustive", "seed": terms.seed_of(first)}
    assert Terms(contracts=("none",)).settings(first).contracts == ()


# --- catalogues ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("from light import case\nCASES = [case('one'), case('two')]", ["one", "two"]),
        ("import gradproof\n@gradproof.case(params={'n': [1, 2]})\ndef cube(n): ...", ["cube[n=1]", "cube[n=2]"]),
        ("from light import case\ndef cases():\n    yield case('only')", ["only"]),
    ],
)
def test_the_cases_of_a_file(tmp_path: Path, text: str, found: list[str]) -> None:
    file = tmp_path / "mine.py"
    file.write_text(text)
    assert [case.name for case in catalogues.load(str(file)).cases()] == found


def test_a_file_without_cases_says_so(tmp_path: Path) -> None:
    file = tmp_path / "empty.py"
    file.write_text("x = 1")
    with pytest.raises(UsageError, match="holds no cases"):
        list(catalogues.load(str(file)).cases())


@pytest.mark.parametrize("spec", ["nothing", "no/such/file.py", "json.nothing", "json.nothing:x"])
def test_an_unknown_catalogue_is_answered_with_the_known_ones(spec: str) -> None:
    with pytest.raises(UsageError, match=r"no catalogue .*torch\.functions"):
        catalogues.load(spec)


def test_third_parties_register_by_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    class Entry:
        name = "acme"

        def load(self) -> object:
            return Acme

    monkeypatch.setattr(catalogues, "entry_points", lambda group: [Entry()] if group == "gradproof.catalogues" else [])
    assert [case.name for case in catalogues.load("acme").cases()] == ["a", "b"]
    assert "acme" in catalogues.names()


class Acme:
    def __init__(self) -> None:
        self.read = 0

    def cases(self) -> Iterator[Case]:
        for name in ("a", "b"):
            self.read += 1
            yield light.case(name)


def test_what_is_no_catalogue_is_refused() -> None:
    with pytest.raises(UsageError, match="has no cases"):
        catalogues.load("light:SIZE")
    assert [case.name for case in catalogues.load("test_filters:Acme").cases()] == ["a", "b"]


def test_cases_are_found_by_name_without_reading_on() -> None:
    acme = Acme()
    finder = Finder(acme)
    assert finder.find("a").name == finder.find("a").name == "a"
    assert acme.read == 1
    assert finder.find("b").name == "b"
    with pytest.raises(KeyError):
        finder.find("c")


def test_a_catalogue_that_can_search_is_asked() -> None:
    class Searching(Acme):
        def find(self, name: str) -> Case:
            return Case(name, lambda seed: Call(light.square), Traits("found"))

    assert Finder(Searching()).find("z").traits.operator == "found"
