"""The catalog and the seeds' examples that the language tests share."""

from __future__ import annotations

import pytest

from lang_catalog import CATALOG
from spak.lang.catalog import Catalog


@pytest.fixture
def catalog() -> Catalog:
    return CATALOG
