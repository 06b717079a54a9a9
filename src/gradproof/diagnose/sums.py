"""Sums that went wrong: over the batch, over a broadcast axis, a mean that was kept or taken off."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gradproof.diagnose.exhibit import Exhibit, Fit, extent, fit, judged, shaped, varied
from gradproof.norms import rms
from gradproof.program import Array, Indices, Leaf
from gradproof.result import Diagnosis

FEWEST = 3


def one_of_batch(exhibit: Exhibit) -> Diagnosis | None:
    """One element along the first axis of the output used in place of all of them."""
    shape = exhibit.output.shape
    if exhibit.turned or len(shape) < 1 or shape[0] < 2:
        return None
    per = exhibit.output.size // shape[0]
    batch, rest = np.divmod(exhibit.rows, per)
    for chosen in (0, shape[0] - 1):
        which = f"element {chosen} of the batch (axis 0 of {exhibit.output.path})"
        for code, text, predicted in (
            (
                "one-of-batch",
                f"the cotangent of {which} is used for all",
                _cotangent_of_one(exhibit, batch, rest, chosen),
            ),
            ("one-of-batch", f"the values of {which} are used for all", _values_of_one(exhibit, batch, rest, chosen)),
            (
                "sum-missing",
                f"only {which} is counted, the sum over the others is missing",
                _only_one(exhibit, batch, chosen),
            ),
        ):
            found = fit(exhibit, predicted) if predicted is not None else None
            if found is not None and found.wrong >= FEWEST:
                return Diagnosis(
                    code,
                    f"{text} ({extent(exhibit, found)})",
                    found.explained,
                    f"Look for an index such as [0] or [:1], or a missing sum over axis 0, in {exhibit.rule}.",
                )
    return None


def _cotangent_of_one(exhibit: Exhibit, batch: Indices, rest: Indices, chosen: int) -> Array:
    """Rows of the chosen element collect those of all elements, the others are empty."""
    count = exhibit.output.shape[0]
    per = exhibit.output.size // count
    result = np.zeros(exhibit.measured.shape)
    for k in np.flatnonzero(batch == chosen):
        result[k] = np.sum(exhibit.numeric.at(np.arange(count) * per + rest[k], exhibit.columns), axis=0)
    return result


def _values_of_one(exhibit: Exhibit, batch: Indices, rest: Indices, chosen: int) -> Array | None:
    """Every element has the derivatives of the chosen one; None where those are too plain to tell."""
    count = exhibit.output.shape[0]
    per = exhibit.output.size // count
    rows = chosen * per + rest
    if exhibit.input.shape[:1] == (count,):
        theirs, offset = np.divmod(exhibit.columns, exhibit.input.size // count)
        within = exhibit.numeric.at(rows, chosen * (exhibit.input.size // count) + offset)
        predicted = np.where(batch[:, None] == theirs, within, 0.0)
    else:
        predicted = exhibit.numeric.at(rows, exhibit.columns)
    return predicted if varied(predicted[exhibit.wrong]) else None


def _only_one(exhibit: Exhibit, batch: Indices, chosen: int) -> Array | None:
    """Only for an input that all elements share: what depends on another element each has nothing to be summed."""
    own = batch == chosen
    shared = exhibit.telling[own].any(axis=0) & exhibit.telling[~own].any(axis=0)
    if exhibit.input.shape[:1] == exhibit.output.shape[:1] or not shared.any():
        return None
    return np.where(own[:, None], exhibit.measured, 0.0)


def wrong_axis(exhibit: Exhibit) -> Diagnosis | None:
    """A broadcast input whose gradient is summed over the wrong axis: A[r, r_b] = J[r, r_a]."""
    own, shape = exhibit.input, exhibit.output.shape
    if exhibit.turned or own.is_complex or exhibit.output.is_complex or len(own.shape) != 1 or len(shape) < 2:
        return None
    index = np.unravel_index(exhibit.rows, shape)
    fitting = [axis for axis, n in enumerate(shape) if n == own.size]
    for right in fitting:
        here = exhibit.numeric.at(exhibit.rows, np.arange(own.size)) if exhibit.complete else None
        source = (
            here[np.arange(exhibit.rows.size), index[right]]
            if here is not None
            else _diagonal(exhibit, exhibit.rows, index[right])
        )
        for wrong in fitting:
            if wrong == right:
                continue
            predicted = np.where(index[wrong][:, None] == exhibit.columns, source[:, None], 0.0)
            found = fit(exhibit, predicted)
            if found is not None and found.wrong >= FEWEST:
                return Diagnosis(
                    "wrong-axis",
                    f"{exhibit.subject} belongs to axis {right} of {exhibit.output.path}, but is that of axis {wrong}: "
                    f"the sum runs over the wrong axis ({extent(exhibit, found)})",
                    found.explained,
                    f"Sum over all axes but {right} in {exhibit.rule}.",
                )
    return None


def _diagonal(exhibit: Exhibit, rows: Indices, columns: Indices) -> Array:
    return np.array([exhibit.numeric.at(rows[[k]], columns[[k]])[0, 0] for k in range(rows.size)])


def mean_kept(exhibit: Exhibit) -> Diagnosis | None:
    """The gradient lacks the removal of its mean along an axis: J[r] = A[r] - mean(A[r])."""
    if exhibit.turned or not _wide(exhibit):
        return None
    for axes, name in _axes(exhibit.input):
        kept = np.full(exhibit.claimed.shape, np.nan)
        for k, line in _lines(exhibit):
            mean = line.reshape(shaped(exhibit.input)).mean(axis=axes, keepdims=True)
            kept[k] = np.broadcast_to(mean, shaped(exhibit.input)).ravel()[exhibit.columns]
        found = _corrected(exhibit, exhibit.claimed - kept)
        if found is not None:
            return Diagnosis(
                "mean-kept",
                f"{exhibit.subject} would be right after its mean over {name} is taken off ({extent(exhibit, found)})",
                found.explained,
                f"Subtract the mean over {name} in {exhibit.rule}.",
            )
    return None


def mean_removed(exhibit: Exhibit) -> Diagnosis | None:
    """The gradient has a zero mean along an axis, and is right but for a constant there."""
    if exhibit.turned or not _wide(exhibit):
        return None
    for axes, name in _axes(exhibit.input):
        shape = shaped(exhibit.input)
        groups = np.broadcast_to(
            np.arange(exhibit.input.size).reshape(shape).min(axis=axes, keepdims=True), shape
        ).ravel()[exhibit.columns]
        balanced = np.zeros(exhibit.claimed.shape, dtype=bool)
        for k, line in _lines(exhibit):
            sums = np.abs(line.reshape(shape).sum(axis=axes, keepdims=True))
            sizes = np.abs(line.reshape(shape)).sum(axis=axes, keepdims=True)
            balanced[k] = np.broadcast_to(sums <= 1e-9 * sizes, shape).ravel()[exhibit.columns]
        if not balanced[exhibit.wrong].all():
            continue
        shift = np.full(exhibit.claimed.shape, np.nan)
        for group in np.unique(groups):
            members = np.flatnonzero(groups == group)
            if members.size >= FEWEST:
                gap = (exhibit.measured - exhibit.claimed)[:, members]
                shift[:, members] = gap.mean(axis=1, keepdims=True)
        found = _corrected(exhibit, exhibit.claimed + shift)
        if found is not None:
            return Diagnosis(
                "mean-removed",
                f"the mean over {name} has been taken off {exhibit.subject}: it sums to zero there, and the right one "
                f"does not ({extent(exhibit, found)})",
                found.explained,
                f"Do not subtract the mean over {name} in {exhibit.rule}.",
            )
    return None


def _axes(leaf: Leaf) -> Iterator[tuple[tuple[int, ...], str]]:
    if leaf.is_complex:
        return
    if int(np.prod(leaf.shape)) >= FEWEST:
        yield tuple(range(len(leaf.shape))), "all elements"
    if len(leaf.shape) > 1:
        for axis, n in enumerate(leaf.shape):
            if n >= FEWEST:
                yield (axis,), f"axis {axis}"


def _lines(exhibit: Exhibit) -> Iterator[tuple[int, Array]]:
    """The analytic rows, whole, one at a time; none where only columns are known."""
    everything = np.arange(exhibit.input.size)
    for k in range(exhibit.rows.size):
        line = exhibit.analytic.at(exhibit.rows[[k]], everything)[0]
        if np.isfinite(line).all():
            yield k, line


def _wide(exhibit: Exhibit) -> bool:
    """Several wrong numbers in a row: a single one would be explained by any constant."""
    return rms(np.count_nonzero(exhibit.wrong, axis=1).astype(float)) >= FEWEST


def _corrected(exhibit: Exhibit, corrected: Array) -> Fit | None:
    slack = exhibit.slack(exhibit.measured)
    found = judged(exhibit, corrected - exhibit.measured, slack, exhibit.claimed - exhibit.measured, slack)
    return found if found is not None and found.wrong >= 2 * FEWEST else None
