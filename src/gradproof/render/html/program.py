"""One program of a report: what was found, the numbers, the places of the plots, and how to run it again."""

from __future__ import annotations

from dataclasses import fields

from gradproof.picture import Trace
from gradproof.render.html.figures import figures, shown
from gradproof.render.html.markup import Child, Markup, tag, text_of
from gradproof.render.html.sheet import sheet
from gradproof.render.html.words import analytic, badge, block_name, code, fate, numeric, shape_of, tolerances
from gradproof.render.numbers import two_digits
from gradproof.render.text import cost_sentence, power_sentence, share
from gradproof.render.traces import has_ladder, has_remainder, ladder_sentence, taylor_sentence
from gradproof.result import Comparison, Entry, Finding, Result, Verdict
from gradproof.settings import Settings
from gradproof.verdict import LOUDEST_FIRST

# More of one kind than this are counted, not shown.
FINDINGS, ENTRIES = 12, 5
# Names of columns; "row" is the one that names its row.
ENTRY = (
    ("Entry", "row"), ("Mode", ""), ("Analytic", "number"), ("Numeric", "number"), ("Tolerance", "number"),
    ("Off by", "number"),
)  # fmt: skip
BLOCK = (
    ("Verdict", ""), ("Block", "row"), ("Output", ""), ("Input", ""), ("Compared", ""), ("Digits", "number"),
    ("Largest deviation", "number"),
)  # fmt: skip
COMPARED = {"entries": "", "probes": "probes of ", "pattern": "stored entries and zeros of "}


def program(result: Result, number: int, room: int) -> Markup:
    """Everything about one result, to be opened from the overview. `room` is for how many blocks there is."""
    return tag(
        "div",
        _findings(result),
        _entries(result),
        _plots(result, number, room),
        _blocks(result, room),
        _facts(result),
        class_="program",
    )


def _findings(result: Result) -> Markup | None:
    ordered = sorted(result.findings, key=lambda finding: LOUDEST_FIRST.index(finding.verdict))
    if not ordered:
        return None
    rest = len(ordered) - FINDINGS
    more = tag("li", f"… and {rest} more findings", class_="rest") if rest > 0 else None
    return tag("ul", [_finding(one) for one in ordered[:FINDINGS]], more, class_="findings", aria_label="Findings")


def _finding(finding: Finding) -> Markup:
    place = str(finding.place)
    kind = "remark" if finding.verdict is Verdict.RIGHT else finding.verdict.value
    lines = [tag("p", finding.sentence, class_="sentence")]
    if place and place not in finding.sentence:
        lines.append(_labelled("Place", code(place)))
    diagnosis = finding.diagnosis
    if diagnosis is not None:
        lines.append(_labelled("Cause", diagnosis.sentence, " ", tag("span", diagnosis.code, class_="chip")))
    hint = finding.hint or (diagnosis.hint if diagnosis else "")
    if hint:
        lines.append(_labelled("Next", hint))
    return tag("li", tag("span", finding.code, class_="chip"), *lines, class_=f"finding {kind}")


def _labelled(label: str, *text: str) -> Markup:
    return tag("p", tag("span", label, class_="label"), " ", *text)


def _entries(result: Result) -> Markup | None:
    """Both values of the entries that were judged one by one: what a plot shows by hovering, for everyone."""
    loud = sorted(result.comparisons, key=lambda one: one.excess, reverse=True)
    rows = [(comparison, entry) for comparison in loud for entry in comparison.found]
    if not rows:
        return None
    # Of several blocks each shows its worst entry; a single block shows more of its own.
    worst = [(comparison, comparison.found[0]) for comparison in loud if comparison.found]
    several = len(worst) > 1
    listed = worst[:ENTRIES] if several else rows[:ENTRIES]
    caption = "Where the two sides differ"
    shown = caption if several else f"{caption}: {_extent(worst[0][0])}"
    columns = (*ENTRY, ("In this block", "")) if several else ENTRY
    return sheet(columns, [_entry(*one) for one in listed], "entries", caption, tag("caption", shown))


def _entry(comparison: Comparison, entry: Entry) -> list[Child]:
    order = "" if comparison.order == 1 else f", order {comparison.order}"
    return [
        code(str(entry.place)),
        comparison.mode + order,
        analytic(entry),
        numeric(entry),
        two_digits(entry.tolerance),
        f"{tolerances(entry.excess)} tolerances",
        _extent(comparison),
    ]


