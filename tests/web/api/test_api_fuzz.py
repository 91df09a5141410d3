"""Requests that schemathesis makes of docs/openapi.yaml, good and bad: no server error, answers as in the
schema, and of what exists: what the schema allows is understood, what it does not allow is refused.

Half of the requests are about things that exist. Nothing that is done stays. `make test` has a few of each
operation, always the same; `make fuzz` makes random ones for SPAK_FUZZ_SECONDS, which the operations share.
`make bench ARGS=fuzz` prints what ten minutes found; it reads the file SPAK_FUZZ_FIGURES. Streams that do not
end by themselves are left out: tests/web/live has them.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
import schemathesis
from django.core.cache import cache
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS, load_all_checks

from api_table import world_of
from spakweb.face.api import limits
from spakweb.face.runs import checks as replays
from spakweb.ground import rights
from spakweb.work.teams import tokens
from spakweb.work.worker import queue

ROOT = Path(__file__).resolve().parents[3]
SECONDS = float(os.environ.get("SPAK_FUZZ_SECONDS", "0"))
EXAMPLES = 20 if SECONDS else 4
"""Of each operation; again and again while it has time."""
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
FORMS = ("web.request", "web.filter", "web.run_filter", "web.idempotency_key")
"""Codes of what is refused for its form. What else is refused was understood: a suite that there is not, text
that is no cron line, a file that is no zip."""
LENIENT = {"get_run": ("wait",), "list_records": ("after", "wait")}
"""Parameters of which everything but a number is taken for none, as test_api.py says."""
OURS = ("path", "header")
"""What a test puts in itself, so that nothing that was made bad is sent."""


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


def _misunderstood(name: str, case: Any, answer: Any) -> str:
    """What the schema promised of this request, and the answer did not keep; empty for nothing."""
    meta = case.meta
    parts = {str(where.value): one.mode for where, one in meta.components.items()} if meta else {}
    bad = {where for where, mode in parts.items() if mode == GenerationMode.NEGATIVE}
    if not bad:
        code = answer.json().get("code") if answer.status_code in (400, 422) else ""
        return f"{code}: the schema allows it" if code in FORMS else ""
    if bad & {*OURS, "cookie"} or answer.status_code >= 400:
        return ""
    sent = parse_qsl(urlsplit(answer.request.url).query, keep_blank_values=True)
    known = {one.name for one in case.operation.query}
    if "query" in bad and any(key in known and not value for key, value in sent):
        return ""  # an empty value is absent, whatever was made of it on the way
    if "query" in bad and {key for key, _ in sent} <= set(LENIENT.get(name, ())):
        return ""
    return f"{answer.status_code}: the schema does not allow it ({', '.join(sorted(bad))})"


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
    monkeypatch.setattr(limits, "READS_PER_MINUTE", 10**9)
    monkeypatch.setattr(limits, "WRITES_PER_MINUTE", 10**9)
    operation, app, parts = OPERATIONS[name], get_wsgi_application(), world["parts"]
    kinds = [operation.as_strategy(generation_mode=mode) for mode in schemathesis.GenerationMode]
    cases, findings = 0, set[str]()

    @settings(
        max_examples=EXAMPLES, deadline=None, derandomize=not SECONDS,
        database=None, suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(case=st.one_of(kinds), there=st.booleans())
    def holds(case: Any, there: bool) -> None:
        nonlocal cases
        cases += 1
        cache.clear()
        if there:
            case.path_parameters = {key: parts[_part(case.path, key)] for key in case.path_parameters}
        with transaction.atomic():
            answer = case.call(app=app, headers={"Authorization": f"Bearer {world['secret']}"})
            transaction.set_rollback(True)
        try:
            case.validate_response(answer, checks=HELD)
        except BaseExceptionGroup:
            findings.add("5xx" if answer.status_code >= 500 else "schema")
            raise
        why = _misunderstood(name, case, answer) if there else ""
        findings.update([why] * bool(why))
        assert not why, f"{why}\n{case.as_curl_command()}\n{answer.content[:500]!r}"

    ends = time.monotonic() + SECONDS / len(OPERATIONS)
    try:
        holds()
        while time.monotonic() < ends:
            holds()
    finally:
        if figures := os.environ.get("SPAK_FUZZ_FIGURES"):
            with Path(figures).open("a") as file:
                file.write(json.dumps({"cases": cases, "findings": sorted(findings)}) + "\n")
