"""Problems of a team: saved in the browser and by the API, checked by a worker, taken into runs."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse
from django.utils import timezone

from jobs_kit import wanted, worked
from problem_kit import GOOD, RETURNS, changed
from spak.begin import plan
from spakweb.ground.audit.models import Event
from spakweb.ground.errors import Refused
from spakweb.ground.teams.law import law_of
from spakweb.store.specs.models import ProblemFile
from spakweb.store.specs.team_files import TeamFiles
from spakweb.work.specs import problem_files
from spakweb.work.worker import problem_checks

NAME = "problems/scale.py"
SPEC = """AGENT A LEVEL 5 {
  CONFIG { BUDGET { steps: 5 } }
  START -> t
  TASK t { VALIDATOR CpuProfiler { problem: "problems/scale.py", binary: "k.so", role: "baseline" } }
}
"""
LOOSE = changed(('tolerance = {"abs": 1e-6, "rel": 1e-6}', 'tolerance = {"abs": 100}'))
COUNTS = changed(
    ("def reference(n, k, x):", "seen = []\ndef reference(n, k, x):\n    seen.append(n)"),
    (RETURNS, "    return k * x.astype(np.float64) + len(seen)"),
)

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The keys of checks that were sent."""
    found: list[str] = []
    monkeypatch.setattr("spakweb.celery.app.send_task", lambda name, args, **more: found.append(args[1]))
    return found


def test_a_file_is_saved_checked_and_shown(
    cast: Any, sent: list[str], django_capture_on_commit_callbacks: Any
) -> None:
    client, team = cast.client("bob"), cast.team.slug
    with django_capture_on_commit_callbacks(execute=True):
        answer = client.post(
            reverse("spak-problem-save", args=[team]), {"file": SimpleUploadedFile("scale.py", GOOD.encode())}
        )
    problem = ProblemFile.objects.get(team=cast.team)
    assert answer.status_code == 302 and problem.name == NAME and sent == [str(problem.pk)]
    page = client.get(answer["Location"]).content.decode()
    assert "Being checked" in page and "hx-trigger" in page and "void scale(long n" in page
    assert hashlib.sha256(GOOD.encode()).hexdigest() in page
    ProblemFile.objects.filter(pk=problem.pk).update(state="good", checked_at=timezone.now())
    page = client.get(answer["Location"], headers={"HX-Request": "true"}).content.decode()
    assert "In order" in page and "hx-trigger" not in page and "<html" not in page
    assert NAME in client.get(reverse("spak-problem-list", args=[team])).content.decode()
    text = client.get(reverse("spak-problem-text", args=[team, problem.pk]))
    assert text.content.decode() == GOOD and 'filename="scale.py"' in text["Content-Disposition"]


def test_what_is_refused_stays_in_the_form(cast: Any) -> None:
    form = {"name": "../x.py", "text": "kept <text>"}
    answer = cast.client("bob").post(reverse("spak-problem-save", args=[cast.team.slug]), form)
    assert answer.status_code == 400 and not ProblemFile.objects.exists()
    assert (
        "kept &lt;text&gt;" in answer.content.decode()
        and "is no name of a problem" in answer.content.decode()
    )


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        ("problems/x", GOOD, "web.problem_name"),
        ("/problems/x.py", GOOD, "web.problem_name"),
        ("problems/../x.py", GOOD, "web.problem_name"),
        ("a" * 98 + ".py", GOOD, "web.problem_name"),
        (NAME, b"\xff\xfe", "web.problem_text"),
        (NAME, "a\0b", "web.problem_text"),
        (NAME, "  \n", "web.problem_text"),
        (NAME, "\ud800", "web.problem_text"),
        (NAME, "x" * (problem_files.MOST_BYTES + 1), "web.problem_text"),
    ],
)
def test_names_and_texts_that_cannot_be_kept(cast: Any, name: str, text: Any, code: str) -> None:
    with pytest.raises(Refused) as caught:
        problem_files.save(cast["bob"], cast.team, name, text)
    assert caught.value.code == code and not ProblemFile.objects.exists()