def _extent(comparison: Comparison) -> str:
    return share(comparison) if comparison.verdict is Verdict.WRONG else "cannot be told"


def numbers(result: Result, room: int) -> Markup:
    """What the plots of one program show, for `plots.js`."""
    return text_of(figures(shown(result)[:room], result.traces))


def _plots(result: Result, number: int, room: int) -> Markup | None:
    """Empty figures; `plots.js` fills them. Each says in words what it shows."""
    blocks = shown(result)[:room]
    if not blocks and not result.traces:
        return None
    figures_of: list[Markup] = []
    if blocks:
        label = f"blocks-{number}"
        names = [f"{block_name(one)}: {fate(one).value}" for one in blocks]
        choice = tag("select", [tag("option", name, value=k) for k, name in enumerate(names)], id=label, class_="block")
        figures_of.append(
            tag(
                "figure",
                tag("figcaption", tag("label", "Deviation in tolerances, block ", choice, for_=label)),
                tag("div", class_="plot heat", role="application", tabindex="0"),
                tag("p", class_="says", aria_live="polite"),
                class_="wide",
            )
        )
    for k, trace in enumerate(result.traces):
        if has_ladder(trace):
            figures_of.append(_figure(f"Error against step, {_subject(trace)}", "ladder", k, ladder_sentence(trace)))
        if has_remainder(trace):
            figures_of.append(_figure(f"Taylor remainder, {_subject(trace)}", "taylor", k, taylor_sentence(trace)))
    return tag("div", figures_of, class_="plots", data_program=number)


def _figure(title: str, kind: str, index: int, sentence: str) -> Markup:
    return tag(
        "figure",
        tag("figcaption", title),
        tag("div", class_=f"plot {kind}", role="img", aria_label=f"{title}; in words below", data_trace=index),
        tag("p", sentence, class_="says"),
    )


def _subject(trace: Trace) -> str:
    return trace.subject if trace.order == 1 else f"{trace.subject} (order {trace.order})"


def _blocks(result: Result, room: int) -> Markup | None:
    if not result.comparisons:
        return None
    loudest_first = sorted(result.comparisons, key=lambda one: LOUDEST_FIRST.index(one.verdict))
    rest = len(loudest_first) - room
    return tag(
        "details",
        tag("summary", f"All blocks ({len(result.comparisons):,})"),
        sheet(BLOCK, [_block(one) for one in loudest_first[:room]], "blocks", "All blocks"),
        tag("p", f"… and {rest:,} more", class_="rest") if rest > 0 else None,
    )


def _block(one: Comparison) -> list[Child]:
    return [
        [badge(fate(one)), f" ({one.reason})" if one.reason else None],
        code(block_name(one)),
        f"{shape_of(one.output.shape)}, {one.output.dtype}",
        f"{shape_of(one.input.shape)}, {one.input.dtype}",
        f"{COMPARED[one.scope]}{one.entries:,} entries",
        f"{one.digits:.0f}" if one.digits == one.digits else "",
        f"{tolerances(one.excess)} tolerances",
    ]


def _facts(result: Result) -> Markup:
    facts: list[tuple[str, list[Markup | str]]] = []
    if result.power is not None:
        facts.append(("Power", [power_sentence(result.power)]))
    if result.notes:
        facts.append(("Checked", list(result.notes)))
    if result.skipped:
        facts.append(("Skipped", [f"{one.path}: {one.reason}" for one in result.skipped]))
    facts.append(("Cost", [cost_sentence(result.cost)]))
    facts.append(("Options", [", ".join(options(result.settings))]))
    facts.append(
        ("Run again", [copyable(result.source)] if result.source else [f"the same call with seed={result.seed}"])
    )
    return tag("dl", [(tag("dt", name), [tag("dd", one) for one in said]) for name, said in facts], class_="facts")


def copyable(command: str) -> Markup:
    """A command and a button that copies it."""
    return tag("span", code(command), " ", tag("button", "Copy", type="button", class_="copy"), class_="command")


def options(settings: Settings) -> list[str]:
    """The options that differ from their defaults, and the seed, as one would write them in a call."""
    plain = Settings.validated(seed=settings.seed)
    changed = [one.name for one in fields(Settings) if getattr(settings, one.name) != getattr(plain, one.name)]
    return [f"{name}={getattr(settings, name)!r}" for name in (*changed, "seed")]
