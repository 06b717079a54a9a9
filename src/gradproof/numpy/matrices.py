"""From what `jac` and `hess` return (dense, sparse, an operator, or a structure of them) to a `Linear`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradproof.errors import Unsupported, UsageError
from gradproof.numpy.leaves import Layout, coordinates
from gradproof.numpy.linear import PARTS, Dense, Functions, Linear, Sparse, merged
from gradproof.program import Array, Leaf, Stored

# What a structured matrix is taken apart by: a value and what to call it -> one part for each leaf.
Parts = Callable[[Any, str], list[Any]]


def matrix_of(value: Any, what: str, outputs: tuple[Layout, Parts], inputs: tuple[Layout, Parts]) -> Linear:
    """`outputs` and `inputs` are the leaves of the two sides and how to take their structures apart."""
    rows, columns = outputs[0], inputs[0]
    if is_operator(value):
        return _operator(value, what, rows, columns)
    single = len(rows.leaves) == 1 and len(columns.leaves) == 1
    if single or _covers_all(value, rows, columns):
        blocks = [(value, what, *_whole(rows, columns))]
    else:
        blocks = [
            (block, what, row, column)
            for row, parts in zip(rows.leaves, outputs[1](value, what), strict=True)
            for column, block in zip(columns.leaves, inputs[1](parts, what), strict=True)
        ]
    if any(is_sparse(block) for block, *_ in blocks):
        return _sparse(blocks, rows.size, columns.size)
    result = np.zeros((rows.size, columns.size))
    for block, name, row, column in blocks:
        if block is not None:
            _write(result[row.span, column.span], _elements(block, name, row, column), row, column)
    return Dense(result)


def is_sparse(value: object) -> bool:
    """A matrix or array of scipy.sparse, which cannot be if nobody has imported that."""
    scipy = sys.modules.get("scipy.sparse")
    return scipy is not None and bool(scipy.issparse(value))


def is_operator(value: object) -> bool:
    linalg = sys.modules.get("scipy.sparse.linalg")
    return linalg is not None and isinstance(value, linalg.LinearOperator)


def _covers_all(value: Any, rows: Layout, columns: Layout) -> bool:
    """One matrix for several leaves: all coordinates, one after another; only real ones say how many that are."""
    real = not any(leaf.is_complex for leaf in rows.leaves + columns.leaves)
    return real and getattr(value, "shape", None) == (rows.size, columns.size)


def _whole(rows: Layout, columns: Layout) -> tuple[Leaf, Leaf]:
    if len(rows.leaves) == 1 and len(columns.leaves) == 1:
        return rows.leaves[0], columns.leaves[0]
    return Leaf("out", (rows.size,), "float64", 0), Leaf("args", (columns.size,), "float64", 0)


def _elements(value: Any, what: str, row: Leaf, column: Leaf) -> Any:
    """A block as (output elements, input elements)."""
    matrix = value if is_sparse(value) else np.asarray(value)
    m, n = (leaf.size // (1 + leaf.is_complex) for leaf in (row, column))
    accepted = [row.shape + column.shape, (m, n)]
    if m == 1:
        accepted += [column.shape, (n,)]
    if n == 1:
        accepted += [row.shape, (m,)]
    if matrix.shape not in accepted:
        shapes = " or ".join(dict.fromkeys(str(shape) for shape in accepted))
        turned = "; it looks transposed: rows belong to outputs" if matrix.shape == (n, m) else ""
        raise UsageError(
            f"{what} has shape {matrix.shape} for d {row.path} / d {column.path}, expected {shapes}{turned}"
        )
    if np.issubdtype(matrix.dtype, np.complexfloating) and not (row.is_complex or column.is_complex):
        holds = " and holds NaN" if np.isnan(matrix.data if is_sparse(matrix) else matrix).any() else ""
        raise UsageError(f"{what} is complex{holds}, but {row.path} and {column.path} are real; return a real matrix")
    if not is_sparse(matrix):
        return matrix.reshape(m, n)
    return matrix if matrix.ndim == 2 else matrix.reshape((m, n))


def _write(target: Array, block: Any, row: Leaf, column: Leaf) -> None:
    a, b = 1 + row.is_complex, 1 + column.is_complex
    for i, j, part in PARTS[row.is_complex, column.is_complex]:
        target[i::a, j::b] = part(block)


def _sparse(blocks: Sequence[tuple[Any, str, Leaf, Leaf]], rows: int, columns: int) -> Sparse:
    outputs, inputs, values = [], [], []
    for block, name, row, column in blocks:
        if block is None:
            continue
        elements = _elements(block, name, row, column)
        if is_sparse(elements):
            found = elements.tocoo()
            down, across, data = found.row, found.col, found.data
        else:
            down, across = np.indices(elements.shape).reshape(2, -1)
            data = elements.reshape(-1)
        a, b = 1 + row.is_complex, 1 + column.is_complex
        for i, j, part in PARTS[row.is_complex, column.is_complex]:
            outputs.append(row.start + a * down.astype(np.intp) + i)
            inputs.append(column.start + b * across.astype(np.intp) + j)
            values.append(np.asarray(part(data), np.float64))
    entries = Stored(*(np.concatenate([*some]) for some in (outputs, inputs, values)))
    return Sparse(merged(entries, columns), rows, columns)


def _operator(value: Any, what: str, rows: Layout, columns: Layout) -> Functions:
    """A `LinearOperator`: `matvec` is J v and `rmatvec` is J^H w, of which only the first must exist."""
    if len(rows.leaves) != 1 or len(columns.leaves) != 1 or (columns.leaves[0].is_complex > rows.leaves[0].is_complex):
        raise UsageError(f"{what} is a LinearOperator, which has one input and one output; write vjp and jvp instead")
    row, column = rows.leaves[0], columns.leaves[0]
    m, n = (leaf.size // (1 + leaf.is_complex) for leaf in (row, column))
    if tuple(value.shape) != (m, n):
        raise UsageError(f"{what} is an operator of shape {value.shape}, expected {(m, n)}: outputs by inputs")

    def vector(one: Array, leaf: Leaf) -> Any:
        return one.copy().view(np.complex128) if leaf.is_complex else one.copy()

    def pushed(tangent: Array) -> Array:
        return coordinates(value.matvec(vector(tangent, column)), row)

    def pulled(cotangent: Array) -> Array:
        try:
            return coordinates(value.rmatvec(vector(cotangent, row)), column)
        except NotImplementedError:
            raise Unsupported(f"{what} is an operator without rmatvec") from None

    return Functions(pulled, pushed, rows.size, columns.size)
