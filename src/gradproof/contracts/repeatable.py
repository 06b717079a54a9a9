"""The same call gives the same answer: function values first, then the reverse pass."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gradproof.errors import Ended
from gradproof.norms import rms
from gradproof.precision import form_of, of
from gradproof.program import Array, Program, Spot
from gradproof.reference.steps import signed
from gradproof.result import Finding, Place, Verdict

# Batched and plain calls may round differently; more than this many roundings apart is not rounding.
ROUNDINGS = 256.0
HINT = (
    "Look for saved tensors or the incoming gradient being overwritten, or for unseeded randomness; if it is not "
    "deterministic by nature, say how far apart two runs may be: nondet_tol=."
)


class Unrepeatable(Ended):
    """No derivative can be judged: the function gives other values the next time. `findings` say so."""

    def __init__(self, findings: tuple[Finding, ...]) -> None:
        super().__init__(findings)
        self.findings = findings


class Repeats:
    """The question whether the same call gives the same values. It is asked once, before anything is said against a
    derivative; one that every value agrees with, to many digits, has had its answer. `then` is what a doubt leads to
    next: once, whichever program it is about."""

    def __init__(self, program: Program, nondet_tol: float, then: list[Callable[[], None]] | None = None) -> None:
        self._program, self._nondet_tol, self._then = program, nondet_tol, [] if then is None else then
        self._asked = False

    def ask(self) -> None:
        """Raises Unrepeatable if it does not."""
        if not self._asked:
            self._asked = True
            findings = check_values(self._program, self._nondet_tol)
            if findings:
                raise Unrepeatable(findings)
        while self._then:
            self._then.pop()()

    def leading_to(self, then: Callable[[], None]) -> Repeats:
        """The same question, answered or not."""
        other = Repeats(self._program, self._nondet_tol, [then])
        other._asked = self._asked
        return other

    def of(self, program: Program) -> Repeats:
        """The same question about another program."""
        return Repeats(program, self._nondet_tol, self._then)


def check_values(program: Program, nondet_tol: float) -> tuple[Finding, ...]:
    """A random or stateful function is named as such, whatever else there is, since no derivative of it can be judged.
    Values may differ by rounding, and by `nondet_tol`."""
    again = program.repeated_value()
    if np.array_equal(again, program.value):
        return ()
    for leaf in program.outputs:
        first, second = program.value[leaf.span], again[leaf.span]
        with np.errstate(invalid="ignore"):
            spread = np.abs(first - second)
        spread[np.isfinite(first) & ~np.isfinite(second)] = np.inf  # it may have raised, the second time
        form = of(leaf.dtype)
        roundings = min(ROUNDINGS, form.roundings) * form.roundoff
        allowed = nondet_tol + roundings * max(rms(first), rms(second))
        if np.nanmax(spread, initial=0.0) > allowed:
            worst = int(np.nanargmax(spread))
            return (
                Finding(
                    "random",
                    Verdict.UNDECIDED,
                    Place(leaf.spot(leaf.start + worst), None),
                    f"two calls at the same point differ: {leaf.spot(leaf.start + worst)} was {first[worst]:.6g}, then "
                    f"{second[worst]:.6g}; the function is random or keeps state",
                    "Pass randomness='reseed', use eval mode for dropout, or pass its state as an argument.",
                ),
            )
    return ()


def check_pulls(program: Program, generator: np.random.Generator, nondet_tol: float) -> tuple[Finding, ...]:
    """Pull the same cotangent twice."""
    cotangent = signed(generator, program.value.size)[None]
    first = program.pull(cotangent)[0].copy()
    return check_repeated(program, first, program.pull(cotangent)[0], nondet_tol)


def check_repeated(program: Program, first: Array, second: Array, nondet_tol: float = 0.0) -> tuple[Finding, ...]:
    """Two pulls of the same cotangent."""
    if np.array_equal(first, second):
        return ()
    roundoff = form_of(program).roundoff
    for leaf in program.inputs:
        before, after = first[leaf.span], second[leaf.span]
        spread = float(np.nanmax(np.abs(before - after), initial=0.0))
        found = judged(leaf.path, spread, roundoff * max(rms(before), rms(after)), nondet_tol)
        if found is not None:
            return (found,)
    return ()


def judged(path: str, spread: float, rounding: float, nondet_tol: float) -> Finding | None:
    """What a measured spread of the gradient of one leaf means: wrong, or worth a remark, or nothing."""
    place = Place(None, Spot(path))
    if spread > nondet_tol + ROUNDINGS * rounding:
        granted = f", nondet_tol is {nondet_tol:g}" if nondet_tol else ""
        sentence = f"backward gives different gradients of {path} for the same cotangent (they differ by up to "
        return Finding("nondeterministic", Verdict.WRONG, place, f"{sentence}{spread:.3g}{granted})", HINT)
    if spread > ROUNDINGS * rounding:
        sentence = f"two gradients of {path} for the same cotangent differ by up to {spread:.3g}, within nondet_tol"
        return Finding("nondeterministic", Verdict.RIGHT, place, f"{sentence}={nondet_tol:g}")
    return None
