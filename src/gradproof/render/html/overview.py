"""The top of a report: the verdict on the whole, filters, and one row for each program."""

from __future__ import annotations

from collections import Counter

from gradproof.render.html.markup import Markup, tag
from gradproof.render.html.program import copyable, program
from gradproof.render.html.words import SIGN, badge, breakable, tolerances
from gradproof.render.text import summary
from gradproof.result import Report, Result, Verdict
from gradproof.verdict import LOUDEST_FIRST

# About so many blocks are listed in a whole page, and so many of one program at least and at most.
BLOCKS, LEAST, MOST = 4000, 1, 200

# The headline of a report of one program.
ALONE = {
    Verdict.RIGHT: "The gradient is right",
    Verdict.WRONG: "The gradient is wrong",
    Verdict.UNDECIDED: "The gradient cannot be told",
    Verdict.UNSUPPORTED: "There is no derivative to check",
    Verdict.ERROR: "The program could not be checked",
}

# Name of the column, what its rows carry to sort by, and its kind.
COLUMNS = (
    ("Verdict", "verdict", ""),
    ("Program", "name", ""),
    ("What was found", "", ""),
    ("Deviation / tolerance", "excess", "number"),
    ("Calls", "calls", "number"),
    ("Seconds", "seconds", "number"),
)


def headline(report: Report) -> str:
    """The whole report in one sentence."""
    total = len(report.results)
    if not total:
        return "No program was checked"
    counts = Counter(result.verdict for result in report.results)
    if total == 1:
        return ALONE[report.verdict]
    if counts[Verdict.RIGHT] == total:
        return f"All {total:,} gradients are right"
    loud = [verdict for verdict in LOUDEST_FIRST if counts[verdict] and verdict is not Verdict.RIGHT]
    first = f"{counts[loud[0]]:,} of {total:,} programs {_fate(loud[0], counts[loud[0]])}"
    return ", ".join([first, *[f"{counts[verdict]:,} {_fate(verdict, counts[verdict])}" for verdict in loud[1:]]])


def _fate(verdict: Verdict, count: int) -> str:
    fates = {
        Verdict.WRONG: "is wrong" if count == 1 else "are wrong",
        Verdict.ERROR: "could not be checked",
        Verdict.UNDECIDED: "cannot be told",
        Verdict.UNSUPPORTED: "has no derivative to check" if count == 1 else "have no derivative to check",
    }
    return fates[verdict]


def strip(report: Report) -> Markup | None:
    """The shares of the verdicts as a coloured strip; the words are in the filters."""
    counts = Counter(result.verdict for result in report.results)
    parts = [(verdict, counts[verdict]) for verdict in LOUDEST_FIRST if counts[verdict]]
    return tag(
        "div",
        [tag("span", class_=verdict.value, style=f"flex-grow:{count}") for verdict, count in parts],
        class_="strip",
        aria_hidden="true",
    )


def filters(report: Report) -> Markup:
    counts = Counter(result.verdict for result in report.results)
    verdicts = [
        tag(
            "button",
            tag("span", SIGN[verdict], aria_hidden="true"),
            f" {verdict.value} ",
            tag("span", f"{counts[verdict]:,}", class_="count"),
            type="button",
            class_=f"verdict {verdict.value}",
            data_verdict=verdict.value,
            aria_pressed="false",
        )
        for verdict in LOUDEST_FIRST
        if counts[verdict]
    ]
    found = Counter(code for result in report.results for code in codes(result))
    choices = [tag("option", f"{code} ({count:,})", value=code) for code, count in sorted(found.items())]
    return tag(
        "div",
        tag("div", verdicts, role="group", aria_label="Show only these verdicts", class_="verdicts"),
        tag("label", "Finding ", tag("select", tag("option", "any", value=""), choices, id="finding")),
        tag("label", "Text ", tag("input", type="search", id="text", placeholder="name, path or sentence")),
        tag("output", class_="shown", id="shown", aria_live="polite"),
        class_="filters",
    )


