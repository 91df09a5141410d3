"""How runs end, told as it was: what nothing checked, what was allowed to fail, why it failed, and from where
it can be tried again."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.urls import reverse

from spak import data
from spak.kernel.outcomes import ROLLED_BACK
from spak.runner.views import refusals
from spakweb.face.runs import dashboards, run_parts, timeline
from spakweb.ground import clock
from spakweb.store.hooks.models import Delivery, Webhook
from spakweb.store.ledger import export, projection
from spakweb.store.ledger.store import DatabaseLedgers
from spakweb.store.runs import endings
from spakweb.store.runs.models import Run
from spakweb.work.hooks import deliver
from spakweb.work.runs import actions, fork_points
from spakweb.work.specs.actions import create_spec
from spakweb.work.worker import execute

pytestmark = pytest.mark.django_db(transaction=True)

Ran = Callable[..., Run]
ERRORS = (Path(__file__).resolve().parents[3] / "docs" / "errors.md").read_text()
UNCHECKED = 'task Make {\n  step one: tool.write_file { path: "a.txt" content: "a" }\n}\n'
ALLOWED = """\
task Look {
  step bad: tool.run { cmd: "ls missing" on_fail: continue }
  step good: tool.write_file { path: "a.txt" content: "a" }
  success: file_exists("a.txt")
}
"""
OWN_TESTS = """\
AGENT Own LEVEL 2 {
  START -> mend
  TASK mend {
    step test: tool.write_file { path: "tests/test_a.txt" content: "a" }
    VALIDATOR Command { cmd: "cat tests/test_a.txt" }
  }
}
"""
SLIPPED = """\
AGENT Slips LEVEL 2 {
  START -> first
  TASK first {
    step bad: tool.run { cmd: "ls missing" on_fail: continue }
    step good: tool.write_file { path: "a.txt" content: "a" }
    success: file_exists("a.txt")
    NEXT { success -> second }
  }
  TASK second {
    step make: tool.write_file { path: "b.txt" content: "b" }
    success: file_exists("b.txt")
    NEXT { success -> third }
  }
  TASK third {
    step last: tool.run { cmd: "ls missing" on_fail: continue }
    NEXT { success -> fourth }
  }
  TASK fourth { success: file_exists("b.txt") }
}
"""
UNMET = """\
task Look {
  step good: tool.write_file { path: "a.txt" content: "a" }
  success: file_exists("a.txt") and file_exists("b.txt")
}
"""
TWO = """\
AGENT Two LEVEL 2 {
  START -> first
  TASK first {
    step make: tool.write_file { path: "a.txt" content: "a" }
    NEXT { success -> second }
  }
  TASK second {
    step hear: llm.query { prompt: "A word." output_var: word }
    step keep: tool.write_file { path: "word.txt" content: "{{word}}" }
    success: file_contains("word.txt", "right")
  }
}
"""
WRONG = "--- a/slug.py\n+++ b/slug.py\n@@ -1,1 +1,1 @@\n-nothing\n+x{}\n"


def page(cast: Any, run: Run, query: str = "") -> str:
    address = reverse("spak-run", args=[run.team.slug, run.key])
    return cast.client("alice").get(f"{address}{query}").content.decode()


def answer(cast: Any, run: Run, text: str) -> Run:
    actions.ask(cast["alice"], run, "answer", run.summary["waiting"]["id"], text=text)
    execute.advance(run.key)
    run.refresh_from_db()
    return run


def test_what_nothing_checked_is_no_success_of_a_spec(cast: Any, ran: Ran) -> None:
    unchecked, checked = ran(UNCHECKED), ran(ALLOWED)
    assert (unchecked.state, checked.state) == ("succeeded", "succeeded")
    assert "Nothing checked the result" in run_parts.outcome(unchecked)
    assert run_parts.outcome(checked) == "Succeeded in Look."
    assert 'class="outcome unchecked"' in page(cast, unchecked)
    found = {one.name: one for one in dashboards.health(cast.team)}
    one = found[unchecked.name]
    assert (one.count, one.succeeded, one.unchecked, one.rate) == (1, 0, 1, None)
    assert (found[checked.name].succeeded, found[checked.name].rate) == (1, 1.0)
    home = cast.client("alice").get(reverse("spak-team-home", args=[cast.team.slug])).content.decode()
    assert "1 more run ended unchecked" in home
    runs = cast.client("alice").get(reverse("spak-run-list", args=[cast.team.slug])).content.decode()
    assert runs.count("Completed, unchecked</span>") == 1 and runs.count('class="pill succeeded"') == 1


def test_a_success_that_nothing_checked_has_a_word_of_its_own(cast: Any, ran: Ran) -> None:
    unchecked, checked, failed = ran(UNCHECKED), ran(ALLOWED), ran(UNMET)
    text = page(cast, unchecked)
    head = text[text.index('id="run-head"') : text.index('id="run-figures"')]
    assert "Completed, unchecked" in head and "Succeeded" not in head and 'data-state="succeeded"' in head
    assert f"{unchecked.name} unchecked · SPAK" in text
    address = reverse("spak-run-compare", args=[cast.team.slug])
    both = cast.client("alice").get(f"{address}?one={unchecked.key}&two={checked.key}").content.decode()
    assert both.count('class="pill unchecked"') == both.count('class="pill succeeded"') == 1
    rows = reverse("spak-api-runs", args=[cast.team.slug])

    def listed(query: str) -> dict[str, Any]:
        return {one["key"]: one["checked"] for one in cast.client("alice").get(rows + query).json()["runs"]}

    assert listed("") == {unchecked.key: False, checked.key: True, failed.key: None}
    assert listed("?state=unchecked") == {unchecked.key: False}
    assert listed("?state=succeeded") == {checked.key: True}
    Run.objects.filter(pk=unchecked.pk).update(summary={})  # of a run projected before nobody knows
    assert listed("?state=succeeded") == {checked.key: True, unchecked.key: None}


def test_a_success_by_its_own_tests_has_the_word_and_the_paths(cast: Any, ran: Ran) -> None:
    own, checked = ran(OWN_TESTS), ran(ALLOWED)
    assert own.state == "succeeded" and own.own_tests == ["tests/test_a.txt"]
    assert "Succeeded in mend, by its own tests: its check fails without tests/test_a.txt." in page(cast, own)
    client = cast.client("alice")
    runs = client.get(reverse("spak-run-list", args=[cast.team.slug])).content.decode()
    assert runs.count("Succeeded, by its own tests</span>") == 1
    assert runs.count('class="pill succeeded"') == runs.count('class="pill own-tests"') == 1
    address = reverse("spak-api-run", args=[cast.team.slug, own.key])
    assert client.get(address).json()["by_own_tests"] == ["tests/test_a.txt"]
    junit = client.get(reverse("spak-api-junit", args=[cast.team.slug, own.key])).content.decode()
    assert "succeeded, by its own tests: its check fails without tests/test_a.txt" in junit
    assert 'failures="0"' in junit
    assert "succeeded, by its own tests" in export.as_report(own).content.decode()
    rows = reverse("spak-api-runs", args=[cast.team.slug])

    def listed(query: str) -> dict[str, Any]:
        return {one["key"]: one["by_own_tests"] for one in client.get(rows + query).json()["runs"]}

    assert listed("?state=own-tests") == {own.key: ["tests/test_a.txt"]}
    assert listed("?state=succeeded") == {checked.key: []}
    delivery = Delivery(webhook=Webhook(team=own.team), run=own, event="succeeded", reason="", at=own.made_at)
    assert deliver.payload(delivery)["data"]["by_own_tests"] == ["tests/test_a.txt"]
    before = dict(own.summary)
    projection.rebuild(own, DatabaseLedgers().reader(own.key).read())
    own.refresh_from_db()
    assert own.summary == before


def test_a_step_that_was_allowed_to_fail_is_shown_so(cast: Any, ran: Ran) -> None:
    run = ran(ALLOWED)
    bars = {bar.step: (bar.state, bar.exit) for bar in timeline.bars_of(run)}
    assert bars["bad"][0] == "allowed" and bars["bad"][1] != 0
    assert bars["good"] == ("succeeded", 0)
    text = page(cast, run)
    assert f"Exit {bars['bad'][1]}, and went on" in text and 'class="bar allowed"' in text
    assert "1 step failed and went on" in text


def test_places_of_the_scale_differ_after_minutes_too() -> None:
    for idle in (66_000, 3_725_000):
        bars = [timeline.Bar(1, "t", "a", 0, 360), timeline.Bar(2, "t", "b", idle, idle + 360)]
        labels = [label for _, label in timeline.Axis(bars).ticks()]
        assert len(labels) > 3 and len(set(labels)) == len(labels), labels
    assert "1 h 2 min 5.1 s" in labels


def test_nodes_and_edges_show_a_failure_that_was_allowed(cast: Any, ran: Ran) -> None:
    """A node is green where a later step made its failure good."""
    run = ran(SLIPPED)
    live = run_parts.live(run)
    assert live["nodes"] == {
        "first": ["done", 1, 0, 0, 1],
        "second": ["done", 1, 0, 0, 0],
        "third": ["allowed", 1, 0, 0, 1],
        "fourth": ["done", 1, 0, 0, 0],
    }
    assert live["edges"] == [
        ["first", "success", "second", 1, 1],
        ["second", "success", "third", 1, 0],
        ["third", "success", "fourth", 1, 1],
    ]
    assert "success to second 1×, 1 after a step failed and went on" in page(cast, run)
    projection.rebuild(run, DatabaseLedgers().reader(run.key).read(0))
    assert run_parts.live(run) == live


def test_a_failure_says_what_did_not_hold_with_its_record(cast: Any, ran: Ran) -> None:
    run = ran(UNMET)
    said = run_parts.outcome(run)
    seq = re.search(r"record (\d+)", said)[1]  # type: ignore[index]
    why = 'the success conditions do not hold (file_exists("b.txt") does not hold)'
    assert said == f"Failed in Look: {why}: record {seq}."
    assert f'?tab=records&amp;seq={seq}#record">{seq}</a>' in page(cast, run)
    assert run.reason.startswith("run.success_unmet") and "run.success_unmet" in page(cast, run)


def test_patches_that_did_not_fit_are_named_and_no_knob(cast: Any, ground: None) -> None:
    text = (data.path("specs/examples") / "build_feature.spak").read_text()
    text = text.replace('VALIDATOR PyTest { paths: ["tests/"], conftest: false, min_tests: 4 }', "")
    text = text.replace('cmd: "pytest tests/ -q"', 'cmd: "ls missing"')
    run = actions.start(
        cast["alice"], create_spec(cast["alice"], cast.team, "build_feature", text), mode="stepwise"
    )
    execute.advance(run.key)
    run.refresh_from_db()
    while run.state == "waiting":
        run = answer(cast, run, WRONG.format(run.count))
    said = run_parts.outcome(run)
    assert re.search(r"\d patches did not fit: records [\d, ]+\. The last one: .*slug\.py", said), said
    assert "RETRIES" not in said and "budget.retries" not in said
    shown = page(cast, run)
    assert "What would let it continue: RETRIES" in shown


def test_a_failed_run_is_tried_again_from_its_question_and_from_its_task(cast: Any, ran: Ran) -> None:
    run = answer(cast, ran(TWO, mode="stepwise"), "wrong")
    assert run.state in ("failed", "refused")
    asked, task = fork_points.points(run)
    assert (asked["word"], task["word"]) == ("From the last question", "From this task")
    text = page(cast, run)
    for item in (asked, task):
        assert item["text"] in text and f'name="at" value="{item["at"]}"' in text
    address = reverse("spak-run-fork-go", args=[run.team.slug, run.key])
    assert [one.key for one, _ in dashboards.home(cast.team)["went_wrong"]] == [run.key]
    for item in (asked, task):
        cast.client("alice").post(address, {"at": item["at"]})
        again = Run.objects.latest("pk")
        assert again.parent == run
        execute.advance(again.key)
        again.refresh_from_db()
        assert again.state == "waiting" and again.summary["waiting"]["step"] == "hear"
        assert answer(cast, again, "right").state == "succeeded"
    assert dashboards.home(cast.team)["went_wrong"] == []
    run.refresh_from_db()
    assert run.state in ("failed", "refused")


def test_a_fork_opens_where_something_would_execute(cast: Any, ran: Ran) -> None:
    run = ran(ALLOWED)
    address = reverse("spak-run-fork", args=[run.team.slug, run.key])
    found = cast.client("alice").get(address)
    text = found.content.decode()
    assert (found.context["next"].task, found.context["next"].step) == ("Look", "good")  # not the check
    assert "Everything from" in text
    assert "Nothing: everything the parent did" not in text
    assert found.context["at"] == fork_points.last_effect(run) < run.count
    broken = ran("task Broken {\n  step a: tool.nothing { }\n}\n")
    assert fork_points.points(broken) == [] and fork_points.last_effect(broken) == broken.count


def test_compare_is_a_button_with_a_name(cast: Any, ran: Ran) -> None:
    text = page(cast, ran())
    head = text[text.index('id="run-head"') : text.index('id="run-outcome"')]
    assert re.search(r'<a class="button" href="[^"]*compare/\?one=[^"]*">.*?Compare</a>', head)


def test_every_code_that_ends_a_run_has_words() -> None:
    section = ERRORS[ERRORS.index("## Runs") : ERRORS.index("## Policies")]
    codes = re.findall(r"^- `([a-z]+\.\w+)`", section, re.MULTILINE)
    assert len(codes) > 25
    assert [code for code in codes if not endings.words(code)] == []
    own = [code for code in codes if code.partition(".")[0] in ("run", "budget", "policy", "secret")]
    assert [code for code in own if code not in refusals.WORDS] == []
    for fault in ROLLED_BACK - {"invalid"}:
        assert endings.words(f"tool.{fault}") not in ("", refusals.FAMILIES["tool"]), fault
    for family in ("patch.mismatch", "tool.timeout", "validator.anything", "workspace.full", "llm.refused"):
        assert endings.words(family)
    assert endings.sentence("Failed", "t", ["other.code"], "") == "Failed in t: other.code."


def test_lists_say_the_reason_in_words(cast: Any, ran: Ran) -> None:
    ran(UNMET)
    for address in (
        reverse("spak-team-home", args=[cast.team.slug]),
        reverse("spak-run-list", args=[cast.team.slug]),
    ):
        text = cast.client("alice").get(address).content.decode().replace("<wbr>", "")
        assert "The success conditions do not hold (run.success_unmet" in text
    assert endings.in_words("free text: of a person") == "free text: of a person"


def test_record_numbers_become_links_and_nothing_else_does() -> None:
    text = endings.linked("<b> records 3, 5-7: 4 of 9, record 12", "/r/")
    assert text.count("<a ") == 4 and text.startswith("&lt;b&gt; records <a")
    assert ">4</a>" not in text and 'seq=12#record">12</a>' in text


def test_a_worker_that_died_is_told_as_such(cast: Any, ran: Ran) -> None:
    run = ran(TWO, mode="stepwise")
    Run.objects.filter(pk=run.pk).update(
        state="running", holder="host:1", lease_until=clock.now() - timedelta(seconds=30)
    )
    text = page(cast, run)
    died = r"Its worker stopped answering [3-9]\d\.0 s ago\. Another worker will continue from record"
    assert re.search(died, text)
    assert "nothing that was recorded is lost" in text and 'data-state="queued"' in text
    Run.objects.filter(pk=run.pk).update(lease_until=clock.now() + timedelta(seconds=5))
    assert "stopped answering" not in page(cast, run)
