"""What runs that really ran say of a patch: actions newly permitted or denied, and how they would end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.urls import reverse

from jobs_kit import do
from spakweb.store.reviews.models import Check, Patch
from spakweb.store.runs.models import Run
from spakweb.work.reviews import actions, checks, rules
from spakweb.work.reviews.protection import protect

OPEN = """\
AGENT Notes LEVEL 2 {
  START -> note
  TASK note {
    step write: tool.write_file { path: "note.txt" content: "one line" }
    success: file_exists("note.txt")
  }
}
"""
SHUT = OPEN.replace("  START", '  POLICY """forbidden(A) :- tool(A, /write_file)."""\n  START')


def judged(cast: Any, run: Run, text: str) -> tuple[Patch, dict[str, Check]]:
    spec = run.version.spec
    patch = actions.propose(cast["bob"], spec, text, 1, "Another policy")
    do(checks.CHECK, patch.latest.pk)
    return patch, {one.name: one for one in patch.latest.checks.all()}


def test_a_patch_that_forbids_what_runs_did(ran: Callable[..., Run], cast: Any) -> None:
    run = ran(OPEN)
    assert run.state == "succeeded"
    patch, found = judged(cast, run, SHUT)
    assert found["actions"].state == "passed"
    (change,) = found["actions"].result["denied"]
    assert (change["run"], change["name"], change["newly"]) == (run.key, "write_file", "denied")
    assert "forbidden" in change["proof"] and found["actions"].result["permitted"] == []
    assert found["replay"].state == "failed" and found["replay"].result["ended"]["worse"] == 1
    protect(cast["alice"], run.version.spec, 1, required=["replay"])
    assert "a check to pass: recorded runs under the patch" in rules.missing(Patch.objects.get(pk=patch.pk))
    args = [cast.team.slug, patch.spec.slug, patch.number]
    body = cast.client("bob").get(reverse("spak-patch", args=args)).content.decode()
    assert "newly denied" in body and run.key in body and "Proof of record" in body
    assert "would end refused" in body


def test_a_patch_that_permits_what_was_denied_needs_an_admin(ran: Callable[..., Run], cast: Any) -> None:
    run = ran(SHUT)
    assert run.state == "refused"
    patch, found = judged(cast, run, OPEN)
    assert found["actions"].state == "look"
    assert [one["name"] for one in found["actions"].result["permitted"]] == ["write_file"]
    actions.judge(cast["rita"], patch, 1, True)
    assert any(need.startswith("an admin to approve it") for need in rules.missing(patch))
    actions.judge(cast["alice"], patch, 1, True)
    assert rules.missing(patch) == []


def test_a_run_that_ends_alike_counts_as_covered(ran: Callable[..., Run], cast: Any) -> None:
    run = ran(OPEN)
    _, found = judged(cast, run, OPEN.replace("TASK note {", 'TASK note {\n    GOAL "Keep a note."'))
    result = found["replay"].result
    assert (found["replay"].state, result["coverage"], result["same"]) == ("passed", 1.0, 1)
    assert found["actions"].words.startswith("2 recorded actions of 1 run: 0 newly permitted")
