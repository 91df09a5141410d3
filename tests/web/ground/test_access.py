"""Every address, every role, a stranger, nobody: who is let in. An address that is not in the table fails."""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django.urls import URLPattern, get_resolver, reverse
from django.utils import timezone
from django.views.generic import RedirectView

from address_table import (
    ADMIN,
    ALLAUTH,
    API,
    BY_TOKEN,
    EDITOR,
    GIVEN_TO_ALLAUTH,
    JUDGE_THEMSELVES,
    LET_IN_AND_TOLD,
    OPEN_ALLAUTH,
    OPEN_ARGS,
    OPEN_ROUTES,
    OWN_ROUTES,
    REVIEWER,
    TEAM_ROUTES,
    VIEWER,
    Route,
)
from jobs_kit import failed_job
from page_addresses_kit import PAGES, RECENT
from run_rows_kit import begun, with_file
from spak import canon
from spak.evolve.experiments import Plan
from spak.records import Record
from spakweb.ground import access, rights
from spakweb.ground.teams.models import Membership, Role
from spakweb.store.runs.models import Run
from spakweb.store.sources.models import Branch
from spakweb.store.specs.models import Spec
from spakweb.store.suites.models import Case, Experiment, Suite
from spakweb.work.campaigns.actions import begin as begin_campaign
from spakweb.work.hooks import actions as hooks
from spakweb.work.oidc import actions as oidc
from spakweb.work.oidc.actions import Wanted
from spakweb.work.reviews.actions import propose
from spakweb.work.schedules import actions as schedules
from spakweb.work.sources import actions as sources
from spakweb.work.specs import problem_files
from spakweb.work.specs.actions import create_spec, set_tag
from spakweb.work.teams import actions as teams
from spakweb.work.teams import named_roles, tokens
from spakweb.work.triggers import actions as triggers

ROOT = Path(__file__).resolve().parents[3]

PEOPLE = {Role.VIEWER: "vera", Role.EDITOR: "bob", Role.REVIEWER: "rita", Role.ADMIN: "alice"}
REFUSED = {403, 404}


def patterns(resolver: Any) -> Iterator[URLPattern]:
    for item in resolver.url_patterns:
        if isinstance(item, URLPattern):
            yield item
        else:
            yield from patterns(item)


FOUND = list(patterns(get_resolver()))
NAMES = sorted({str(pattern.name) for pattern in FOUND if pattern.name})


def test_every_address_is_in_a_table() -> None:
    ours = {name for name in NAMES if not name.startswith((*ALLAUTH, API))}
    assert ours == {*TEAM_ROUTES, *OWN_ROUTES, *OPEN_ROUTES}
    nameless = [pattern.callback.view_class for pattern in FOUND if not pattern.name]
    assert set(nameless) <= {RedirectView}  # the library's older addresses


def test_every_action_has_a_role() -> None:
    assert set(rights.ACTIONS.values()) <= set(Role)
    assert list(rights.RANK) == [VIEWER, EDITOR, REVIEWER, ADMIN]


def test_pages_and_docs_say_what_the_table_says() -> None:
    docs = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", (ROOT / "docs/platform.md").read_text())
    for role in Role:
        assert f"| {role} | {rights.rights_of(role)} |" in docs
    said = ", ".join(map(rights.rights_of, Role))
    assert all(words and words in said for _, words in rights.RIGHTS.values())


def test_every_action_is_asked_for_somewhere() -> None:
    files = [path for path in (ROOT / "platform/spakweb").rglob("*.py") if path.name != "rights.py"]
    text = "".join(path.read_text() for path in [*files, *(ROOT / "templates").rglob("*.html")])
    assert [name for name in rights.ACTIONS if f'"{name}"' not in text] == []


@pytest.fixture
def cast(world: tuple[Any, dict[str, Any]], db: None) -> Any:
    return deepcopy(world[0])


