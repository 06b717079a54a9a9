"""A report as JUnit XML, which CI systems read: one test case for each result.

WRONG is a failure and ERROR an error; what could not be told is skipped, with its reason.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from gradproof.render.text import headline, render
from gradproof.result import Report, Result, Verdict

# Characters that XML 1.0 does not allow even as references.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_TAGS = {
    Verdict.WRONG: "failure",
    Verdict.ERROR: "error",
    Verdict.UNDECIDED: "skipped",
    Verdict.UNSUPPORTED: "skipped",
}


def dumps(report: Report, suite: str = "gradproof") -> str:
    """The report as one `testsuites` element."""
    tags = [_TAGS.get(result.verdict, "") for result in report.results]
    counts = {
        "tests": str(len(tags)),
        "failures": str(tags.count("failure")),
        "errors": str(tags.count("error")),
        "skipped": str(tags.count("skipped")),
        "time": f"{sum(result.cost.seconds for result in report.results):.3f}",
    }
    root = ET.Element("testsuites", counts)
    element = ET.SubElement(root, "testsuite", {"name": _clean(suite), **counts})
    if report.environment:
        properties = ET.SubElement(element, "properties")
        for name, value in report.environment:
            ET.SubElement(properties, "property", {"name": _clean(name), "value": _clean(value)})
    for result in report.results:
        _add(element, result, suite)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _add(parent: ET.Element, result: Result, suite: str) -> None:
    source, several, name = result.name.partition("::")
    if not several:  # all of one catalogue, or made in Python
        source, name = suite, result.name
    # CI systems group by class and split it at dots.
    group = re.sub(r"[/\\]", ".", source).removesuffix(".py").strip(".")
    attributes = {"classname": _clean(group), "name": _clean(name), "time": f"{result.cost.seconds:.3f}"}
    case = ET.SubElement(parent, "testcase", attributes)
    tag = _TAGS.get(result.verdict)
    if tag:
        said = ET.SubElement(case, tag, {"type": result.verdict.value, "message": _clean(headline(result))})
        said.text = _clean(render(result))


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)
