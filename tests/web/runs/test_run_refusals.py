"""What people ask of runs and cannot have: each is refused by its code, and nothing is changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.urls import reverse

from spak.errors import RunError
from spakweb.ground.errors import Refused
from spakweb.store.runs import signing
from spakweb.store.runs.models import Command, Run
from spakweb.store.specs.models import SpecVersion
from spakweb.work.runs import actions

pytestmark = pytest.mark.django_db(transaction=True)

ASKING = 'task Talk {\n  step hear: llm.query { prompt: "Say a word." output_var: word }\n}\n'
JSON = {"Accept": "application/json"}


def is_refused(code: str, ask: Callable[[], object]) -> None:
    with pytest.raises(Refused) as caught:
        ask()
    assert caught.value.code == code and caught.value.hint


def test_what_no_action_takes(cast: Any, ran: Callable[..., Run]) -> None:
    run, alice, spec = ran(ASKING, mode="stepwise"), cast["alice"], cast.spec
    of = run.summary["waiting"]["id"]
    other = SpecVersion.objects.exclude(spec=spec).first()
    refused: list[tuple[str, Callable[[], object]]] = [
        ("web.run_version", lambda: actions.start(alice, spec, version=other)),
        ("web.run_mode", lambda: actions.start(alice, spec, mode="other")),
        ("web.run_mode", lambda: actions.fork(alice, run, 1, "other")),
        ("web.run_sandbox", lambda: actions.start(alice, spec, sandbox="none")),
        ("web.run_labels", lambda: actions.start(alice, spec, labels=[str(n) for n in range(21)])),
        ("web.run_labels", lambda: actions.label(alice, run, [str(n) for n in range(21)])),
        ("web.run_fork", lambda: actions.fork(alice, run, run.count + 1)),
        ("web.run_fork", lambda: actions.fork(alice, run, 0)),
        ("web.answer_size", lambda: actions.ask(alice, run, "answer", of, text="\u00e9" * (1 << 19) + "x")),
        ("web.run_backend", lambda: actions.ask(alice, run, "call", of, "other")),
        ("web.run_answered", lambda: actions.ask(alice, run, "answer", "another", text="x")),
        ("web.run_view", lambda: actions.keep_view(alice, cast.team, "", "state=failed")),
    ]
    for code, ask in refused:
        is_refused(code, ask)
    Run.objects.update(only_shown="its policy is another")
    run.refresh_from_db()
    for ask in (
        lambda: actions.request_control(alice, run, "cancel"),
        lambda: actions.resume(alice, run),
        lambda: actions.fork(alice, run, 1),
        lambda: actions.ask(alice, run, "answer", of, text="x"),
    ):
        is_refused("web.run_shown", ask)
    assert Run.objects.count() == 1 and not Command.objects.exists() and not cast.team.run_views.exists()


def test_what_no_form_takes(cast: Any, ran: Callable[..., Run]) -> None:
    run, bob = ran(ASKING, mode="stepwise"), cast.client("bob")
    of_run, of_team = [cast.team.slug, run.key], [cast.team.slug]
    start = reverse("spak-run-start", args=[cast.team.slug, cast.spec.slug])
    refused: list[tuple[str, str, dict[str, Any]]] = [
        ("web.run_control", reverse("spak-run-control", args=of_run), {"do": "other"}),
        ("web.run_control", reverse("spak-run-bulk", args=of_team), {"do": "other", "run": run.key}),
        ("web.run_compare", reverse("spak-run-bulk", args=of_team), {"do": "compare", "run": run.key}),
        ("web.run_mode", reverse("spak-run-fork-go", args=of_run), {"at": "1", "mode": "other"}),
        ("web.run_import", reverse("spak-run-import", args=of_team), {}),
    ]
    for code, address, data in refused:
        answer = bob.post(address, data, headers=JSON)
        assert (answer.status_code, answer.json()["code"]) == (400, code)
    for address, data, said in (
        (start, {"queue": "a b"}, "The name of a queue has letters"),
        (reverse("spak-run-answer", args=of_run), {"of": "x", "text": " \n"}, "The answer is empty."),
    ):
        answer = bob.post(address, data)
        assert answer.status_code == 400 and said in answer.content.decode()
    assert Run.objects.count() == 1 and not Command.objects.exists()


def test_a_damaged_key_signs_nothing(settings: Any, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path
    (tmp_path / signing.FILE).write_bytes(b"half a key")
    with pytest.raises(RunError) as caught:
        signing.approvers()
    assert caught.value.code == "web.approval_key"


def test_no_run_has_a_tool_of_an_mcp_server(ran: Callable[..., Run]) -> None:
    run = ran("task Look {\n  step find: tool.docs__find {}\n}\n")
    error = run.summary["error"]
    assert (run.state, error["code"]) == ("failed", "lang.invalid")
    assert "unknown tool 'docs__find'" in error["message"] and "on no platform" in error["hint"]
