"""JUnit XML: what CI systems read."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from gradproof.attempt import ended
from gradproof.render.junit import dumps
from gradproof.result import Finding, Place, Report, Result, Verdict


def result(verdict: Verdict, name: str = "pkg/cases.py::one[n=8]") -> Result:
    finding = Finding("error", Verdict.ERROR, Place(), "something <happened> & more")
    return replace(ended(name, finding, 0, {}, 1.25), verdict=verdict)


def test_every_verdict_has_its_element() -> None:
    tags = {
        Verdict.WRONG: "failure",
        Verdict.ERROR: "error",
        Verdict.UNDECIDED: "skipped",
        Verdict.UNSUPPORTED: "skipped",
    }
    root = ET.fromstring(dumps(Report(tuple(result(verdict) for verdict in Verdict))))
    cases = root.findall("testsuite/testcase")
    assert len(cases) == len(Verdict)
    for case, verdict in zip(cases, Verdict, strict=True):
        assert [child.tag for child in case] == ([tags[verdict]] if verdict in tags else [])
    assert root.attrib == {"tests": "5", "failures": "1", "errors": "1", "skipped": "2", "time": "6.250"}


def test_names_times_and_text() -> None:
    (case,) = ET.fromstring(dumps(Report((result(Verdict.WRONG),)))).iter("testcase")
    assert case.attrib == {"classname": "pkg.cases", "name": "one[n=8]", "time": "1.250"}
    assert case[0].get("type") == "wrong"
    assert "something <happened> & more" in (case[0].text or "")


@pytest.mark.parametrize(
    ("name", "group", "own"),
    [
        ("add/float64/0", "gradproof", "add/float64/0"),  # of a sweep of one catalogue
        ("/home/me/rules.py::power[n=2]", "home.me.rules", "power[n=2]"),
        (r"pkg\cases.py::one", "pkg.cases", "one"),
        ("torch::add/float64/0", "torch", "add/float64/0"),
    ],
)
def test_a_class_groups_results_and_does_not_repeat_their_names(name: str, group: str, own: str) -> None:
    (case,) = ET.fromstring(dumps(Report((result(Verdict.RIGHT, name),)))).iter("testcase")
    assert (case.get("classname"), case.get("name")) == (group, own)


def test_the_environment_is_in_the_properties() -> None:
    report = Report((result(Verdict.RIGHT),), (("torch", "2.13"),))
    (one,) = ET.fromstring(dumps(report)).iter("property")
    assert one.attrib == {"name": "torch", "value": "2.13"}


def test_characters_that_xml_does_not_have() -> None:
    odd = result(Verdict.WRONG, "a\x00b\x1b[31m\ufffe::c<&>\"'")
    (case,) = ET.fromstring(dumps(Report((odd,)))).iter("testcase")
    assert case.get("name") == "c<&>\"'"
    assert case.get("classname") == "a\ufffdb\ufffd[31m\ufffd"
