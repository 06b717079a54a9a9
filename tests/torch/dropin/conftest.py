"""Both checkers behind one name, and both of their modes.

Where gradproof promises to do as torch does, a test takes `checker` and runs against both, so that torch itself proves
the test right. Where it promises more, the test takes `ours`, and `theirs` to show the difference.
"""

from __future__ import annotations

import importlib

import pytest
import torch
from twins import Checker

NAMES = (
    "gradcheck",
    "gradgradcheck",
    "GradcheckError",
    "get_numerical_jacobian",
    "get_analytical_jacobian",
    "get_numerical_jacobian_wrt_specific_input",
)


def _ours() -> Checker:
    module = importlib.import_module("gradproof.torch")
    return Checker("gradproof", *(getattr(module, name, None) for name in ("as_sparse_gradcheck", *NAMES)))


def _theirs() -> Checker:
    # `torch.autograd.gradcheck` is the function; the module of the same name is found by importlib only.
    module = importlib.import_module("torch.autograd.gradcheck")
    return Checker("torch", torch.sparse.as_sparse_gradcheck, *(getattr(module, name) for name in NAMES))


@pytest.fixture(params=["torch", "gradproof"])
def checker(request: pytest.FixtureRequest) -> Checker:
    return _ours() if request.param == "gradproof" else _theirs()


@pytest.fixture
def ours() -> Checker:
    return _ours()


@pytest.fixture
def theirs() -> Checker:
    return _theirs()


@pytest.fixture(params=[False, True], ids=["slow", "fast"])
def fast(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)
