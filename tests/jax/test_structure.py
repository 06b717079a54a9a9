"""The JAX adapter: structures, paths, what is differentiated and what passes through."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gradproof
from gradproof import UsageError, Verdict
from gradproof.jax import program_of

X = np.linspace(0.3, 1.7, 6, dtype=np.float32)


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclasses.dataclass
class Plain:
    """JAX does not know this one."""

    weight: Any
    label: str = "label"


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Known:
    weight: Any
    offset: Any


@jax.tree_util.register_pytree_node_class
class Node:
    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def tree_flatten(self) -> Any:
        return (self.inner,), None

    @classmethod
    def tree_unflatten(cls, _: Any, children: Any) -> Node:
        return cls(*children)


def paths(program: Any) -> list[str]:
    return [leaf.path for leaf in program.inputs]


def everything(value: Any) -> Any:
    return sum(jnp.sum(jnp.sin(leaf)) for leaf in jax.tree_util.tree_leaves(value) if not isinstance(leaf, str))


@pytest.mark.parametrize(
    ("argument", "path", "function"),
    [
        ({"w": jnp.asarray(X)}, "args[0]['w']", everything),
        ({"a": [jnp.asarray(X), 3]}, "args[0]['a'][0]", everything),
        (Pair(jnp.asarray(X), None), "args[0].left", everything),
        (Known(jnp.asarray(X), 2), "args[0].weight", everything),
        (Node(jnp.asarray(X)), "args[0][0]", everything),
        (Plain(jnp.asarray(X)), "args[0].weight", lambda plain: jnp.sum(jnp.sin(plain.weight))),
        (Plain({"w": jnp.asarray(X)}), "args[0].weight['w']", lambda plain: jnp.sum(jnp.sin(plain.weight["w"]))),
    ],
)
def test_a_leaf_is_found_in_any_structure(argument: Any, path: str, function: Any) -> None:
    program = program_of(function, (argument,))
    assert paths(program) == [path]
    assert gradproof.check(function, (argument,), seed=1).verdict is Verdict.RIGHT


def test_keyword_arguments_and_several_outputs_have_paths() -> None:
    def function(x: Any, *, bias: Any) -> dict[str, Any]:
        return {"sum": x + bias, "parts": (x * bias, jnp.argmax(x), "text", None)}

    program = program_of(function, jnp.asarray(X), {"bias": jnp.asarray(X)})
    assert paths(program) == ["args[0]", "kwargs['bias']"]
    assert [leaf.path for leaf in program.outputs] == ["out['parts'][0]", "out['sum']"]
    assert [(skipped.path, skipped.reason) for skipped in program.skipped] == [
        ("out['parts'][1]", "int32 has no derivative"),
        ("out['parts'][2]", "str, not an array"),
    ]


def test_an_equinox_module_is_checked_with_its_parameters() -> None:
    module = eqx.nn.MLP(2, 3, 4, 1, key=jax.random.PRNGKey(0))
    result = gradproof.check(module, jnp.asarray(X[:2]), seed=1)
    assert result.verdict is Verdict.RIGHT
    assert {comparison.input.path for comparison in result.comparisons} == {
        "args[0]", "params.layers[0].weight", "params.layers[0].bias", "params.layers[1].weight",
        "params.layers[1].bias",
    }  # fmt: skip


def test_an_equinox_module_is_blamed_where_it_is_wrong() -> None:
    class Wrong(eqx.Module):
        scale: jax.Array

        def __call__(self, x: Any) -> Any:
            return x * jax.lax.stop_gradient(self.scale)

    result = gradproof.check(Wrong(jnp.asarray(X)), jnp.asarray(X), seed=1)
    assert result.verdict is Verdict.WRONG
    assert {c.input.path for c in result.comparisons if c.verdict is Verdict.WRONG} == {"params.scale"}


@pytest.mark.parametrize(
    ("wrt", "expected"),
    [
        ("args[1]", ["args[1]['w']", "args[1]['v']"]),
        ("args[1]['w']", ["args[1]['w']"]),
        (("args[0]", "*['w']"), ["args[0]", "args[1]['w']"]),
        ("args[2]", ["args[2]"]),
    ],
)
def test_wrt_takes_patterns(wrt: Any, expected: list[str]) -> None:
    program = program_of(lambda x, tree, s: x * tree["w"] * tree["v"] * s, (X, {"w": X, "v": X}, 2.0), wrt=wrt)
    assert sorted(paths(program)) == sorted(expected)


def test_integers_booleans_keys_and_python_values_pass_through() -> None:
    seen = {}

    def function(x: Any, count: int, name: str, key: Any, mask: Any, table: Any) -> Any:
        assert isinstance(count, int)
        seen["name"], seen["table"] = name, type(table)
        noise = jax.random.normal(key, x.shape, jnp.float32)  # the default would be another number in float64
        return jnp.where(mask, jnp.sin(x) * count, x * noise) + table[0]

    arguments = (jnp.asarray(X), 3, "sin", jax.random.key(0), jnp.arange(6) > 2, np.arange(4))
    result = gradproof.check(function, arguments, seed=1)
    assert result.verdict is Verdict.RIGHT
    assert seen == {"name": "sin", "table": np.ndarray}
    assert paths(program_of(function, arguments)) == ["args[0]"]


def test_numbers_are_differentiated_only_where_there_is_no_array() -> None:
    assert paths(program_of(lambda x, y: x * y, (2.0, 3.0))) == ["args[0]", "args[1]"]
    assert paths(program_of(lambda x, y: x * y, (X, 3.0))) == ["args[0]"]


def test_no_array_at_all_is_explained() -> None:
    with pytest.raises(UsageError, match=r"nothing to differentiate; pass one, as in gradproof.check\(fn, jnp.ones"):
        program_of(lambda n: n, (jnp.arange(3),))


def test_a_wrt_that_matches_nothing_is_explained() -> None:
    with pytest.raises(UsageError, match=r"wrt='args\[7\]' matches no floating or complex leaf; available: args\[0\]"):
        gradproof.check(jnp.sin, jnp.asarray(X), wrt="args[7]")


def test_a_changing_output_is_explained() -> None:
    def function(x: Any) -> Any:
        return x[: 3 if x[0] > X[0] else 2]

    with pytest.raises(UsageError, match=r"out has shape \(2,\) float\d\d at the point but shape \(3,\)"):
        gradproof.check(function, jnp.asarray(X), seed=1)


def test_what_the_function_raises_reaches_the_user() -> None:
    def function(x: Any) -> Any:
        raise KeyError(f"no {x.shape}")

    with pytest.raises(KeyError, match="no"):
        gradproof.check(function, jnp.asarray(X))
