"""The lean loop: evaluate a call row by row, with as little as possible around each call of the user's function."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from gradproof.batching import same
from gradproof.errors import OutputsChanged
from gradproof.program import Array
from gradproof.torch.calls import Call


def evaluate_each(call: Call, rows: Array, into: Array, graph: str) -> Exception | None:
    """(k, N) -> (k, M). The rows are given away. A row that raises is NaN; the first such exception is returned.
    `graph` is "with" or "without": whether grad mode is on, as in the user's own call. The inputs require grad either
    way: `torch.lobpcg` is one of those that ask, and is another function of those that do not."""
    one = call.one
    columns = [tensor.unbind(0) for tensor in call.inputs.adopted(rows)]
    buffers = _buffers(call, into)
    targets = list(zip(*(buffer.unbind(0) for buffer in buffers), strict=True)) or [()] * len(rows)
    failed: Exception | None = None
    outside: list[int] = []
    with torch.no_grad():
        for i, leaves in enumerate(zip(*columns, strict=True)):
            try:
                asked = [leaf.requires_grad_() for leaf in leaves]
                values = one(asked) if graph == "without" else _with_graph(call, asked)
            except OutputsChanged as changed:
                changed.nearby = rows[i].copy()
                raise
            except Exception as error:  # noqa: BLE001  whatever it is, the step left the domain
                failed = failed or error
                outside.append(i)
                continue
            for target, value in zip(targets[i], values):  # noqa: B905  per row; `one` has checked the number
                target.copy_(value)
    for leaf, buffer in zip(call.outputs.leaves, buffers, strict=True):
        if leaf.is_complex:
            into[:, leaf.span] = torch.view_as_real(buffer).reshape(len(rows), leaf.size).numpy()
    if outside:
        into[outside] = np.nan
    return failed


def gives(call: Call, point: Array, count: int, expected: Array, into: Array) -> bool:
    """Whether the function gives bitwise its value on the last row of a buffer of so many without grad mode. If not (it
    looks at that, or at its input's storage), the loop gives it fresh tensors, in grad mode."""
    rows = np.full((count, point.size), np.nan)
    rows[-1] = point
    try:
        with torch.no_grad():
            values = call.one([tensor[-1].requires_grad_() for tensor in call.inputs.tensors(rows)])
            call.outputs.write(values, into)
    except Exception:  # noqa: BLE001  whatever it is, it does not happen in the user's own call
        return False
    return same(into, expected)


def _with_graph(call: Call, leaves: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
    torch._C._set_grad_enabled(True)  # noqa: FBT003  a scope for each row takes longer than many a function
    try:
        return call.one([leaf.clone() for leaf in leaves])
    finally:
        torch._C._set_grad_enabled(False)  # noqa: FBT003


def _buffers(call: Call, into: Array) -> list[torch.Tensor]:
    """For each output a tensor (k, *shape) to copy results into at once: the function may reuse what it returned.
    Real ones are views of `into`; complex ones are not, as (re, im) pairs may start at an odd coordinate there."""
    whole = torch.from_numpy(into)
    return [
        torch.empty((len(into), *leaf.shape), dtype=torch.complex128)
        if leaf.is_complex
        else whole[:, leaf.start : leaf.stop].view(len(into), *leaf.shape)
        for leaf in call.outputs.leaves
    ]
