# ruff: noqa: NPY002  the global stream is among the things under test
"""Hand-written derivatives in every form: the right ones pass, the wrong ones fail at the right place."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, aslinearoperator

import gradproof
from gradproof import UsageError, Verdict
from gradproof.numpy import Grad, Hess, Hessp, Jac, Jvp, Vjp

X = np.random.default_rng(3).standard_normal(5)
Z = X + 1j * X[::-1] ** 2


def check(fn: Any, args: Any, derivative: Any, **options: Any) -> gradproof.Result:
    return gradproof.check(fn, args, derivative=derivative, **{"seed": 1, **options})


def places(result: gradproof.Result) -> set[str]:
    return {str(entry.place) for block in result.comparisons for entry in block.found}


def curve(x: np.ndarray) -> np.ndarray:
    """5 inputs, 4 outputs."""
    return np.sin(x[1:]) * x[:-1]


def curve_jac(x: np.ndarray) -> np.ndarray:
    result = np.zeros((4, 5))
    i = np.arange(4)
    result[i, i], result[i, i + 1] = np.sin(x[1:]), x[:-1] * np.cos(x[1:])
    return result


def spoiled(x: np.ndarray) -> np.ndarray:
    result = curve_jac(x)
    result[2, 3] *= 1.02
    return result


FORMS = {
    "dense": Jac,
    "by name": lambda jac: {"jac": jac},
    "nested lists": lambda jac: {"jac": lambda x: jac(x).tolist()},
    "constant": lambda jac: {"jac": jac(X)},
    "csr": lambda jac: {"jac": lambda x: sp.csr_matrix(jac(x))},
    "coo array": lambda jac: {"jac": lambda x: sp.coo_array(jac(x))},
    "operator": lambda jac: {"jac": lambda x: aslinearoperator(jac(x))},
    "constant operator": lambda jac: {"jac": aslinearoperator(jac(X))},
    "vjp": lambda jac: {"vjp": lambda w, x: jac(x).T @ w},
    "vjp in a tuple": lambda jac: Vjp(lambda w, x: (jac(x).T @ w,)),
    "jvp": lambda jac: Jvp(lambda v, x: jac(x) @ v),
    "both": lambda jac: (Vjp(lambda w, x: jac(x).T @ w), Jvp(lambda v, x: jac(x) @ v)),
    "jac and jvp": lambda jac: {"jac": jac, "jvp": lambda v, x: jac(x) @ v},
    "jac and vjp": lambda jac: {"jac": jac, "vjp": lambda w, x: jac(x).T @ w},
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_derivative(form: str) -> None:
    assert check(curve, X, FORMS[form](curve_jac)).verdict is Verdict.RIGHT
    wrong = check(curve, X, FORMS[form](spoiled))
    assert wrong.verdict is Verdict.WRONG
    assert places(wrong) == {"d out[2] / d args[0][3]"}


def test_the_author_s_own_word_is_used() -> None:
    assert "how jac treats this index" in str(check(curve, X, {"jac": spoiled}))
    assert "vjp is not linear" in str(check(curve, X, {"vjp": lambda w, x: curve_jac(x).T @ np.abs(w)}))


def test_hints_speak_of_numpy() -> None:
    zeros = str(check(curve, X, {"jac": lambda x: np.zeros((4, 5))}))
    assert "an array of zeros that is returned before it is filled" in zeros
    assert "detach" not in zeros
    random = str(check(lambda x: x * np.random.random(), X, {"jac": np.eye(5)}))
    assert "a generator that is seeded inside" in random
    assert "dropout" not in random


def test_every_phrase_that_is_translated_is_one_of_the_core_s() -> None:
    source = Path(gradproof.__file__).parent
    core = "".join(
        file.read_text() for part in ("contracts", "evidence", "diagnose") for file in source.glob(f"{part}/*.py")
    )
    core = re.sub(r'"\s*\n\s*f?"', "", core)  # texts that run over the end of a line
    for module in ("jax", "numpy"):
        words: dict[str, Any] = {}
        exec((source / module / "words.py").read_text(), words)
        assert [ours for ours, _ in words["WORDS"] if ours not in core] == []


def test_only_the_wrong_one_of_two_claims_is_blamed() -> None:
    result = check(curve, X, {"jac": curve_jac, "jvp": lambda v, x: spoiled(x) @ v})
    assert {block.mode for block in result.comparisons if block.verdict is Verdict.WRONG} == {"forward"}


def test_an_operator_without_its_adjoint_is_checked_in_one_mode() -> None:
    def jac(x: np.ndarray) -> LinearOperator:
        return LinearOperator((4, 5), matvec=lambda v: curve_jac(x) @ v)

    result = check(curve, X, {"jac": jac})
    assert result.ok
    assert {block.mode for block in result.comparisons} == {"forward"}


def test_an_operator_whose_adjoint_is_wrong() -> None:
    def jac(x: np.ndarray) -> LinearOperator:
        return LinearOperator((4, 5), matvec=lambda v: curve_jac(x) @ v, rmatvec=lambda w: -(curve_jac(x).T @ w))

    result = check(curve, X, {"jac": jac})
    assert {block.mode for block in result.comparisons if block.verdict is Verdict.WRONG} == {"reverse"}


def test_jac_true_means_that_the_function_returns_both() -> None:
    def both(x: np.ndarray, scale: float) -> tuple[float, np.ndarray]:
        return scale * np.sum(x**3), 3 * scale * x**2

    def wrong(x: np.ndarray, scale: float) -> tuple[float, np.ndarray]:
        return scale * np.sum(x**3), 3 * x**2

    assert check(both, (X, 2.0), {"jac": True}).ok
    assert check(wrong, (X, 2.0), {"jac": True}).verdict is Verdict.WRONG


# ---- complex numbers


def absolute(z: np.ndarray) -> float:
    return float(np.sum(np.abs(z) ** 2))


COMPLEX = {
    "complex to complex": (
        lambda z: z**2,
        Z,
        {"jac": lambda z: np.diag(2 * z)},
        {"jac": lambda z: np.diag(2 * z.conj())},
    ),
    "sparse": (lambda z: z**2, Z, {"jac": lambda z: sp.diags(2 * z)}, {"jac": lambda z: sp.diags(2 * z.conj())}),
    "operator": (
        lambda z: z**2,
        Z,
        {"jac": lambda z: aslinearoperator(np.diag(2 * z))},
        {"jac": lambda z: aslinearoperator(np.diag(-2 * z))},
    ),
    "complex to real": (absolute, Z, {"grad": lambda z: 2 * z}, {"grad": lambda z: 2 * z.conj()}),
    "real to complex": (
        lambda x: np.exp(1j * x),
        X,
        {"jac": lambda x: np.diag(1j * np.exp(1j * x))},
        {"jac": lambda x: np.diag(1j * np.exp(-1j * x))},
    ),
    "conjugate": (np.conj, Z, {"vjp": lambda w, z: w.conj(), "jvp": lambda v, z: v.conj()}, {"vjp": lambda w, z: w}),
    "single": (
        lambda z: z * z,
        Z.astype(np.complex64),
        {"vjp": lambda w, z: 2 * w * z.conj()},
        {"vjp": lambda w, z: 2 * w * z},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_numbers(name: str) -> None:
    fn, point, right, wrong = COMPLEX[name]
    assert check(fn, point, right).verdict is Verdict.RIGHT
    assert check(fn, point, wrong).verdict is Verdict.WRONG


# ---- structures


class Pair(NamedTuple):
    first: np.ndarray
    second: np.ndarray


@dataclass
class Layer:
    weight: np.ndarray
    bias: np.ndarray


W, B = X[:4].reshape(2, 2), X[3:]


def dense_layer(layer: Any, x: np.ndarray) -> np.ndarray:
    weight, bias = (layer[0], layer[1]) if isinstance(layer, tuple) else (
        (layer["weight"], layer["bias"]) if isinstance(layer, dict) else (layer.weight, layer.bias)
    )  # fmt: skip
    return weight @ x + bias


STRUCTURES = {
    "dict": ({"weight": W, "bias": B}, lambda w, b: {"bias": b, "weight": w}, "args[0]['bias'][1]"),
    "ordered dict": (OrderedDict(weight=W, bias=B), lambda w, b: {"bias": b, "weight": w}, "args[0]['bias'][1]"),
    "tuple": ((W, B), lambda w, b: [w, b], "args[0][1][1]"),
    "named tuple": (Pair(W, B), Pair, "args[0].second[1]"),
    "dataclass": (Layer(W, B), Layer, "args[0].bias[1]"),
}


@pytest.mark.parametrize("name", STRUCTURES)
def test_structures_of_arrays(name: str) -> None:
    layer, build, place = STRUCTURES[name]

    def vjp(factor: float) -> Any:
        return lambda g, layer, x: (build(np.outer(g, x), g * [1, factor]), W.T @ g)

    assert check(dense_layer, (layer, B), {"vjp": vjp(1.0)}).verdict is Verdict.RIGHT
    assert places(check(dense_layer, (layer, B), {"vjp": vjp(1.5)})) == {f"d out[1] / d {place}"}


def test_a_jacobian_of_structures_has_a_block_for_each_pair() -> None:
    def fn(p: dict[str, np.ndarray]) -> dict[str, Any]:
        return {"y": p["a"] * p["b"], "s": np.sum(p["a"])}

    def jac(p: dict[str, np.ndarray]) -> Any:
        blocks = {"a": np.diag(p["b"]), "b": sp.diags(p["a"])}
        return {"y": blocks, "s": {"a": np.ones(2), "b": None}}

    point = {"a": X[:2], "b": X[2:4]}
    assert check(fn, (point,), {"jac": jac}).verdict is Verdict.RIGHT
    wrong = check(fn, (point,), {"jac": lambda p: {**jac(p), "s": {"a": np.ones(2), "b": [0.0, 1.0]}}})
    assert places(wrong) == {"d out['s'] / d args[0]['b'][1]"}


def test_keyword_arguments_and_other_objects_go_through() -> None:
    def fn(x: np.ndarray, how: str, *, scale: np.ndarray) -> np.ndarray:
        assert how == "sin"
        return np.sin(x) * scale

    def jac(x: np.ndarray, how: str, *, scale: np.ndarray) -> np.ndarray:
        return np.diag(np.cos(x) * scale)

    assert gradproof.check(fn, (X, "sin"), {"scale": X**2}, derivative={"jac": jac}, seed=1).ok


def test_several_arguments_and_the_choice_among_them() -> None:
    def vjp(w: np.ndarray, a: np.ndarray, n: int, b: np.ndarray) -> Any:
        return n * w * np.cos(b), None, -n * w * a * np.sin(b)

    def fn(a: np.ndarray, n: int, b: np.ndarray) -> np.ndarray:
        return n * a * np.cos(b)

    assert check(fn, (X, 3, X[::-1].copy()), {"vjp": vjp}).verdict is Verdict.RIGHT
    assert {b.input.path for b in check(fn, (X, 3, X), {"vjp": vjp}, wrt="args[2]").comparisons} == {"args[2]"}


@pytest.mark.parametrize("point", [1.5, np.float64(1.5), np.array(1.5), np.array([1.5])])
def test_numbers_are_points_too(point: Any) -> None:
    def fn(x: Any) -> Any:
        assert type(x) is type(point)
        return x**3

    assert check(fn, (point,), {"jac": lambda x: 3 * x**2}).verdict is Verdict.RIGHT
    assert check(fn, (point,), {"jac": lambda x: 2 * x**2}).verdict is Verdict.WRONG


# ---- second order


def bowl(x: np.ndarray) -> float:
    return float(np.sum(x**4) + x[0] * x[1])


def bowl_grad(x: np.ndarray) -> np.ndarray:
    result = 4 * x**3
    result[:2] += x[1::-1]
    return result


def bowl_hess(x: np.ndarray) -> np.ndarray:
    result = np.diag(12 * x**2)
    result[0, 1] = result[1, 0] = 1.0
    return result


def test_a_hessian_is_held_against_the_gradient() -> None:
    result = check(bowl, X, (Grad(bowl_grad), Hess(bowl_hess)))
    assert result.ok
    assert {block.order for block in result.comparisons} == {1, 2}

    def wrong(x: np.ndarray) -> np.ndarray:
        hess = bowl_hess(x)
        hess[1, 0] = 0.0  # only one of a symmetric pair
        return hess

    said = check(bowl, X, {"jac": bowl_grad, "hess": wrong})
    assert places(said) == {"d grad(args[0])[1] / d args[0][0]"}
    (block,) = [block for block in said.comparisons if block.verdict is Verdict.WRONG]
    assert block.found[0].numeric == pytest.approx(1.0)  # the Hessian's own number, not a multiple


@pytest.mark.parametrize("form", [sp.csr_matrix, aslinearoperator, np.asarray])
def test_a_hessian_in_every_form(form: Any) -> None:
    assert check(bowl, X, {"jac": bowl_grad, "hess": lambda x: form(bowl_hess(x))}).ok
    assert not check(bowl, X, {"jac": bowl_grad, "hess": lambda x: form(1.01 * bowl_hess(x))}).ok


def test_products_with_a_hessian() -> None:
    assert check(bowl, X, {"grad": bowl_grad, "hessp": lambda x, p: bowl_hess(x) @ p}).ok
    assert check(bowl, X, (Vjp(lambda w, x: w * bowl_grad(x)), Hessp(lambda x, p: bowl_hess(x) @ p))).ok
    assert not check(bowl, X, {"grad": bowl_grad, "hessp": lambda x, p: bowl_hess(x) @ np.abs(p)}).ok
    both = check(bowl, X, {"grad": bowl_grad, "hess": bowl_hess, "hessp": lambda x, p: bowl_hess(x) @ p * 1.1})
    assert {block.mode for block in both.comparisons if block.verdict is Verdict.WRONG} == {"forward"}


def test_the_weighted_hessians_of_several_outputs() -> None:
    def hess(x: np.ndarray, v: np.ndarray) -> np.ndarray:
        result = np.diag(np.append(0.0, -v * x[:-1] * np.sin(x[1:])))
        i = np.arange(4)
        result[i, i + 1] += v * np.cos(x[1:])
        result[i + 1, i] += v * np.cos(x[1:])
        return result

    assert check(curve, X, {"jac": curve_jac, "hess": hess}).ok
    assert not check(curve, X, {"jac": curve_jac, "hess": lambda x, v: hess(x, 2 * v)}).ok


def test_order_two_without_a_second_derivative_is_unsupported() -> None:
    assert check(curve, X, {"jac": curve_jac}, order=2).verdict is Verdict.UNSUPPORTED


# ---- precision, purity, domains


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_low_precision_is_held_against_double(dtype: Any) -> None:
    x = X.astype(dtype)
    assert check(np.sin, x, {"jac": lambda x: np.diag(np.cos(x))}).verdict is Verdict.RIGHT
    assert check(np.sin, x, {"jac": lambda x: np.diag(1.05 * np.cos(x))}).verdict is Verdict.WRONG


def test_nothing_that_the_functions_do_reaches_the_user() -> None:
    x, fixed = X.copy(), X.copy()
    generator = np.random.default_rng(5)
    before = generator.bit_generator.state
    np.random.seed(0)
    stream = np.random.get_state()[1].copy()

    def fn(x: np.ndarray, a: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        np.random.random(3)
        rng.random(3)
        y = x * a
        x[:], a[:] = np.nan, np.nan
        return y

    def vjp(w: np.ndarray, x: np.ndarray, a: np.ndarray, rng: np.random.Generator) -> Any:
        np.random.random(3)
        result = w * a, w * x, None
        w[:], x[:], a[:] = np.nan, np.nan, np.nan
        return result

    result = check(fn, (x, fixed, generator), {"vjp": vjp})
    assert {finding.code for finding in result.wrong} == {"impure"}  # of the vjp: a function may work in place
    assert all(block.verdict is Verdict.RIGHT for block in result.comparisons)
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(fixed, X)
    assert generator.bit_generator.state == before
    np.testing.assert_array_equal(np.random.get_state()[1], stream)


def test_a_random_function_is_named() -> None:
    for fn, args in (
        (lambda x: x + np.random.random(5), X),
        (lambda x, rng: x + rng.random(5), (X, np.random.default_rng(1))),
    ):
        result = check(fn, args, {"jac": np.eye(5)})
        assert result.verdict is Verdict.UNDECIDED
        assert {finding.code for finding in result.findings} == {"random"}


def test_steps_out_of_the_domain_do_no_harm() -> None:
    def fn(x: np.ndarray) -> np.ndarray:
        if (x < 0).any():
            raise ValueError("negative")
        return x**1.5

    x = np.array([0.0, 1.0, 2.0])
    assert check(fn, x, {"jac": lambda x: np.diag(1.5 * x**0.5)}).verdict is not Verdict.WRONG


def test_what_the_function_raises_at_the_point_reaches_the_user() -> None:
    def fn(x: np.ndarray) -> np.ndarray:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        check(fn, X, {"jac": np.eye(5)})


def test_empty_and_large_arrays() -> None:
    empty = np.zeros((0, 3))
    assert check(np.sin, empty, {"vjp": lambda w, x: w * np.cos(x)}).ok
    large = np.random.default_rng(0).standard_normal(100_000)
    assert check(np.sin, large, {"vjp": lambda w, x: w * np.cos(x)}).ok

    def wrong(w: np.ndarray, x: np.ndarray) -> np.ndarray:
        result = w * np.cos(x)
        result[76_543] *= 1.05
        return result

    assert places(check(np.sin, large, {"vjp": wrong})) == {"d out[76543] / d args[0][76543]"}


# ---- what is refused


@pytest.mark.parametrize(
    ("derivative", "message"),
    [
        ({"jacobian": curve_jac}, "may have jac"),
        (curve_jac, "does not say what it is"),
        ({}, "no first derivative"),
        ({"hess": curve_jac}, "no first derivative"),
        ({"jac": curve_jac, "grad": curve_jac}, "give one of them"),
        ({"jac": curve_jac, "vjp": curve_jac, "jvp": curve_jac}, "call of its own"),
        ({"vjp": np.eye(4)}, "must be a function"),
        ((Jac(curve_jac), Jac(spoiled)), "given twice"),
        ({"jac": lambda x: curve_jac(x).T}, "looks transposed"),
        ({"jac": lambda x: np.ones(7)}, r"expected \(4, 5\)"),
        ({"jac": lambda x: None}, "jac returned None"),
        ({"vjp": lambda w, x: None}, "vjp returned None"),
        ({"jvp": lambda v, x: None}, "jvp returned None"),
        ({"jac": lambda x: 1j * curve_jac(x)}, "is complex, but"),
        ({"jac": lambda x: 1j * np.nan * curve_jac(x)}, "is complex and holds NaN, but"),
        ({"grad": lambda x: x}, "grad is for functions with one output"),
        ({"vjp": lambda w, x: w}, r"must have the shape \(5,\)"),
        ({"vjp": lambda w, x: (x, x)}, "shape"),
        ({"jvp": lambda v, x: 1j * curve(x)}, "is complex"),
    ],
)
def test_a_mistaken_call_is_explained(derivative: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        check(curve, X, derivative)


def test_arrays_without_a_derivative_are_told_what_is_missing() -> None:
    with pytest.raises(UsageError, match=r"derivative=\{'jac': jac\}"):
        gradproof.check(np.sin, X)
    with pytest.raises(UsageError, match="floating or complex array"):
        check(np.sin, np.arange(3), {"jac": np.eye(3)})


def test_other_frameworks_refuse_a_derivative() -> None:
    torch, jnp = pytest.importorskip("torch"), pytest.importorskip("jax.numpy")
    for fn, x in ((torch.sin, torch.ones(3)), (jnp.sin, jnp.ones(3))):
        with pytest.raises(UsageError, match="derivative= is for NumPy arrays"):
            check(fn, x, {"jac": np.eye(3)})


WITHOUT_SCIPY = """
import sys
for name in ("scipy", "torch", "jax"):
    sys.modules[name] = None
import numpy as np, gradproof
from gradproof.numpy import check_problem
x = np.arange(1.0, 4.0)
assert check_problem(lambda x: x @ x, x, jac=lambda x: 2 * x, hess=lambda x: 2 * np.eye(3), seed=1).ok
assert not gradproof.check(np.sin, x, derivative={"jac": lambda x: np.diag(np.sin(x))}, seed=1).ok
"""


def test_numpy_alone_is_enough() -> None:
    subprocess.run([sys.executable, "-c", WITHOUT_SCIPY], check=True)


def test_the_derivative_of_another_function_is_what_was_written() -> None:
    right, wrong = ({"jac": lambda x, factor=factor: factor * np.eye(x.size)} for factor in (1.0, 2.0))
    assert check(np.round, X, right, expected_gradient_of=lambda x: 1.0 * x).ok
    result = check(np.round, X, wrong, expected_gradient_of=lambda x: 1.0 * x)
    assert result.verdict is Verdict.WRONG
    assert "forward" not in {comparison.mode for comparison in result.comparisons}
