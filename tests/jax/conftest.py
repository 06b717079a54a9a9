"""JAX in one process, on the CPU; every test must leave the user's configuration as it was."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

jax = pytest.importorskip("jax")


@pytest.fixture(autouse=True)
def configuration_unchanged() -> Iterator[None]:
    before = dict(jax.config.values)
    yield
    assert dict(jax.config.values) == before
