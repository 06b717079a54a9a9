"""The drop-in for torch's gradient checker: the same verbs and the same words, on gradproof's engine."""

from gradproof.errors import GradcheckError, NonDifferentiableWarning, UndecidedWarning
from gradproof.torch.dropin.gradcheck import gradcheck
from gradproof.torch.dropin.jacobians import (
    get_analytical_jacobian,
    get_numerical_jacobian,
    get_numerical_jacobian_wrt_specific_input,
)
from gradproof.torch.dropin.second import gradgradcheck
from gradproof.torch.dropin.sparse import as_sparse_gradcheck

__all__ = [
    "GradcheckError",
    "NonDifferentiableWarning",
    "UndecidedWarning",
    "as_sparse_gradcheck",
    "get_analytical_jacobian",
    "get_numerical_jacobian",
    "get_numerical_jacobian_wrt_specific_input",
    "gradcheck",
    "gradgradcheck",
]
