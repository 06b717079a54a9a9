"""A right `nn.Module`: its parameters are checked as well, and its running mean is as before afterwards."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Gated(nn.Module):
    """Two linear maps, one gating the other, behind a running mean that each call updates."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.value = nn.Linear(width, hidden, dtype=torch.float64)
        self.gate = nn.Linear(width, hidden, dtype=torch.float64)
        self.register_buffer("mean", torch.zeros(width, dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        centred = x - self.mean
        with torch.no_grad():
            self.mean.lerp_(x.mean(0), 0.1)
        return self.value(centred) * torch.sigmoid(self.gate(centred))


def module() -> nn.Module:
    """The module with reproducible parameters, without touching torch's global random state."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return Gated(4, 3)


def arguments() -> tuple[Tensor, ...]:
    return (torch.linspace(-1, 1, 8, dtype=torch.float64).reshape(2, 4),)
