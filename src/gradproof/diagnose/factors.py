"""Nothing but a factor: zero, minus one, two, one over a size; and the parts of complex numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from gradproof.diagnose.exhibit import Exhibit, Fit, extent, fit
from gradproof.norms import rms
from gradproof.program import Array, Indices, Leaf
from gradproof.result import Diagnosis

# So many numbers of one size at least.
FEWEST = 4
# What noise may leave open of a factor that is given a name.
UNSURE = 0.05


def detached(exhibit: Exhibit) -> Diagnosis | None:
    """All zero, though the function changes."""
    # An exact zero is no coincidence, but a sample of a large block must be more than an entry or two.
    if exhibit.claimed.any() or (not exhibit.complete and np.count_nonzero(exhibit.wrong) < 4):
        return None
    found = Fit(1.0, int(np.count_nonzero(exhibit.wrong)), int(np.count_nonzero(exhibit.off)))
    if not found.wrong:
        return None
    return Diagnosis(
        "detached",
        f"the {exhibit.mode} derivative of {exhibit.output.path} with respect to {exhibit.input.path} is zero "
        f"everywhere, but the function changes ({extent(exhibit, found)})",
        1.0,
        "Look for a detach, a no_grad block, or a missing return value.",
    )


def factor(exhibit: Exhibit) -> Diagnosis | None:
    """The same factor in every entry."""
    ratio = common_ratio(exhibit.claimed[exhibit.wrong], exhibit.measured[exhibit.wrong])
    if ratio is None or ratio == 0:
        return None
    name = _named(exhibit, ratio)
    if name is None and (exhibit.blur or not _varied(exhibit.measured[exhibit.wrong])):
        return None
    exact = ratio if name is None else name[0]
    found = fit(exhibit, exact * exhibit.measured)
    if found is None:
        return None
    if name is None:
        text, hint = f"{ratio:.6g} times", "Look for a constant that is missing, or counted twice."
    else:
        text, hint = name[1], name[2]
    if exact < 1 and _is_mean(exhibit, exact):
        return Diagnosis(
            "mean-for-sum",
            f"{exhibit.subject} is {text} what it should be: {exhibit.input.path} is broadcast over that many elements "
            f"of {exhibit.output.path}, and the sum over them has become a mean ({extent(exhibit, found)})",
            found.explained,
            f"Use sum instead of mean where {exhibit.rule} reduces to the shape of {exhibit.input.path}.",
        )
    verb = "has the wrong sign" if exact == -1 else f"is {text} what it should be"
    return Diagnosis("factor", f"{exhibit.subject} {verb} ({extent(exhibit, found)})", found.explained, hint)


def same_factor(exhibit: Exhibit) -> Diagnosis | None:
    """All entries that are not zero have one size, as those of a mask have, and are wrong by one factor, which
    an offset would be as well: it is said of what is not zero, after all that says more."""
    claimed, measured = exhibit.claimed[exhibit.wrong], exhibit.measured[exhibit.wrong]
    ratio = common_ratio(claimed, measured)
    count = claimed.size
    if not ratio or exhibit.turned or count < FEWEST or np.count_nonzero(exhibit.telling) > count:
        return None
    found = fit(exhibit, ratio * exhibit.measured)
    if found is None:
        return None
    return Diagnosis(
        "factor",
        f"{exhibit.subject} is {ratio:.6g} times what it should be wherever it is not zero ({extent(exhibit, found)})",
        found.explained,
        "Look for a constant that is missing, or counted twice: 1/(1 - p) of a dropout, a mean, a scale.",
    )


def common_ratio(claimed: Array, measured: Array) -> float | None:
    """The least-squares factor between two sets of numbers, None where there is none."""
    power = float(np.sum(measured * measured))
    return float(np.sum(claimed * measured)) / power if power > 0 else None


def _varied(numbers: Array) -> bool:
    """At least three numbers of different size: equal ones would show any offset as a factor."""
    sizes = np.sort(np.abs(numbers))
    return sizes.size >= 3 and bool(sizes[-1] > 1.01 * sizes[0])


def _named(exhibit: Exhibit, ratio: float) -> tuple[float, str, str] | None:
    """A factor that has a name: its exact value, how to say it, and where to look; none where noise leaves several."""
    measured = exhibit.measured[exhibit.wrong]
    doubt = exhibit.blur / (rms(measured) * math.sqrt(measured.size))
    if doubt > UNSURE:
        return None
    found = [one for one in _names(exhibit) if abs(ratio / one[0] - 1.0) <= 1e-4 + doubt]
    return found[0] if found and (len(found) == 1 or not exhibit.blur) else None


def _names(exhibit: Exhibit) -> Iterator[tuple[float, str, str]]:
    yield -1.0, "-1 times", "Look for a sign: a subtraction the wrong way round, or a minus that was lost."
    twice = "Look for a term that is added twice, or a 2 or 1/2 that was lost (a square, a symmetric pair)."
    for sign in (1.0, -1.0):
        minus = "-" if sign < 0 else ""
        yield sign * 2.0, f"{minus}2 times", twice
        yield sign * 0.5, f"{minus}1/2 of", twice
        for n, where in _lengths(exhibit):
            reduced = f"Look for a mean or a sum over that axis; {n} is {where}."
            yield sign * n, f"{minus}{n} times ({n} is {where})", reduced
            yield sign / n, f"{minus}1/{n} of", reduced
    if not exhibit.blur:  # which has more digits than noise leaves
        yield from _units()


def _units() -> Iterator[tuple[float, str, str]]:
    """Angles and logarithms in other units."""
    degrees = "Look for an angle in degrees that is taken for one in radians, or the reverse."
    yield math.degrees(1.0), "180/π times", degrees
    yield math.radians(1.0), "π/180 times", degrees
    for base in (2, 10):
        other = f"Look for a logarithm or a power of base {base} that is taken for one of base e, or the reverse."
        yield math.log(base), f"ln {base} times", other
        yield 1.0 / math.log(base), f"1/ln {base} times", other


def _lengths(exhibit: Exhibit) -> Iterator[tuple[int, str]]:
    """Sizes that occur in the shapes, 3 and more, each once."""
    seen = {0, 1, 2}
    for leaf in (exhibit.output, exhibit.input):
        for axis, n in enumerate(leaf.shape):
            if n not in seen:
                seen.add(n)
                yield n, f"the length of axis {axis} of {leaf.path}"
        if (count := int(np.prod(leaf.shape))) not in seen:
            seen.add(count)
            yield count, f"the number of elements of {leaf.path}"


def _is_mean(exhibit: Exhibit, exact: float) -> bool:
    """Whether the input is smaller than the output by just this factor, and meets that many elements of it."""
    n = round(1.0 / exact)
    if n < 2 or abs(n * exact - 1.0) > 1e-9 or exhibit.input.size * n != exhibit.output.size:
        return False
    if not exhibit.complete:
        return True
    return bool((np.count_nonzero(exhibit.telling, axis=0) >= n).any())


def conjugate(exhibit: Exhibit) -> Diagnosis | None:
    """Signs of imaginary parts: a conjugate that is missing, or one too many."""
    if not (exhibit.input.is_complex or exhibit.output.is_complex):
        return None
    for rows, columns in ((False, True), (True, False), (True, True)):
        if (rows and not exhibit.output.is_complex) or (columns and not exhibit.input.is_complex):
            continue
        down = _alternating(exhibit.rows) if rows else np.ones(exhibit.rows.size)
        across = _alternating(exhibit.columns) if columns else np.ones(exhibit.columns.size)
        found = fit(exhibit, exhibit.measured * (down[:, None] * across))
        if found is not None and found.wrong >= 3:
            what = f"{exhibit.subject} is the conjugate of what it should be"
            if rows:
                what = (
                    f"{exhibit.subject} is conjugated the wrong way: a factor lacks its conjugate, or has one too many"
                )
            return Diagnosis(
                "conjugate",
                f"{what} ({extent(exhibit, found)})",
                found.explained,
                f"Conjugate the factors that multiply the incoming gradient in {exhibit.rule}.",
            )
    return None


def _alternating(offsets: Indices) -> Array:
    """+1 for real, -1 for imaginary parts."""
    return np.asarray(1.0 - 2.0 * (offsets % 2))


def complex_part(exhibit: Exhibit) -> Diagnosis | None:
    """Only the real or only the imaginary part of the gradient is wrong, by a factor."""
    leaf: Leaf = exhibit.input
    if not leaf.is_complex:
        return None
    for part, name in ((0, "real"), (1, "imaginary")):
        chosen = exhibit.columns % 2 == part
        wrong = exhibit.wrong[:, chosen]
        if not wrong.any() or exhibit.wrong[:, ~chosen].any() or not exhibit.telling[:, ~chosen].any():
            continue
        ratio = common_ratio(exhibit.claimed[:, chosen][wrong], exhibit.measured[:, chosen][wrong])
        if ratio is None:
            continue
        ratio = round(ratio, 6)
        found = fit(exhibit, np.where(chosen, ratio, 1.0) * exhibit.measured)
        if found is not None and found.wrong >= 3:
            how = "zero" if ratio == 0 else f"{ratio:.6g} times what it should be"
            return Diagnosis(
                "complex-part",
                f"the {name} part of {exhibit.subject} is {how}, the other part is right ({extent(exhibit, found)})",
                found.explained,
                f"Look for .real, .imag or torch.complex in {exhibit.rule}.",
            )
    return None
