"""Functions over the devices of a mesh: arguments that are spread over them, and rules inside of `shard_map`."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gradproof
from gradproof import Verdict

if not (hasattr(jax, "shard_map") and hasattr(jax.sharding, "reshard")):
    pytest.skip("meshes with explicit axes are experimental in this version of JAX", allow_module_level=True)

from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

X = np.linspace(0.3, 1.7, 6, dtype=np.float32)
OVER = PartitionSpec("i")


def mesh_of(axes: AxisType) -> Mesh:
    return jax.make_mesh((jax.device_count(),), ("i",), axis_types=(axes,))


def sine(factor: float) -> Any:
    function = jax.custom_vjp(jnp.sin)
    function.defvjp(lambda x: (jnp.sin(x), x), lambda x, g: (g * jnp.cos(x) * factor,))
    return function


def mapped(rule: Any, mesh: Mesh) -> Any:
    return jax.shard_map(rule, mesh=mesh, in_specs=OVER, out_specs=OVER)


@pytest.mark.parametrize("axes", [AxisType.Explicit, AxisType.Auto])
@pytest.mark.parametrize(("factor", "verdict"), [(1.0, Verdict.RIGHT), (1.1, Verdict.WRONG)])
def test_an_argument_that_is_spread_over_a_mesh(axes: AxisType, factor: float, verdict: Verdict) -> None:
    mesh = mesh_of(axes)
    x = jax.device_put(X, NamedSharding(mesh, OVER))
    inside = mapped(sine(factor), mesh)
    result = gradproof.check(lambda x, y: inside(x) * inside(y), (x, x), wrt="args[0]", seed=1)
    assert result.verdict is verdict, str(result)
    (missing,) = [one for one in result.findings if one.code == "unsupported"]
    assert "forward mode does not exist here" in missing.sentence
    assert "custom_vjp function" in missing.sentence


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, Verdict.RIGHT), (1.1, Verdict.WRONG)])
def test_an_array_that_stays_fixed_may_be_the_one_that_is_spread(factor: float, verdict: Verdict) -> None:
    mesh = mesh_of(AxisType.Explicit)
    x, rule = jax.device_put(X, NamedSharding(mesh, OVER)), sine(factor)
    assert gradproof.check(lambda a, x: rule(a) * x, (jnp.float32(0.7), x), wrt="args[0]", seed=1).verdict is verdict
