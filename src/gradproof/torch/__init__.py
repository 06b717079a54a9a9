"""The torch adapter (a function or module on tensors, seen as a `Program`), and the drop-in for torch's checker."""

from __future__ import annotations

from gradproof.torch.adapter import program_of
from gradproof.torch.dropin import (
    GradcheckError,
    NonDifferentiableWarning,
    UndecidedWarning,
    as_sparse_gradcheck,
    get_analytical_jacobian,
    get_numerical_jacobian,
    get_numerical_jacobian_wrt_specific_input,
    gradcheck,
    gradgradcheck,
)
from gradproof.torch.forms import Meaning
from gradproof.torch.torchprogram import TorchProgram

__all__ = [
    "GradcheckError",
    "Meaning",
    "NonDifferentiableWarning",
    "TorchProgram",
    "UndecidedWarning",
    "as_sparse_gradcheck",
    "get_analytical_jacobian",
    "get_numerical_jacobian",
    "get_numerical_jacobian_wrt_specific_input",
    "gradcheck",
    "gradgradcheck",
    "program_of",
]
