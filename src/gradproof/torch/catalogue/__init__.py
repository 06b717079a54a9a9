"""PyTorch's own databases of operators, modules and functions, as catalogues of cases."""

from gradproof.torch.catalogue.modules import Modules
from gradproof.torch.catalogue.operators import Operators

__all__ = ["Modules", "Operators", "functions", "modules", "operators"]


def operators() -> Operators:
    """All of `op_db`."""
    return Operators(("op_db",))


def functions() -> Operators:
    """Custom operators, autograd Functions and higher-order operators."""
    return Operators(("custom_op_db", "autograd_function_db", "hop_db"))


def modules() -> Modules:
    """All of `module_db`."""
    return Modules()
