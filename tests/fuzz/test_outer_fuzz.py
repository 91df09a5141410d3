"""Random edits of specs never gain a capability that the gate does not mark as privileged."""

from __future__ import annotations

import os
from random import Random

import pytest

from bench.random_edits import BASE, gained

pytestmark = [pytest.mark.fuzz]
MANY = int(os.environ.get("SPAK_FUZZ_EXAMPLES", "500"))


@pytest.mark.slow
def test_random_edits_gain_no_capability_without_a_mark() -> None:
    """Ten thousand with `make fuzz`."""
    assert gained(Random(2026), MANY, BASE) == 0
