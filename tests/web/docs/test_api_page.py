"""The page of the API: every operation of the schema is on it, with a command whose parts are right."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

import jsonschema
import pytest
from django.test import Client

from spakweb.face.docs import operations, schema

ALL = [one for _, group in operations.groups(schema.document(), "https://spak.example/") for one in group]


def test_every_operation_is_there_once_in_its_group() -> None:
    wanted = {
        (one["operationId"], method.upper(), path)
        for path, methods in schema.document()["paths"].items()
        for method, one in methods.items()
    }
    assert len(ALL) == len(wanted) == len({one.key for one in ALL})
    assert {(one.key, one.method, one.path) for one in ALL} == wanted
    tags = [tag for tag, _ in operations.groups(schema.document(), "")]
    assert {"runs", "specs", "patches", "suites"} <= set(tags)


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.key)
def test_a_command_is_one_that_a_shell_reads_and_its_body_fits_the_schema(one: Any) -> None:
    words = shlex.split(one.curl.replace("\\\n", ""))
    assert words[0] == "curl" and words[-1].startswith("https://spak.example/api/v1/")
    assert "{" not in words[-1]
    given = schema.document()["paths"][one.path][one.method.lower()]
    assert ("Authorization: Bearer $SPAK_TOKEN" in words) == bool(given.get("security"))
    assert {field.name for field in one.fields if field.place == "path"} == set(
        re.findall(r"{(\w+)}", one.path)
    )
    content = given.get("requestBody", {}).get("content", {})
    if "application/json" in content:
        body = json.loads(words[words.index("-d") + 1])
        whole = {**content["application/json"]["schema"], "components": schema.document()["components"]}
        jsonschema.validate(body, whole)


def test_the_page_is_for_everybody_and_trying_is_for_who_is_signed_in(cast: Any) -> None:
    page = cast.client().get("/api/").content.decode()
    assert page.count('<details class="op card"') == len(ALL)
    assert "class=&quot;try" not in page and '<form class="try"' not in page
    assert "with <code>wait</code>" in page and not re.search(r"op-what\">[^<]*`", page)
    assert "http://testserver/api/v1/teams/TEAM/runs/" in page
    mine = cast.client("alice").get("/api/").content.decode()
    assert mine.count('<form class="try"') == sum(one.method == "GET" for one in ALL)
    assert f'value="{cast.team.slug}"' in mine


def test_a_request_that_is_refused_names_the_page(cast: Any) -> None:
    client = Client()
    client.force_login(cast["alice"])
    url = f"/api/v1/teams/{cast.team.slug}/specs/"
    answer = client.post(url, {"name": 1}, content_type="application/json")
    assert answer.status_code == 422
    assert "/api/v1/schema/" in answer.json()["hint"] and "/api/ " in answer.json()["hint"]
