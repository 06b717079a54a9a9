"""The wrong-gradient catalogue as `custom_vjp` and `custom_jvp`: all caught and named, all right twins pass."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import gradproof
from gradproof import Result, Verdict
from gradproof.jax.scope import enable_x64
from tests.jax.jax_wrong_rules import RULES, Rule


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_wrong_rule_is_found_and_named_and_its_twin_is_right(rule: Rule) -> None:
    with enable_x64(True):
        args = rule.args()
        wrong = gradproof.check(rule.function("wrong"), args, modes=rule.mode, seed=5)
        assert wrong.verdict is Verdict.WRONG, str(wrong)
        named = {finding.diagnosis.code for finding in wrong.findings if finding.diagnosis is not None}
        assert rule.code in named, str(wrong)
    right = right_twin(rule.shapes, rule.value, rule.right, rule.mode, rule.dtype)
    assert right.verdict is Verdict.RIGHT, str(right)


@functools.cache
def right_twin(shapes: Any, value: str, right: str, mode: str, dtype: str) -> Result:
    """Many wrong rules have the same right one."""
    rule = Rule("", shapes, value, "", right, mode, dtype)
    with enable_x64(True):
        return gradproof.check(rule.function("right"), rule.args(), modes=mode, seed=5)


def test_a_custom_jvp_is_wrong_in_reverse_mode_too() -> None:
    rule = next(rule for rule in RULES if rule.name == "forward factor: -u * jnp.cos(x)")
    with enable_x64(True):
        result = gradproof.check(rule.function("wrong"), rule.args(), seed=5)
    assert {comparison.mode for comparison in result.comparisons if comparison.verdict is Verdict.WRONG} == {
        "reverse",
        "forward",
    }


@pytest.mark.parametrize("size", [1_000, 100_000])
def test_one_wrong_entry_of_many_is_placed(size: int) -> None:
    @jax.custom_vjp
    def function(x: Any) -> Any:
        return jnp.sin(x)

    place = size // 3
    function.defvjp(
        lambda x: (jnp.sin(x), x), lambda x, g: (g * jnp.cos(x) * jnp.where(jnp.arange(size) == place, 1.05, 1.0),)
    )
    result = gradproof.check(function, jnp.linspace(0.2, 1.2, size), seed=5)
    assert result.verdict is Verdict.WRONG
    assert [str(finding.place.input) for finding in result.wrong] == [f"args[0][{place}]"]
    assert gradproof.check(jnp.sin, jnp.linspace(0.2, 1.2, size), seed=5).verdict is Verdict.RIGHT


@pytest.mark.parametrize(
    "rule", [rule for rule in RULES if rule.code.startswith("tangent-")], ids=lambda rule: rule.name
)
def test_a_custom_jvp_that_jax_cannot_transpose_is_named_in_both_modes(rule: Rule) -> None:
    """What is not linear has no transpose; JAX may say so by an AssertionError without a word."""
    with enable_x64(True):
        result = gradproof.check(rule.function("wrong"), rule.args(), seed=5)
        assert result.verdict is Verdict.WRONG, str(result)
        (finding,) = [one for one in result.wrong if one.code == "nonlinear-forward"]
        assert finding.diagnosis is not None
        assert finding.diagnosis.code == rule.code
        assert str(finding.place.output).startswith("out[")
        assert gradproof.check(rule.function("right"), rule.args(), seed=5).verdict is Verdict.RIGHT


def test_an_assertion_of_the_users_own_is_the_users_to_see() -> None:
    @jax.custom_vjp
    def function(x: Any) -> Any:
        return jnp.sin(x)

    def transpose(x: Any, g: Any) -> Any:
        raise AssertionError("mine")

    function.defvjp(lambda x: (jnp.sin(x), x), transpose)
    with pytest.raises(AssertionError, match="mine"):
        gradproof.check(function, jnp.ones(3), seed=1)
