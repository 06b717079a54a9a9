"""The JAX adapter: values, pulls and pushes, batches, precision, purity."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gradproof
from gradproof import Unsupported, Verdict
from gradproof.jax import families, program_of
from gradproof.jax.scope import enable_x64
from gradproof.streams import NumpyStream

X = np.linspace(0.3, 1.7, 40, dtype=np.float32)
Z = (np.linspace(0.3, 1.7, 5) + 1j * np.linspace(-1, 1, 5)).astype(np.complex64)
OLD = jax.__version_info__ < (0, 6)


def dense(program: Any) -> tuple[np.ndarray, np.ndarray]:
    """The Jacobian (M, N) by reverse and by forward mode."""
    return program.pull(np.eye(program.value.size)), program.push(np.eye(program.point.size)).T


def test_values_pulls_and_pushes_of_a_real_function() -> None:
    program = program_of(lambda x: jnp.sin(x) * jnp.roll(x, 1), jnp.asarray(X))
    rows = np.stack([X * (1 + k / 64) for k in range(50)]).astype(float)
    expected = np.sin(rows) * np.roll(rows, 1, axis=1)
    np.testing.assert_allclose(program.values(rows.copy()), expected, rtol=2e-6)
    reverse, forward = dense(program)
    np.testing.assert_allclose(reverse, forward, atol=1e-6)
    np.testing.assert_allclose(np.diag(reverse), np.cos(X) * np.roll(X, 1), rtol=1e-6)
    assert program.notes == ("values: vmap, compiled", "pull: vmap, compiled", "push: vmap, compiled")


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(lambda z: z * z, id="C to C"),
        pytest.param(jnp.conj, id="C to C, not holomorphic"),
        pytest.param(jnp.abs, id="C to R"),
        pytest.param(lambda z: (z.real, z.imag * z), id="C to R and C"),
        pytest.param(lambda z: jnp.exp(1j * z.real), id="C to C by its real part"),
    ],
)
def test_complex_coordinates_are_pairs_of_real_ones(function: Any) -> None:
    program = program_of(function, jnp.asarray(Z))
    step, point = 1e-2, program.point
    columns = [
        (program.widened().values(point + step * unit) - program.widened().values(point - step * unit))[0] / (2 * step)
        for unit in np.eye(point.size)[:, None]
    ]
    for jacobian in dense(program):
        np.testing.assert_allclose(jacobian, np.stack(columns, axis=1), atol=2e-4)


def test_complex_functions_are_right_to_second_order() -> None:
    assert gradproof.check(lambda z: (z.real, z * jnp.conj(z)), jnp.asarray(Z[:3]), order=2, seed=1).ok
    assert gradproof.check(lambda x: jnp.exp(1j * x), jnp.asarray(X[:3]), order=2, seed=1).ok


def test_a_forgotten_conjugate_is_found() -> None:
    @jax.custom_vjp
    def function(z: Any) -> Any:
        return z * z

    # JAX's convention is the transpose, so the right rule has no conjugate.
    function.defvjp(lambda z: (z * z, z), lambda z, g: (2 * g * jnp.conj(z),))
    result = gradproof.check(function, jnp.asarray(Z), seed=1)
    assert result.verdict is Verdict.WRONG
    assert result.wrong[0].diagnosis is not None
    assert result.wrong[0].diagnosis.code == "conjugate"


def test_the_reference_of_a_float32_program_runs_in_float64() -> None:
    seen: set[str] = set()

    def function(x: Any) -> Any:
        seen.add(x.dtype.name)
        return jnp.sin(x)

    result = gradproof.check(function, jnp.asarray(X), seed=1)
    assert result.ok
    assert seen == {"float32", "float64"}
    assert any("float64" in note for note in result.notes)
    assert jnp.sin(jnp.ones(2)).dtype == jnp.float32  # the user's configuration is as it was


@pytest.mark.parametrize("argument", [0.7, np.linspace(0.3, 1.7, 3), jnp.linspace(0.3, 1.7, 3)])
def test_numbers_and_arrays_of_numpy_are_widened_too(argument: Any) -> None:
    program = program_of(jnp.sin, argument)
    assert (program.inputs[0].dtype, program.widened().inputs[0].dtype) == ("float32", "float64")
    assert (program.widened().point == program.point).all()


def test_an_explicit_cast_keeps_the_reference_in_native_precision() -> None:
    with pytest.raises(Unsupported, match="out stays float32 when all arguments are float64"):
        program_of(lambda x: jnp.sin(x).astype(jnp.float32), jnp.asarray(X)).widened()
    result = gradproof.check(lambda x: jnp.sin(x).astype(jnp.float32), jnp.asarray(X[:5]), seed=1)
    assert result.verdict is not Verdict.WRONG


def test_64_bit_arrays_are_checked_in_64_bits_outside_of_the_scope_that_made_them() -> None:
    with enable_x64(True):
        x = jnp.asarray(X, jnp.float64)
    program = program_of(jnp.sin, x)
    assert (program.inputs[0].dtype, program.outputs[0].dtype) == ("float64", "float64")
    assert program.widened() is program


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16, jnp.float32])
def test_low_precision_right_and_wrong(dtype: Any) -> None:
    @jax.custom_vjp
    def wrong(x: Any) -> Any:
        return jnp.sin(x)

    wrong.defvjp(lambda x: (jnp.sin(x), x), lambda x, g: (g * jnp.cos(x) * jnp.where(jnp.arange(8) == 5, 1.5, 1),))
    x = jnp.asarray(X[:8], dtype)
    assert gradproof.check(jnp.sin, x, seed=1).verdict is Verdict.RIGHT
    result = gradproof.check(wrong, x, seed=1)
    assert result.verdict is Verdict.WRONG
    assert [str(finding.place.input) for finding in result.wrong] == ["args[0][5]"]


def test_derivatives_that_xla_takes_for_zero_in_float32() -> None:
    assert gradproof.check(jax.lax.erfc, jnp.float32(10.0), seed=0).ok  # -4e-44, below the smallest with all digits


@pytest.mark.parametrize(("scale", "verdict"), [(1e-40, Verdict.RIGHT), (1e-36, Verdict.WRONG)])
def test_zero_in_float32_alone_is_right_only_for_what_is_that_small(scale: float, verdict: Verdict) -> None:
    function = jax.custom_vjp(lambda x: x * 1e-20 * (scale * 1e20))
    function.defvjp(
        lambda x: (x * 1e-20 * (scale * 1e20), None),
        lambda _, g: (g * (scale if g.dtype == jnp.float64 else 0.0),),
    )
    assert gradproof.check(function, jnp.asarray(X), seed=0).verdict is verdict


def test_a_branch_in_python_runs_one_by_one() -> None:
    def function(x: Any) -> Any:
        return jnp.sin(x) if x[0] > 0 else jnp.cos(x)

    result = gradproof.check(function, jnp.asarray(X), effort="exhaustive", seed=1)
    assert result.verdict is Verdict.RIGHT
    assert "pull: vmap" in result.notes  # the graph of a plain call can be batched all the same
    program = program_of(function, jnp.asarray(X))
    program.values(np.repeat(X[None].astype(float), 40, axis=0))
    assert program.notes[0].startswith("values: one by one, because a batch raised TracerBoolConversionError")


@pytest.mark.skipif(OLD, reason="a callback has a batching rule in JAX of this age")
def test_a_primitive_without_a_batching_rule_runs_one_by_one() -> None:
    def function(x: Any) -> Any:
        host = jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), jax.lax.stop_gradient(x))
        return x * 2 + 0 * host

    program = program_of(function, jnp.asarray(X))
    program.values(np.repeat(X[None].astype(float), 40, axis=0))
    assert program.notes[0].startswith("values: one by one, because a batch raised NotImplementedError")


def test_custom_vjp_has_no_forward_mode() -> None:
    @jax.custom_vjp
    def function(x: Any) -> Any:
        return jnp.sin(x)

    function.defvjp(lambda x: (jnp.sin(x), x), lambda x, g: (g * jnp.cos(x),))
    result = gradproof.check(function, jnp.asarray(X), seed=1)
    assert result.verdict is Verdict.RIGHT
    assert any("forward mode does not exist here" in finding.sentence for finding in result.findings)
    assert gradproof.check(function, jnp.asarray(X), modes="forward", seed=1).verdict is Verdict.UNSUPPORTED


@pytest.mark.skipif(OLD, reason="what JAX of this age raises refers to the vectors")
def test_a_missing_mode_keeps_what_jax_raised_but_no_vectors() -> None:
    @jax.custom_vjp
    def function(x: Any) -> Any:
        return jnp.sin(x)

    function.defvjp(lambda x: (jnp.sin(x), x), lambda x, g: (g * jnp.cos(x),))
    program, tangents = program_of(function, jnp.asarray(X)), np.ones((1, X.size))
    kept = weakref.ref(tangents)
    for _ in range(2):
        try:
            program.push(tangents)
        except Unsupported as missing:
            assert isinstance(missing.__cause__, TypeError)  # noqa: PT017  pytest.raises would keep the frames itself
    del tangents
    assert kept() is None


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_few_pushes_are_what_many_are(dtype: str) -> None:
    with enable_x64(dtype == "float64"):
        program = program_of(lambda x, y: (x @ y, y.sum()), (jnp.ones((3, 4), dtype), jnp.ones((4, 2), dtype) * 2))
        rows = np.random.default_rng(0).standard_normal((20, program.point.size))
        many = program.push(rows)
        for count in (1, 7, 8, 17):
            np.testing.assert_allclose(program.push(rows[:count]), many[:count], rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(program.pull(many[:count]), many[:count] @ program.pull(np.eye(7)), rtol=1e-5)
        assert program.tally.pushes >= 20 + 33


def test_a_while_loop_has_no_reverse_mode() -> None:
    def function(x: Any) -> Any:
        return jax.lax.while_loop(lambda carry: carry[0] < 3, lambda carry: (carry[0] + 1, carry[1] * x), (0, x))[1]

    result = gradproof.check(function, jnp.asarray(X[:4]), seed=1)
    assert result.verdict is Verdict.RIGHT
    assert {comparison.mode for comparison in result.comparisons} == {"forward"}


def test_linearize_gives_the_same_pushes() -> None:
    program = program_of(lambda x: jnp.tanh(x) * x[::-1], jnp.asarray(X))
    tangents = np.random.default_rng(0).standard_normal((9, X.size))
    np.testing.assert_allclose(program.linearized().push(tangents), program.push(tangents), atol=1e-5)


def test_linearize_is_a_mode_when_asked_for() -> None:
    modes = ("reverse", "forward", "linearize")
    result = gradproof.check(lambda x: jnp.tanh(x) * x[::-1], jnp.asarray(X[:4]), modes=modes, seed=1)
    assert result.verdict is Verdict.RIGHT
    assert {comparison.mode for comparison in result.comparisons} == set(modes)

    @jax.custom_jvp
    def wrong(x: Any) -> Any:
        return jnp.sin(x)

    wrong.defjvp(lambda x, t: (jnp.sin(x[0]), 1.5 * jnp.cos(x[0]) * t[0]))
    for options in ({}, {"bounds": (-9, 9)}, {"expected_gradient_of": jnp.sin}):
        result = gradproof.check(wrong, jnp.asarray(X[:4]), modes="linearize", seed=1, **options)
        assert {(c.mode, c.verdict) for c in result.comparisons} == {("linearize", Verdict.WRONG)}


def test_a_random_function_is_named() -> None:
    stream = NumpyStream()
    result = gradproof.check(lambda x: x * np.random.random(), jnp.asarray(X), seed=1)  # noqa: NPY002
    assert [finding.code for finding in result.findings] == ["random"]
    assert not stream.moved()


def test_a_function_that_keeps_state_is_named() -> None:
    calls: list[int] = []

    def function(x: Any) -> Any:
        calls.append(1)
        return x * len(calls)

    assert [finding.code for finding in gradproof.check(function, jnp.asarray(X), seed=1).findings] == ["random"]


def test_an_argument_of_numpy_is_never_handed_over() -> None:
    table = np.arange(3)

    def function(x: Any, table: Any) -> Any:
        table[0] += 1
        return x * 2.0

    gradproof.check(function, (jnp.asarray(X), table), seed=1)
    assert table.tolist() == [0, 1, 2]


def test_a_function_may_give_its_argument_away() -> None:
    function, x = jax.jit(lambda x: 2 * jnp.sin(x), donate_argnums=0), jnp.asarray(X)
    program = program_of(function, x)
    assert np.array_equal(program.repeated_value(), program.value)
    assert gradproof.check(function, x, seed=0).ok
    assert not x.is_deleted()
    function(x)
    assert x.is_deleted()


@pytest.mark.parametrize("compiling", [True, False])
def test_the_point_is_handed_over_as_arrays_of_its_own(compiling: bool) -> None:
    seen: list[Any] = []

    def function(x: Any, y: Any) -> Any:
        seen.append((x, y))
        return x[0] * y

    with jax.disable_jit(not compiling):
        program = program_of(function, (np.arange(3.0, dtype=np.float32), jnp.float32(2.0)))
    x, y = seen[0]
    assert isinstance(x, jax.Array)
    assert isinstance(y, jax.Array)
    assert (x.dtype, x.shape, y.dtype, y.shape) == (np.float32, (3,), np.float32, ())
    assert not np.shares_memory(np.asarray(x), program.point)
    assert program.value.tolist() == [0.0]


SCALE = {"value": 2.0, "rule": 1.0}


def test_a_compilation_that_went_stale_is_not_believed() -> None:
    """Compiled batches are kept between checks; what the function looks at may change in between."""

    @jax.custom_vjp
    def inner(x: Any) -> Any:
        return jnp.sin(x) * SCALE["value"]

    inner.defvjp(
        lambda x: (jnp.sin(x) * SCALE["value"], x),
        lambda x, g: (g * jnp.cos(x) * SCALE["value"] * SCALE["rule"],),
    )

    def function(x: Any) -> Any:
        return inner(x)

    with enable_x64(True):
        x = jnp.asarray(X, jnp.float64)
        assert gradproof.check(function, x, seed=1).ok
        SCALE["value"] = 3.0
        assert gradproof.check(function, x, seed=1).ok
        SCALE["rule"] = 1.5
        assert gradproof.check(function, x, seed=1).verdict is Verdict.WRONG
        SCALE["rule"] = 1.0
        assert gradproof.check(function, x, seed=1).ok
    x = jnp.asarray(X)  # in float32 the kept ones are in float64
    assert gradproof.check(function, x, seed=1).ok
    SCALE["value"] = 4.0
    assert gradproof.check(function, x, seed=1).ok
    SCALE["rule"] = 1.5
    assert gradproof.check(function, x, seed=1).verdict is Verdict.WRONG


def test_compilations_are_kept_for_a_function_and_go_with_it() -> None:
    traced: list[str] = []

    def function(x: Any) -> Any:
        traced.append(type(x).__name__)
        return jnp.sin(x).sum() * x

    key = id(function)
    assert gradproof.check(function, jnp.asarray(X), seed=1).ok
    once = len(traced)
    assert gradproof.check(function, jnp.asarray(X * 0.9), seed=1).ok
    assert len(traced) - once < once  # nothing was traced again for a batch
    assert key in families._kept
    del function
    gc.collect()
    assert key not in families._kept


def test_constants_are_part_of_what_was_compiled() -> None:
    def function(x: Any, n: int, table: Any) -> Any:
        return jnp.sin(x) * n + table[0] * x

    for n, table in ((2, np.array([1])), (3, np.array([1])), (3, np.array([5]))):
        result = gradproof.check(function, (jnp.asarray(X), n, table), seed=1)
        assert result.verdict is Verdict.RIGHT
