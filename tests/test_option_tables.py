"""Arguments and options are described once, in their schemas: docs and hovers say the same."""

from __future__ import annotations

import re

import pytest

from scripts import option_tables
from spak import config
from spak.lang.features import describe

CATALOG = config.catalog()
ENTRIES = {**CATALOG.tools, **CATALOG.validators, **CATALOG.proposers}
TEXTS = {name: (option_tables.DOCS / name).read_text() for name in option_tables.PAGES}


@pytest.mark.parametrize("name", option_tables.PAGES)
def test_the_tables_of_a_page_are_those_of_the_schemas(name: str) -> None:
    assert option_tables.filled(TEXTS[name]) == TEXTS[name], "run python scripts/option_tables.py"


def test_every_entry_with_members_has_its_table() -> None:
    named = [name for text in TEXTS.values() for name in re.findall(r"<!-- options: (\w+) -->", text)]
    assert sorted(named) == sorted(name for name, entry in ENTRIES.items() if entry.schema)


@pytest.mark.parametrize("name", [name for name, entry in ENTRIES.items() if entry.schema])
def test_every_option_is_described_and_the_hover_says_it(name: str) -> None:
    entry = ENTRIES[name]
    shown = "\n".join(describe._members(entry.schema))
    for option, member in entry.schema["properties"].items():
        assert member["description"], option
        assert describe.escaped(member["description"]) in shown
