"""Filters that are kept for the team: made, changed, used, dropped; names of any kind; and that cancelling
many leaves the filter that they were chosen in."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.messages import get_messages
from django.urls import reverse
from django.utils import timezone

from spakweb.face.runs.filters import RunFilter, word
from spakweb.ground.audit.models import Event
from spakweb.store.runs.models import Run, SavedView
from spakweb.work.runs.actions import labels_of


def keep(cast: Any, name: str, query: str, who: str = "bob") -> Any:
    address = reverse("spak-run-view", args=[cast.team.slug])
    return cast.client(who).post(address, {"name": name, "query": query})


def said(answer: Any) -> list[str]:
    return [str(message) for message in get_messages(answer.wsgi_request)]


def shown(cast: Any, query: str = "") -> str:
    text: str = (
        cast.client("bob").get(f"{reverse('spak-run-list', args=[cast.team.slug])}?{query}").content.decode()
    )
    return text


def test_a_view_is_kept_used_changed_and_dropped(cast: Any) -> None:
    answer = keep(cast, "Broken", "state=failed&label=")
    assert answer["Location"].endswith("/runs/?state=failed")
    assert said(answer) == ["Kept the view Broken for the whole team."]
    assert '<a href="?state=failed" aria-current="true">Broken</a>' in shown(cast, "state=failed")
    assert said(keep(cast, " Broken ", "state=refused"))[-1] == "Changed the view Broken for the whole team."
    assert SavedView.objects.get().query == "state=refused"
    assert said(keep(cast, "Broken", ""))[-1] == "Dropped the view Broken."
    assert not SavedView.objects.exists()
    assert keep(cast, "Broken", "").status_code == 302  # there is none any more
    told = Event.objects.filter(team=cast.team, action__startswith="view.").order_by("pk")
    assert [(one.action, one.thing, one.actor) for one in told] == [
        (f"view.{done}", "Broken", cast["bob"]) for done in ("kept", "changed", "dropped")
    ]
    assert keep(cast, "Broken", "state=failed", "vera").status_code == 403


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("<img src=x onerror=alert(1)>", "&lt;img src=x onerror=alert(1)&gt;"),
        ("\u202eevil\u0007 \t two", "evil two"),
        ("x' OR 1=1 --", "x&#x27; OR 1=1 --"),
        ("a" * 60, "a" * 40),
        ("日本 🚀", "日本 🚀"),
    ],
)
def test_names_are_words(cast: Any, name: str, kept: str) -> None:
    keep(cast, name, "state=failed")
    assert f">{kept}</a>" in shown(cast)


@pytest.mark.parametrize("name", ["", "  ", "\0", "\u202e\u200b"])
def test_a_view_needs_a_name(cast: Any, name: str) -> None:
    assert keep(cast, name, "state=failed").status_code == 400


def test_a_filter_too_long_for_its_column_is_refused(cast: Any) -> None:
    """Databases that hold to the length of a column would break on it."""
    query = RunFilter(text="語" * 100).query
    assert len(query) > 600 and keep(cast, "Long", query).status_code == 400
    assert not SavedView.objects.exists()


def test_names_and_labels_are_asked_for_as_they_are_kept() -> None:
    assert labels_of([" two \t words ", "\u202e", "two words", "b\u0000ad"[:1]]) == ["two words", "b"]
    assert word(" two \u200e words ") == "two words"


def test_what_was_chosen_in_a_filter_goes_back_to_it(cast: Any) -> None:
    run = Run.objects.create(team=cast.team, version=cast.spec.head, key="r", name="small", state="running")
    assert '<input type="hidden" name="query" value="state=running&amp;q=small">' in shown(
        cast, "q=small&state=running"
    )
    sent = {"run": [run.key], "do": "cancel", "query": "state=running&q=small&evil=//x"}
    answer = cast.client("bob").post(reverse("spak-run-bulk", args=[cast.team.slug]), sent)
    assert answer["Location"].endswith("/runs/?state=running&q=small")
    run.refresh_from_db()
    assert run.state == "cancelled"


def test_what_is_filtered_live_can_be_kept_too(cast: Any) -> None:
    address = reverse("spak-run-list", args=[cast.team.slug])
    part = cast.client("bob").get(address, {"q": "small"}, headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in part and "Save for the team" in part


def test_states_are_asked_for_as_they_are_shown(cast: Any) -> None:
    """A run whose worker is gone is shown as queued, and found so."""
    later, before = (timezone.now() + timedelta(seconds=by) for by in (60, -1))
    for key, holder, until in (("held", "h:1", later), ("gone", "h:2", before), ("freed", "", None)):
        Run.objects.create(
            team=cast.team, key=key, name=key, state="running", holder=holder, lease_until=until
        )
    Run.objects.create(team=cast.team, key="new", name="new")
    rows = cast.client("vera").get(reverse("spak-run-list", args=[cast.team.slug]), {"state": "queued"})
    assert {(run.key, run.state) for run in rows.context["runs"]} == {
        (key, "queued") for key in ("gone", "freed", "new")
    }
    rows = cast.client("vera").get(reverse("spak-run-list", args=[cast.team.slug]), {"state": "running"})
    assert [run.key for run in rows.context["runs"]] == ["held"]
