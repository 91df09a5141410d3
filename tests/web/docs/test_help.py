"""Every page of the platform leads to its section of the documentation, and every section is there."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from page_addresses_kit import PAGES
from spakweb.face.docs import places, shelf

OWN = {"spak-docs", "spak-docs-page", "spak-docs-search"}
"""Pages of the documentation itself."""


def test_every_page_has_its_section() -> None:
    without = {name for name in PAGES if places.section_of(name) == shelf.INDEX}
    assert without == OWN
    assert places.SECTIONS.keys() <= {*PAGES, "spak-home"}


@pytest.mark.parametrize("section", sorted({places.SIGN_IN, *places.SECTIONS.values()}))
def test_a_section_is_there(section: str) -> None:
    name, mark, anchor = section.partition("#")
    assert name in shelf.names()
    assert not mark or anchor in {one.anchor for one in shelf.page(name).sections}


def test_pages_lead_to_their_section(cast: Any) -> None:
    alice = cast.client("alice")
    for path, url in (
        (f"/t/{cast.team.slug}/runs/", "/docs/runs/#starting-watching-and-steering-a-run"),
        ("/me/", "/docs/platform/#teams-and-roles"),
        ("/no/such/page/", "/docs/"),
    ):
        assert f'<a href="{url}">' in alice.get(path).content.decode(), path
    assert (
        '<a href="/docs/platform/#teams-and-roles">' in cast.client().get("/account/login/").content.decode()
    )


def test_the_palette_knows_the_documentation_and_the_api(cast: Any) -> None:
    found = {one["name"]: one["url"] for one in cast.client("alice").get("/api/v1/places/").json()["places"]}
    assert (found["Documentation"], found["API"]) == ("/docs/", "/api/")


def test_a_page_of_an_error_leads_to_the_entry_of_its_code(cast: Any) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(cast["alice"])
    page = client.post(f"/t/{cast.team.slug}/specs/small/archive/")
    assert '<a class="mono" href="/docs/platform/#web.csrf">web.csrf</a>' in page.content.decode()
    assert places.code_url("lang.markdown_escape") == "/docs/errors/#lang.markdown_escape"
    assert places.code_url("web.origin") == "/docs/runs/#web.origin"
    assert places.code_url('x" onclick') == places.code_url("web.404") == ""
