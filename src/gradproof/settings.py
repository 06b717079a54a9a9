"""What the user may choose, validated once and passed whole."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from gradproof.bounds import Bound
from gradproof.bounds import validated as validated_bounds
from gradproof.errors import UsageError
from gradproof.spaces import Space

Mode = Literal["reverse", "forward", "linearize"]
Effort = Literal["auto", "exhaustive"] | int
Detail = Literal["verdict", "summary", "plots"]
Randomness = Literal["detect", "reseed"]
RANDOMNESS: tuple[Randomness, ...] = ("detect", "reseed")
# The modes of every program; "linearize" is the forward mode of another view of it, and looked at only when asked for.
MODES: tuple[Mode, ...] = ("reverse", "forward")
KNOWN_MODES: tuple[Mode, ...] = (*MODES, "linearize")
# What a derivative must be beside its numbers; see docs/contracts.md. The first four know no framework.
CONTRACTS = (
    "linear",
    "adjoint",
    "repeatable",
    "symmetric",
    "pure",
    "attributes",
    "reusable",
    "undefined",
    "layout",
    "subsets",
    "vmap",
    "opcheck",
    "primal",
    "jit",
)


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How much deviation the user accepts at an entry: `absolute + max(relative * |entry|, block * rms of its block)`.

    `block` is `relative` unless it is given, and its part is at most `ceiling`, and at most `gross` times the size of
    an entry that is small because its whole row or column is: see `evidence.lines`.
    """

    relative: float
    absolute: float = 0.0
    block: float | None = None
    ceiling: float = float("inf")
    gross: float = float("inf")

    def __post_init__(self) -> None:
        given: tuple[object, ...] = (self.relative, self.absolute, self.block or 0.0)
        for name, value in zip(("relative", "absolute", "block"), given, strict=True):
            if not (isinstance(value, (int, float)) and 0 <= value < float("inf")):
                raise UsageError(f"{name} tolerance must be a finite number >= 0, got {value!r}")

    @property
    def of_block(self) -> float:
        return self.relative if self.block is None else self.block

    @property
    def given(self) -> bool:
        """Whether the caller has said how well derivatives must be known; else it may be less, where no more is to be
        had."""
        return self.gross == self.ceiling == float("inf")

    @property
    def finest(self) -> float:
        """The smallest deviation that counts, relative to the block: what sums over a block must resolve."""
        return min(self.relative, self.block) if self.block else self.relative


@dataclass(frozen=True, slots=True)
class Budget:
    """The most that a check may spend: evaluations of the function (pulls and pushes count too), seconds, or both."""

    calls: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        if self.calls is not None and (isinstance(self.calls, bool) or int(self.calls) != self.calls or self.calls < 1):
            raise UsageError(f"a budget needs a whole number of calls >= 1, got {self.calls!r}: Budget(calls=200)")
        if self.seconds is not None and not self.seconds > 0:
            raise UsageError(f"a budget needs seconds > 0, got {self.seconds!r}: Budget(seconds=2.0)")


@dataclass(frozen=True, slots=True)
class Settings:
    """See `gradproof.check` for the meaning of each. `modes=None` means: all that exist. `step` is the first step of
    every coordinate; None means: chosen for its scale and format. `nondet_tol` is how far two calls at the same point
    may differ. `contracts` are names from CONTRACTS. Orders below `lowest` are passed over: a sweep has a verdict for
    each order. `bounds` and `spaces` confine the arguments; `spaces` are pairs of a path pattern and a space."""

    modes: tuple[Mode, ...] | None
    order: int
    effort: Effort
    tolerance: Tolerance | None
    seed: int
    budget: Budget
    step: float | None = None
    nondet_tol: float = 0.0
    contracts: tuple[str, ...] = CONTRACTS
    detail: Detail = "summary"
    lowest: int = 1
    bounds: tuple[Bound, ...] = ()
    spaces: tuple[tuple[str, Space], ...] = ()
    randomness: Randomness = "detect"

    @classmethod
    def validated(
        cls,
        *,
        modes: str | Sequence[str] | None = None,
        order: int = 1,
        effort: Effort = "auto",
        tolerance: float | Tolerance | None = None,
        seed: int | None = None,
        budget: int | Budget | None = None,
        step: float | None = None,
        nondet_tol: float = 0.0,
        contracts: str | Sequence[str] = "all",
        detail: Detail = "summary",
        lowest: int = 1,
        bounds: object = None,
        spaces: Mapping[str, Space] | None = None,
        randomness: str = "detect",
    ) -> Settings:
        return cls(
            _modes(modes),
            _order(order),
            _effort(effort),
            _tolerance(tolerance),
            _seed(seed),
            _budget(budget),
            _step(step),
            _nondet_tol(nondet_tol),
            _contracts(contracts),
            _detail(detail),
            _lowest(lowest, order),
            validated_bounds(bounds),
            _spaces(spaces),
            _randomness(randomness),
        )


