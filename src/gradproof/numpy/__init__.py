"""Hand-written derivatives of NumPy and SciPy functions: how to pass them, and the adapter that checks them."""

from __future__ import annotations

from gradproof.numpy.derivative import Grad, Hess, Hessp, Jac, Jvp, Vjp
from gradproof.numpy.problem import check_bvp, check_constraint, check_ivp, check_problem

__all__ = [
    "Grad",
    "Hess",
    "Hessp",
    "Jac",
    "Jvp",
    "Vjp",
    "check_bvp",
    "check_constraint",
    "check_ivp",
    "check_problem",
]
