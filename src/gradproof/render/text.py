"""A result in about a dozen lines: as plain text (`render`), and with colour for a terminal (`panel`).

Both are made from the same headline and labelled lines, so they cannot say different things.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import shorten
from typing import TYPE_CHECKING

from gradproof.render.numbers import count_of, last_digit, number, two_digits, with_bar
from gradproof.result import Comparison, Cost, Entry, Finding, Power, Result, Verdict
from gradproof.verdict import LOUDEST_FIRST

if TYPE_CHECKING:
    from rich.console import RenderableType

# More pairs than this share one line; more than `ROOMY` get one line each instead of two.
LISTED = 8
ROOMY = 3
REMARKS = 4
# Where the name of an input stands in a hint.
GAP = "\0"
# The modes of `gradproof.compare`.
SIDE_BY_SIDE = ("value", "gradient")

_COLOUR = {
    Verdict.RIGHT: "green",
    Verdict.UNSUPPORTED: "cyan",
    Verdict.UNDECIDED: "yellow",
    Verdict.WRONG: "red",
    Verdict.ERROR: "magenta",
}
_LABEL = {Verdict.RIGHT: "remark", Verdict.UNSUPPORTED: "missing", Verdict.UNDECIDED: "unclear"}


@dataclass(frozen=True, slots=True)
class Line:
    """One line under the headline. An empty label continues the line above."""

    label: str
    text: str


def render(result: Result) -> str:
    """The result as plain text."""
    body = [f"  {line.label:<9} {line.text}" for line in lines(result)]
    return "\n".join([f"{result.verdict}  {headline(result)}", *body])


def panel(result: Result) -> RenderableType:
    """The same content for a terminal. Paths and sentences are never read as markup."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    colour = _COLOUR[result.verdict]
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for line in lines(result):
        loud = line.label in ("reverse", "forward", "finding", "cause", "")
        grid.add_row(Text(f"  {line.label:<9}", style="bold" if loud else "dim"), Text(line.text))
    title = Text.assemble((str(result.verdict), f"bold {colour}"), ("  " + headline(result), "bold"))
    return Group(title, grid)


def headline(result: Result) -> str:
    """The name and the count of blocks behind the verdict."""
    return f"{result.name}: {summary(result)}"


def lines(result: Result) -> list[Line]:
    """Everything under the headline."""
    found = _wrong_pairs(result) + _unclear_pairs(result) + _findings(result)
    found += _together("skipped", [f"{skipped.path}: {skipped.reason}" for skipped in result.skipped])
    if result.power is not None:
        found.append(Line("power", power_sentence(result.power)))
    # Why a batch was not possible is in `Result.notes`; here it would bury the verdict.
    found += _together("checked", [shorten(note.split(", because")[0], 120) for note in result.notes])
    return [*found, Line("cost", cost_sentence(result.cost)), Line("replay", f"seed={result.seed}")]


def summary(result: Result) -> str:
    """The count behind the verdict; where no block makes the verdict, a finding does."""
    blocks = len(result.comparisons)
    behind = sum(comparison.verdict is result.verdict for comparison in result.comparisons)
    counted = {
        Verdict.RIGHT: f"{count_of(behind, 'block')} agree{'s' if behind == 1 else ''}{_digits(result.comparisons)}",
        Verdict.UNDECIDED: f"{behind} of {blocks} blocks cannot be told",
        Verdict.WRONG: f"{behind} of {blocks} blocks disagree",
    }
    uncounted = {
        Verdict.RIGHT: "nothing to compare",
        Verdict.UNSUPPORTED: "skipped" if was_skipped(result) else "no derivative to check",
        Verdict.UNDECIDED: "cannot be told",
        Verdict.WRONG: _uncounted(result),
        Verdict.ERROR: "could not be checked",
    }
    return (counted if behind else uncounted).get(result.verdict, uncounted[result.verdict])


def was_skipped(result: Result) -> bool:
    """By the case itself, which does not want to run here."""
    return any(finding.code == "skipped" for finding in result.findings)


def _uncounted(result: Result) -> str:
    if any(finding.code == "structure-differs" for finding in result.wrong):
        return "they cannot be compared"
    if not result.comparisons:
        return "no numbers to compare"
    return f"the numbers agree, but {count_of(len(result.wrong), 'property')} of a derivative failed"


def _digits(comparisons: Sequence[Comparison]) -> str:
    known = [comparison.digits for comparison in comparisons if math.isfinite(comparison.digits)]
    if known and min(known) < 1:
        return ", to less than a digit"
    return f" to {count_of(int(min(known)), 'digit')}" if known else ""


def _wrong_pairs(result: Result) -> list[Line]:
    wrong = [comparison for comparison in result.comparisons if comparison.verdict is Verdict.WRONG]
    # What is wrong in one order may be so in the next because of it.
    wrong.sort(key=lambda comparison: (comparison.unfollowed, comparison.order, -comparison.excess))
    most = min(LISTED, sum(not comparison.unfollowed for comparison in wrong) or LISTED)
    listed: list[Line] = []
    for comparison in wrong[:most]:
        where = f"{_place(comparison)}: {share(comparison)}"
        compared = _yardstick if comparison.mode in SIDE_BY_SIDE else _numbers
        numbers = compared(comparison.worst) if comparison.worst else comparison.reason or "no entry was singled out"
        if min(len(wrong), most) > ROOMY:
            listed.append(Line(comparison.mode, f"{where}, {numbers}"))
        else:
            listed += [Line(comparison.mode, where), Line("", numbers)]
    return listed + _rest(wrong[most:])


