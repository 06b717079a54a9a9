"""What the tests of the plugin share: the head of every inner suite, and how the plugin is named there."""

from __future__ import annotations

from collections.abc import Callable

import pytest

SUITE = """
    import pytest
    import torch
    import gradproof as gp

    X = torch.linspace(0.5, 2, 4, dtype=torch.float64)


    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor=3):
            ctx.save_for_backward(x)
            ctx.factor = factor
            return x**3

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return ctx.factor * x**2 * g, None

    def wrong(x):
        return Cube.apply(x, 6)
"""
# By its module; `alone` sees to it that the installed entry point is not there too.
PLUGIN = ("-p", "gradproof_pytest")

Run = Callable[..., pytest.RunResult]
