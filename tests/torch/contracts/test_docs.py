"""docs/contracts.md: every example is run, and shows the output that it really has."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jax
import pytest
import torch
from torch.autograd import Function

import gradproof
from gradproof.jax.scope import enable_x64
from gradproof.settings import CONTRACTS

PAGE = (Path(__file__).parents[3] / "docs" / "contracts.md").read_text()
CODES = dict(re.findall(r"(?m)^\| `(\w+)` \| `(\w+)` \|", PAGE))
EXAMPLES = re.findall(r"(?m)^### (\w+)\n\n```python\n(.*?)\n```\n(?:\n```text\n(.*?)\n```\n)?", PAGE, re.DOTALL)


def shown(result: gradproof.Result) -> str:
    """The headline, and what is found."""
    head, *lines = str(result).splitlines()
    found = [head, *(line for line in lines if line.split()[0] in ("finding", "cause", "next"))]
    # How far a random backward jumps is another number each time.
    return re.sub(r"differ by up to \S+e-09", "differ by up to 5e-09", "\n".join(found))


def outcome(code: str) -> gradproof.Result:
    x = torch.randn(6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    matrix = torch.arange(9.0, dtype=torch.float64).reshape(3, 3)
    scope: dict[str, Any] = {"torch": torch, "Function": Function, "x": x, "matrix": matrix, "options": {}}
    scope |= {"jax": jax, "jnp": jax.numpy}
    with enable_x64(True):
        exec(code, scope)
        return gradproof.check(scope["fn"], scope["args"], seed=0, **scope["options"])


def test_every_contract_has_its_example() -> None:
    assert tuple(CODES) == CONTRACTS
    assert tuple(name for name, _, _ in EXAMPLES) == CONTRACTS


@pytest.mark.parametrize(("name", "code", "output"), EXAMPLES, ids=[name for name, _, _ in EXAMPLES])
def test_the_output_is_real(name: str, code: str, output: str) -> None:
    result = outcome(code)
    assert CODES[name] in [finding.code for finding in result.wrong]
    assert shown(result) == output
