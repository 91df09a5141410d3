"""Following a spec: who is mailed about which runs, and how often that is tried."""

from __future__ import annotations

from typing import Any

import pytest
from django.core import mail
from django.core.mail.backends.locmem import EmailBackend
from django.urls import reverse

from jobs_kit import at_once, worked
from run_rows_kit import begun
from spakweb.ground.audit.models import Event
from spakweb.ground.errors import Refused
from spakweb.ground.teams.models import Membership
from spakweb.store.hooks.models import DELIVER, Delivery, Webhook
from spakweb.store.runs.models import Run
from spakweb.work.hooks import actions, follow


@pytest.fixture(autouse=True)
def sends(settings: Any) -> None:
    settings.SENDS_MAIL = True
    settings.CSRF_TRUSTED_ORIGINS = ["https://spak.example"]


def to(run: Run, state: str, reason: str = "") -> None:
    Run.objects.filter(pk=run.pk).update(state=state, reason=reason)


def test_a_run_that_needs_somebody_is_mailed_to_those_who_follow_its_spec(cast: Any) -> None:
    follow.follow(cast["vera"], cast.spec, True)
    follow.follow(cast["vera"], cast.spec, True)
    run = begun(cast.team, cast.spec.head, "r-1")
    for state in ("paused", "running", "waiting", "running", "succeeded"):
        to(run, state)
    to(begun(cast.team, cast.spec.head, "r-2"), "failed", "tool.exit")
    while worked(DELIVER):
        pass
    assert [(one.to, one.subject) for one in mail.outbox] == [
        (["vera@spak.example"], "[SPAK] small: a run is paused"),
        (["vera@spak.example"], "[SPAK] small: a run waits for somebody"),
        (["vera@spak.example"], "[SPAK] small: a run failed"),
    ]
    address = "https://spak.example" + reverse("spak-run", args=[cast.team.slug, "r-2"])
    assert "failed: tool.exit." in mail.outbox[2].body and address in mail.outbox[2].body


def test_no_mail_of_experiments_other_specs_or_after_the_end(cast: Any) -> None:
    follow.follow(cast["vera"], cast.spec, True)
    trial = begun(cast.team, cast.spec.head, "r-1")
    Run.objects.filter(pk=trial.pk).update(trial="experiment")
    to(trial, "failed")
    to(begun(cast.other_team, cast.other_spec.head, "r-2"), "failed")
    assert not Delivery.objects.exists()
    follow.follow(cast["vera"], cast.spec, False)
    to(begun(cast.team, cast.spec.head, "r-3"), "failed")
    assert not Delivery.objects.exists() and not Webhook.objects.exists()
    told = Event.objects.filter(action__endswith="followed").order_by("pk")
    assert [one.action for one in told] == ["spec.followed", "spec.unfollowed"]


def test_a_mail_server_that_is_down_is_tried_again(cast: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    follow.follow(cast["vera"], cast.spec, True)
    to(begun(cast.team, cast.spec.head, "r-1"), "failed")

    def down(*ignored: object) -> int:
        raise ConnectionRefusedError

    with monkeypatch.context() as patch:
        patch.setattr(EmailBackend, "send_messages", down)
        worked(DELIVER)
    row = Delivery.objects.get()
    assert (row.state, row.error) == ("due", "The mail server did not take it: ConnectionRefusedError.")
    Delivery.objects.update(next_at=row.at)
    at_once(DELIVER)
    assert len(mail.outbox) == 1 and Delivery.objects.get().state == "delivered"


@pytest.mark.parametrize("gone", ["member", "is_active", "email"])
def test_who_has_left_is_mailed_no_more(cast: Any, gone: str) -> None:
    vera = cast["vera"]
    follow.follow(vera, cast.spec, True)
    to(begun(cast.team, cast.spec.head, "r-1"), "failed")
    if gone == "member":
        Membership.objects.filter(user=vera).delete()
    else:
        setattr(vera, gone, "" if gone == "email" else False)
        vera.save()
    worked(DELIVER)
    assert not mail.outbox and not Webhook.objects.get().active


def test_the_page_of_a_spec_offers_it_where_mail_can_arrive(cast: Any, settings: Any) -> None:
    vera, page = cast.client("vera"), reverse("spak-spec-detail", args=[cast.team.slug, cast.spec.slug])
    assert "Get mail when a run" in vera.get(page).content.decode()
    assert "You get mail when a run" in vera.post(page + "follow/", {"on": "1"}, follow=True).content.decode()
    settings.SENDS_MAIL = False
    assert "Stop" in vera.get(page).content.decode()
    assert "a run of this spec" not in vera.post(page + "follow/", {"on": "0"}, follow=True).content.decode()
    answer = vera.post(page + "follow/", {"on": "1"})
    assert answer.status_code == 409 and "No mail can reach you" in answer.content.decode()
    with pytest.raises(Refused, match="No mail"):
        follow.follow(cast["vera"], cast.spec, True)


def test_who_follows_is_no_webhook_of_the_team(cast: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    follow.follow(cast["vera"], cast.spec, True)
    alice, pages = cast.client("alice"), reverse("spak-webhook-list", args=[cast.team.slug])
    assert "mail to" not in alice.get(pages).content.decode()
    assert alice.get(f"{pages}{Webhook.objects.get().pk}/").status_code == 404
    monkeypatch.setattr(actions, "MOST", 1)
    actions.add(cast["alice"], cast.team, "https://ci.example/", ["failed"])
