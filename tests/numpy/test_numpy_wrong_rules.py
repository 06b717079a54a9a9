"""The rules of `tests/wrong_rules.py` as `vjp` and `jvp` written by hand: each gets its diagnosis, its twin passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import gradproof
from gradproof import Verdict
from tests.wrong_rules import RULES, Rule, _compiled


def arrays(value: Any) -> Any:
    """What torch returned, as arrays."""
    if isinstance(value, (tuple, list)):
        return tuple(arrays(part) for part in value)
    return None if value is None else torch.as_tensor(value).resolve_conj().numpy()


def tensors(value: Any) -> tuple[Any, ...]:
    return tuple(map(torch.as_tensor, value)) if isinstance(value, tuple) else (torch.as_tensor(value),)


def by_hand(rule: Rule, which: str) -> tuple[Callable[..., Any], dict[str, Any]]:
    """The function and its derivatives, from arrays to arrays; torch does the arithmetic inside."""
    names = ", ".join("xyz"[: len(rule.shapes)])
    forward = _compiled(names, rule.forward)
    backward = _compiled(f"{names}, g, h=None", rule.wrong if which == "wrong" else rule.right)
    derivative = {"vjp": lambda w, *args: arrays(backward(*tensors(args), *tensors(w)))}
    if rule.jvp is not None:
        tangents = ", ".join("d" + name for name in names.split(", "))
        pushed = _compiled(f"{names}, {tangents}", rule.jvp[0 if which == "wrong" else 1])
        derivative["jvp"] = lambda v, *args: arrays(pushed(*tensors(args), *tensors(v)))
    return lambda *args: arrays(forward(*tensors(args))), derivative


def check(rule: Rule, which: str) -> gradproof.Result:
    fn, derivative = by_hand(rule, which)
    args = tuple(x.numpy() for x in rule.args())
    return gradproof.check(fn, args, derivative=derivative, **{"seed": 7, **dict(rule.options)})


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_wrong_rule_gets_its_diagnosis_and_its_twin_passes(rule: Rule) -> None:
    wrong = check(rule, "wrong")
    assert wrong.verdict is Verdict.WRONG, str(wrong)
    codes = {finding.diagnosis.code for finding in wrong.findings if finding.diagnosis is not None}
    assert codes == {rule.code}, str(wrong)
    right = check(rule, "right")
    assert right.verdict is Verdict.RIGHT, str(right)
