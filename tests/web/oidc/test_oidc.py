"""Jobs of a CI come in with an id token: which are taken, which are not, and what their tokens do.

The issuer is a server on loopback, which the operator's setting permits here.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import jwt
import pytest
from django.core.exceptions import PermissionDenied
from django.test import Client
from django.utils import timezone

from issuer_kit import AUDIENCE, EC, ED, OTHER_RSA, RSA, SHORT_RSA, Issuer, jwk, pem
from spakweb.ground.audit.models import Event
from spakweb.ground.errors import Refused
from spakweb.ground.oidc.models import Rule, UsedToken
from spakweb.ground.teams.models import Membership, Role, Token
from spakweb.work.oidc import actions, keys
from spakweb.work.oidc.actions import Wanted
from spakweb.work.specs.actions import create_spec
from spakweb.work.teams import tokens

EXCHANGE = "/api/v1/oidc/"
RUNS = "/api/v1/teams/kernel-tuners/specs/small/runs/"


@pytest.fixture
def issuer(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Issuer]:
    settings.OIDC_REACH = ["public", "loopback"]
    monkeypatch.setattr(keys, "resolve", lambda host: ("127.0.0.1",))
    with Issuer() as made:
        yield made
    keys.forget()


@pytest.fixture
def wanted(issuer: Issuer) -> Wanted:
    return Wanted(
        "release", "github", "acme/app", "main", AUDIENCE, issuer.url, "release", ("start",), ("small",)
    )


@pytest.fixture
def rule(cast: Any, wanted: Wanted) -> Rule:
    """Alice's, for jobs of acme/app on main in the environment release."""
    return actions.add(cast["alice"], cast.team, wanted)


def exchange(token: Any, team: str = "kernel-tuners") -> Any:
    body = json.dumps({"team": team, "token": token})
    return Client().post(EXCHANGE, body, content_type="application/json")


def program(answer: Any) -> Client:
    return Client(headers={"authorization": f"Bearer {answer.json()['token']}"})


def start(client: Client, path: str = RUNS) -> int:
    return int(client.post(path, "{}", content_type="application/json").status_code)


# ---- what is taken


def test_a_job_gets_a_short_token_of_the_team(cast: Any, issuer: Issuer, rule: Rule) -> None:
    create_spec(cast["alice"], cast.team, "other", cast.spec.head.text)
    answer = exchange(issuer.token())
    found = answer.json()
    assert (answer.status_code, answer["Cache-Control"], len(answer.cookies)) == (201, "no-store", 0)
    assert (found["team"], found["scopes"], found["specs"]) == (cast.team.slug, ["look", "start"], ["small"])
    made = Token.objects.get()
    assert abs(made.ends_at - timezone.now() - timedelta(minutes=60)) < timedelta(minutes=1)
    assert (made.user, made.team, made.rule) == (cast["alice"], cast.team, rule)
    client = program(answer)
    assert start(client) == 201
    assert start(client, RUNS.replace("small", "other")) == 404
    event = Event.objects.get(action="oidc.exchanged")
    assert event.detail == {
        "rule": rule.pk, "token": made.pk, "run": "99", "repository": "acme/app", "ref": "refs/heads/main",
        "environment": "release",
    }  # fmt: skip


@pytest.mark.parametrize(("key", "alg", "kid"), [(EC, "ES256", "two"), (ED, "EdDSA", "three")])
def test_other_asymmetric_algorithms(issuer: Issuer, rule: Rule, key: Any, alg: str, kid: str) -> None:
    assert exchange(issuer.token(key, alg, kid)).status_code == 201


def test_clocks_may_differ_by_a_minute(issuer: Issuer, rule: Rule) -> None:
    now = int(time.time())
    assert exchange(issuer.token(iat=now + 30, nbf=now + 30)).status_code == 201
    assert exchange(issuer.token(exp=now - 30)).status_code == 201