def _modes(modes: str | Sequence[str] | None) -> tuple[Mode, ...] | None:
    if modes is None:
        return None
    named = (modes,) if isinstance(modes, str) else tuple(modes)
    unknown = [mode for mode in named if mode not in KNOWN_MODES]
    if unknown or not named:
        raise UsageError(
            f"modes={modes!r} is not understood; write modes='reverse', 'forward', or ('reverse', 'forward'); JAX "
            "functions have 'linearize' too"
        )
    return tuple(mode for mode in KNOWN_MODES if mode in named)


def _order(order: object) -> int:
    if isinstance(order, bool) or not isinstance(order, int) or order < 1:
        raise UsageError(f"order={order!r} is not understood; write order=1, or order=2 for second derivatives too")
    return order


def _lowest(lowest: object, order: int) -> int:
    if isinstance(lowest, bool) or not isinstance(lowest, int) or not 1 <= lowest <= order:
        hint = "write order=2, lowest=2 for second derivatives alone"
        raise UsageError(f"lowest={lowest!r} with order={order} leaves nothing to check; {hint}")
    return lowest


def _effort(effort: object) -> Effort:
    if effort == "auto":
        return "auto"
    if effort == "exhaustive":
        return "exhaustive"
    if isinstance(effort, int) and not isinstance(effort, bool) and effort >= 1:
        return effort
    raise UsageError(
        f"effort={effort!r} is not understood; write effort='auto', 'exhaustive', or a number of probes: effort=4"
    )


def _tolerance(tolerance: object) -> Tolerance | None:
    if tolerance is None or isinstance(tolerance, Tolerance):
        return tolerance
    if isinstance(tolerance, bool) or not isinstance(tolerance, (int, float)):
        raise UsageError(
            f"tolerance={tolerance!r} is not understood; write tolerance=1e-4 (relative), "
            "or tolerance=gradproof.Tolerance(relative=1e-4, absolute=1e-8)"
        )
    return Tolerance(relative=tolerance)


def _seed(seed: object) -> int:
    if seed is None:
        return secrets.randbits(32)
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise UsageError(f"seed={seed!r} is not understood; write a whole number >= 0, such as seed=1, or leave it out")
    return seed


def _budget(budget: object) -> Budget:
    if budget is None:
        return Budget()
    if isinstance(budget, Budget):
        return budget
    if isinstance(budget, int) and not isinstance(budget, bool):
        return Budget(calls=budget)
    raise UsageError(
        f"budget={budget!r} is not understood; write budget=gradproof.Budget(calls=200), or Budget(seconds=2.0)"
    )


def _step(step: object) -> float | None:
    if step is None or (isinstance(step, (int, float)) and not isinstance(step, bool) and 0 < step < float("inf")):
        return step
    raise UsageError(f"step={step!r} is not understood; write a number > 0, such as step=1e-6, or leave it out")


def _detail(detail: object) -> Detail:
    if detail == "verdict":
        return "verdict"
    if detail == "summary":
        return "summary"
    if detail == "plots":
        return "plots"
    raise UsageError(
        f"detail={detail!r} is not understood; write detail='summary', 'verdict', or 'plots' to record what plots need"
    )


def _nondet_tol(nondet_tol: object) -> float:
    if isinstance(nondet_tol, (int, float)) and not isinstance(nondet_tol, bool) and 0 <= nondet_tol < float("inf"):
        return float(nondet_tol)
    raise UsageError(
        f"nondet_tol={nondet_tol!r} is not understood; write how far two runs may be apart, a number >= 0: "
        "nondet_tol=1e-8"
    )


def _contracts(contracts: object) -> tuple[str, ...]:
    if isinstance(contracts, str) and contracts in ("all", "none"):
        return CONTRACTS if contracts == "all" else ()
    named = (
        (contracts,) if isinstance(contracts, str) else tuple(contracts) if isinstance(contracts, Iterable) else (0,)
    )
    if any(name not in CONTRACTS for name in named):
        raise UsageError(
            f"contracts={contracts!r} is not understood; write contracts='all', 'none', or some of "
            f"{', '.join(CONTRACTS)}: contracts=('linear', 'pure')"
        )
    return tuple(name for name in CONTRACTS if name in named)


def _spaces(spaces: object) -> tuple[tuple[str, Space], ...]:
    if spaces is None:
        return ()
    if isinstance(spaces, Mapping):
        methods = ("refusal", "project", "retract")
        made = all(not isinstance(one, type) and all(hasattr(one, m) for m in methods) for one in spaces.values())
        if made and all(isinstance(path, str) for path in spaces):
            return tuple(spaces.items())
    raise UsageError(
        f"spaces={spaces!r} is not understood; write spaces={{'args[0]': gradproof.spaces.Symmetric()}}, with one of "
        "Symmetric, Hermitian, PositiveDefinite, LowerTriangular, UpperTriangular, Orthogonal, Simplex, "
        "Sparsity(mask), Projector(onto)"
    )


def _randomness(randomness: object) -> Randomness:
    for known in RANDOMNESS:
        if randomness == known:
            return known
    raise UsageError(
        f"randomness={randomness!r} is not understood; write randomness='detect' (name a random function), or 'reseed' "
        "(give every call the same random numbers)"
    )
