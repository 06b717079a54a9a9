"""Wrong in one place only: some entries, one slice or block of an index, one region of the input's values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import comb

import numpy as np

from gradproof.diagnose.exhibit import Exhibit
from gradproof.diagnose.factors import common_ratio
from gradproof.diagnose.symmetry import is_symmetric
from gradproof.diagnose.terms import patchy
from gradproof.program import Array, Indices, Mask
from gradproof.result import Diagnosis

# A few elements are named one by one. The others must be so many at least, and more than a few.
FEW = 2
OTHERS = 3
# So many wrong numbers of each element by one factor are no coincidence.
NUMBERS = 3
# The chance that as many elements, drawn at random, would be described as well by one of the same family.
CHANCE = 0.01
# A part is wrong in this share of its derivatives at least; less are errors here and there.
DENSE = 0.5
# At a threshold the error is at least this share of the usual one.
ABRUPT = 0.2


@dataclass(frozen=True, slots=True)
class Elements:
    """The elements of the input leaf whose derivatives tell something, and which of them are wrong."""

    offsets: Indices  # in elements, not coordinates
    flawed: Mask
    values: Array
    error: Array  # the largest deviation of each, relative to its largest derivative

    @property
    def count(self) -> int:
        return int(np.count_nonzero(self.flawed))

    def chance(self, family: int) -> float:
        return max(family, 1) / comb(self.offsets.size, self.count)

    def chance_of_values(self, family: int) -> float:
        """The same where every value comes twice: its copy is no further evidence."""
        each, wrong = np.unique(self.values).size, np.unique(self.values[self.flawed]).size
        return max(family, 1) / comb(each, wrong)


@dataclass(frozen=True, eq=False, slots=True)
class Part:
    """A description of the wrong elements, how likely it would be by chance, and (for a sample) a mask of all elements
    of the leaf outside which everything should be right."""

    code: str
    text: str
    chance: float
    mask: Mask


def part(exhibit: Exhibit) -> Diagnosis | None:
    """Where it is wrong: a few elements of the input or the output, or else a part of the input, or of the output."""
    both = [side for side in (exhibit, exhibit.sideways()) if not patchy(side)]
    few = [(one, found) for one in both for found in _few(one)]
    few.sort(key=lambda pair: np.count_nonzero(pair[1].mask))
    for side, one in (*few, *((where, found) for where in both for found in _parts(where))):
        likely = one.chance <= CHANCE or one.code == "entry"
        if likely and side.right_elsewhere(np.repeat(one.mask, side.input.width)):
            return _diagnosis(exhibit, side, one)
    return None


def _diagnosis(exhibit: Exhibit, side: Exhibit, found: Part) -> Diagnosis:
    elements = elements_of(side)
    others = elements.offsets.size - elements.count
    if exhibit.complete:
        agree = "the other element agrees" if others == 1 else f"the {others:,} other elements agree"
    else:
        agree = f"a probe of everything else agrees, and so do {others:,} single elements"
    code = f"output-{found.code}" if side.turned else found.code
    return Diagnosis(
        code,
        f"{exhibit.subject} is wrong only {found.text}{_how(exhibit)}; {agree}",
        1.0,
        _hint(exhibit, found.code, elements.count),
    )


def elements_of(exhibit: Exhibit) -> Elements:
    width = exhibit.input.width
    offsets, owner = np.unique(exhibit.columns // width, return_inverse=True)
    telling = np.zeros(offsets.size, dtype=bool)
    flawed = np.zeros(offsets.size, dtype=bool)
    np.logical_or.at(telling, owner, exhibit.telling.any(axis=0))
    np.logical_or.at(flawed, owner, exhibit.wrong.any(axis=0))
    values = exhibit.point[offsets * width]
    gap, size = np.zeros(offsets.size), np.zeros(offsets.size)
    known = np.where(exhibit.known, exhibit.claimed - exhibit.measured, 0.0)
    np.maximum.at(gap, owner, np.max(np.abs(known), axis=0, initial=0.0))
    largest = np.fmax(np.abs(exhibit.claimed), np.abs(exhibit.measured))
    np.maximum.at(size, owner, np.max(np.where(exhibit.known, largest, 0.0), axis=0, initial=0.0))
    error = gap / np.where(size > 0, size, 1.0)
    return Elements(offsets[telling], flawed[telling], values[telling], error[telling])


def _few(exhibit: Exhibit) -> Iterator[Part]:
    """One or two elements, and clearly more that are right; as many will do if a factor explains several numbers."""
    elements = elements_of(exhibit)
    wrong, others = elements.count, elements.offsets.size - elements.count
    plain = np.count_nonzero(exhibit.wrong) >= NUMBERS * wrong and _how(exhibit)
    if 1 <= wrong <= FEW and others >= (wrong if plain else max(OTHERS, 2 * wrong)):
        mask = _mask(exhibit, elements.offsets[elements.flawed])
        yield Part("entry", f"at {_named(exhibit, elements)}", wrong / elements.offsets.size, mask)


def _parts(exhibit: Exhibit) -> list[Part]:
    """All descriptions of three elements or more, the least likely by chance first; then rectangles."""
    elements = elements_of(exhibit)
    if elements.count <= FEW or elements.offsets.size - elements.count < OTHERS:
        return []
    flawed = exhibit.wrong.any(axis=0)
    if np.count_nonzero(exhibit.wrong[:, flawed]) < DENSE * np.count_nonzero(exhibit.telling[:, flawed]):
        return []
    found = [*_slices(exhibit, elements), *_regions(exhibit, elements)]
    return [*sorted(found, key=lambda one: one.chance), *_boxes(exhibit, elements)]


def _mask(exhibit: Exhibit, offsets: Indices) -> Mask:
    mask = np.zeros(int(np.prod(exhibit.input.shape)), dtype=bool)
    mask[offsets] = True
    return mask


def _named(exhibit: Exhibit, elements: Elements) -> str:
    leaf = exhibit.input
    spots = [leaf.spot(leaf.start + int(offset) * leaf.width) for offset in elements.offsets[elements.flawed]]
    return " and ".join(str(spot).removesuffix(".real") for spot in spots)


def _slices(exhibit: Exhibit, elements: Elements) -> Iterator[Part]:
    """Index patterns that hold exactly the wrong ones of the elements."""
    shape, path = exhibit.input.shape, exhibit.input.path
    index = np.array(np.unravel_index(elements.offsets, shape))
    first = index[:, elements.flawed][:, 0]
    grid = np.indices(shape).reshape(len(shape), -1)
    for axis, n in enumerate(shape) if len(shape) > 1 else ():
        if np.array_equal(index[axis] == first[axis], elements.flawed):
            place = ", ".join(str(first[axis]) if k == axis else ":" for k in range(len(shape)))
            edge = ", at its boundary" if first[axis] in (0, n - 1) else ""
            yield Part("slice", f"in {path}[{place}]{edge}", elements.chance(sum(shape)), grid[axis] == first[axis])
        ends = (index[axis] == 0, index[axis] == n - 1)
        if n > 2 and np.array_equal(ends[0] | ends[1], elements.flawed) and all(end.any() for end in ends):
            text = f"at both ends of axis {axis} of {path}, its boundary"
            yield Part("slice", text, elements.chance(len(shape)), (grid[axis] == 0) | (grid[axis] == n - 1))
    if len(shape) < 2:
        return
    last = np.array(shape)[:, None] - 1
    if np.array_equal(np.any((index == 0) | (index == last), axis=0), elements.flawed):
        text = f"on the border of {path}"
        yield Part("slice", text, elements.chance(1), np.any((grid == 0) | (grid == last), axis=0))
    sides = (("on", np.equal), ("above", np.less), ("below", np.greater), ("off", np.not_equal))
    for where, compare in sides[:3] if exhibit.turned else sides:
        if np.array_equal(compare(index[-2], index[-1]), elements.flawed):
            text = f"{where} the diagonal of {path}"
            yield Part("slice", text, elements.chance(len(sides)), compare(grid[-2], grid[-1]))


def _boxes(exhibit: Exhibit, elements: Elements) -> Iterator[Part]:
    """A rectangle of the index, or a range of the flat order."""
    shape, path = exhibit.input.shape, exhibit.input.path
    for extent in dict.fromkeys((shape, (int(np.prod(shape)),))):
        index = np.array(np.unravel_index(elements.offsets, extent))
        low, high = index[:, elements.flawed].min(axis=1), index[:, elements.flawed].max(axis=1)
        inside = np.all((index >= low[:, None]) & (index <= high[:, None]), axis=0)
        if not np.array_equal(inside, elements.flawed):
            continue
        volume, total = float(np.prod(high - low + 1.0)), float(np.prod(extent))
        wrong = elements.count
        ways = _rectangles(extent, wrong) if exhibit.complete else elements.offsets.size ** (2 * len(extent) - 1)
        chance = min(elements.chance(ways), wrong**2 * (volume / total) ** (wrong - 1))
        # What lies between the wrong elements and the nearest right ones is left open.
        below = [max((i for i in index[k, ~inside] if i < low[k]), default=-1) + 1 for k in range(len(extent))]
        above = [min((i for i in index[k, ~inside] if i > high[k]), default=n) - 1 for k, n in enumerate(extent)]
        grid = np.indices(extent).reshape(len(extent), -1)
        mask = np.all((grid >= np.array(below)[:, None]) & (grid <= np.array(above)[:, None]), axis=0)
        place = ", ".join(_range(a, b, n) for a, b, n in zip(low, high, extent, strict=True))
        flat = " in flat order" if extent != shape else ""
        about = "in" if exhibit.complete else "in about"
        yield Part("block", f"{about} {path}[{place}]{flat}", chance, mask)


def _range(low: int, high: int, length: int) -> str:
    """As one would write it in an index."""
    if low == high:
        return str(low)
    return ":" if high - low + 1 == length else f"{low}:{high + 1}"


def _rectangles(shape: tuple[int, ...], volume: int) -> int:
    """How many rectangles of just this volume there are."""
    if len(shape) == 1:
        return max(shape[0] - volume + 1, 0)
    sides = [side for side in range(1, shape[0] + 1) if volume % side == 0]
    return sum((shape[0] - side + 1) * _rectangles(shape[1:], volume // side) for side in sides)


def _regions(exhibit: Exhibit, elements: Elements) -> Iterator[Part]:
    """Thresholds on the element's own value that hold exactly the wrong ones."""
    if exhibit.input.is_complex or exhibit.turned:
        return
    path, x, every = exhibit.input.path, elements.values, exhibit.point
    for text, chosen, mask in (
        (f"where {path} < 0", x < 0, every < 0),
        (f"where {path} > 0", x > 0, every > 0),
        (f"where {path} is 0", x == 0, every == 0),
    ):
        if np.array_equal(chosen, elements.flawed):
            yield Part("region", text, elements.chance(1), mask)
    chance = elements.chance_of_values(4) if is_symmetric(exhibit.input, every) else elements.chance(4)
    for name, size, sizes in ((path, x, every), (f"|{path}|", np.abs(x), np.abs(every))):
        wrong, right = size[elements.flawed], size[~elements.flawed]
        if not _abrupt(elements, size):
            continue
        if wrong.min() > right.max():
            text = f"where {name} > {_between(right.max(), wrong.min())}"
            yield Part("region", text, chance, sizes > right.max())
        elif wrong.max() < right.min():
            text = f"where {name} < {_between(right.min(), wrong.max())}"
            yield Part("region", text, chance, sizes < right.min())