@pytest.mark.parametrize(
    ("ref", "of", "taken"),
    [("main", {"ref": "main", "ref_type": "branch"}, True),
     ("main", {"ref": "main", "ref_type": "tag"}, False),
     ("refs/tags/v*", {"ref": "v2", "ref_type": "tag"}, True), ("main", {"ref": "main"}, False),
     ("release/*", {"ref": "release/1/2", "ref_type": "branch"}, True),
     ("release/*", {"ref": "releases/1", "ref_type": "branch"}, False)],
)  # fmt: skip
def test_jobs_of_gitlab(
    cast: Any, issuer: Issuer, wanted: Wanted, ref: str, of: dict[str, str], taken: bool
) -> None:
    """Its claims have other names; a ref is whole with its kind."""
    actions.add(cast["alice"], cast.team, replace(wanted, kind="gitlab", repository="acme/deep/app", ref=ref))
    about = {"project_path": "acme/deep/app", "project_id": "4", "pipeline_id": "5", "ref_type": None, **of}
    answer = exchange(issuer.token(repository=None, repository_id=None, run_id=None, **about))
    assert answer.status_code == (201 if taken else 403)


# ---- what is not


def unsigned(issuer: Issuer, claims: dict[str, Any] | None = None, **header: Any) -> str:
    """A token whose header is the attacker's, without a signature."""
    parts = [{"typ": "JWT", "kid": "one", **header}, claims or issuer.claims()]
    return ".".join(base64.urlsafe_b64encode(json.dumps(one).encode()).decode().rstrip("=") for one in parts)


def none_alg(issuer: Issuer) -> str:
    return unsigned(issuer, alg="none") + "."


def odd_issuer(issuer: Issuer) -> str:
    return unsigned(issuer, issuer.claims(iss=[issuer.url]), alg="RS256") + ".eA"


def by_public_key(issuer: Issuer) -> str:
    """HS256, with the issuer's public key as the secret."""
    text = unsigned(issuer, alg="HS256")
    made = hmac.new(pem(RSA), text.encode(), hashlib.sha256).digest()
    return f"{text}.{base64.urlsafe_b64encode(made).decode().rstrip('=')}"


def own_key_inside(issuer: Issuer) -> str:
    own = jwk(OTHER_RSA, "one", "RS256")
    return jwt.encode(issuer.claims(), OTHER_RSA, "RS256", headers={"kid": "one", "jwk": own})


def own_key_elsewhere(issuer: Issuer) -> str:
    about = {"kid": "one", "jku": f"{issuer.url}/evil", "x5u": f"{issuer.url}/evil"}
    return jwt.encode(issuer.claims(), OTHER_RSA, "RS256", headers=about)


def changed(issuer: Issuer) -> str:
    head, _, sign = issuer.token().split(".")
    return f"{head}.{unsigned(issuer).split('.')[1]}.{sign}"


def claim(**more: Any) -> Callable[[Issuer], str]:
    return lambda issuer: issuer.token(**more)


