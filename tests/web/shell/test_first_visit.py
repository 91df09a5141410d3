"""The card of a first visit: what it leads to, what ticks it, and that it goes."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse

from spakweb.home import demo, first
from spakweb.runs.models import Command, Run, State
from spakweb.specs.actions import save_version
from spakweb.specs.models import Spec
from spakweb.teams.models import Team, User


@pytest.fixture
def alice(db: None, settings: Any, client: Any) -> User:
    settings.DEMO = True
    demo.seed()
    found: User = User.objects.get(username="alice")
    client.force_login(found)
    return found


def tries(client: Any) -> list[first.Try]:
    found: list[first.Try] = client.get(reverse("spak-team-home", args=[demo.SLUG])).context["tries"]
    return found


def test_every_link_of_the_card_leads_somewhere(alice: User, client: Any) -> None:
    text = client.get(reverse("spak-team-home", args=[demo.SLUG])).content.decode()
    assert "Four things to try" in text and "What to do next" not in text
    found = tries(client)
    assert [one.done for one in found] == [False] * 4
    assert [client.get(one.url).status_code for one in found] == [200] * 4
    assert "checked" in client.get(found[2].url).content.decode().partition('value="stepwise"')[2][:20]


def test_it_ticks_what_was_done_and_goes(alice: User, client: Any) -> None:
    team = Team.objects.get(slug=demo.SLUG)
    tuner, broken = (Spec.objects.get(name=name) for name in (first.TUNER, first.BROKEN))
    run = Run.objects.create(team=team, version=tuner.head, key="r1", name="r", state=State.WAITING)
    found = tries(client)
    assert [one.done for one in found] == [True, False, False, False]
    assert found[0].url == found[2].url == reverse("spak-run", args=[demo.SLUG, "r1"])
    Command.objects.create(run=run, kind="answer", by=alice)
    Run.objects.update(state=State.SUCCEEDED, count=3)
    assert [one.done for one in tries(client)] == [True, False, True, False]
    assert tries(client)[3].url == reverse("spak-run-fork", args=[demo.SLUG, "r1"])
    Run.objects.create(team=team, key="r2", name="r", parent=run, parent_seq=1)
    save_version(alice, broken, tuner.head.text, 1, "Mend it")
    assert tries(client) == []


def test_it_can_be_put_away(alice: User, client: Any) -> None:
    assert client.post(reverse("spak-first-away")).status_code == 302
    assert tries(client) == []


def test_others_do_not_see_it(alice: User, client: Any, settings: Any) -> None:
    settings.DEMO = False
    assert tries(client) == []