@pytest.fixture
def named(world: tuple[Any, dict[str, Any]], cast: Any) -> dict[str, Any]:
    """What stands for the parts of an address, in alice's team."""
    return dict(world[1])


@pytest.fixture(scope="module")
def world(first_cast: Any) -> tuple[Any, dict[str, Any]]:
    """The cast, and the parts of addresses: made once."""
    cast = first_cast
    set_tag(cast["alice"], cast.spec.head, "gold")
    invitation, _ = teams.invite(cast["alice"], cast.team, "viewer")
    member = Membership.objects.create(team=cast.team, user=cast["nobody"], role=VIEWER)
    Run.objects.create(team=cast.team, key="ended-run", name="ended", state="failed", count=2)
    propose(cast["bob"], cast.spec, "task A { }", 1, "Less")
    suite = Suite.objects.create(team=cast.team, slug="nightly", name="nightly", seed=1, made_by=cast["bob"])
    plan = Plan("nightly", "h", {"c": "h"}, {"small v1": "h"}, {"small v1": "small v1"})
    Experiment.objects.create(suite=suite, number=1, plan=plan.to_json(), made_by=cast["bob"])
    case = {"suite": suite, "name": "c", "content_hash": "h", "split": "gate", "state": "succeeded"}
    Case.objects.create(**case, made_by=cast["bob"])
    begin_campaign(cast["bob"], cast.spec.head, suite)
    subject = {"source": {"$blob": canon.digest(b"kept")}}
    measured = Record("act", "proposal", {"of": "x", "status": "measured", "subject": subject})
    live = begun(cast.team, cast.spec.head, "live-run", [measured])
    return cast, {
        "run": live.key, "seq": 1, "file": with_file(live, b"kept"),
        "team": cast.team.slug, "spec": "small", "number": 1, "patch": 1, "tag": "gold", "what": "analyse",
        "token": tokens.make(cast["nobody"], "script", 7)[0].pk, "secret": "none",
        "member": member.pk, "invitation": invitation.pk, "name": "hello", "key": "ended-run",
        "suite": "nightly", "role": named_roles.keep(cast["alice"], cast.team, "lawyers", ()).pk,
        "branch": Branch.objects.create(run=live, name="spak/a", title="a", asked_by=cast["bob"]).pk,
        "job": failed_job(cast.team).pk,
        "schedule": schedules.add(cast["alice"], cast.spec, "nightly", "0 6 * * *").pk,
        "source": sources.add(cast["alice"], cast.team, "app", "https://git.example/app.git", ["main"]).name,
        "rule": oidc.add(cast["alice"], cast.team, Wanted("a", "github", "a/b", "main", "x")).pk,
        "trigger": triggers.add(cast["alice"], cast.spec, "deploy")[0].pk,
        "problem": problem_files.save(cast["alice"], cast.team, "problems/a.py", "x = 1").pk,
        "page": "runs", "image": "demo.svg",
        "webhook": hooks.add(cast["alice"], cast.team, "https://ci.example/", ["failed"])[0].pk,
    }  # fmt: skip


def ask(client: Any, name: str, route: Route, parts: dict[str, Any]) -> Any:
    args = {"name" if part in ("tag", "file") else part: parts[part] for part in route.args}
    url = reverse(name, kwargs=args)
    if route.body:
        return client.post(url, route.body, content_type="application/json")
    return getattr(client, route.method)(url, route.given)


@pytest.mark.parametrize("name", sorted(TEAM_ROUTES))
@pytest.mark.parametrize("role", list(Role), ids=str)
def test_roles(cast: Any, named: dict[str, Any], name: str, role: Role) -> None:
    route = TEAM_ROUTES[name]
    answer = ask(cast.client(PEOPLE[role]), name, route, named)
    assert route.least is not None
    if rights.RANK[role] >= rights.RANK[route.least]:
        told = LET_IN_AND_TOLD.get(name)
        assert answer.status_code in ({told} if told else {200, 201, 204, 302})
    else:
        assert answer.status_code == 403


