"""IMPORT on the platform: other specs of the team, the files of the shipped examples, and nobody else's."""

from __future__ import annotations

from typing import Any

import pytest

from spak.errors import SpecError
from spakweb.face.editor import services
from spakweb.face.editor.compiled import compiled
from spakweb.ground.teams.law import law_of
from spakweb.store.specs.facts import findings
from spakweb.store.specs.models import Spec
from spakweb.store.specs.team_files import TeamFiles, slug_of
from spakweb.work.specs.actions import create_spec, save_version

MAIN = """\
IMPORT "shared_end.spak"
AGENT Main LEVEL 1 {
  START -> look
  TASK look {
    step one: tool.list_files { path: "." }
    NEXT { success -> finish }
  }
}
"""
SHARED = 'TASK finish {\n  step two: tool.list_files { path: "." }\n}\n'


def codes(files: TeamFiles, text: str) -> list[str]:
    return [item.code for item in findings(files.whole(text), law_of(files.team)) if item.severity == "error"]


@pytest.fixture
def main(cast: Any) -> Spec:
    create_spec(cast["bob"], cast.team, "shared_end", SHARED)
    return create_spec(cast["alice"], cast.team, "main", MAIN)


def test_a_spec_of_the_team_is_imported_by_its_name(main: Spec) -> None:
    facts = main.head.facts
    assert facts["errors"] == 0
    assert facts["tasks"] == ["look", "finish"]
    assert facts["missing"] == []


def test_the_pages_of_a_spec_show_what_it_imports(cast: Any, main: Spec) -> None:
    page = cast.client("vera").get(f"/t/{cast.team.slug}/specs/main/").content.decode()
    assert "finish" in page
    assert "IMPORT was not followed" not in page


@pytest.mark.parametrize(
    ("name", "code"),
    [("next_doors.spak", "lang.import_missing"), ("sub/shared_end.spak", "lang.import_missing"),
     ("shared_end", "lang.import_missing"), (".spak", "lang.import_missing"),
     ("../../shared_end.spak", "lang.import_path"), ("/etc/passwd", "lang.import_path"),
     ("main.spak", "lang.import_cycle")],
)  # fmt: skip
def test_nothing_else_is_given(cast: Any, main: Spec, name: str, code: str) -> None:
    create_spec(cast["charlie"], cast.other_team, "next doors", SHARED)
    assert code in codes(TeamFiles(cast.team, "main"), MAIN.replace("shared_end.spak", name))


def test_an_example_has_its_files_and_a_spec_of_the_team_comes_first(cast: Any) -> None:
    files = TeamFiles(cast.team, "anything")
    assert b"AGENT" in (files.read("attention_tuner.spak") or b"")
    create_spec(cast["alice"], cast.team, "attention_tuner", SHARED)
    assert files.read("attention_tuner.spak") == SHARED.encode()


def test_the_editor_knows_what_is_imported(cast: Any, main: Spec) -> None:
    files = TeamFiles(cast.team, "main")
    seen = services.analyse(MAIN, files)
    assert seen["ok"]
    places = {node["id"]: node.get("file") for node in seen["graph"]["nodes"]}
    assert places == {"look": None, "finish": "shared_end.spak"}
    assert [item["name"] for item in seen["outline"][-1]["children"] if item["kind"] == "task"] == ["look"]
    assert set(compiled({"text": MAIN}, files)["program"]["tasks"]) == {"look", "finish"}
    op = {"op": "retarget_edge", "task": "look", "trigger": "success", "target": "look"}
    assert len(services.edit(MAIN, [op], files)["changes"]) == 1


def test_the_editor_asks_again_when_the_other_spec_was_saved(cast: Any, main: Spec) -> None:
    files = TeamFiles(cast.team, "main")
    assert services.analyse(MAIN, files)["ok"]
    save_version(cast["bob"], Spec.objects.get(slug="shared-end"), SHARED.replace("finish", "stop"), 1)
    found = services.analyse(MAIN, files)["diagnostics"]
    assert [(item["code"], item["line"]) for item in found if item["severity"] == "error"] == [
        ("lang.unknown_task", 6)
    ]


def test_what_is_wrong_in_an_imported_file_stands_at_the_import(cast: Any, main: Spec) -> None:
    files = TeamFiles(cast.team, "main")
    text = f"// one\n{MAIN}"
    save_version(cast["bob"], Spec.objects.get(slug="shared-end"), SHARED.replace("list_files", "no_such"), 1)
    found = [item for item in services.analyse(text, files)["diagnostics"] if item["severity"] == "error"]
    assert found[0]["line"] == 2
    assert found[0]["message"].startswith("shared_end.spak:2: ")
    assert text[found[0]["from"] : found[0]["to"]] == 'IMPORT "shared_end.spak"'


def test_teams_do_not_share_what_was_parsed(cast: Any, main: Spec) -> None:
    assert services.analyse(MAIN, TeamFiles(cast.team, "main"))["ok"]
    assert not services.analyse(MAIN, TeamFiles(cast.other_team, "main"))["ok"]
    assert not services.analyse(MAIN)["ok"]


def test_a_policy_that_does_not_load_is_told_in_the_editor(cast: Any) -> None:
    text = MAIN.replace('IMPORT "shared_end.spak"\n', "").replace("finish", "look")
    text = text.replace("  START", '  POLICY """\nno policy at all\n"""\n  START')
    found = services.analyse(text, TeamFiles(cast.team, "main"))["diagnostics"]
    assert ("error", 3) in {(item["severity"], item["line"]) for item in found}
    with pytest.raises(SpecError) as refused:
        compiled({"text": text})
    assert refused.value.code == "lang.invalid"


def test_a_name_and_a_slug() -> None:
    assert slug_of("shared_end") == slug_of("Shared End") == "shared-end"