NOW = int(time.time())
ATTACKS: dict[str, tuple[Callable[[Issuer], Any], int, str]] = {
    "another issuer": (claim(iss="https://token.actions.githubusercontent.com"), 403, "web.oidc_rule"),
    "no issuer": (claim(iss=None), 403, "web.oidc_rule"),
    "an issuer that is no text": (odd_issuer, 403, "web.oidc_rule"),
    "an issuer of half a sign": (claim(iss="https://\ud800"), 403, "web.oidc_rule"),
    "an issuer with a zero byte": (claim(iss="https://a\0"), 403, "web.oidc_rule"),
    "an audience of half a sign": (claim(aud="\ud800"), 403, "web.oidc_rule"),
    "an id of half a sign": (claim(jti="\ud800"), 403, "web.oidc_used"),
    "another audience": (claim(aud="https://elsewhere.example"), 403, "web.oidc_rule"),
    "several audiences": (claim(aud=[AUDIENCE, "https://elsewhere.example"]), 403, "web.oidc_rule"),
    "no audience": (claim(aud=None), 401, "web.oidc_token"),
    "another ref": (claim(ref="refs/heads/mainly"), 403, "web.oidc_rule"),
    "a pull request": (claim(ref="refs/pull/1/merge"), 403, "web.oidc_rule"),
    "a tag of the name": (claim(ref="refs/tags/main"), 403, "web.oidc_rule"),
    "no ref": (claim(ref=None), 403, "web.oidc_rule"),
    "another repository": (claim(repository="acme/app2"), 403, "web.oidc_rule"),
    "another owner": (claim(repository="evil/app"), 403, "web.oidc_rule"),
    "other letters": (claim(repository="Acme/App"), 403, "web.oidc_rule"),
    "no repository": (claim(repository=None), 403, "web.oidc_rule"),
    "a repository without an id": (claim(repository_id=None), 403, "web.oidc_rule"),
    "a list of repositories": (claim(repository=["acme/app"]), 403, "web.oidc_rule"),
    "no environment": (claim(environment=None), 403, "web.oidc_rule"),
    "another environment": (claim(environment="test"), 403, "web.oidc_rule"),
    "GitLab's names": (claim(repository=None, project_path="acme/app"), 403, "web.oidc_rule"),
    "expired": (claim(exp=NOW - 3600, iat=NOW - 7200), 401, "web.oidc_token"),
    "not yet": (claim(nbf=NOW + 3600), 401, "web.oidc_token"),
    "made later": (claim(iat=NOW + 3600, exp=NOW + 7200), 401, "web.oidc_token"),
    "without an end": (claim(exp=None), 401, "web.oidc_token"),
    "without a beginning": (claim(iat=None), 401, "web.oidc_token"),
    "for ever": (claim(exp=10**11), 401, "web.oidc_token"),
    "an end that is no number": (claim(exp="never"), 401, "web.oidc_token"),
    "an end that is a text": (claim(exp=str(NOW + 3600)), 401, "web.oidc_token"),
    "an end that never comes": (claim(exp=float("inf")), 401, "web.oidc_token"),
    "a beginning that never comes": (claim(iat=float("-inf")), 401, "web.oidc_token"),
    "without an id": (claim(jti=None), 403, "web.oidc_used"),
    "none": (none_alg, 401, "web.oidc_token"),
    "HS256 with the public key": (by_public_key, 401, "web.oidc_token"),
    "another's key": (lambda issuer: issuer.token(OTHER_RSA), 401, "web.oidc_token"),
    "a key of its own inside": (own_key_inside, 401, "web.oidc_token"),
    "a key of its own elsewhere": (own_key_elsewhere, 401, "web.oidc_token"),
    "another kind of key": (lambda issuer: issuer.token(kid="two"), 401, "web.oidc_token"),
    "an algorithm that the key is not for": (lambda issuer: issuer.token(alg="RS512"), 401, "web.oidc_token"),
    "a key that is not there": (lambda issuer: issuer.token(kid="../../one"), 401, "web.oidc_token"),
    "no key named": (lambda issuer: jwt.encode(issuer.claims(), RSA, "RS256"), 401, "web.oidc_token"),
    "changed claims": (changed, 401, "web.oidc_token"),
    "no signature": (lambda issuer: issuer.token().rpartition(".")[0] + ".", 401, "web.oidc_token"),
    "a token of ours": (lambda issuer: tokens.fresh(), 401, "web.oidc_token"),
    "nothing": (lambda issuer: "", 422, "web.request"),
    "no text": (lambda issuer: {"a": 1}, 422, "web.request"),
    "too long": (lambda issuer: "x" * 20_000, 422, "web.request"),
    "odd signs": (lambda issuer: "\u00e9.\u00e9.\u00e9", 401, "web.oidc_token"),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_what_is_not_taken(issuer: Issuer, rule: Rule, name: str) -> None:
    made, status, code = ATTACKS[name]
    token = made(issuer)
    answer = exchange(token)
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.json()
    assert answer["Content-Type"] == "application/problem+json"
    assert not Token.objects.exists() and "/evil" not in issuer.hits
    assert not token or str(token) not in answer.content.decode()


def test_a_rule_is_of_its_team(cast: Any, issuer: Issuer, rule: Rule, wanted: Wanted) -> None:
    """Not another team's, also where that has rules; and what is there and what is not look the same."""
    actions.add(cast["charlie"], cast.other_team, replace(wanted, repository="next/door", specs=()))
    token = issuer.token()
    told = [exchange(token, team) for team in ("next-door", "no-such-team")]
    assert [one.status_code for one in told] == [403, 403]
    assert told[0].json() == told[1].json()
    assert exchange(token).status_code == 201
    wrong = [exchange(issuer.token(OTHER_RSA), team) for team in ("next-door", "no-such-team")]
    assert [one.status_code for one in wrong] == [401, 401] and wrong[0].json() == wrong[1].json()


def test_an_id_token_counts_once_where_the_rule_says_so(
    cast: Any, issuer: Issuer, rule: Rule, wanted: Wanted
) -> None:
    token = issuer.token()
    assert exchange(token).status_code == 201
    again = exchange(token)
    assert (again.status_code, again.json()["code"]) == (403, "web.oidc_used")
    UsedToken.objects.update(ends_at=timezone.now() - timedelta(seconds=1))
    assert exchange(issuer.token()).status_code == 201 and UsedToken.objects.count() == 1
    actions.remove(cast["alice"], rule)
    actions.add(cast["alice"], cast.team, replace(wanted, once=False))
    token = issuer.token(jti=None)
    assert [exchange(token).status_code for _ in range(2)] == [201, 201]


def test_another_repository_that_takes_the_name_is_another(issuer: Issuer, rule: Rule) -> None:
    assert exchange(issuer.token()).status_code == 201
    assert exchange(issuer.token(repository_id="8")).status_code == 403
    assert exchange(issuer.token()).status_code == 201


def test_it_may_no_more_than_who_made_the_rule(cast: Any, issuer: Issuer, rule: Rule) -> None:
    Membership.objects.create(team=cast.team, user=cast["charlie"], role=Role.ADMIN)
    alice = Membership.objects.filter(team=cast.team, user=cast["alice"])
    answer = exchange(issuer.token())
    alice.update(role=Role.VIEWER)
    assert start(program(answer)) == 403
    refused = exchange(issuer.token())
    assert (refused.status_code, refused.json()["code"]) == (403, "web.oidc_rule")
    assert f"who made the rule '{rule.name}' may no longer do what it permits" in refused.json()["detail"]
    alice.delete()
    assert start(program(answer)) == 404
    assert exchange(issuer.token()).status_code == 403


def test_a_removed_rule_takes_its_tokens_along(cast: Any, issuer: Issuer, rule: Rule) -> None:
    client = program(exchange(issuer.token()))
    actions.remove(cast["alice"], rule)
    assert client.get("/api/v1/teams/").status_code == 401
    assert exchange(issuer.token()).status_code == 403


def test_its_tokens_are_nobodys_own(
    cast: Any, issuer: Issuer, rule: Rule, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not on the account page, not counted, gone a day after their end."""
    monkeypatch.setattr(tokens, "MOST", 1)
    answer = exchange(issuer.token())
    assert not tokens.tokens_of(cast["alice"]).exists()
    tokens.make(cast["alice"], "mine", 7)
    assert program(answer).get("/api/v1/teams/").status_code == 200
    assert not Event.objects.filter(action="token.first_used").exists()
    Token.objects.filter(rule=rule).update(ends_at=timezone.now() - timedelta(days=2))
    exchange(issuer.token())
    assert Token.objects.filter(rule=rule).count() == 1


def test_wrong_ones_are_held_up(issuer: Issuer, rule: Rule, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spakweb.work.teams.bearer.WINDOW_S", 10**9)  # no minute ends while this runs
    found = [exchange("a.b.c").status_code for _ in range(12)]
    assert found == [401] * 10 + [429] * 2
    assert exchange(issuer.token()).status_code == 201, "right ones are let in meanwhile"


def test_only_a_post_of_json(cast: Any, issuer: Issuer, rule: Rule) -> None:
    client = Client(headers={"authorization": f"Bearer {issuer.token()}"})
    assert client.get(EXCHANGE).status_code in (401, 403, 405) and Client().get(EXCHANGE).status_code == 405
    assert Client().post(EXCHANGE, {"team": "x", "token": "y"}).status_code == 415
    assert not Token.objects.exists()


# ---- the issuer's keys


def test_keys_are_asked_for_once(issuer: Issuer, rule: Rule) -> None:
    for _ in range(3):
        assert exchange(issuer.token()).status_code == 201
    assert issuer.hits == [keys.WELL_KNOWN, "/keys"]


def test_a_key_that_is_not_known_leads_to_one_more_look(
    issuer: Issuer, rule: Rule, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.monotonic()
    monkeypatch.setattr(keys.time, "monotonic", lambda: now)
    assert exchange(issuer.token()).status_code == 201
    issuer.publish(jwk(OTHER_RSA, "new", "RS256"))
    for _ in range(3):
        assert exchange(issuer.token(OTHER_RSA, kid="new")).status_code == 401
    assert len(issuer.hits) == 2, "not more often than once a minute"
    now += keys.AGAIN_S
    assert exchange(issuer.token(OTHER_RSA, kid="new")).status_code == 201
    assert exchange(issuer.token()).status_code == 401, "the old key is gone"
    assert len(issuer.hits) == 4
    now += keys.KEPT_S
    assert exchange(issuer.token(OTHER_RSA, kid="new")).status_code == 201
    assert len(issuer.hits) == 6, "after an hour they are asked for again"


def test_an_issuer_may_lead_nowhere_inside(issuer: Issuer, rule: Rule, settings: Any) -> None:
    """The address is judged when it is used, by what its name stands for then."""
    settings.OIDC_REACH = ["public"]
    answer = exchange(issuer.token())
    assert (answer.status_code, answer.json()["code"], issuer.hits) == (503, "web.oidc_issuer", [])
    assert "loopback" in answer.json()["detail"]


BAD_ISSUERS: dict[str, Callable[[Issuer], dict[str, tuple[int, Any]]]] = {
    "away": lambda issuer: {},
    "sends on": lambda issuer: {keys.WELL_KNOWN: (302, {})},
    "another issuer": lambda issuer: {keys.WELL_KNOWN: (200, {"issuer": "https://x.example"})},
    "keys elsewhere": lambda issuer: {
        keys.WELL_KNOWN: (200, {"issuer": issuer.url, "jwks_uri": "http://evil.example/keys"})
    },
    "keys on another port": lambda issuer: {
        keys.WELL_KNOWN: (200, {"issuer": issuer.url, "jwks_uri": "http://issuer.example:1/keys"})
    },
    "no keys": lambda issuer: {keys.WELL_KNOWN: (200, {"issuer": issuer.url})},
    "no JSON": lambda issuer: {keys.WELL_KNOWN: (200, b"<html>")},
    "deep": lambda issuer: {keys.WELL_KNOWN: (200, b"[" * 100_000)},
    "huge": lambda issuer: {keys.WELL_KNOWN: (200, b" " * (1 << 20))},
}


@pytest.mark.parametrize("name", BAD_ISSUERS)
def test_an_issuer_that_answers_badly(issuer: Issuer, rule: Rule, name: str) -> None:
    issuer.answers = BAD_ISSUERS[name](issuer)
    for _ in range(2):
        answer = exchange(issuer.token())
        assert (answer.status_code, answer.json()["code"]) == (503, "web.oidc_issuer")
    assert issuer.hits == [keys.WELL_KNOWN], "it is not asked again at once"


def test_keys_that_are_no_keys(issuer: Issuer, rule: Rule) -> None:
    """Secret ones, short ones, ones for another use, and rubbish."""
    secret = base64.urlsafe_b64encode(b"x" * 32).decode()
    issuer.publish(
        {"kid": "oct", "kty": "oct", "k": secret, "alg": "HS256"}, jwk(SHORT_RSA, "short", "RS256"),
        {**jwk(RSA, "enc", "RS256"), "use": "enc"}, {"kid": "odd", "kty": "RSA", "n": "!", "e": 3},
        "text", {},
    )  # type: ignore[arg-type]  # fmt: skip
    with pytest.warns(UserWarning):  # the library's, of a short key
        short = issuer.token(SHORT_RSA, kid="short")
    hs = jwt.encode(issuer.claims(), "x" * 32, "HS256", headers={"kid": "oct"})
    for token in (hs, short, issuer.token(kid="enc"), issuer.token(kid="odd")):
        assert exchange(token).json()["code"] == "web.oidc_token"


# ---- rules


def test_an_admin_adds_and_removes_a_rule(cast: Any, issuer: Issuer) -> None:
    client, path = cast.client("alice"), f"/t/{cast.team.slug}/ci/"
    page = client.get(path).content.decode()
    assert "No rules yet" in page and 'value="http://testserver"' in page
    form = {
        "name": "nightly", "kind": "gitlab", "repository": "acme/app", "ref": "main", "audience": AUDIENCE,
        "issuer": issuer.url, "scope": ["start", "answer"], "specs": "small", "minutes": "15", "once": "on",
    }  # fmt: skip
    assert client.post(path + "new/", form).status_code == 302
    made = Rule.objects.get()
    assert (made.ref, made.scopes, made.specs, made.once) == (
        "refs/heads/main", ["look", "start", "answer"], [cast.spec.pk], True,
    )  # fmt: skip
    page = client.get(path).content.decode()
    assert "acme/app" in page and "only small" in page and "never used" in page
    again = client.post(path + "new/", form)
    assert (again.status_code, again.context["why"].code) == (409, "web.name")
    assert 'value="acme/app"' in again.content.decode()
    assert client.post(f"{path}{made.pk}/remove/").status_code == 302 and not Rule.objects.exists()
    assert list(Event.objects.filter(action__startswith="oidc").values_list("action", flat=True)) == [
        "oidc.removed",
        "oidc.made",
    ]


@pytest.mark.parametrize(
    ("field", "value", "code"),
    [
        ("name", "\0", "web.name"),
        *(("ref", odd, "git.refs") for odd in ("", "a..b", "a:b")),
        *(("ref", odd, "web.oidc_rule_text") for odd in ("a b", "*a*b*c*d*")),
        *(("repository", odd, "web.oidc_rule_text") for odd in ("", "acme/*", "x" * 201)),
        ("environment", "a\nb", "web.oidc_rule_text"),
        ("audience", " ", "web.oidc_rule_text"),
        ("kind", "jenkins", "web.oidc_rule_text"),
        ("minutes", 7, "web.oidc_rule_text"),
        *(
            ("issuer", odd, "web.oidc_rule_text")
            for odd in ("https://127.0.0.1/", "ftp://a.example", "https://a.example/?x", "issuer")
        ),
        ("scopes", ("approve",), "web.token_scopes"),
        ("specs", ("none",), "web.token_specs"),
    ],
)
def test_what_is_no_rule(cast: Any, wanted: Wanted, field: str, value: Any, code: str) -> None:
    with pytest.raises(Refused) as why:
        actions.add(cast["alice"], cast.team, replace(wanted, **{field: value}))
    assert why.value.code == code and not Rule.objects.exists()


def test_plain_http_needs_the_operator_and_rules_an_admin(
    cast: Any, wanted: Wanted, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(PermissionDenied):
        actions.add(cast["rita"], cast.team, wanted)
    monkeypatch.setattr(actions, "MOST", 0)
    with pytest.raises(Refused, match="at most"):
        actions.add(cast["alice"], cast.team, wanted)
    settings.OIDC_REACH = ["public"]
    with pytest.raises(Refused, match="https"):
        actions.add(cast["alice"], cast.team, wanted)
