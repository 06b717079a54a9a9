"""Which contracts derivatives written by hand are held to.

A solver asks for the function, its derivative, the second one, each at any point and in any order, and may hand all of
them the same array; it keeps what they return. So a rule writes into nothing that it is given or has returned. It gives
the same each time, also after it or a function before it was called elsewhere: the usual mistake is a value that the
last call has left behind, or the first.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from gradproof.contracts.repeatable import ROUNDINGS, judged
from gradproof.contracts.suite import Kept, Terms
from gradproof.errors import first_line
from gradproof.norms import rms
from gradproof.numpy.contracts.asked import Rule, rules_of
from gradproof.numpy.contracts.slopes import PRICE
from gradproof.numpy.numpyprogram import NumpyProgram
from gradproof.numpy.purity import preserved
from gradproof.precision import form_of
from gradproof.program import Array, Spot
from gradproof.result import Finding, Place, Verdict

NAMES = ("pure", "repeatable", "reusable")
# By which factor another point is closer to zero, as for torch: that keeps most domains.
ELSEWHERE = 2.0**-5
UNSTEADY = (
    "Look for a buffer that it adds to, a counter or another state that it keeps, or unseeded randomness; if it is not "
    "deterministic by nature, say how far apart two runs may be: nondet_tol=."
)
STALE = "Compute it from the arguments, or keep them beside what is cached and compare before it is used."
KEPT = "What is cached belongs to the numbers of its arguments: compare them with a copy, not by id or reference."
COPY = "Return a copy: a solver keeps what it was given, and compares it with the next."
IMPURE = "Write into a copy: whoever passed the array, a solver for one, goes on with it."


def check_contracts(program: NumpyProgram, terms: Terms) -> Kept:
    names = [name for name in NAMES if name in terms.names]
    with preserved():
        rules = rules_of(program, terms.generator)
    kept = _asked(program, rules, terms, names) if names and rules else Kept()
    # What was seen of the function, and so far of the rules, stands whatever became of the rest.
    return Kept((_overwriting(program, rules) if "pure" in names else ()) + kept.findings, kept.notes)


def _asked(program: NumpyProgram, rules: list[Rule], terms: Terms, names: list[str]) -> Kept:
    if not terms.affords(1 + 3 * len(rules)):
        return Kept(notes=(f"contracts left out by the budget: {', '.join(names)}",))
    try:
        # One scope: in several, each would begin with the same random numbers.
        with preserved():
            found = _Asked(program, rules, terms).again()
    except Exception as error:  # noqa: BLE001  the verdict on the numbers stands whatever happens here
        return Kept(notes=(f"contracts could not be run: {type(error).__name__}: {first_line(error)}",))
    confined = terms.reach == "point" and "reusable" in names
    notes = ("contracts left out, because they call the function at another point: reusable",) if confined else ()
    wanted = {"nondeterministic": "repeatable", "reuse": "reusable"}
    return Kept(tuple(finding for finding in found if wanted[finding.code] in names), notes)


def _overwriting(program: NumpyProgram, rules: list[Rule]) -> tuple[Finding, ...]:
    found = []
    for name, paths in [("the function", program.overwritten), *((one.name, one.watched.overwritten) for one in rules)]:
        for path in paths[:1]:
            place = Place(None, Spot(path)) if path.startswith(("args", "kwargs")) else Place()
            found.append(Finding("impure", Verdict.WRONG, place, f"{name} overwrites {path}", IMPURE))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Function:
    """One of those that a solver calls before a rule, and what it is in a sentence."""

    name: str
    run: Callable[[Array], Array | None]


class _Asked:
    """Rules that are asked once more, after everything was called at another point; what changed is asked why."""

    def __init__(self, program: NumpyProgram, rules: list[Rule], terms: Terms) -> None:
        self._program, self._rules, self._nondet_tol = program, rules, terms.nondet_tol
        self._here = program.point
        self._there = np.where(self._here == 0, ELSEWHERE, self._here * (1.0 - ELSEWHERE))
        self._reach, self._affords = terms.reach, terms.affords
        self._functions = [_Function("the function", self._called), *(_Function(one.name, one.ask) for one in rules)]

    def _called(self, point: Array) -> None:
        call = self._program.rules.call
        self._program.tally.evaluations += 1
        call.run(call.arguments(point.copy()))

    def again(self) -> tuple[Finding, ...]:
        before = [self._settled(k) if rule.first is None else rule.first for k, rule in enumerate(self._rules)]
        _, *there = [self._elsewhere(function) for function in self._functions]
        # The last one first: to ask for a derivative may put right what the next one goes by.
        findings: list[Finding] = []
        for k in reversed(range(len(self._rules))):
            after = self._rules[k].ask(self._here)
            found = self._judged(k, before[k], after)
            if found is None:
                findings += self._outdated(k, after, there[k]) or self._overwritten(k)
            elif found.verdict is Verdict.RIGHT:
                findings.append(found)
            else:
                findings.append(self._explained(k, before[k], found, after, there[k]))
        return tuple(reversed(findings))

    def _settled(self, k: int) -> Array:
        """A rule, after everything before it was called at the point as well."""
        for function in self._functions[: k + 1]:
            function.run(self._here)
        return self._rules[k].ask(self._here)

    def _elsewhere(self, function: _Function) -> Array | None:
        """What it gives there, if anything."""
        if self._reach == "anywhere":
            with suppress(Exception):  # the point may lie outside of its domain
                return function.run(self._there)
        return None

    def _outdated(self, k: int, answer: Array, there: Array | None) -> list[Finding]:
        """A rule that gives the same numbers in both places, where the function has others."""
        if there is None or not self._affords(PRICE):
            return []
        rule, rounding = self._rules[k], ROUNDINGS * form_of(self._program).roundoff
        with np.errstate(invalid="ignore"):
            same = np.abs(answer - there) <= rounding * np.abs(answer)
        if not same.any() or not rule.slopes.outdated(self._here, self._there, answer, same):
            return []
        of = "the function" if rule.slopes.order == 1 else "the gradient"
        sentence = f"{rule.name} gives the same numbers at another point, where the slope of {of} is another one"
        leaf = next(leaf for leaf in rule.leaves if same[leaf.span].any())
        place = Place(None, Spot(leaf.path))
        return [Finding("reuse", Verdict.WRONG, place, f"{sentence} (kept from its first call?)", STALE)]

    def _overwritten(self, k: int) -> list[Finding]:
        rule = self._rules[k]
        if not rule.watched.overwrites_results:
            return []
        before = "what was returned before is overwritten by the next call"
        sentence = f"{rule.name} returns the same array each time; {before}"
        return [Finding("reuse", Verdict.WRONG, Place(), sentence, COPY)]

    def _judged(self, k: int, before: Array, after: Array) -> Finding | None:
        roundoff = form_of(self._program).roundoff
        for leaf in self._rules[k].leaves:
            one, other = before[leaf.span], after[leaf.span]
            with np.errstate(invalid="ignore"):
                apart = np.abs(one - other)
            apart[np.isfinite(one) & ~np.isfinite(other)] = np.inf
            spread = float(np.nanmax(apart, initial=0.0))
            found = judged(leaf.path, spread, roundoff * max(rms(one), rms(other)), self._nondet_tol)
            if found is not None:
                differ = f"(they differ by up to {spread:.3g})"
                name = self._rules[k].name
                sentence = f"{name} gives other numbers when it is called again with the same arguments {differ}"
                return found if found.verdict is Verdict.RIGHT else replace(found, sentence=sentence, hint=UNSTEADY)
        return None

    def _explained(self, k: int, before: Array, found: Finding, after: Array, there: Array | None) -> Finding:
        """Whether it is what another call leaves behind, and of which function."""
        name = self._rules[k].name
        if self._judged(k, before, self._settled(k)) is not None:
            if there is None or self._judged(k, there, after) is not None:
                return found
            sentence = f"{name} gives the numbers of a point where it was called before, with the same array"
            return replace(found, code="reuse", sentence=sentence, hint=KEPT)
        sentence = (
            f"{name} depends on {self._cause(k, before)} (a cached value?): after one elsewhere it gives other numbers"
        )
        return replace(found, code="reuse", sentence=sentence, hint=STALE)

    def _cause(self, k: int, before: Array) -> str:
        for function in self._functions[: k + 2]:
            self._settled(k)
            self._elsewhere(function)
            if self._judged(k, before, self._rules[k].ask(self._here)) is not None:
                return (
                    "its own last call" if function.name == self._rules[k].name else f"the last call of {function.name}"
                )
        return "an earlier call"
