"""What a patch newly permits, judged on recorded actions, and who has to approve it then."""

from __future__ import annotations

from typing import Any

import pytest

from bench.scripted import exited, ledger
from jobs_kit import do
from run_rows_kit import rows
from spakweb.store.reviews.models import Check, Patch
from spakweb.store.runs.models import Run
from spakweb.store.specs.models import Spec
from spakweb.work.reviews import actions, checks, rules
from spakweb.work.specs.actions import create_spec

BASE = """AGENT Looks LEVEL 4 {
  POLICY \"\"\"forbidden(A) :- in_task("look"), tool(A, /list_files).\"\"\"
  START -> look
  TASK look {
    step one: tool.read_file { path: "a.txt" }
    step two: tool.list_files { path: "." }
  }
}
"""
ADMIN = "an admin to approve it, since "


@pytest.fixture
def spec(cast: Any) -> Spec:
    """One with a run that asked for what its POLICY denies."""
    spec = create_spec(cast["alice"], cast.team, "looks", BASE)
    records = ledger(BASE, lambda effect, count: exited(0, "a"))
    run = Run.objects.create(team=cast.team, version=spec.head, key="ran", name="kit", state="refused")
    Run.objects.filter(pk=run.pk).update(count=len(records), head=rows(run, records))
    return spec


def needs(cast: Any, spec: Spec, text: str) -> tuple[list[str], str]:
    """What the patch needs with a reviewer's approval, and what its check of the actions says."""
    patch = actions.propose(cast["bob"], spec, text, 1, "Look")
    do(checks.CHECK, patch.latest.pk)
    actions.judge(cast["rita"], patch, 1, True)
    found = rules.missing(Patch.objects.get(pk=patch.pk))
    return found, patch.latest.checks.get(name="actions").words


def test_a_task_that_is_renamed_out_of_reach_of_a_rule_needs_an_admin(cast: Any, spec: Spec) -> None:
    """No rule of the POLICY changes, so that the list of changes widens nothing."""
    text = BASE.replace("-> look", "-> peek").replace("TASK look", "TASK peek")
    found, words = needs(cast, spec, text)
    assert found == [f"{ADMIN}it permits actions that were denied"]
    assert words == "2 recorded actions of 1 run: 1 newly permitted, 0 newly denied, 0 not judged."


def test_a_denied_action_that_cannot_be_judged_is_to_be_looked_at(cast: Any, spec: Spec) -> None:
    """The new rule asks of the world what the run did not look at."""
    text = BASE.replace(
        "tool(A, /list_files)", "tool(A, /list_files), uses_path(A, _, _, F), test_coverage(F)"
    )
    found, words = needs(cast, spec, text)
    assert words.endswith("1 not judged, 1 of which the base denies.")
    check = spec.patches.get().latest.checks.get(name="actions")
    assert (check.state, check.result["unknown"][0]["name"]) == (Check.State.LOOK, "list_files")
    assert found == [f"{ADMIN}it widens what the spec may do"]


def test_a_denied_action_that_the_patch_takes_out_permits_nothing(cast: Any, spec: Spec) -> None:
    found, words = needs(cast, spec, BASE.replace('    step two: tool.list_files { path: "." }\n', ""))
    assert words.endswith("1 not judged.") and found == [f"{ADMIN}it widens what the spec may do"], (
        "a step that decides its task is gone; its action permits nothing"
    )


def test_what_stays_denied_needs_none(cast: Any, spec: Spec) -> None:
    assert needs(cast, spec, BASE.replace('"a.txt"', '"b.txt"'))[0] == []