def _abrupt(elements: Elements, size: Array) -> bool:
    """Whether the error is there at once beyond the threshold. One that grows from nothing is no matter of a branch: it
    is within the tolerance on one side and beyond it on the other."""
    wrong, error = size[elements.flawed], elements.error[elements.flawed]
    edge = error[np.argsort(np.abs(wrong - np.mean(size[~elements.flawed])))[:1]]
    return bool(edge.min() >= ABRUPT * np.median(error))


def _between(right: float, wrong: float) -> str:
    """A threshold that the numbers allow: the roundest there is from a right element to before a wrong one."""
    low, high = min(right, wrong), max(right, wrong)
    for digits in range(-3, 12):
        middle = round((low + high) / 2, digits)
        if low <= middle <= high and middle != wrong:
            return f"{middle:g}"
    return f"{(low + high) / 2:g}"


def _how(exhibit: Exhibit) -> str:
    """By what factor the wrong entries are wrong, if it is the same for all."""
    claimed, measured = exhibit.claimed[exhibit.wrong], exhibit.measured[exhibit.wrong]
    ratio = common_ratio(claimed, measured)
    if ratio is None or (np.abs(claimed - ratio * measured) > exhibit.slack(measured)).any():
        return ""
    if not claimed.any():
        return ", where it is zero"
    if abs(ratio + 1) < 1e-4:
        return ", where it has the wrong sign"
    digits = 4 if abs(ratio - 1) > 5e-4 else 7  # "1 times" would say nothing
    return f", where it is {ratio:.{digits}g} times what it should be"


def _hint(exhibit: Exhibit, code: str, wrong: int) -> str:
    if code == "region":
        return f"Look at the branch that {exhibit.rule} takes there: a comparison, a clamp, a mask."
    if code == "entry":
        return f"Look at how {exhibit.rule} treats {'this index' if wrong == 1 else 'these indices'}."
    return f"Look at how {exhibit.rule} treats this part: a slice, a boundary, a tail that does not fill a block."