@pytest.mark.parametrize("name", sorted(TEAM_ROUTES))
def test_a_stranger_learns_nothing(cast: Any, named: dict[str, Any], name: str) -> None:
    """What is theirs and what is not there look the same."""
    client = cast.client("charlie")
    answer = ask(client, name, TEAM_ROUTES[name], named)
    missing = ask(client, name, TEAM_ROUTES[name], {**named, "team": "no-such-team"})
    assert answer.status_code == missing.status_code == 404
    assert _without_ids(answer) == _without_ids(missing)


def _without_ids(answer: Any) -> bytes:
    text = answer.content.replace(b"no-such-team", b"TEAM").replace(b"kernel-tuners", b"TEAM")
    return re.sub(
        rb'(csrfmiddlewaretoken" value="|X-CSRFToken": "|request <span class="mono">)[^"<]*', b"", text
    )


@pytest.mark.parametrize("name", sorted(TEAM_ROUTES))
def test_things_of_another_team_are_not_reached_through_ones_own(
    cast: Any, named: dict[str, Any], name: str
) -> None:
    """charlie asks by their own team's address for things that are alice's."""
    route = TEAM_ROUTES[name]
    foreign = [
        part
        for part in (
            *(
                "member",
                "role",
                "invitation",
                "number",
                "tag",
                "run",
                "patch",
                "suite",
                "webhook",
                "source",
                "schedule",
                "trigger",
                "problem",
                "rule",
            ),
            "branch",
        )
        if part in route.args
    ]
    if not foreign:
        return
    Spec.objects.filter(pk=cast.other_spec.pk).update(slug="other")
    parts = {**named, "team": cast.other_team.slug}
    assert ask(cast.client("charlie"), name, route, parts).status_code == 404


@pytest.mark.parametrize("name", sorted({**TEAM_ROUTES, **OWN_ROUTES}))
def test_nobody_is_asked_to_sign_in(cast: Any, named: dict[str, Any], name: str) -> None:
    """A browser is led to the form; what a program may ask tells it of tokens."""
    route = {**TEAM_ROUTES, **OWN_ROUTES}[name]
    answer = ask(Client(headers={"accept": "text/html"}), name, route, named)
    assert answer.status_code == 302
    assert answer["Location"].startswith("/account/login/?next=")
    answer = ask(cast.client(), name, route, named)
    assert answer.status_code == (401 if name in BY_TOKEN else 302)
    assert answer.has_header("WWW-Authenticate") == (name in BY_TOKEN)


@pytest.mark.parametrize(
    "name", sorted({**TEAM_ROUTES, **OWN_ROUTES, **dict.fromkeys(OPEN_ROUTES - JUDGE_THEMSELVES)})
)
def test_what_a_token_reaches(cast: Any, named: dict[str, Any], name: str) -> None:
    """It looks at what a viewer may see of a run, and at no page: a token of an admin with every scope."""
    _, secret = tokens.make(cast["alice"], "script", 7, None, rights.SCOPES)
    client = Client(headers={"authorization": f"Bearer {secret}"})
    route = {**TEAM_ROUTES, **OWN_ROUTES}.get(name) or Route(None, args=OPEN_ARGS.get(name, ()))
    answer = ask(client, name, route, named)
    looks = name in BY_TOKEN and route.least in (VIEWER, None)
    assert answer.status_code in ({200, 204} if looks else {403})
    assert not answer.cookies
    if not looks:
        assert answer.json()["code"] == "web.token_scope"


def asked_for(cast: Any, named: dict[str, Any], name: str, specs: list[str]) -> Any:
    """The answer to alice's token with all scopes; for some specs, if there are any."""
    team = cast.team if specs else None
    _, secret = tokens.make(cast["alice"], "ci", 7, team, list(rights.SCOPES), specs)
    return ask(Client(headers={"authorization": f"Bearer {secret}"}), name, TEAM_ROUTES[name], named)