def test_there_are_not_too_many(cast: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(problem_files, "MOST", 1)
    problem_files.save(cast["bob"], cast.team, NAME, GOOD)
    problem_files.save(cast["bob"], cast.team, NAME, LOOSE)  # in its place
    with pytest.raises(Refused, match="at most 1 problems") as caught:
        problem_files.save(cast["bob"], cast.team, "problems/other.py", GOOD)
    assert caught.value.code == "web.problem_many"


@pytest.mark.findings("B3")
def test_what_judges_kernels_is_changed_by_who_may_widen(cast: Any) -> None:
    """An editor who may not save what widens does not replace a judge either, nor remove it first."""
    problem = problem_files.save(cast["bob"], cast.team, NAME, GOOD)
    problem_files.save(cast["bob"], cast.team, NAME, GOOD)
    cast.team.widening = "shared"
    cast.team.save()
    problem.refresh_from_db()
    for change in (
        lambda: problem_files.save(cast["bob"], cast.team, NAME, LOOSE),
        lambda: problem_files.remove(cast["bob"], problem),
    ):
        with pytest.raises(Refused) as refused:
            change()
        assert refused.value.code == "web.problem_judges"
    assert ProblemFile.objects.get(team=cast.team).text == GOOD
    problem_files.save(cast["bob"], cast.team, "problems/other.py", LOOSE)
    problem_files.save(cast["alice"], cast.team, NAME, LOOSE)
    assert ProblemFile.objects.get(team=cast.team, name=NAME).text == LOOSE


def test_the_api_saves_checks_and_removes(cast: Any) -> None:
    client = cast.client("bob")
    address = reverse("spak-api-problems", args=[cast.team.slug])
    body = {"name": NAME, "text": GOOD}
    made = client.post(address, body, content_type="application/json")
    assert made.status_code == 201 and (made.json()["state"], made.json()["found"]) == ("queued", [])
    one = reverse("spak-api-problem", args=[cast.team.slug, made.json()["id"]])
    assert client.get(one).json()["text"] == GOOD
    assert [item["name"] for item in client.get(address).json()["problems"]] == [NAME]
    refused = client.post(address, {**body, "name": "x"}, content_type="application/json")
    assert (refused.status_code, refused.json()["code"]) == (400, "web.problem_name")
    ProblemFile.objects.update(state="bad", found=[{"code": "problem.changes"}])
    assert client.post(f"{one}check/").json()["state"] == "queued"
    assert client.post(f"{one}remove/").status_code == 204 and client.get(one).status_code == 404
    events = Event.objects.filter(action__startswith="problem").order_by("pk")
    assert [event.action for event in events] == ["problem.saved", "problem.removed"]


def test_a_run_begins_with_the_text_of_its_team(cast: Any) -> None:
    """Its genesis has the text, whatever becomes of the problem; another team's spec does not find it."""
    files = TeamFiles(cast.team, "a")
    assert [item.code for item in files.whole(SPEC).parsed.diagnostics] == ["lang.import_missing"]
    before = files.stamp(SPEC)
    problem_files.save(cast["bob"], cast.team, NAME, GOOD)
    assert files.stamp(SPEC) != before
    whole, taken = files.taking(SPEC)
    assert whole.problems == {NAME: GOOD} and taken == []
    genesis = plan(whole, {}, mode="full_auto", law=law_of(cast.team)).genesis("r", "", seed=1)
    assert genesis["rules"]["problems"] == {NAME: GOOD}
    problem_files.save(cast["bob"], cast.team, NAME, LOOSE)
    assert TeamFiles(cast.team, "a").whole(SPEC).problems == {NAME: LOOSE}
    assert TeamFiles(cast.other_team, "a").whole(SPEC).problems == {}
    assert TeamFiles(cast.team, "a", frozenset()).whole(SPEC).problems == {}  # a token for some specs alone
    problem_files.remove(cast["bob"], ProblemFile.objects.get())
    assert TeamFiles(cast.team, "a").lacks(SPEC)


@pytest.mark.sandbox
@pytest.mark.parametrize(
    ("text", "state", "codes"),
    [
        (GOOD, "good", set()),
        (LOOSE, "bad", {"problem.tolerance"}),
        (COUNTS, "bad", {"problem.changes"}),
        ("import os\nos._exit(3)", "bad", {"problem.died"}),
        ("raise ValueError", "bad", {"problem.failed"}),
    ],
)
def test_a_worker_checks_it_in_a_sandbox(cast: Any, text: str, state: str, codes: set[str]) -> None:
    problem = problem_files.save(cast["bob"], cast.team, NAME, text)
    worked(problem_files.CHECK)
    problem.refresh_from_db()
    assert problem.state == state, problem.found
    assert {item["code"] for item in problem.found if item["severity"] == "error"} >= codes
    page = cast.client("bob").get(reverse("spak-problem", args=[cast.team.slug, problem.pk])).content.decode()
    assert all(code in page for code in codes)


def test_a_result_counts_for_the_text_that_was_checked(cast: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The text is replaced while it is being checked; a removed problem is no error."""
    problem = problem_files.save(cast["bob"], cast.team, NAME, GOOD)

    def slow(text: str) -> list[dict[str, str]]:
        problem_files.save(cast["bob"], cast.team, NAME, LOOSE)
        return []

    monkeypatch.setattr(problem_checks, "findings", slow)
    worked(problem_files.CHECK)
    problem.refresh_from_db()
    assert (problem.state, problem.text) == ("queued", LOOSE)
    assert wanted(problem_files.CHECK) == [str(problem.pk)]
    monkeypatch.setattr(problem_checks, "findings", lambda text: ProblemFile.objects.all().delete() and [])
    worked(problem_files.CHECK)
    worked(problem_files.CHECK)
    assert not ProblemFile.objects.exists()
