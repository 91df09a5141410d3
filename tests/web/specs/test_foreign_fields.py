"""What a form or an address may carry beside its path: keys of other teams, other sites, other files."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from spakweb.store.runs.models import Run, State
from spakweb.store.specs.models import Spec

ELSEWHERE = [
    "https://evil.example/", "//evil.example", "/\\evil.example", "\\\\evil.example", "javascript:alert(1)",
    "http:evil.example", "https:///evil.example", " //evil.example", "/\t/evil.example",
]  # fmt: skip


def test_signing_in_leads_to_no_other_site(cast: Any) -> None:
    address, given = reverse("account_login"), {"login": "alice", "password": "a long secret"}
    for where in ELSEWHERE:
        for query, form in (({"next": where}, given), ({}, given | {"next": where})):
            client = Client()
            answer = client.post(address, form, query_params=query)
            assert (answer.status_code, answer["Location"]) == (302, "/"), where
        assert client.post("/theme/", {"theme": "dark", "next": where})["Location"] == "/"


def patterns(found: list[Any]) -> Iterator[URLPattern]:
    for item in found:
        if isinstance(item, URLResolver):
            yield from patterns(item.url_patterns)
        else:
            yield item


def test_no_page_goes_without_the_token() -> None:
    """The API asks for it itself where a session comes (tests/web/api/test_api.py); an id token, a signed
    message and a message of MCP (tests/web/mcp) come without a session."""
    free = [
        str(item.name)
        for item in patterns(get_resolver().url_patterns)
        if getattr(item.callback, "csrf_exempt", False)
    ]
    assert {name for name in free if not name.startswith("spak-api-")} == {
        *("spak-oidc-exchange", "spak-hook-receive", "spak-mcp")
    }


@pytest.fixture
def runs(cast: Any) -> tuple[Run, Run]:
    """One of alice's team, one of the team next door: both wait, both have a record."""
    own, foreign = (
        Run.objects.create(
            team=spec.team, version=spec.head, key=key, name="small", count=1, state=State.WAITING
        )
        for spec, key in ((cast.spec, "own"), (cast.other_spec, "foreign"))
    )
    return own, foreign


def test_runs_of_others_are_left_alone(cast: Any, runs: tuple[Run, Run]) -> None:
    address = reverse("spak-run-bulk", args=[cast.team.slug])
    cast.client("alice").post(address, {"run": ["foreign", "none", "a\0b"], "do": "cancel"})
    foreign = Run.objects.get(key="foreign")
    assert (foreign.state, foreign.wanted) == (State.WAITING, "")


def test_keys_of_runs_are_no_part_of_a_header(cast: Any, runs: tuple[Run, Run]) -> None:
    address = reverse("spak-run-bulk", args=[cast.team.slug])
    answer = cast.client("alice").post(
        address, {"run": ["a\r\nSet-Cookie: x=1", "b&one=own"], "do": "compare"}
    )
    assert answer.status_code == 302 and "x" not in answer.cookies
    assert answer["Location"].endswith("?one=b%26one%3Down&two=a%0D%0ASet-Cookie%3A+x%3D1")


@pytest.mark.parametrize(
    "keys", [("own", "foreign"), ("foreign", "own"), ("foreign", "foreign"), ("own", "\0")]
)
def test_runs_of_others_are_not_compared(cast: Any, runs: tuple[Run, Run], keys: tuple[str, str]) -> None:
    address = reverse("spak-run-compare", args=[cast.team.slug])
    answer = cast.client("alice").get(address, dict(zip(("one", "two"), keys, strict=True)))
    if keys[1] != "\0":
        assert answer.status_code == 404


@pytest.mark.parametrize("number", ["2", "99", "0", "-1", "1e3", "\0", str(10**30)])
def test_a_run_is_of_a_version_of_its_spec(cast: Any, number: str) -> None:
    address = reverse("spak-run-start", args=[cast.team.slug, "small"])
    cast.client("alice").post(address, {"version": number})
    assert not Run.objects.exclude(version=cast.spec.head).exists()


@pytest.mark.parametrize(("name", "status"), [("many.zip", 415), ("many.spak", 400), ("many.spak.zip", 415)])
def test_an_archive_is_no_spec(cast: Any, name: str, status: int) -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../../bomb.spak", "x" * 5_000_000)
    for address in (
        reverse("spak-spec-import", args=[cast.team.slug]),
        reverse("spak-spec-save", args=[cast.team.slug, "small"]),
    ):
        file = SimpleUploadedFile(name, data.getvalue())
        assert cast.client("bob").post(address, {"file": file, "base_version": "1"}).status_code == status
    assert cast.spec.versions.count() == 1 and Spec.objects.filter(team=cast.team).count() == 1