def _unclear_pairs(result: Result) -> list[Line]:
    unclear = [comparison for comparison in result.comparisons if comparison.verdict is Verdict.UNDECIDED]
    listed: list[Line] = []
    for comparison in unclear[:LISTED]:
        reason = f" ({comparison.reason})" if comparison.reason else ""
        numbers = f": {_numbers(comparison.worst)}" if comparison.worst else ""
        listed.append(Line(comparison.mode, f"{_place(comparison)}: cannot be told{reason}{numbers}"))
    return listed + _rest(unclear[LISTED:])


def _rest(unlisted: Sequence[Comparison]) -> list[Line]:
    pairs = dict.fromkeys(f"{comparison.output.path} / {comparison.input.path}" for comparison in unlisted)
    return [Line("", f"... and {len(unlisted)} more: {', '.join(pairs)}")] if unlisted else []


def _findings(result: Result) -> list[Line]:
    """What the findings say, those that make the verdict first; many of one kind are cut short."""
    said: list[Line] = []
    for verdict in LOUDEST_FIRST:
        findings = [finding for finding in result.findings if finding.verdict is verdict]
        sentences = list(dict.fromkeys(_sentence(f, result) for f in findings if not _listed(f, result)))
        said += [Line(_LABEL.get(verdict, "finding"), sentence) for sentence in sentences[:REMARKS]]
        if len(sentences) > REMARKS:
            said.append(Line("", f"... and {len(sentences) - REMARKS} more like this"))
        causes = dict.fromkeys(finding.diagnosis.sentence for finding in findings if finding.diagnosis)
        said += [Line("cause", sentence) for sentence in list(causes)[:REMARKS]]
        said += [Line("next", hint) for hint in _hints(findings)]
    return said


def _hints(findings: Sequence[Finding]) -> list[str]:
    """Each once. Those that say the same of several inputs are one, with the names of the first of them."""
    paths: dict[str, list[str]] = {}
    for finding in findings:
        path = finding.place.input.path if finding.place.input else ""
        paths.setdefault(finding.hint.replace(path, GAP) if path else finding.hint, []).append(path)
    return [template.replace(GAP, _names(list(dict.fromkeys(own)))) for template, own in paths.items() if template]


def _names(paths: Sequence[str]) -> str:
    first, more = paths[:REMARKS], len(paths) - REMARKS
    if more > 1:
        return f"{', '.join(first)} and {more} more"
    return " and ".join(filter(None, [", ".join(paths[:-1]), paths[-1]]))


def _listed(finding: Finding, result: Result) -> bool:
    """Whether the finding only repeats a block that has been listed with its numbers; its hint is still news."""
    codes = {"mismatch", "value-differs", "gradient-differs"} | {
        c.reason for c in result.comparisons if c.verdict is Verdict.UNDECIDED
    }
    return finding.code in codes and finding.place in [c.place for c in result.comparisons if c.worst or c.unfollowed]


def _sentence(finding: Finding, result: Result) -> str:
    """The finding with its place, unless that has been named already."""
    place = str(finding.place)
    wrong = [comparison.worst for comparison in result.comparisons if comparison.worst is not None]
    named = len(wrong) == 1 and str(wrong[0].place) == place
    return finding.sentence if not place or named or place in finding.sentence else f"{place}: {finding.sentence}"


def _together(label: str, remarks: Sequence[str]) -> list[Line]:
    return [Line(label, "; ".join(remarks))] if remarks else []


def _place(comparison: Comparison) -> str:
    return f"{comparison.place} (order {comparison.order})" if comparison.order > 1 else str(comparison.place)


def share(comparison: Comparison) -> str:
    if comparison.worst is None:
        return "a random combination of all entries disagrees" if comparison.scope == "probes" else "disagrees"
    # Bisection follows one error to its entry; it does not count the others.
    least = "at least " if comparison.scope == "probes" else ""
    return f"{least}{comparison.wrong:,} of {comparison.entries:,} entries wrong"


def _numbers(entry: Entry) -> str:
    place = last_digit(entry)
    analytic = f"analytic {number(entry.analytic, place)}"
    if entry.spread > 0:
        low, high = entry.numeric - entry.spread, entry.numeric + entry.spread
        numeric = f"a kink that allows {number(low, place)} to {number(high, place)} ± {two_digits(entry.bar)}"
    else:
        numeric = f"numeric {with_bar(entry.numeric, entry.bar, place)}"
    return f"{analytic}, {numeric}, tolerance {two_digits(entry.tolerance)}"


def _yardstick(entry: Entry) -> str:
    """Of one implementation against another, whose own error stands where that of a numeric derivative would."""
    place = last_digit(entry)
    numbers = f"{number(entry.analytic, place)}, in float64 {number(entry.numeric, place)}"
    return f"{numbers}; the plain reference is off by {two_digits(entry.bar)}, allowed is {two_digits(entry.tolerance)}"


def worst_first(result: Result) -> list[Comparison]:
    """The blocks, those that are not right before the others."""
    return sorted(result.comparisons, key=lambda one: (one.verdict is Verdict.RIGHT, -one.excess))


def power_sentence(power: Power) -> str:
    if not math.isfinite(power.error):
        return "would not have caught a single wrong entry"
    relative = f" ({two_digits(power.relative)} of the largest)" if math.isfinite(power.relative) else ""
    return f"would have caught any single-entry error above {two_digits(power.error)}{relative}"


def cost_sentence(cost: Cost) -> str:
    work = [count_of(cost.evaluations, "evaluation"), count_of(cost.pulls, "pull"), count_of(cost.pushes, "push")]
    return f"{', '.join(work)} in {cost.seconds:.2f} s"
