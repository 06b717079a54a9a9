"""gradproof tells whether a program's derivatives are right, wrong, or cannot be told, and where and by how much."""

from gradproof.check import assert_gradients, check, check_program
from gradproof.compare import compare
from gradproof.errors import GradcheckError, Unsupported, UsageError
from gradproof.program import Leaf, Program
from gradproof.result import Comparison, Diagnosis, Finding, Report, Result, Verdict
from gradproof.settings import Budget, Settings, Tolerance

__all__ = [
    "Budget",
    "Comparison",
    "Diagnosis",
    "Finding",
    "GradcheckError",
    "Leaf",
    "Program",
    "Report",
    "Result",
    "Settings",
    "Tolerance",
    "Unsupported",
    "UsageError",
    "Verdict",
    "assert_gradients",
    "check",
    "check_program",
    "compare",
]
__version__ = "0.1.0"
