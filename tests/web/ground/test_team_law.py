"""The law of a team: the operator's files, the rules that its admins edit, and who judges by them."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse

from spak import config
from spak.ledger.memory import MemoryBlobs
from spak.policy.law import rules_of
from spak.program import compile as compile_program
from spak.records import Authority, Kind, Record
from spak.runner.genesis import genesis
from spakweb.face.editor import services
from spakweb.face.runs.record_parts import parts
from spakweb.ground.audit.models import Event
from spakweb.ground.errors import Refused
from spakweb.ground.teams.law import law_of
from spakweb.ground.teams.models import Team
from spakweb.store.ledger.import_law import only_shown
from spakweb.store.runs.models import Run
from spakweb.store.runs.signing import approvers
from spakweb.store.specs.facts import catalog, findings
from spakweb.store.specs.team_files import TeamFiles
from spakweb.work.specs.actions import create_spec
from spakweb.work.teams.actions import set_rules

PUSH = 'task A { step s: tool.write_file { path: ".git/x" content: "" } }\n'
PERMITS = "permitted(A) :- tool(A, /write_file).\n"
OPERATOR = {"site.mg": 'forbidden(A) :- tool(A, /run), !ours(A).\nours(A) :- argument(A, "cmd", "ls").\n'}

pytestmark = pytest.mark.django_db


def codes(team: Team, text: str) -> list[str]:
    spec = TeamFiles(team, "x")
    return [item.code for item in findings(spec.whole(text), law_of(team))]


def test_rules_of_a_team_count_for_its_specs_and_no_others(cast: Any) -> None:
    assert "lang.denied" in codes(cast.team, PUSH)
    set_rules(cast["alice"], cast.team, PERMITS)
    team = Team.objects.get(pk=cast.team.pk)
    assert dict(law_of(team).team) == {"rules.mg": PERMITS}
    assert "lang.denied" not in codes(team, PUSH) and "lang.denied" in codes(cast.other_team, PUSH)


def test_the_editor_judges_by_them_at_once(cast: Any) -> None:
    def denied() -> bool:
        found = services.analyse(PUSH, TeamFiles(cast.team, "x"))
        return "lang.denied" in str(found["diagnostics"])

    assert denied()
    set_rules(cast["alice"], cast.team, PERMITS)
    assert not denied()
    set_rules(cast["alice"], cast.team, "")
    assert denied()


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("approved(A) :- tool(A, _).", "approved"),
        ("reachable_kind(/loopback).", "reachable_kind"),
        ("tool(/action, /run).", "facts"),
        ("permitted(A) :- .", "rules.mg:1"),
        ("Decl checked().", "checked"),
    ],
)
def test_rules_that_a_team_may_not_have_change_nothing(cast: Any, text: str, word: str) -> None:
    set_rules(cast["alice"], cast.team, PERMITS)
    with pytest.raises(Refused) as caught:
        set_rules(cast["alice"], cast.team, text)
    assert caught.value.code == "web.team_rules" and word in caught.value.message
    assert Team.objects.get(pk=cast.team.pk).rules == PERMITS


@pytest.mark.parametrize(("text", "code"), [("# " * 40_000, "web.team_rules"), ("# a\0b", "web.text")])
def test_rules_are_a_text_of_some_size(cast: Any, text: str, code: str) -> None:
    with pytest.raises(Refused) as caught:
        set_rules(cast["alice"], cast.team, text)
    assert caught.value.code == code


def test_the_page_keeps_what_does_not_load_and_an_event_names_each_change(cast: Any) -> None:
    client = cast.client("alice")
    page, save = (
        reverse(name, args=[cast.team.slug]) for name in ("spak-team-rules", "spak-team-rules-save")
    )
    refused = client.post(save, {"text": "checked()."})
    assert refused.status_code == 400 and "checked()." in refused.content.decode()
    assert "web.team_rules" not in refused.content.decode() and not Event.objects.filter(action="team.rules")
    assert client.post(save, {"text": PERMITS.replace("\n", "\r\n")}).status_code == 302
    assert client.post(save, {"text": PERMITS}).status_code == 302
    assert Event.objects.filter(action="team.rules", team=cast.team).count() == 1, "the same is no change"
    shown = cast.client("vera").get(page).content.decode()
    assert "permitted(A)" in shown and "Save the rules" not in shown
    assert "Save the rules" in client.get(page).content.decode()


def test_the_operators_law_counts_for_all_and_closes_what_it_rests_on(cast: Any, settings: Any) -> None:
    settings.LAW = OPERATOR
    assert "lang.denied" in codes(cast.team, 'task A { step s: tool.run { cmd: "true" } }\n')
    with pytest.raises(Refused):
        set_rules(cast["alice"], cast.team, "ours(A) :- tool(A, _).")
    text = 'AGENT A LEVEL 2 { POLICY """ours(A) :- tool(A, _).""" START -> t TASK t { '
    text += "step s: tool.list_files { } } }"
    assert "policy.closed" in codes(cast.team, text)
    page = cast.client("vera").get(reverse("spak-team-rules", args=[cast.team.slug])).content.decode()
    assert "site.mg" in page


def test_rules_that_a_later_operators_law_refuses_are_told(cast: Any, settings: Any) -> None:
    set_rules(cast["alice"], cast.team, "ours(A) :- tool(A, _). permitted(A) :- ours(A).")
    settings.LAW = OPERATOR
    with pytest.raises(Refused) as caught:
        law_of(cast.team)
    assert caught.value.code == "web.team_rules"
    client = cast.client("alice")
    assert client.get(reverse("spak-team-rules", args=[cast.team.slug])).status_code == 200
    spec = client.get(reverse("spak-spec-detail", args=[cast.team.slug, cast.spec.slug]))
    assert spec.status_code == 409 and "ours" in spec.content.decode()


def test_an_import_goes_on_only_under_the_law_of_its_team(cast: Any, settings: Any) -> None:
    spec = create_spec(cast["alice"], cast.team, "push", PUSH)

    def body(team: Team) -> dict[str, Any]:
        whole = TeamFiles.of(spec).whole(PUSH)
        program = compile_program(whole.parsed, catalog(), {})
        used, axioms = config.used(catalog(), program), rules_of(program.axioms)
        return genesis(
            whole.parsed.text, used, {}, "r", 1, {"spec": "push"},
            policy=whole.policy, axioms=axioms, keys=approvers(), law=law_of(team),
        )  # fmt: skip

    plain = body(cast.team)
    assert only_shown(cast.team, plain) == ""
    set_rules(cast["alice"], cast.team, PERMITS)
    assert "policy" in only_shown(cast.team, plain)
    assert only_shown(cast.team, body(cast.team)) == ""
    assert "policy" in only_shown(cast.team, body(cast.other_team))
    settings.LAW = OPERATOR
    assert "policy" in only_shown(cast.team, plain)


def test_the_page_of_the_first_record_shows_the_law(cast: Any) -> None:
    policy = {"constitution": {"a.mg": "x(/a)."}, "operator": OPERATOR, "team": {"rules.mg": PERMITS}}
    record = Record(Kind.GENESIS, Authority.PROPOSAL, {"rules": {"policy": policy}, "host": {}})
    shown = {part.title: part.text for part in parts(Run(), record, MemoryBlobs({}))}
    assert shown == {
        "The operator's law: site.mg": OPERATOR["site.mg"],
        "The team's rules: rules.mg": PERMITS,
    }
    for odd in ("builtin", None, {"operator": "x", "team": None}, {"team": {"a": 1}}):
        assert len(parts(Run(), record._replace(body={"rules": {"policy": odd}}), MemoryBlobs({}))) <= 1
