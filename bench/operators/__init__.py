"""gradproof's drop-in against torch's own checker on every operator that PyTorch's gradient tests cover."""

from bench.operators.part import run

__all__ = ["run"]
