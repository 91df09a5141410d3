"""The card of a first visit: what it leads to, what ticks it, and that it goes."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.urls import reverse

from spakweb.face.home import first
from spakweb.face.home import template_tags as shell
from spakweb.ground import clock
from spakweb.ground.teams.models import Team, User
from spakweb.store.runs.models import Command, Run, State
from spakweb.store.specs.models import Spec
from spakweb.work.management.commands import up
from spakweb.work.operate import demo
from spakweb.work.specs.actions import save_version
from spakweb.work.specs.widening import confirmation


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
    assert "Four things to try" in text and "Next steps" not in text
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
    confirmed = confirmation(broken, tuner.head.text)  # it is another spec altogether, which may do more
    save_version(alice, broken, tuner.head.text, 1, "Mend it", confirmed=confirmed)
    assert tries(client) == []


def test_it_can_be_put_away(alice: User, client: Any) -> None:
    assert client.post(reverse("spak-first-away")).status_code == 302
    assert tries(client) == []


def test_the_first_page_leads_to_the_page_about_your_first_spec(alice: User, client: Any) -> None:
    home = reverse("spak-team-home", args=[demo.SLUG])
    link = 'href="/docs/first-spec/"'
    assert link in client.get(home).content.decode()
    client.post(reverse("spak-first-away"))
    assert link in client.get(home).content.decode()
    Spec.objects.update(archived_at=clock.now())
    text = client.get(home).content.decode()
    assert "No spec yet" in text and link in text
    assert client.get("/docs/first-spec/").status_code == 200


def test_others_do_not_see_it(alice: User, client: Any, settings: Any) -> None:
    settings.DEMO = False
    assert tries(client) == []


def test_what_is_printed_leads_to_a_run() -> None:
    """Whoever reads the terminal first is led to the same things as by the card, the run first."""
    told = up._banner("http://127.0.0.1:8000", True)
    steps = re.findall(r"^ +(?:try +)?(\d)  (.+)$", told, re.MULTILINE)
    assert [number for number, _ in steps] == ["1", "2", "3", "4"]
    assert first.TUNER in steps[0][1] and first.BROKEN in told and first.ASKING in told
    assert "try" not in up._banner("http://127.0.0.1:8000", False)


def test_every_page_leads_to_the_runners(alice: User, client: Any) -> None:
    address = reverse("spak-fleet", args=[demo.SLUG])
    text = client.get(address).content.decode()
    assert f'href="{address}" aria-current="page">' in text and text.count('aria-current="page"') == 1
    assert f'href="{address}">' in client.get(reverse("spak-run-list", args=[demo.SLUG])).content.decode()
    places = client.get(reverse("spak-api-places"), {"team": demo.SLUG}).json()["places"]
    assert {"kind": "Page", "name": "Runners", "url": address} in places


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("attention_tuner", "attention_<wbr>tuner"),
        ("policy.denied", "policy.<wbr>denied"),
        ("a--b__", "a--<wbr>b__"),
        ("<img src=x/y>", "&lt;img src=x/<wbr>y&gt;"),
        ("plain", "plain"),
    ],
)
def test_long_names_break_where_their_words_do(text: str, shown: str) -> None:
    assert shell.breakable(text) == shown
