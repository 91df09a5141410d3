"""A team's tables of command lines: whose specs they count for, who writes them, and how runs carry them."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.urls import reverse

from spak import config
from spak.commandline import table
from spak.ledger.memory import MemoryBlobs
from spak.policy.law import rules_of
from spak.program import compile as compile_program
from spak.records import Authority, Kind, Record
from spak.runner.genesis import genesis
from spakweb.audit.models import Event
from spakweb.editor import services
from spakweb.errors import Refused
from spakweb.ledger.import_law import only_shown
from spakweb.reviews.rules import law_hash
from spakweb.runs.models import Run
from spakweb.runs.pages.record_parts import parts
from spakweb.runs.signing import approvers
from spakweb.specs.actions import create_spec
from spakweb.specs.facts import catalog, findings
from spakweb.specs.team_files import TeamFiles
from spakweb.teams.actions import set_commands
from spakweb.teams.law import law_of
from spakweb.teams.models import Team

CHECKS = 'task A { step s: tool.run { cmd: "schemacheck a.json" } }\n'
TABLE = 'version = 1\n[schemacheck]\ndoes = "reads"\noperands = "reads*"\n'

pytestmark = pytest.mark.django_db


def denied(team: Team, text: str = CHECKS) -> bool:
    spec = TeamFiles(team, "x")
    return "lang.denied" in [item.code for item in findings(spec.whole(text), law_of(team))]


def test_tables_of_a_team_count_for_its_specs_and_no_others(cast: Any) -> None:
    assert denied(cast.team)
    set_commands(cast["alice"], cast.team, TABLE)
    team = Team.objects.get(pk=cast.team.pk)
    assert dict(law_of(team).commands) == {"team/commands.toml": TABLE}
    assert not denied(team) and denied(cast.other_team)
    assert denied(team, CHECKS.replace("a.json", "--plugin x a.json")), "what it does not list"


def test_the_editor_judges_by_them_at_once(cast: Any) -> None:
    def shown() -> bool:
        return "lang.denied" in str(services.analyse(CHECKS, TeamFiles(cast.team, "x"))["diagnostics"])

    assert shown()
    set_commands(cast["alice"], cast.team, TABLE)
    assert not shown()
    set_commands(cast["alice"], cast.team, "")
    assert shown()


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("version = 1\n[git]\n", "git is in a table that ships"),
        ("version = 1\n[x]\notherwise = 'computes'\n", "`otherwise` would permit"),
        ("version = 1\n[x\n", "no TOML"),
        ("[x]\n", "no `version = 1`"),
        ("version = 1\n" + "# " * 40_000, "at most 64 KB"),
    ],
)
def test_tables_that_a_team_may_not_have_change_nothing(cast: Any, text: str, word: str) -> None:
    set_commands(cast["alice"], cast.team, TABLE)
    with pytest.raises(Refused) as caught:
        set_commands(cast["alice"], cast.team, text)
    assert caught.value.code == "web.team_commands" and word in caught.value.message
    assert Team.objects.get(pk=cast.team.pk).commands == TABLE


@pytest.mark.parametrize("who", ["vera", "bob", "charlie"])
def test_only_an_admin_writes_tables(cast: Any, who: str) -> None:
    with pytest.raises((PermissionDenied, Http404)):
        set_commands(cast[who], cast.team, TABLE)
    assert Team.objects.get(pk=cast.team.pk).commands == ""


def test_the_page_keeps_what_does_not_load_and_an_event_names_each_change(cast: Any) -> None:
    client = cast.client("alice")
    page, save = (
        reverse(name, args=[cast.team.slug]) for name in ("spak-team-rules", "spak-team-commands-save")
    )
    refused = client.post(save, {"text": "version = 1\n[git]\n"})
    assert refused.status_code == 400 and "[git]" in refused.content.decode()
    assert not Event.objects.filter(action="team.commands")
    assert client.post(save, {"text": TABLE.replace("\n", "\r\n")}).status_code == 302
    assert client.post(save, {"text": TABLE}).status_code == 302
    assert Event.objects.filter(action="team.commands", team=cast.team).count() == 1, "the same is no change"
    shown = cast.client("vera").get(page).content.decode()
    assert "[schemacheck]" in shown and "Save the tables" not in shown
    assert "Save the tables" in client.get(page).content.decode()


def test_tables_that_no_longer_load_are_refused_by_name(cast: Any) -> None:
    Team.objects.filter(pk=cast.team.pk).update(commands="version = 1\n[git]\n")
    with pytest.raises(Refused) as caught:
        law_of(Team.objects.get(pk=cast.team.pk))
    assert caught.value.code == "web.team_commands" and "git" in caught.value.message


def test_the_first_record_holds_them_and_an_import_needs_the_same(cast: Any) -> None:
    spec = create_spec(cast["alice"], cast.team, "checks", CHECKS)

    def body(team: Team) -> dict[str, Any]:
        whole = TeamFiles.of(spec).whole(CHECKS)
        program = compile_program(whole.parsed, catalog(), {})
        used, axioms = config.used(catalog(), program), rules_of(program.axioms)
        return genesis(
            whole.parsed.text, used, {}, "r", 1, {"spec": "checks"},
            policy=whole.policy, axioms=axioms, keys=approvers(), law=law_of(team),
        )  # fmt: skip

    plain, before = body(cast.team), law_hash(spec)
    assert only_shown(cast.team, plain) == "" and "commands" not in plain["rules"]["policy"]
    set_commands(cast["alice"], cast.team, TABLE)
    made = body(cast.team)
    assert made["rules"]["policy"]["commands"] == {"team/commands.toml": TABLE}
    assert made["rules"]["commands"] == table.digest({"team/commands.toml": TABLE})
    assert "policy" in only_shown(cast.team, plain) and only_shown(cast.team, made) == ""
    spec.team.refresh_from_db()
    assert law_hash(spec) != before, "reviews that were judged under other tables are stale"
    record = Record(Kind.GENESIS, Authority.PROPOSAL, made)
    shown = {part.title: part.text for part in parts(Run(), record, MemoryBlobs({}))}
    assert shown["Added tables: team/commands.toml"] == TABLE
