"""What every adapter must do, as scenarios that know no framework; docs/adapters.md shows how to run them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gradproof.conformance import seam, verdicts
from gradproof.conformance.backend import Backend, Failure, Feature, Rule

__all__ = ["Backend", "Failure", "Feature", "Rule", "Scenario", "scenarios"]


@dataclass(frozen=True, slots=True)
class Scenario:
    """`run` raises Failure, an AssertionError, where the adapter does something else than the scenario says."""

    name: str
    needs: tuple[Feature, ...]
    run: Callable[[Backend], None]

    def missing(self, backend: Backend) -> str:
        """Why this scenario makes no sense for a backend; empty if it does."""
        lacking = [feature.value for feature in self.needs if feature not in backend.features]
        return f"{backend.name} has no {', '.join(lacking)}" if lacking else ""

    def __str__(self) -> str:
        return self.name


def scenarios() -> tuple[Scenario, ...]:
    """All of them, in a fixed order."""
    return tuple(Scenario(*scene) for scene in (*seam.SCENES, *verdicts.SCENES))
