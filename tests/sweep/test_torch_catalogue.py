"""PyTorch's databases as catalogues: names, selections, samples, and a sweep of some of them."""

from __future__ import annotations

import pytest

from gradproof.result import Verdict
from gradproof.selection import Selection
from gradproof.sweep import sweep
from gradproof.sweep.catalogues import load

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")


def names(spec: str, operators: str, *dtypes: str) -> list[str]:
    return [case.name for case in load(spec, Selection((operators,), dtypes)).cases()]


def test_names_are_stable_and_say_what_they_are() -> None:
    assert names("torch", "sin") == [
        "sin/float64/0", "sin/float64/0.inplace", "sin/complex128/0", "sin/complex128/0.inplace",
        "sin/complex128/1", "sin/complex128/1.inplace",
    ]  # fmt: skip
    assert names("torch", "sin", "bfloat16")[0] == "sin/bfloat16/0"
    assert names("torch", "argmax") == []
    assert names("torch", "erf", "complex128") == []
    assert not [name for name in names("torch", "abs", "complex128") if "inplace" in name]
    assert names("torch.modules", "nn.Linear", "float64")[:2] == [
        "nn.Linear/float64/train.0",
        "nn.Linear/float64/train.1",
    ]
    assert "NumpyMulCustomOp/float64/0" in names("torch.functions", "NumpyMul*")


@pytest.mark.parametrize(("spec", "name"), [("torch", "dist/float64/5"), ("torch.modules", "nn.GRU/float64/train.1")])
def test_a_case_is_found_alone_and_is_the_same_every_time(spec: str, name: str) -> None:
    (listed,) = [case for case in load(spec, Selection((name.split("/", maxsplit=1)[0],))).cases() if case.name == name]
    first, second = listed.make(3), load(spec).find(name).make(3)  # type: ignore[attr-defined]
    for one, other in zip(_tensors(first), _tensors(second), strict=True):
        assert torch.equal(one, other)


def test_making_a_case_leaves_the_random_streams_alone() -> None:
    torch.manual_seed(1)
    before = torch.random.get_rng_state()
    load("torch").find("dist/float64/5").make(0)  # type: ignore[attr-defined]
    load("torch.modules").find("nn.Linear/float64/train.0").make(0)  # type: ignore[attr-defined]
    assert torch.equal(torch.random.get_rng_state(), before)


def _tensors(call: object) -> list[object]:
    tensors = [x for x in call.args if isinstance(x, torch.Tensor)]  # type: ignore[attr-defined]
    return [*tensors, *call.fn.parameters()] if isinstance(call.fn, torch.nn.Module) else tensors  # type: ignore[attr-defined]


@pytest.mark.slow
def test_a_sweep_of_some_operators_finds_the_wrong_one() -> None:
    swept = sweep("torch", ops="sin,cholesky_inverse", dtype="float64", order="1,2", effort="exhaustive", jobs=1)
    verdicts = {(row.item.traits.operator, row.item.key.order): set() for row in swept.rows()}
    for row in swept.rows():
        verdicts[row.item.traits.operator, row.item.key.order].add(row.verdict)
    assert verdicts["sin", 1] == verdicts["sin", 2] == {Verdict.RIGHT}
    assert Verdict.WRONG in verdicts["cholesky_inverse", 1]
    wrong = [row for row in swept.rows() if row.verdict is Verdict.WRONG]
    assert {row.item.traits.operator for row in wrong} == {"cholesky_inverse"}
    assert all("forward" in row.message for row in wrong)
