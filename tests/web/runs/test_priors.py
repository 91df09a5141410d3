"""A run that begins with what an earlier run's search found: by the form, by the API, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.urls import reverse

from spak.records import decode
from spakweb.face.runs.run_parts import retry_address
from spakweb.ground.errors import Refused
from spakweb.store.runs.models import Run, RunRecord
from spakweb.work.runs import actions
from spakweb.work.specs.actions import create_spec
from spakweb.work.worker import execute

pytestmark = [pytest.mark.django_db, pytest.mark.sandbox]

SEARCH = """\
AGENT Search LEVEL 5 {
  CONFIG { BUDGET { steps: 40 } }
  START -> tune
  TASK tune {
    PROPOSER tuner { tool: "write_file", args: { path: "c.txt" }, params_key: "" }
    SPACE { content: ["a", "bb", "ccc"] }
    TOOLS [write_file]
    step draft: llm.plan { role: "coder" }
    step check: tool.run { cmd: "test -s c.txt", on_fail: continue }
    success: exit_code(check) == 0
  }
}
"""
OTHER = SEARCH.replace('"ccc"', '"dddd"')
HELLO = 'task Hello { step greet: tool.write_file { path: "a.txt" content: "a" } }'

Ran = Callable[..., Run]


@pytest.fixture
def earlier(ran: Ran) -> Run:
    """A search that ended."""
    run = ran(SEARCH, mode="full_auto")
    assert run.state == "succeeded", run.reason
    return run


def prior_of(run: Run) -> list[dict[str, Any]]:
    """The trials in the run's first record."""
    body = decode(bytes(RunRecord.objects.get(run=run, seq=0).line)).body
    found: list[dict[str, Any]] = body["rules"]["searches"]["tune"].get("prior", [])
    return found


def tried(run: Run) -> list[str]:
    lines = RunRecord.objects.filter(run=run, kind="plan").order_by("seq").values_list("line", flat=True)
    plans = (decode(bytes(line)).body for line in lines)
    return [plan["candidates"][0]["args"]["content"] for plan in plans]


def test_the_form_takes_an_earlier_run(cast: Any, earlier: Run) -> None:
    spec = earlier.version.spec
    client, team = cast.client("alice"), cast.team.slug
    form = client.get(reverse("spak-run-new", args=[team, spec.slug])).content.decode()
    assert 'name="prior"' in form
    answer = client.post(
        reverse("spak-run-start", args=[team, spec.slug]),
        {"version": "1", "mode": "full_auto", "prior": f" {earlier.key} "},
    )
    assert answer.status_code == 302
    run = Run.objects.exclude(pk=earlier.pk).get()
    execute.advance(run.key)
    run.refresh_from_db()
    assert run.state == "succeeded", run.reason
    assert [item["params"] for item in prior_of(run)] == [{"content": text} for text in tried(earlier)]
    page = client.get(reverse("spak-run", args=[team, run.key])).content.decode()
    assert reverse("spak-run", args=[team, earlier.key]) in page
    again = client.get(retry_address(run)).content.decode()
    assert f'name="prior" value="{earlier.key}"' in again
    assert prior_of(earlier) == []


def test_the_api_takes_one(cast: Any, earlier: Run) -> None:
    client, spec = cast.client("alice"), earlier.version.spec
    address = reverse("spak-api-start", args=[cast.team.slug, spec.slug])
    made = client.post(address, {"prior": earlier.key, "mode": "full_auto"}, content_type="application/json")
    assert made.status_code == 201, made.json()
    assert Run.objects.get(key=made.json()["key"]).prior == earlier.key
    refused = client.post(address, {"prior": "no-such-run"}, content_type="application/json")
    assert (refused.status_code, refused.json()["code"]) == (400, "web.run_prior")


def test_a_form_without_a_search_asks_for_none(cast: Any, ran: Ran) -> None:
    spec = ran(HELLO, advance=False).version.spec
    form = cast.client("alice").get(reverse("spak-run-new", args=[cast.team.slug, spec.slug]))
    assert 'name="prior"' not in form.content.decode()


def test_what_does_not_fit_is_refused_at_once(cast: Any, ran: Ran, earlier: Run) -> None:
    waiting = ran(SEARCH, advance=False)
    alice, same = cast["alice"], waiting.version.spec
    other = create_spec(alice, cast.team, "other", OTHER)
    hello = create_spec(alice, cast.team, "hello", HELLO)
    before = Run.objects.count()
    for spec, key, code in (
        (other, earlier.key, "tuner.prior"),
        (hello, earlier.key, "tuner.prior"),
        (same, ran(HELLO).key, "tuner.prior"),
        (same, "no-such-run", "web.run_prior"),
        (same, waiting.key, "web.run_prior"),
    ):
        with pytest.raises(Refused) as caught:
            actions.start(alice, spec, prior=key)
        assert caught.value.code == code and caught.value.hint
    answer = cast.client("alice").post(
        reverse("spak-run-start", args=[cast.team.slug, other.slug]), {"version": "1", "prior": earlier.key}
    )
    assert answer.status_code == 400
    assert "SPACE of TASK tune" in answer.content.decode() and earlier.key in answer.content.decode()
    assert Run.objects.count() == before + 1  # the run of `hello` that was no prior


def test_a_run_of_another_team_is_no_prior(cast: Any, earlier: Run) -> None:
    theirs = create_spec(cast["charlie"], cast.other_team, "search", SEARCH)
    with pytest.raises(Refused) as caught:
        actions.start(cast["charlie"], theirs, prior=earlier.key)
    assert caught.value.code == "web.run_prior"


def test_one_that_is_deleted_before_the_run_begins_ends_it(cast: Any, earlier: Run) -> None:
    run = actions.start(cast["alice"], earlier.version.spec, prior=earlier.key, mode="full_auto")
    Run.objects.filter(pk=earlier.pk).update(deleted_at=earlier.made_at)
    execute.advance(run.key)
    run.refresh_from_db()
    assert (run.state, run.count) == ("failed", 0) and "tuner.prior" in run.reason
