"""In what way a rule fails to be linear in the cotangent or tangent that it is given: ignored, clipped, ... A few more
pulls or pushes tell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from gradproof.contracts.side import Side
from gradproof.errors import Ended, Unsupported
from gradproof.norms import largest, rms
from gradproof.precision import BRAIN, DOUBLE, HALF, SINGLE, form_of
from gradproof.program import Array, Leaf, Program
from gradproof.result import Diagnosis

SMALL, LARGE = 2.0**-20, 2.0**20
# A format is recognised by so many different numbers, and grants a few roundings.
DISTINCT = 4
ROUNDINGS = 4.0
# A cast may go by another format, and round twice: a few numbers in a thousand then are others.
TWICE = 0.004
# What is linear to so many digits at least is so but for an iteration that ends early.
INEXACT = 0.05
# Smaller than all others, but no smaller than what a solver with an absolute tolerance may be asked for.
QUIET = 2.0**-12
# By kind of mistake, in the words of the side.
HINTS = {
    "ignored": "Multiply by the {incoming} in {rule}; it is not always one.",
    "offset": "Look for a constant that {rule} adds to the result.",
    "abs": "Look for abs, a square or a norm of the {incoming}.",
    "one-sided": "Look for relu, clamp(min=0) or a comparison applied to the {incoming}.",
    "sign": "Look for sign, or a division by the norm, of the {incoming}.",
    "power": "Look for the {incoming} being multiplied by itself.",
    "clipped": "Do not clip in {rule}: the chain rule needs every {incoming} as it is.",
    "threshold": "Look for hardshrink, a comparison with the size of the {incoming}, or a solver's absolute tolerance: "
    "small ones count too.",
    "precision": "Look for a cast to a narrower format in {rule}; or pass a tolerance= that grants its rounding.",
    "inexact": "Look for a solver in {rule} that stops at a tolerance, or for sums in a narrower format: make it more "
    "exact, or pass a tolerance= that grants what it leaves.",
    "joint": "Look for a condition in {rule} on several {incoming}s together.",
}


@dataclass(frozen=True, slots=True)
class Found:
    """What kind of mistake it is, a key of `HINTS`, and a sentence about it."""

    kind: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Asked:
    """A rule, as far as one leaf is concerned that it makes numbers for. `first` and `second` are what it is given to
    tell kinds apart; numbers are the same up to `close`."""

    program: Program
    side: Side
    leaf: Leaf
    first: Array
    second: Array
    close: float

    def __call__(self, vector: Array) -> Array:
        return np.array(self.side.run(self.program, vector[None])[0, self.leaf.span])

    def of_nothing(self) -> Array:
        """What it makes of zeros. A solver may refuse those, which nobody else gives it."""
        try:
            return self(0 * self.first)
        except (Ended, Unsupported):
            raise
        except Exception:  # noqa: BLE001
            return np.zeros(self.leaf.size)

    def same(self, one: Array, other: Array, times: float = 1.0) -> bool:
        """NaN is never the same."""
        gap = np.max(np.abs(one - other), initial=0.0)
        return bool(gap <= times * self.close * max(rms(one), rms(other)))


def nonlinear(program: Program, side: Side, leaf: Leaf, generator: np.random.Generator) -> Diagnosis | None:
    """What the rule does to what it is given, on the way to the numbers of this leaf."""
    close = 1e-6 if form_of(program) is DOUBLE else 2e-2
    size = side.size(program)
    asked = Asked(program, side, leaf, _mixed(generator, size), _mixed(generator, size), close)
    kinds: tuple[Callable[[Asked], Found | None], ...] = (_kind, _joint, _rounded, _inexact)
    with np.errstate(all="ignore"):
        found = next(filter(None, (_answered(kind, asked) for kind in kinds)), None)
    if found is None:
        return None
    code = found.kind if found.kind == "precision" else f"{side.vector}-{found.kind}"
    hint = HINTS[found.kind].format(incoming=side.incoming, rule=side.rule)
    return Diagnosis(code, f"on its way to {leaf.path}, {found.sentence}", 1.0, hint)


def is_inexact(diagnosis: Diagnosis | None) -> bool:
    """Whether it is linear but for what a solver leaves: then its numbers still make a Jacobian."""
    return diagnosis is not None and diagnosis.code.endswith("-inexact")


def _answered(kind: Callable[[Asked], Found | None], asked: Asked) -> Found | None:
    """A rule may refuse what nobody gives it but we: a solver for zero, or for numbers that are far too large."""
    try:
        return kind(asked)
    except (Ended, Unsupported):
        raise
    except Exception:  # noqa: BLE001  whatever it is, the finding stands without a cause
        return None


def _mixed(generator: np.random.Generator, size: int) -> Array:
    """Both signs, sizes around one: some below, some above."""
    return np.where(generator.random(size) < 0.5, -1.0, 1.0) * np.exp2(generator.uniform(-3.0, 3.0, size))


def _kind(rule: Asked) -> Found | None:
    w, letter = rule.first, rule.side.letter
    nothing, plain, minus = rule.of_nothing(), rule(w), rule(-w)
    if minus.any() and not plain.any():  # of a few numbers all may have the sign that is dropped
        return _kind(replace(rule, first=-w))
    if nothing.any() and np.isfinite(nothing).all():  # NaN: zero divided by its own norm
        return _constant(rule, nothing, plain)
    odd, even = rule.same(minus, -plain), rule.same(minus, plain)
    twice = rule(2 * w)
    degree = next((d for d in (0, 1, 2, 3) if rule.same(twice, 2.0**d * plain)), None)
    if degree == 1 and not odd:
        return _one_sided(rule, plain, minus)
    if degree == 0 and odd and not even and rule.same(rule(SMALL * w), plain):
        text = f"only the sign or the direction of the {rule.side.vector} counts, not its size"
        return Found("sign", f"{text}: 2 {letter} gives what {letter} gives")
    if degree is not None and degree >= 2:
        times = f"2 {letter} gives {2**degree} times what {letter} does"
        return Found("power", f"the {rule.side.vector} enters to the power {degree}: {times}")
    return _by_size(rule) if odd else None


def _by_size(rule: Asked) -> Found | None:
    """What depends on the size alone: linear in small ones or in large ones, but not across."""
    w, vector = rule.first, rule.side.vector
    small, large, larger = rule(SMALL * w), rule(LARGE * w), rule(2 * LARGE * w)
    if rule.same(large, larger) and rule.same(small, rule(SMALL * SMALL * w) / SMALL):
        return Found("clipped", f"the {vector} is clipped: small ones pass as they are, large ones do not grow")
    if not small.any() and large.any() and rule.same(2 * large, larger):
        return Found("threshold", f"small {vector}s are dropped: only large ones pass")
    return None


def _constant(rule: Asked, nothing: Array, plain: Array) -> Found | None:
    vector, result = rule.side.vector, rule.side.result
    other = rule(rule.second)
    if rule.same(plain, nothing) and rule.same(other, nothing):
        return Found("ignored", f"the {vector} is ignored: every one, zero too, gives the same {result}")
    if rule.same(rule(rule.first + rule.second) - nothing, (plain - nothing) + (other - nothing)):
        return Found("offset", f"a constant is added that does not depend on the {vector}: zero gives a {result} too")
    return None


def _one_sided(rule: Asked, plain: Array, minus: Array) -> Found | None:
    """f(w) - f(-w) is linear when positive and negative numbers are each treated linearly, in different ways."""
    w, v, vector, letter = rule.first, rule.second, rule.side.vector, rule.side.letter
    if rule.same(minus, plain):
        text = f"only the size of the {vector} counts, not its sign: {letter} and -{letter} give the same"
        return Found("abs", text)
    if not rule.same(rule(w + v) - rule(-w - v), plain - minus + rule(v) - rule(-v), 10):
        return None
    for sign, name in ((-1.0, "negative"), (1.0, "positive")):
        if not rule(sign * np.abs(w)).any():
            return Found("one-sided", f"{name} {vector}s are dropped")
    return Found("one-sided", f"positive and negative {vector}s are treated differently")


def _joint(rule: Asked) -> Found | None:
    """Linear in what belongs to each leaf alone, but not in all together."""
    given = rule.side.given(rule.program)
    if len(given) < 2:
        return None
    w, v = rule.first, rule.second
    together = rule(w)
    total = np.zeros_like(together)
    for leaf in given:
        one, other = np.zeros_like(w), np.zeros_like(v)
        one[leaf.span], other[leaf.span] = w[leaf.span], v[leaf.span]
        alone = rule(one)
        if not rule.same(alone + rule(other), rule(one + other)):
            return None
        total += alone
    if rule.same(total, together):
        return None
    text = f"the {rule.side.vector}s of several {rule.side.ends} together give something else than their sum"
    return Found("joint", text)


def _rounded(rule: Asked) -> Found | None:
    """Linear but for the rounding to a narrower format: of what comes in, or of every number that is made."""
    w, v = rule.first, rule.second
    one, other, both = rule(w), rule(v), rule(w + v)
    for narrow in (BRAIN, HALF, SINGLE):
        if narrow.roundoff <= form_of(rule.program).roundoff:
            continue
        made = all(np.array_equal(narrow.round(numbers), numbers) for numbers in (one, other, both))
        if made and np.unique(np.abs(one)).size >= DISTINCT:
            what = "every number"
        elif all(np.mean(rule(narrow.round(given)) != rule(given)) <= TWICE for given in (w, v)):
            what = f"the {rule.side.vector}"
        else:
            continue
        allowed = ROUNDINGS * narrow.roundoff * np.maximum(np.abs(one), np.abs(other))
        if (np.abs(one + other - both) <= allowed + ROUNDINGS * narrow.roundoff * rms(both)).all():
            return Found("precision", f"{what} is rounded to {narrow.name}, and linear but for that")
    return None


def _inexact(rule: Asked) -> Found | None:
    """Linear to some digits: what is left has no pattern, as far as a few combinations tell."""
    w, v = rule.first, rule.second
    one, other, small = rule(w), rule(v), rule(-QUIET * w) / -QUIET
    left = [one + other - rule(w + v), one - other - rule(w - v), 2 * one - rule(2 * w), one - small]
    share = max(map(largest, left)) / max(largest(one), largest(other), 1e-300)
    if not ROUNDINGS * form_of(rule.program).roundoff < share <= INEXACT:  # nor NaN
        return None
    digits = int(-np.log10(share))
    few = f"{digits} digit{'s' if digits > 1 else ''}"
    return Found("inexact", f"the {rule.side.result} is linear in the {rule.side.vector} to {few} only")