def table(report: Report) -> Markup:
    heads = [_head(*column) for column in COLUMNS]
    # The loudest first, else in the order of the report; the numbers stay those of the report.
    ordered = sorted(enumerate(report.results), key=lambda one: LOUDEST_FIRST.index(one[1].verdict))
    rows = [_row(result, number, room(report)) for number, result in ordered]
    return tag(
        "table",
        tag("caption", "Programs; open one for its numbers and plots", class_="unseen"),
        tag("thead", tag("tr", heads, role="row"), role="rowgroup"),
        rows,
        id="programs",
        role="table",
    )


def room(report: Report) -> int:
    """How many blocks of each program the page shows."""
    return min(max(BLOCKS // max(len(report.results), 1), LEAST), MOST)


def about(report: Report) -> Markup:
    """Where the report was made, and how to make it again."""
    pairs = [(tag("dt", name), tag("dd", value)) for name, value in report.environment]
    again = (tag("dt", "command"), tag("dd", copyable(report.source))) if report.source else None
    return tag("section", tag("h2", "Environment"), tag("dl", again, pairs, class_="facts"), class_="about")


def codes(result: Result) -> list[str]:
    """The codes of its findings and their causes, once each, the loudest first."""
    ordered = sorted(result.findings, key=lambda finding: LOUDEST_FIRST.index(finding.verdict))
    found = [code for one in ordered for code in (one.code, one.diagnosis.code if one.diagnosis else "")]
    return [code for code in dict.fromkeys(found) if code]


def telling(result: Result) -> list[str]:
    """The codes that make the verdict, or remarks of one that is right; that a mode does not exist is no news."""
    made = [finding.code for finding in result.findings if finding.verdict is result.verdict]
    return [code for code in dict.fromkeys(made) if code != "unsupported" or result.verdict is not Verdict.RIGHT]


def sentence(result: Result) -> str:
    """The one thing to know about a result: its cause where there is one, else what was found, else the count."""
    for verdict in LOUDEST_FIRST:
        if verdict is Verdict.RIGHT:
            break
        found = [finding for finding in result.findings if finding.verdict is verdict]
        causes = [finding.diagnosis.sentence for finding in found if finding.diagnosis]
        if found:
            return (causes or [found[0].sentence])[0]
    return summary(result)


def _head(name: str, key: str, kind: str) -> Markup:
    if not key:
        return tag("th", name, scope="col", role="columnheader")
    button = tag("button", name, tag("span", class_="arrow", aria_hidden="true"), type="button", data_key=key)
    first = "ascending" if key == "verdict" else "none"
    return tag("th", button, scope="col", role="columnheader", class_=kind or None, aria_sort=first)


def _row(result: Result, number: int, blocks: int) -> Markup:
    excess = max((one.excess for one in result.comparisons), default=0.0)
    calls = result.cost.evaluations + result.cost.pulls + result.cost.pushes
    opener = tag(
        "button",
        breakable(result.name),
        type="button",
        class_="opener",
        aria_expanded="false",
        aria_controls=f"d{number}",
    )
    chips = [tag("span", code, class_="chip") for code in telling(result)]
    return tag(
        "tbody",
        tag(
            "tr",
            tag("td", badge(result.verdict), role="cell"),
            tag("th", opener, scope="row", role="rowheader"),
            tag("td", chips[:3], " ", sentence(result), class_="what", role="cell"),
            _number("Deviation", tolerances(excess) if result.comparisons else "–"),
            _number("Calls", f"{calls:,}"),
            _number("Seconds", f"{result.cost.seconds:.2f}"),
            class_="row",
            role="row",
        ),
        tag(
            "tr",
            tag("td", program(result, number, blocks), colspan=len(COLUMNS), role="cell"),
            class_="more",
            role="row",
            id=f"d{number}",
            hidden="",
        ),
        id=f"p{number}",
        role="rowgroup",
        data_verdict=result.verdict.value,
        data_rank=LOUDEST_FIRST.index(result.verdict),
        data_excess=f"{excess:.4g}",
        data_calls=calls,
        data_seconds=f"{result.cost.seconds:.4f}",
        data_codes=" ".join(codes(result)),
    )


def _number(column: str, text: str) -> Markup:
    """With the name of its column, for where that does not stand above it."""
    return tag("td", text, class_="number", role="cell", data_label=column)
