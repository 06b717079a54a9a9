"""torch's own names of the checkers, for a while bound to ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

import torch

from gradproof.errors import GradcheckError
from gradproof.torch.dropin.gradcheck import gradcheck
from gradproof.torch.dropin.second import gradgradcheck
from gradproof.torch.dropin.sparse import as_sparse_gradcheck

# `torch.autograd.gradcheck` is the function; the module of that name is found by importlib only. The wrappers of
# torch.testing look the functions up when they are called.
_MODULE = "torch.autograd.gradcheck"


@contextmanager
def replaced() -> Iterator[None]:
    """Code that imports or looks up torch's checkers meanwhile gets ours. `GradcheckError` is part of it, since tests
    expect it by that name."""
    module = import_module(_MODULE)
    changes = [
        (torch.autograd, "gradcheck", gradcheck),
        (torch.autograd, "gradgradcheck", gradgradcheck),
        (module, "gradcheck", gradcheck),
        (module, "gradgradcheck", gradgradcheck),
        (module, "GradcheckError", GradcheckError),
        (torch.sparse, "as_sparse_gradcheck", as_sparse_gradcheck),
    ]
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in changes]
    for owner, name, value in changes:
        setattr(owner, name, value)
    try:
        yield
    finally:
        for owner, name, value in before:
            setattr(owner, name, value)
