"""Flips by task: kept by the replay's check and shown on the page of a patch."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.urls import reverse

from bench.scripted import exited, ledger
from jobs_kit import do
from run_rows_kit import rows
from spak.kernel.state import Effect
from spakweb.face.reviews import page
from spakweb.store.reviews.models import Check, Patch
from spakweb.store.runs.models import Run
from spakweb.store.specs.models import SpecVersion
from spakweb.work.reviews import actions, checks
from spakweb.work.specs.actions import create_spec

BASE = """AGENT Mends LEVEL 4 {
  START -> look
  TASK look {
    step one: tool.read_file { path: "b.txt", on_fail: "stop" }
    NEXT { success -> report, fail -> mend }
  }

  TASK mend {
    step again: tool.list_files { path: "tests" }
    NEXT { success -> report }
  }

  TASK report { step end: tool.list_files { path: "." } }
}
"""
MANY = 7


def ran(cast: Any, version: SpecVersion, key: str, breaks: bool) -> Run:
    """A recorded run whose first step failed, or did not."""

    def script(effect: Effect, count: int) -> Any:
        return exited(int(breaks and effect.name == "read_file"), f"of {effect.args}")

    records = ledger(version.text, script)
    run = Run.objects.create(team=cast.team, version=version, key=key, name="kit", state="succeeded")
    Run.objects.filter(pk=run.pk).update(count=len(records), head=rows(run, records))
    return run


@pytest.fixture
def patch(cast: Any) -> Patch:
    """A failure counts no more under it; seven runs failed there and one did not."""
    spec = create_spec(cast["alice"], cast.team, "mends", BASE)
    for number in range(MANY):
        ran(cast, spec.head, f"broke{number}", breaks=True)
    ran(cast, spec.head, "went", breaks=False)
    text = BASE.replace('on_fail: "stop"', 'on_fail: "continue"')
    made = actions.propose(cast["bob"], spec, text, 1, "Go on")
    do(checks.CHECK, made.latest.pk)
    return made


def body(cast: Any, patch: Patch) -> str:
    where = reverse("spak-patch", args=[cast.team.slug, patch.spec.slug, patch.number])
    return cast.client("rita").get(where).content.decode()


def test_the_page_has_flips_by_task_with_links_to_the_runs(cast: Any, patch: Patch) -> None:
    shown = body(cast, patch)
    table = shown[shown.index("Flips by task, scrolls") :].split("</table>")[0]
    text = re.sub(r"<[^>]*>", " ", table[table.index("<tbody>") :])
    keys = [f"broke{number}" for number in reversed(range(MANY))]
    some = " , ".join(keys[: page.RUNS_OF])
    assert " ".join(text.split()) == (
        f"look {MANY} 1 0 fail to mend → success to report, in 7 runs: {some} and 2 more "
        f"mend {MANY} 1 0 success to report → never entered, in 7 runs: {some} and 2 more"
    )
    assert f'<a href="{reverse("spak-run", args=[cast.team.slug, "broke6"])}">broke6</a>' in table
    assert "No flip of <code>report</code>." in shown and '<th scope="row"><code>look</code>' in table


def test_unknown_runs_are_said_and_are_no_flips(cast: Any, patch: Patch) -> None:
    text = BASE.replace('path: "tests"', 'path: "docs"')
    actions.revise(cast["bob"], patch, 1, text)
    do(checks.CHECK, patch.latest.pk)
    shown = body(cast, Patch.objects.get(pk=patch.pk))
    unknown = f"(unknown in {MANY} of {MANY + 1} runs)"
    assert "Flips by task" not in shown
    assert (
        f"No task flips: <code>look</code>, <code>mend</code> {unknown}, <code>report</code> {unknown}."
    ) in shown


def test_a_result_of_before_shows_without_them(cast: Any, patch: Patch) -> None:
    row = Check.objects.get(revision=patch.latest, name="replay")
    row.result = {name: value for name, value in row.result.items() if name not in ("by_task", "tasks")}
    row.save()
    shown = body(cast, patch)
    assert "Recorded runs under the patch" in shown and "Flips by task" not in shown
    assert "No task flips" not in shown


def test_long_lists_are_cut_and_say_so() -> None:
    def row(number: int, flips: int, ways: int) -> dict[str, Any]:
        way = {"before": ["success", "b", ""], "after": ["", "", "budget.steps"], "count": 2, "runs": ["a"]}
        told = {"same": 1, "flips": flips, "unknown": 0, "ways": [way] * ways}
        return {"task": f"t{number}", "was": "", "change": "", **told}

    many = [row(number, 10, 5) for number in range(30)] + [row(number, 0, 0) for number in range(100)]
    found = page._flips({"by_task": many, "tasks": 140})
    assert (len(found["rows"]), len(found["calm"]), found["more"]) == (page.FLIPPED, page.CALM, 60)
    first = found["rows"][0]
    assert (len(first["ways"]), first["otherwise"], first["ways"][0]["more"]) == (page.FLIPS_OF, 4, 1)
    assert first["ways"][0]["after"] == "stopped, the run ended: budget.steps"
