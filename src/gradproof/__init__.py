"""gradproof tells whether a program's derivatives are right, wrong, or cannot be told, and where and by how much."""

from gradproof import spaces
from gradproof.cases import Call, Case, case
from gradproof.check import assert_gradients, check, check_program
from gradproof.compare import compare
from gradproof.errors import GradcheckError, Unsupported, UsageError
from gradproof.program import Leaf, Program
from gradproof.result import Comparison, Diagnosis, Finding, Report, Result, Verdict
from gradproof.settings import Budget, Settings, Tolerance
from gradproof.sweep import sweep

__all__ = [
    "Budget",
    "Call",
    "Case",
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
    "case",
    "check",
    "check_program",
    "compare",
    "spaces",
    "sweep",
]
__version__ = "0.1.0"
