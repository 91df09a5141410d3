"""A patch that is open."""

from __future__ import annotations

from typing import Any

import pytest

from reviews_kit import LAST, ONE, OTHER, TWO
from spakweb.store.reviews.models import Patch
from spakweb.work.reviews import actions


@pytest.fixture
def patch(cast: Any) -> Patch:
    text = cast.spec.head.text.replace(ONE, OTHER).replace(TWO, LAST)
    return actions.propose(cast["bob"], cast.spec, text, 1, "Look elsewhere", "It is faster.")
