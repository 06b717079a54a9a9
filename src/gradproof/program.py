"""The seam: a differentiable program is a map R^N -> R^M with named coordinates, seen at one point.

Conventions, stated here once and used everywhere:

- A Jacobian is `J[output, input]`. `push` multiplies by J, `pull` by its transpose.
- Everything is **batch first**: k rows in, k rows out, float64.
- A complex leaf contributes (re, im) pairs of coordinates, element by element, and is differentiated as R^2. A
  cotangent pairs with a value by the real inner product of those coordinates: <w, y> = sum(w_re*y_re + w_im*y_im).
  So the pulled-back coordinates (g_re, g_im) are the ordinary real gradient, which torch stores as g_re + i*g_im
  (the conjugate Wirtinger derivative) and JAX stores as g_re - i*g_im; each adapter translates its own.
- An output that its framework calls non-differentiable is a coordinate like any other; its pulled and pushed
  derivatives are zero, and the numeric side then proves it constant or finds it detached.
- An exception or a non-finite number at a perturbed point means that the step left the domain: the row is NaN.
  What the function raises at the point itself reaches the user unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from math import prod
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from gradproof.errors import Unsupported

# Any float64 array; the name of the variable says whether it is a vector or rows of them.
Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]
ComplexArray = NDArray[np.complex128]
Number = TypeVar("Number", bound=np.generic)


@dataclass(frozen=True)
class Leaf:
    """One array among the inputs or outputs: where it sits in the user's structure and in the coordinate vector."""

    path: str
    shape: tuple[int, ...]
    dtype: str
    start: int

    # Derived, and asked for all the time: the number of coordinates, of each element and of all, and where they are.
    is_complex: bool = field(init=False, repr=False, compare=False)
    width: int = field(init=False, repr=False, compare=False)
    size: int = field(init=False, repr=False, compare=False)
    stop: int = field(init=False, repr=False, compare=False)
    span: slice = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        width = 2 if self.dtype.startswith("complex") else 1
        size = prod(self.shape) * width
        span = slice(self.start, self.start + size)
        self.__dict__.update(is_complex=width == 2, width=width, size=size, stop=span.stop, span=span)

    def spot(self, coordinate: int) -> Spot:
        """Name a coordinate of the whole vector that lies in this leaf."""
        offset = int(coordinate) - self.start
        part = ""
        if self.is_complex:
            offset, imaginary = divmod(offset, 2)
            part = "imag" if imaginary else "real"
        index: tuple[int, ...] = ()
        for extent in self.shape[::-1]:
            index = (offset % extent, *index)
            offset //= extent
        return Spot(self.path, index, part)

    def coordinate(self, spot: Spot) -> int:
        """The reverse: where a named entry of this leaf stands in the whole vector."""
        offset = int(np.ravel_multi_index(spot.index, self.shape)) if spot.index else 0
        return self.start + (2 * offset + (spot.part == "imag") if self.is_complex else offset)


@dataclass(frozen=True, slots=True)
class Spot:
    """A leaf, or one entry of it. Prints as the user would write it: `args[0]['w'][3, 1].imag`."""

    path: str
    index: tuple[int, ...] | None = None
    part: str = ""

    def __str__(self) -> str:
        index = "" if not self.index else "[" + ", ".join(map(str, self.index)) + "]"
        return self.path + index + ("." + self.part if self.part else "")


@dataclass(slots=True)
class Tally:
    """How much work a program has done, counted in rows; shared by all programs derived from it."""

    evaluations: int = 0
    pulls: int = 0
    pushes: int = 0


@dataclass(frozen=True, slots=True)
class Skipped:
    """An output that has no coordinates (an integer, None, a string), and why."""

    path: str
    reason: str


@dataclass(frozen=True, eq=False, slots=True)
class Stored:
    """The entries of a sparse Jacobian that its author stores, each once; all others are claimed to be zero."""

    outputs: Indices
    inputs: Indices
    values: Array


@dataclass(frozen=True, eq=False, slots=True)
class Every:
    """The Jacobian by one mode, laid out (N, M), and what some more cotangents or tangents gave, row by row."""

    jacobian: Array
    more: Array


@dataclass(frozen=True, slots=True)
class Offers:
    """What a program may have beyond the protocol: the modes its author wrote (others are not missed), up to which
    order; the stored entries of its Jacobian; the function at complex points (k, N) -> (k, M), where every coordinate
    is a complex number of its own; and the author's words for those that findings are written in ("torch.where")."""

    modes: tuple[str, ...] = ("reverse", "forward")
    order: int = 1
    stored: Callable[[], Stored] | None = None
    complex_values: Callable[[ComplexArray], ComplexArray] | None = None
    words: tuple[tuple[str, str], ...] = ()


NOTHING_MORE = Offers()


def offers_of(program: Program) -> Offers:
    """A program says so by an attribute `offers`; one without it offers nothing more."""
    found = getattr(program, "offers", None)
    return found if isinstance(found, Offers) else NOTHING_MORE


def rule_of(program: Program) -> Program:
    """The adapter's own program, whose rule is in question, under what the core has put around it (`rule`)."""
    found: Program | None = getattr(program, "rule", None)
    return program if found is None else found


