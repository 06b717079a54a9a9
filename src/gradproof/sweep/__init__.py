"""Sweeps: check a whole library of operators, on one machine or on a cluster."""

from gradproof.sweep.run import Sweep, sweep

__all__ = ["Sweep", "sweep"]
