"""The documentation as pages: each is served to everybody, each link and anchor in them leads somewhere."""

from __future__ import annotations

import io
import json
import re
import tomllib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from openapi_kit import FILE, read
from spakweb.face.docs import markdown, shelf

ROOT = Path(__file__).resolve().parents[3]


class Parts(HTMLParser):
    """The ids of a page, its links and its images."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.images: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.ids += [given["id"]] if "id" in given else []
        self.links += [given["href"]] if tag == "a" else []
        self.images += [given["src"]] if tag == "img" else []


def parts_of(name: str) -> Parts:
    return Parts(shelf.page(name).html)


def test_every_page_of_the_docs_is_one_of_the_platform() -> None:
    files = {str(path.relative_to(ROOT / "docs"))[:-3] for path in (ROOT / "docs").rglob("*.md")}
    assert shelf.names().keys() == files
    assert {name for name, _ in shelf.contents()} == {
        *(name for name in files if "/" not in name and name != shelf.INDEX),
        "adr/README",
    }


@pytest.mark.parametrize("name", sorted(shelf.names()))
def test_links_anchors_and_images_of_a_page_are_here(name: str) -> None:
    parts = parts_of(name)
    assert len(parts.ids) == len(set(parts.ids))
    by_url = {shelf.url_of(one): one for one in shelf.names()}
    images = {f"/docs/img/{one}" for one in shelf.images()}
    for target in parts.links:
        if target.startswith(("https://", "http://", "mailto:")):
            continue
        url, _, anchor = target.partition("#")
        assert url in {"", "/api/", *by_url, *images}, target
        if anchor:
            assert anchor in parts_of(by_url[url] if url else name).ids, target
    assert set(parts.images) <= images
    assert "&lt;!--" not in shelf.page(name).html, "a comment is shown"


def test_pages_images_and_search_are_for_everybody(client: Client, db: None) -> None:
    page = client.get("/docs/runs/")
    assert page.status_code == 200 and b"<h1" in page.content
    assert "script-src 'self'" in page["Content-Security-Policy"]
    image = client.get("/docs/img/demo.svg")
    assert (image.status_code, image["Content-Type"]) == (200, "image/svg+xml")
    assert client.get("/docs/adr/0050-the-api/").status_code == 200
    for gone in ("/docs/no-such-page/", "/docs/../settings/", "/docs/adr/", "/docs/img/no.svg"):
        assert client.get(gone).status_code == 404, gone
    assert client.post("/docs/").status_code == 405


def test_a_page_that_was_read_before_is_an_empty_answer(cast: Any) -> None:
    for path in ("/docs/", "/docs/errors/", "/docs/img/demo.svg", "/api/v1/schema/"):
        alice, bob = cast.client("alice"), cast.client("bob")
        alice.get(path)  # the first answer sets the cookie of forms
        first = alice.get(path)
        again = alice.get(path, headers={"If-None-Match": first["ETag"]})
        assert (first.status_code, again.status_code, again.content) == (200, 304, b""), path
        if path.startswith("/docs/") and "img" not in path:
            assert bob.get(path, headers={"If-None-Match": first["ETag"]}).status_code == 200
            alice.cookies["spak_theme"] = "dark"
            assert alice.get(path, headers={"If-None-Match": first["ETag"]}).status_code == 200


@pytest.mark.parametrize(
    ("words", "first"),
    [
        ("lang.markdown_escape", "/docs/errors/#lang.markdown_escape"),
        ("web.text_size", "/docs/platform/#web.text_size"),
        ("Tokens for programs", "/docs/platform/#tokens-for-programs"),
        ("spak doctor", "/docs/cli/#spak-doctor"),
    ],
)
def test_a_search_leads_to_the_section(words: str, first: str) -> None:
    assert shelf.search(words)[0].url == first


def test_a_search_shows_what_was_typed_as_text(client: Client, db: None) -> None:
    page = client.get("/docs/search/", {"q": "<script>alert(1)</script>"}).content.decode()
    assert "<script>alert" not in page and "Nothing found" in page
    assert "<mark>sandbox</mark>" in client.get("/docs/search/", {"q": "sandbox"}).content.decode()
    assert client.get("/docs/search/", {"q": "\0" * 5000}).status_code == 200
    assert client.get("/docs/search/").status_code == 200


def test_markdown_becomes_no_html_of_its_author() -> None:
    text = (
        "# A `b`\n\n<b onclick=x>bold</b>\n\n<div>block</div>\n\n<!-- hidden -->\nseen <!-- away -->\n\n"
        "[one](javascript:x) [two](../README.md) [three](other.md#a-b) ![four](../no.png)\n\n"
        "## Same\n\n## Same\n\n```sh\na < b\n```\n"
    )
    page = markdown.render(text, "docs/x.md", {"docs/other.md": "/docs/other/"}.get)
    assert "<b" not in page.html and "<div>block" not in page.html
    assert "hidden" not in page.html and "away" not in page.html and "seen" in page.html
    assert Parts(page.html).links == ["/docs/other/#a-b", "#same", "#same-1"]
    assert "two" in page.html and "four" in page.html and "<img" not in page.html
    assert Parts(page.html).ids == ["a-b", "same", "same-1"]
    assert '<code class="language-sh">a &lt; b\n</code>' in page.html
    assert [one.title for one in page.sections] == ["A b", "Same", "Same"]


def test_the_schema_is_served_as_yaml_and_as_json(client: Client) -> None:
    out = io.StringIO()
    call_command("spectacular", stdout=out)
    made = read(out.getvalue())
    plain = client.get("/api/v1/schema/")
    assert plain["Content-Type"] == "application/yaml" and plain.content == FILE.read_bytes()
    for answer in (
        client.get("/api/v1/schema/?format=json"),
        client.get("/api/v1/schema/", headers={"accept": "application/json"}),
    ):
        assert answer["Content-Type"] == "application/json"
        assert json.loads(answer.content) == made


def test_a_wheel_has_the_docs() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    included = settings["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert included["docs"] == "spak/_data/docs"


def test_the_search_says_where_it_ends(client: Client, db: None) -> None:
    page = client.get("/docs/search/", {"q": "the"}).content.decode()
    assert f"The first {shelf.MOST} sections" in page
    assert len(re.findall(r"<li><div", page)) == shelf.MOST
