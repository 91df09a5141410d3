"""Each word that a hover explains leads to a section that the documentation has."""

from __future__ import annotations

import pytest

from spak import config
from spak.lang import settings
from spak.lang.features.sections import KINDS, section
from spak.lang.features.words import KEYWORDS
from spakweb.face.docs.places import section_url

CATALOG = config.catalog()
WORDS = [
    *(("setting", name) for name in sorted(settings.KEYS)),
    *(("keyword", name) for name in sorted(KEYWORDS)),
    *(("tool", name) for name in sorted(CATALOG.tools)),
    *(("validator", name) for name in sorted(CATALOG.validators)),
    *(("proposer", name) for name in sorted(CATALOG.proposers)),
    *((kind, "") for kind in sorted(KINDS) if kind not in ("tool", "validator")),
]


@pytest.mark.findings("browser-8")
@pytest.mark.parametrize(("kind", "name"), WORDS)
def test_a_word_has_a_section(kind: str, name: str) -> None:
    page, mark, anchor = section(kind, name).partition("#")
    assert section_url(f"{page}{mark}{anchor}") == f"/docs/{page}/{mark}{anchor}"


def test_a_setting_is_its_row_and_what_did_not_ship_its_page() -> None:
    assert section_url(section("setting", "RETRIES")) == "/docs/language/#retries"
    assert section_url(section("tool", "deploy")) == "/docs/tools/"
