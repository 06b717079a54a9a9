"""compare(): one implementation against another, such as a fused kernel against the plain formula.

No low-precision result is exact, so the question is whether `fn` is about as exact as the plain `reference` is in the
same precision. The truth is the reference in float64; the plain reference's own error is the yardstick.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradproof import recording
from gradproof.adapters import program_of
from gradproof.errors import NoDerivative, Unsupported, UsageError
from gradproof.evidence.gathered import restricted
from gradproof.evidence.wording import unsupported
from gradproof.norms import largest, rms
from gradproof.precision import DOUBLE, SINGLE, Precision, form_of, of
from gradproof.program import Array, Leaf, Mask, Program, Spot
from gradproof.reference.steps import signed
from gradproof.result import Comparison, Cost, Entry, Finding, Place, Result, Table, Verdict, worst_of
from gradproof.settings import Settings

# Where the yardstick happens to be exact, `fn` may still round: so many times, and typically so many times. In float32
# kernels round all the way, and each in its own order; what they compute in a narrower format is off by far more.
ROUNDINGS, TYPICAL_ROUNDINGS = 4.0, 1.0
IN_SINGLE = 16.0
# How many wrong entries of a leaf are named, worst first.
NAMED = 8


@dataclass(frozen=True, slots=True)
class Triple:
    """The same program three times: as it is judged, as plain as can be, and the latter in float64."""

    judged: Program
    plain: Program
    exact: Program

    @property
    def form(self) -> Precision:
        return form_of(self.judged)

    def roundings(self, least: float) -> float:
        """Relative to the size of the numbers. In float64 there is nothing wider, and no yardstick."""
        if self.form is DOUBLE:
            least = DOUBLE.roundings
        elif self.form is SINGLE:
            least *= IN_SINGLE
        return least * self.form.roundoff


def compare(
    fn: Callable[..., Any],
    reference: Callable[..., Any],
    args: Any = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    wrt: str | Sequence[str] | None = None,
    multiple: float = 2.0,
    probes: int = 4,
    seed: int | None = None,
) -> Result:
    """Tell whether outputs and gradients of `fn` are as good as those of `reference`, called with the same arguments.

    fn: what is to be judged: fused, compiled, on a GPU, in low precision.
    reference: the same function written plainly. It must run in float64 too: that is the truth.
    multiple: how many times the error of the plain reference, in the arguments' own precision, `fn` may have.
    probes: random cotangents for each output; the gradients of all of them are compared entry by entry.
    wrt, seed: as for `check`.
    """
    _expect(fn, reference, multiple, probes)
    settings = Settings.validated(effort=probes, seed=recording.seed(seed))
    started = time.perf_counter()
    state = random.getstate()
    try:
        judged, plain = (_program(one, args, kwargs, wrt) for one in (fn, reference))
        name = f"{judged.name} against {plain.name}"
        comparisons, findings = _compared(judged, plain, multiple, settings)
    finally:
        random.setstate(state)
    tallies = (judged.tally, plain.tally)
    result = Result(
        name=name,
        verdict=worst_of([one.verdict for one in comparisons] + [one.verdict for one in findings]),
        comparisons=comparisons,
        findings=findings,
        skipped=judged.skipped,
        notes=(f"allowed: {multiple:g} times the error of {plain.name} in {_formats(plain)}; float64 is the truth",),
        power=None,
        cost=Cost(
            sum(one.evaluations for one in tallies),
            sum(one.pulls for one in tallies),
            sum(one.pushes for one in tallies),
            time.perf_counter() - started,
        ),
        seed=settings.seed,
        settings=settings,
    )
    return recording.told(result)


def _expect(fn: object, reference: object, multiple: object, probes: object) -> None:
    for name, one in (("fn", fn), ("reference", reference)):
        if not callable(one):
            raise UsageError(f"{name} must be a function, got {type(one).__name__}; write compare(fn, reference, x)")
    if not isinstance(multiple, (int, float)) or not multiple >= 1:
        raise UsageError(f"multiple={multiple!r} is not understood; write a number >= 1, such as multiple=2.0")
    if not isinstance(probes, int) or isinstance(probes, bool) or probes < 1:
        raise UsageError(f"probes={probes!r} is not understood; write a whole number >= 1, such as probes=4")


def _program(fn: Callable[..., Any], args: Any, kwargs: Mapping[str, Any] | None, wrt: Any) -> Program:
    try:
        return program_of(fn, args, kwargs, wrt)
    except NoDerivative as missing:
        raise UsageError(
            "compare pulls gradients through both functions, and NumPy arrays and plain numbers carry none; pass those "
            "of torch or JAX: compare(fn, reference, jnp.asarray(x)); a derivative that was written by hand is checked "
            "against its function: check(fn, x, derivative={'jac': jac})"
        ) from missing


def _formats(program: Program) -> str:
    return ", ".join(dict.fromkeys(leaf.dtype for leaf in program.inputs + program.outputs))


def _compared(
    judged: Program, plain: Program, multiple: float, settings: Settings
) -> tuple[tuple[Comparison, ...], tuple[Finding, ...]]:
    different = _other_structure(judged, plain)
    if different is not None:
        return (), (different,)
    try:
        triple = Triple(judged, plain, _in_double(plain))
    except Unsupported as reason:
        sentence = f"{plain.name} is no reference: {reason}"
        hint = (
            "Write the reference so that it runs on float64 arguments: no casts to a fixed dtype, no captured tensors."
        )
        return (), (Finding("no-reference", Verdict.UNDECIDED, Place(), sentence, hint),)
    found = [_values(triple, leaf, multiple) for leaf in judged.outputs]
    missing: tuple[Finding, ...] = ()
    try:
        found += _gradients(triple, multiple, settings)
    except Unsupported as reason:
        missing = (unsupported("reverse mode", str(reason), Verdict.RIGHT),)
    findings = tuple(_finding(one, triple) for one in found if one.verdict is Verdict.WRONG)
    return tuple(found), findings + missing


def _in_double(plain: Program) -> Program:
    """Raises Unsupported where it does not run in float64: float32 is no truth, though it may do for a check."""
    exact = plain.widened()
    if exact is not plain and form_of(exact) is not DOUBLE:
        raise Unsupported("it does not run in float64")
    return exact


def _other_structure(judged: Program, plain: Program) -> Finding | None:
    """Inputs are the same arguments, but the parameters of a compiled module go by other names; shapes must agree."""
    for what, ours, theirs in (("inputs", judged.inputs, plain.inputs), ("outputs", judged.outputs, plain.outputs)):
        if [(leaf.shape, leaf.is_complex) for leaf in ours] != [(leaf.shape, leaf.is_complex) for leaf in theirs]:
            ours_, theirs_ = (", ".join(f"{leaf.path} {leaf.shape}" for leaf in side) for side in (ours, theirs))
            sentence = f"the {what} differ: {judged.name} has {ours_ or 'none'}, {plain.name} has {theirs_ or 'none'}"
            return Finding("structure-differs", Verdict.WRONG, Place(), sentence)
    return None


def _values(triple: Triple, leaf: Leaf, multiple: float) -> Comparison:
    sides = tuple(one.value[None, leaf.span] for one in (triple.judged, triple.plain, triple.exact))
    return _judged(triple, sides, (leaf, leaf), multiple)


def _gradients(triple: Triple, multiple: float, settings: Settings) -> list[Comparison]:
    """J^T w for every output leaf; one at a time, as the user would. Cotangents are numbers of the output's format."""
    generator = np.random.default_rng(settings.seed)
    assert isinstance(settings.effort, int)
    drawn = [signed(generator, triple.judged.value.size) for _ in range(settings.effort)]
    result = []
    for output in triple.judged.outputs:
        rows = [restricted(of(output.dtype).round(one), output.span) for one in drawn]
        pulled = [np.vstack([side.pull(row) for row in rows]) for side in (triple.judged, triple.plain, triple.exact)]
        result += [
            _judged(triple, tuple(one[:, leaf.span] for one in pulled), (output, leaf), multiple)
            for leaf in triple.judged.inputs
        ]
    return result


