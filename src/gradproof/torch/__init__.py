"""The torch adapter: a function or module on torch tensors, seen as a `Program`."""

from __future__ import annotations

from gradproof.torch.adapter import program_of
from gradproof.torch.forms import Meaning
from gradproof.torch.torchprogram import TorchProgram

__all__ = ["Meaning", "TorchProgram", "program_of"]