@pytest.mark.parametrize("name", sorted(BY_TOKEN & TEAM_ROUTES.keys()))
def test_what_a_token_for_another_spec_reaches(cast: Any, named: dict[str, Any], name: str) -> None:
    """Nothing of this spec or its runs, and nothing of the whole team."""
    create_spec(cast["alice"], cast.team, "another", cast.spec.head.text)
    Run.objects.filter(key="ended-run").update(version=cast.spec.head, takes_in=[])
    answer = asked_for(cast, named, name, ["another"])
    if TEAM_ROUTES[name].args == ("team",):
        assert (answer.status_code, b"for some specs alone" in answer.content) == (403, True)
    else:
        assert answer.status_code == 404


@pytest.mark.parametrize("name", sorted(BY_TOKEN & TEAM_ROUTES.keys()))
def test_what_a_token_for_this_spec_reaches(cast: Any, named: dict[str, Any], name: str) -> None:
    """Of the spec and its runs all that a token for every spec does; of the rest nothing."""
    Run.objects.filter(key="ended-run").update(version=cast.spec.head, takes_in=[])
    with transaction.atomic():
        whole = asked_for(cast, named, name, []).status_code
        transaction.set_rollback(True)
    route = TEAM_ROUTES[name]
    mine = whole if route.args != ("team",) else 403
    assert asked_for(cast, named, name, ["small"]).status_code == mine


@pytest.mark.parametrize("name", sorted(OWN_ROUTES))
def test_whoever_is_signed_in(cast: Any, named: dict[str, Any], name: str) -> None:
    assert ask(cast.client("nobody"), name, OWN_ROUTES[name], named).status_code in {200, 302}


def test_a_script_is_told_that_it_is_signed_out(cast: Any, named: dict[str, Any]) -> None:
    url = reverse("spak-spec-save", args=[cast.team.slug, "small"])
    answer = cast.client().post(
        url, "{}", content_type="application/json", headers={"Accept": "application/json"}
    )
    assert answer.status_code == 401
    assert answer.json()["code"] == "web.signed_out"


@pytest.mark.parametrize("role", list(Role), ids=str)
def test_a_member_may_leave(cast: Any, role: Role) -> None:
    member = cast.team.memberships.get(user=cast[PEOPLE[role]])
    answer = cast.client(PEOPLE[role]).post(reverse("spak-member-remove", args=[cast.team.slug, member.pk]))
    assert answer.status_code == (409 if role == ADMIN else 302)
    assert cast.team.memberships.filter(pk=member.pk).exists() == (role == ADMIN)


def test_who_was_deactivated_is_out(cast: Any) -> None:
    client = cast.client("bob")
    cast["bob"].is_active = False
    cast["bob"].save(update_fields=["is_active"])
    assert client.get(reverse("spak-team-home", args=[cast.team.slug])).status_code == 302
    assert not access.can(cast["bob"], "spec.view", cast.spec)
    assert not access.visible_to(cast["bob"], Spec.objects.all()).exists()


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith(ALLAUTH)])
def test_allauth_asks_for_a_sign_in(cast: Any, name: str) -> None:
    """None of its pages that is not meant for it answers to nobody, and none breaks."""
    wanted = get_resolver().reverse_dict.getlist(name)[0][0][0][1]
    answer = cast.client().get(reverse(name, kwargs={key: GIVEN_TO_ALLAUTH[key] for key in wanted}))
    assert answer.status_code < 500
    if name not in OPEN_ALLAUTH:
        assert answer.status_code in {302, 401, 403, 404, 405}
        if answer.status_code == 302:
            assert "/account/" in answer["Location"]


def _whole_page(answer: Any) -> bool:
    shown = answer.status_code == 200 and "Content-Disposition" not in answer and not answer.streaming
    return shown and answer.headers["Content-Type"].startswith("text/html") and b"<main" in answer.content