def _judged(triple: Triple, sides: tuple[Array, ...], pair: tuple[Leaf, Leaf], multiple: float) -> Comparison:
    """Every entry against the largest error of the yardstick, and all of them together against its typical error."""
    judged, plain, exact = sides
    with np.errstate(invalid="ignore"):
        error, yardstick = np.abs(judged - exact), np.abs(plain - exact)
    scale = rms(exact)
    tolerance = multiple * largest(np.nan_to_num(yardstick, posinf=0.0)) + triple.roundings(ROUNDINGS) * np.maximum(
        np.abs(np.nan_to_num(exact, posinf=0.0, neginf=0.0)), scale
    )
    same = (judged == exact) | (judged == plain) | (np.isnan(judged) & np.isnan(plain))
    wrong = ~(error <= tolerance) & ~same
    typical = multiple * rms(yardstick) + triple.roundings(TYPICAL_ROUNDINGS) * scale
    if not wrong.any() and rms(error) > typical:
        wrong, tolerance = (error > typical) & ~same, np.full_like(error, typical)
    output, leaf = pair
    return Comparison(
        order=1,
        mode="value" if output is leaf else "gradient",
        output=output,
        input=leaf,
        scope="entries" if output is leaf else "probes",
        source=Table(judged, exact, yardstick, tolerance),
        verdict=Verdict.WRONG if wrong.any() else Verdict.RIGHT,
        found=_worst(wrong, Table(judged, exact, yardstick, tolerance), pair),
        wrong=int(np.count_nonzero(wrong.any(axis=0))),
        entries=leaf.size,
    )


def _worst(wrong: Mask, table: Table, pair: tuple[Leaf, Leaf]) -> tuple[Entry, ...]:
    output, leaf = pair
    with np.errstate(invalid="ignore", over="ignore"):
        times = np.abs(table.analytic - table.numeric) / (table.tolerance + 1e-300)
    rank = np.where(wrong, np.nan_to_num(times, nan=np.inf, posinf=np.inf), -1.0)
    order = np.argsort(-rank, axis=None, kind="stable")[: min(NAMED, int(np.count_nonzero(wrong)))]
    found = []
    for at in zip(*np.unravel_index(order, rank.shape), strict=True):
        spot = leaf.spot(leaf.start + int(at[1]))
        place = Place(spot, None) if output is leaf else Place(Spot(output.path), spot)
        found.append(table.entry(place, at))
    return tuple(found)


def _finding(comparison: Comparison, triple: Triple) -> Finding:
    worst = comparison.found[0]
    value = comparison.mode == "value"
    what = f"{worst.place}" if value else f"the gradient {worst.place}"
    yardstick, error = rms(comparison.bar), rms(comparison.analytic - comparison.numeric)
    sentence = (
        f"{what} is {worst.analytic:.6g}, in float64 it is {worst.numeric:.6g}; off by {worst.deviation:.3g} here and "
        f"by {error:.3g} typically, where {triple.plain.name} is off by {largest(comparison.bar):.3g} at most and by "
        f"{yardstick:.3g} typically"
    )
    if value:
        hint = "Look at what is computed in a narrower format, or summed in another order."
        return Finding("value-differs", Verdict.WRONG, worst.place, sentence, hint)
    hint = "The outputs may well agree: look at the backward of this input, and at the formats that it computes in."
    return Finding("gradient-differs", Verdict.WRONG, worst.place, sentence, hint)
