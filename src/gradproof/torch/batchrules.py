"""torch.vmap by rules alone. For an operator without a batching rule torch loops over the rows by itself and warns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


@contextmanager
def by_rules() -> Iterator[None]:
    """Meanwhile such an operator raises."""
    switch: Any = torch._C._functorch
    before = switch._is_vmap_fallback_enabled()
    switch._set_vmap_fallback_enabled(False)  # noqa: FBT003
    try:
        yield
    finally:
        switch._set_vmap_fallback_enabled(before)