def test_every_page_is_one_that_axe_looks_at(cast: Any, named: dict[str, Any]) -> None:
    """A whole page that answers a GET is in the list that the browser tests go through."""
    parts = {**named, **GIVEN_TO_ALLAUTH, "secret": teams.invite(cast["alice"], cast.team, "viewer")[1]}
    found = set()
    for pattern in FOUND:
        routes = {**TEAM_ROUTES, **OWN_ROUTES}
        name = str(pattern.name or API)
        if name.startswith(API):
            continue
        if name in routes:
            args = {
                part if part not in ("tag", "file") else "name": parts[part] for part in routes[name].args
            }
        else:
            args = {part: parts[part] for part in get_resolver().reverse_dict.getlist(name)[0][0][0][1]}
        for client in (cast.client("alice"), cast.client()):
            if _whole_page(client.get(reverse(name, kwargs=args))):
                found.add(name)
    assert found == PAGES.keys() - RECENT.keys()


CHANGES = re.compile(rb'(?:csrfmiddlewaretoken" value=|nonce=|"nonce": )"[^"]*"|[A-Za-z0-9]{64}')
"""What differs between two answers to one request."""


@pytest.mark.findings("b12")
@pytest.mark.parametrize("name", sorted(name for name, route in TEAM_ROUTES.items() if route.method == "get"))
def test_no_cache_takes_a_part_for_the_page(
    cast: Any, named: dict[str, Any], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An address that answers differently by a header names it (`Vary`); htmx restores history with pages."""
    client, route, now = cast.client("alice"), TEAM_ROUTES[name], timezone.now()
    monkeypatch.setattr(timezone, "now", lambda: now)  # pages say how long ago things were
    plain = _asked_with(client, name, route, named, {})
    parts = [{"HX-Request": "true"}, *({"HX-Request": "true", "HX-Target": part} for part in TARGETS)]
    for headers in (*parts, {"Accept": "application/json"}):
        other = _asked_with(client, name, route, named, headers)
        if other != plain:
            for status, vary, _ in (plain, other):
                assert status >= 500 or headers.keys() <= set(vary), headers
    restores = {**parts[-1], "HX-History-Restore-Request": "true"}
    assert _asked_with(client, name, route, named, restores) == plain


TARGETS = ("edits", "log", "pane")
"""Parts that a script asks for by the id of the element that they replace."""


def _asked_with(
    client: Any, name: str, route: Route, parts: dict[str, Any], headers: dict[str, str]
) -> tuple[int, tuple[str, ...], bytes]:
    """Status, what `Vary` names, and the content without what differs each time."""
    args = {"name" if part in ("tag", "file") else part: parts[part] for part in route.args}
    answer = client.get(reverse(name, kwargs=args), route.given, headers=headers)
    content = b"" if answer.streaming else CHANGES.sub(b"", answer.content)
    return answer.status_code, tuple(answer.get("Vary", "").split(", ")), content


def test_forms_need_their_token(cast: Any) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(cast["alice"])
    answer = client.post(reverse("spak-spec-archive", args=[cast.team.slug, "small"]))
    assert answer.status_code == 403
    assert b"web.csrf" in answer.content
    assert Spec.objects.get(pk=cast.spec.pk).archived_at is None


@pytest.mark.parametrize(
    "name", sorted(name for name, route in TEAM_ROUTES.items() if route.method == "post")
)
def test_a_link_changes_nothing(cast: Any, named: dict[str, Any], name: str) -> None:
    """What changes something is not done by GET."""
    if name == "spak-spec-new":
        return  # its GET is the form
    route = TEAM_ROUTES[name]
    args = {"name" if part in ("tag", "file") else part: named[part] for part in route.args}
    assert cast.client("alice").get(reverse(name, kwargs=args)).status_code == 405
