"""A sample of the JAX catalogue; `python -m bench.jaxcatalogue` runs all of it in float64 and float32."""

from __future__ import annotations

import pytest

import gradproof
from gradproof import UsageError, Verdict
from gradproof.cases import Case
from gradproof.jax.catalogue import JaxCatalogue

NAMES = [
    "jax.numpy.sin",
    "jax.numpy.sqrt(complex)",
    "jax.numpy.maximum",
    "jax.numpy.cumprod",
    "jax.numpy.einsum",
    "jax.numpy.sort",
    "jax.numpy.ndarray.at(set)",
    "jax.numpy.fft.rfft",
    "jax.numpy.linalg.inv",
    "jax.numpy.linalg.cholesky",
    "jax.nn.gelu",
    "jax.nn.relu6",
    "jax.scipy.special.gammaln",
    "jax.lax.conv",
    "jax.lax.scan",
    "jax.lax.while_loop",
    "jax.lax.select",
]


def cases(dtype: str) -> list[Case]:
    found = {case.name: case for case in JaxCatalogue(dtype).cases()}
    return [found[name] for name in NAMES]


@pytest.mark.parametrize("case", cases("float64"), ids=lambda case: case.name)
def test_a_function_of_jax_is_right(case: Case) -> None:
    call = case.make(0)
    result = gradproof.check(call.fn, call.args, dict(call.kwargs), seed=0, **call.options)
    assert result.verdict is Verdict.RIGHT, str(result)


@pytest.mark.parametrize("case", cases("float32")[::4], ids=lambda case: case.name)
def test_it_is_not_wrong_in_float32(case: Case) -> None:
    call = case.make(0)
    assert gradproof.check(call.fn, call.args, seed=0).verdict is Verdict.RIGHT


def test_the_catalogue_is_as_large_as_promised_and_its_names_are_unique() -> None:
    names = [case.name for case in JaxCatalogue().cases()]
    assert len(set(names)) == len(names)
    functions = {name.partition("(")[0] for name in names}
    assert len(functions) >= 500
    for package in ("jax.numpy.", "jax.nn.", "jax.scipy.special.", "jax.lax.", "jax.numpy.linalg."):
        assert sum(name.startswith(package) for name in functions) >= 20


def test_the_same_seed_gives_the_same_arguments() -> None:
    case = cases("float32")[0]
    first, again, other = (case.make(seed).args[0] for seed in (1, 1, 2))
    assert (first == again).all()
    assert not (first == other).all()
    assert first.dtype == "float32"


def test_a_precision_that_is_not_there_is_explained() -> None:
    with pytest.raises(UsageError, match="dtype='float80' is not understood; write one of float64"):
        JaxCatalogue("float80")
