"""Requests that schemathesis makes of docs/openapi.yaml, good and bad: no server error, and answers as in
the schema.

Half of the requests are about things that exist. Nothing that is done stays. `make test` has a few of each
operation, always the same; `make fuzz` has SPAK_FUZZ_EXAMPLES. Streams that do not end by themselves are
left out: tests/web/live has them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from django.core.cache import cache
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.checks import CHECKS, load_all_checks

from api_table import world_of
from spakweb import rights
from spakweb.api import base
from spakweb.runs.pages import checks as replays
from spakweb.teams import tokens
from spakweb.worker import queue

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = int(os.environ.get("SPAK_FUZZ_EXAMPLES", "4"))
STREAMS = {"stream_run", "stream_runs"}
for binary in ("application/zip", "application/x-ndjson"):
    schemathesis.serializer.alias(binary, "application/octet-stream")
load_all_checks()
HELD = CHECKS.get_by_names(
    [
        "not_a_server_error",
        "status_code_conformance",
        "content_type_conformance",
        "response_schema_conformance",
    ]
)


def operations() -> dict[str, Any]:
    schema = schemathesis.openapi.from_path(ROOT / "docs/openapi.yaml")
    found = [one.ok() for one in schema.get_all_operations()]
    named = {one.definition.raw["operationId"]: one for one in found}
    return {name: one for name, one in sorted(named.items()) if name not in STREAMS}


OPERATIONS = operations()


@pytest.fixture(scope="module")
def world(first_cast: Any) -> dict[str, Any]:
    """What stands in addresses, and a token that may all that a token can."""
    parts = world_of(first_cast)
    secret = tokens.make(first_cast["alice"], "fuzz", 7, first_cast.team, rights.SCOPES)[1]
    return {"parts": parts, "secret": secret}


def _part(path: str, key: str) -> str:
    """What api_table calls a parameter of an address."""
    if key == "name":
        return "tag" if "/tags/" in path else "file"
    return "campaign" if key == "number" and "/campaigns/" in path else key


@pytest.fixture
def one_connection() -> Iterator[None]:
    """Requests do not close the connection that the test's transaction is in."""
    ends = (request_started, request_finished)
    for signal in ends:
        signal.disconnect(close_old_connections)
    yield
    for signal in ends:
        signal.connect(close_old_connections)


@pytest.mark.fuzz
@pytest.mark.filterwarnings(
    "ignore:StreamingHttpResponse must consume:Warning"
)  # WSGI reads what ASGI streams
@pytest.mark.parametrize("name", OPERATIONS)
def test_no_request_is_a_server_error(
    world: dict[str, Any], db: None, one_connection: None, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(queue, "send", lambda key, queue="default": None)
    monkeypatch.setattr(replays, "WAIT_S", 0)
    monkeypatch.setattr(base, "READS_PER_MINUTE", 10**9)
    monkeypatch.setattr(base, "WRITES_PER_MINUTE", 10**9)
    operation, app, parts = OPERATIONS[name], get_wsgi_application(), world["parts"]
    kinds = [operation.as_strategy(generation_mode=mode) for mode in schemathesis.GenerationMode]

    @settings(
        max_examples=EXAMPLES, deadline=None, derandomize="SPAK_FUZZ_EXAMPLES" not in os.environ,
        database=None, suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(case=st.one_of(kinds), there=st.booleans())
    def holds(case: Any, there: bool) -> None:
        cache.clear()
        if there:
            case.path_parameters = {key: parts[_part(case.path, key)] for key in case.path_parameters}
        with transaction.atomic():
            answer = case.call(app=app, headers={"Authorization": f"Bearer {world['secret']}"})
            transaction.set_rollback(True)
        case.validate_response(answer, checks=HELD)

    holds()
