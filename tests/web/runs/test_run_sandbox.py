"""The sandbox of a run: chosen on the form, kept by forks, said on its page; never a less strict one."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

import pytest
from django.urls import reverse

import sandbox_kit
from spak import sandbox
from spakweb.store.ledger.projection import rebuild
from spakweb.store.ledger.store import DatabaseLedgers
from spakweb.store.runs.models import Run, State
from spakweb.work.runs import actions
from spakweb.work.specs.actions import create_spec
from spakweb.work.worker import execute

Ran = Callable[..., Run]
LOOKING = """\
task Look {
  step where: tool.run { cmd: "uname -n" }
  success: exit_code(where) == 0
}
"""
MEASURING = "AGENT M LEVEL 5 { START -> t TASK t { VALIDATOR CpuProfiler } }"
STRICT = "AGENT S LEVEL 2 { CONFIG { SANDBOX DOCKER } START -> t TASK t { TOOLS [list_files] } }"


@pytest.fixture
def no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///no/such/engine")


def shown(cast: Any, run: Run) -> str:
    address = reverse("spak-run", args=[cast.team.slug, run.key])
    return html.unescape(cast.client("vera").get(address).content.decode())


@pytest.mark.usefixtures("ground")
def test_the_form_offers_what_is_stricter_than_the_spec(cast: Any) -> None:
    client = cast.client("bob")
    for number, (text, least, offered) in enumerate(
        [(LOOKING, "restricted", 2), (STRICT, "docker", 1), (MEASURING, "restricted", 2)]
    ):
        spec = create_spec(cast["alice"], cast.team, f"form {number}", text)
        form = client.get(reverse("spak-run-new", args=[cast.team.slug, spec.slug])).content.decode()
        assert f"As the spec says: {least} at least" in form
        assert form.count('<option value="docker">') + form.count('<option value="gvisor">') == offered
        assert ("works in restricted alone" in form) == (text is MEASURING)
        start = reverse("spak-run-start", args=[cast.team.slug, spec.slug])
        answer = client.post(start, {"version": 1, "sandbox": "none"})
        assert answer.status_code == 400 and b"A run cannot ask for" in answer.content
        assert client.post(start, {"version": 1, "sandbox": "gvisor"}).status_code == 302
    assert set(Run.objects.values_list("sandbox", "state")) == {("gvisor", "queued")}


@pytest.mark.usefixtures("no_engine")
@pytest.mark.parametrize(("text", "asked"), [(LOOKING, "docker"), (LOOKING, "gvisor"), (STRICT, "")])
def test_without_it_the_run_does_not_begin(cast: Any, ran: Ran, text: str, asked: str) -> None:
    run = ran(text, sandbox=asked)
    assert (run.state, run.count) == (State.FAILED, 0)
    assert run.reason.startswith("unavailable.sandbox: no Docker engine answers")
    assert "no Docker engine answers" in shown(cast, run)


def test_it_runs_in_the_container_that_was_asked_for(cast: Any, ran: Ran) -> None:
    sandbox_kit.docker_ready()
    plain, boxed = ran(LOOKING), ran(LOOKING, sandbox="docker")
    assert (plain.summary["launcher"], boxed.summary["launcher"]) == ("restricted", "docker")
    assert (plain.state, boxed.state) == (State.SUCCEEDED, State.SUCCEEDED)
    lines = [bytes(line) for line in boxed.records.filter(kind="act").values_list("line", flat=True)]
    assert any(b'"out":"spak\\n"' in line for line in lines)  # the name of the container's host
    assert "sandbox docker" in shown(cast, boxed) and "sandbox restricted" in shown(cast, plain)
    kept = dict(boxed.summary)
    rebuild(boxed, DatabaseLedgers().reader(boxed.key).read())
    boxed.refresh_from_db()
    assert boxed.summary == kept
    forked = actions.fork(cast["alice"], boxed, 2)
    assert forked.sandbox == "docker"
    execute.advance(forked.key)
    forked.refresh_from_db()
    assert (forked.state, forked.summary["launcher"]) == (State.SUCCEEDED, "docker")
    measured = ran(MEASURING, sandbox="docker")
    assert (measured.state, measured.count) == (State.FAILED, 0) and "CpuProfiler" in measured.reason
    sandbox.docker.leave()