def pulled_of(program: Program) -> tuple[Array, Array] | None:
    """A cotangent of signed, unequal entries that was pulled alone already, and its gradient (`pulled_alone`)."""
    found: tuple[Array, Array] | None = getattr(program, "pulled_alone", None)
    return found


def pull_every(program: Program, more: Array) -> Every:
    """Of all unit cotangents, and some more. An adapter may have a better way than to be given all of them
    (`every_pull`), which is None where it does not work."""
    better: Callable[[Array], Every | None] | None = getattr(program, "every_pull", None)
    found = None if better is None else better(more)
    if found is not None:
        return found
    count = program.value.size
    pulled = program.pull(with_units(more))
    # As forward mode has it: all that follows runs through both side by side.
    return Every(np.ascontiguousarray(pulled[:count].T), pulled[count:])


def push_every(program: Program, more: Array) -> Every:
    """The same for tangents (`every_push`)."""
    better: Callable[[Array], Every | None] | None = getattr(program, "every_push", None)
    found = None if better is None else better(more)
    if found is not None:
        return found
    pushed = program.push(with_units(more))
    return Every(pushed[: program.point.size], pushed[program.point.size :])


def with_units(more: Array) -> Array:
    """All unit vectors, and then these rows."""
    count = more.shape[1]
    rows = np.zeros((count + len(more), count))
    np.fill_diagonal(rows, 1.0)
    rows[count:] = more
    return rows


def alone_of(program: Program) -> int:
    """So many rows of `values` run one by one, each as the plain call that gave `value` (`alone`)."""
    found: int = getattr(program, "alone", 0)
    return found


def draws_of(program: Program) -> bool:
    """Whether the function may draw random numbers; an adapter that has watched a call may say no (`draws`)."""
    found: bool = getattr(program, "draws", True)
    return found


def whole_of(program: Program) -> AbstractContextManager[None]:
    """The scope around all that is done with a program, where its adapter wants one (`whole`)."""
    found: AbstractContextManager[None] | None = getattr(rule_of(program), "whole", None)
    return nullcontext() if found is None else found


def linearized_of(program: Program) -> Program:
    """The same program with a linearisation for its forward mode, where its framework has one (`linearized`)."""
    linearized: Callable[[], Program] | None = getattr(program, "linearized", None)
    if linearized is None:
        raise Unsupported("only JAX functions can be linearized")
    return linearized()


class Program(Protocol):
    """What an adapter supplies. All other operators are derived from it in the core. See `Offers`, and the module
    `unrounded`, for what it may have in addition."""

    @property
    def name(self) -> str:
        """The user's function, by a name that the user would recognise."""

    @property
    def inputs(self) -> tuple[Leaf, ...]: ...

    @property
    def outputs(self) -> tuple[Leaf, ...]: ...

    @property
    def skipped(self) -> tuple[Skipped, ...]: ...

    @property
    def point(self) -> Array:
        """The N coordinates where we differentiate. Read-only."""

    @property
    def value(self) -> Array:
        """The M coordinates of the outputs there, from one plain call made as the user would make it. Read-only."""

    @property
    def tally(self) -> Tally: ...

    @property
    def notes(self) -> tuple[str, ...]:
        """How the batches were run so far, one sentence each ("values: vmap", "pull: one by one, because ...")."""

    @property
    def batched(self) -> bool:
        """Whether `values` runs a batch in one call of the user's function (known after construction)."""

    def values(self, points: Array) -> Array:
        """(k, N) -> (k, M). The rows are given away: the user's function may get them as they are, and change them."""

    def pull(self, cotangents: Array) -> Array:
        """Reverse mode at the point: (k, M) -> (k, N). Raises Unsupported where it does not exist."""

    def push(self, tangents: Array) -> Array:
        """Forward mode at the point: (k, N) -> (k, M). Raises Unsupported where it does not exist."""

    def repeated_value(self) -> Array:
        """The outputs at the point again, from the second of two plain calls in a row, the random state of the
        framework running on between them: equal to `value` unless the function is random or keeps state."""

    def gradient(self, cotangent: Array) -> Program:
        """The program (x, w) -> J(x)^T w, at the point (x, cotangent). Its input leaves are this program's, then
        one `cotangent(<output path>)` for each output; its output leaves are `grad(<input path>)`."""

    def widened(self) -> Program:
        """The same function on float64 (complex128) copies of its arguments; or, in place of half precision, on float32
        ones where it runs on those alone. Raises Unsupported where it cannot."""


def leaves(descriptions: Sequence[tuple[str, tuple[int, ...], str]]) -> tuple[Leaf, ...]:
    """Lay out (path, shape, dtype) triples one after another in a coordinate vector."""
    result: list[Leaf] = []
    start = 0
    for path, shape, dtype in descriptions:
        leaf = Leaf(path, tuple(shape), dtype, start)
        result.append(leaf)
        start = leaf.stop
    return tuple(result)


def leaf_at(leaves: Sequence[Leaf], coordinate: int) -> Leaf:
    """The leaf that holds this coordinate."""
    for leaf in leaves:
        if leaf.start <= coordinate < leaf.stop:
            return leaf
    raise IndexError(f"no leaf holds coordinate {coordinate}")


def read_only(array: NDArray[Number]) -> NDArray[Number]:
    """The same numbers, safe to hand out."""
    view = array.view()
    view.flags.writeable = False
    return view
