"""The page *Work* and its API: what waits, runs and failed, why, and trying it again."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.urls import reverse

from spakweb.ground import clock, rights
from spakweb.ground.audit.models import Event
from spakweb.store.jobs.leases import MOST_LEASE
from spakweb.store.jobs.models import Job
from spakweb.work.teams import tokens
from token_kit import program

pytestmark = pytest.mark.django_db


@pytest.fixture
def jobs(cast: Any) -> dict[str, Job]:
    """A job in each state, and one of another team."""
    now = clock.now()

    def made(key: str, **columns: Any) -> Job:
        return Job.objects.create(kind="folders.sync", key=key, **{"team": cast.team, **columns})

    later = now + timedelta(minutes=1)
    made("next-door", team=cast.other_team, error="theirs", done_at=now)
    return {
        "failed": made("f", error="git.gone: <b>it</b> is gone", done_at=now),
        "waiting": made("w", wanted_at=now, due=later, tries=2, error="git.unreachable: away"),
        "running": made("r", wanted_at=now, holder="desk:7", lease_until=now + MOST_LEASE),
        "done": made("d", done_at=now, result={"state": "same"}),
    }


def test_an_admin_sees_why_and_tries_it_again(cast: Any, jobs: dict[str, Job]) -> None:
    alice, page = cast.client("alice"), reverse("spak-work", args=[cast.team.slug])
    text = alice.get(page).content.decode()
    for words in (
        "Folders to sync",
        "git.gone",
        "&lt;b&gt;",
        "git.unreachable: away",
        "2 failed tries",
        "desk:7",
    ):
        assert words in text, words
    assert "theirs" not in text
    answer = alice.post(reverse("spak-work-retry", args=[cast.team.slug, jobs["failed"].pk]))
    assert answer.status_code == 302
    row = Job.objects.get(pk=jobs["failed"].pk)
    assert row.wanted_at is not None and (row.error, row.tries, row.due) == ("", 0, None)
    assert Event.objects.get(action="work.retried").thing == "folders.sync f"
    theirs = Job.objects.get(key="next-door")
    assert alice.post(reverse("spak-work-retry", args=[cast.team.slug, theirs.pk])).status_code == 404
    assert cast.client("rita").get(page).status_code == 403


def test_a_program_reads_and_retries(cast: Any, jobs: dict[str, Job]) -> None:
    ci = program(tokens.make(cast["alice"], "ci", 7, cast.team, rights.SCOPES)[1])
    here = f"/api/v1/teams/{cast.team.slug}/work/"
    for state, job in jobs.items():
        found = ci.get(here, {"state": state}).json()
        assert [(one["id"], one["state"]) for one in found["jobs"]] == [(job.pk, state)] and found[
            "count"
        ] == 1
    assert [one["key"] for one in ci.get(here).json()["jobs"]] == ["w"]
    answer = ci.post(f"{here}{jobs['waiting'].pk}/retry/")
    assert (answer.status_code, answer.json()["due"], answer.json()["tries"]) == (202, None, 0)
    refused = ci.get(here, {"state": "odd"})
    assert (refused.status_code, refused.json()["code"]) == (400, "web.filter")


def test_a_failed_job_whose_outcome_is_written_down_is_not_tried_again(cast: Any) -> None:
    job = Job.objects.create(
        kind="suites.judge", key="k", team=cast.team, error="it was lost", done_at=clock.now()
    )
    answer = cast.client("alice").post(f"/api/v1/teams/{cast.team.slug}/work/{job.pk}/retry/")
    assert (answer.status_code, answer.json()["code"]) == (409, "web.work_decided")
    job.refresh_from_db()
    assert (job.wanted_at, job.error) == (None, "it was lost")
    assert not Event.objects.filter(action="work.retried").exists()


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("state=FAILED", 400, "web.filter"),
        ("state=%00", 400, "web.filter"),
        ("limit=5", 400, "web.filter"),
        ("fields=secret", 422, "web.fields"),
    ],
)
def test_queries_that_are_none(cast: Any, jobs: dict[str, Job], query: str, status: int, code: str) -> None:
    answer = cast.client("alice").get(f"/api/v1/teams/{cast.team.slug}/work/?{query}")
    assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_jobs_that_are_not_there_or_of_others(cast: Any, jobs: dict[str, Job]) -> None:
    """An admin of a team is nobody in another: a job of it reads as one that there is not."""
    here = f"/api/v1/teams/{cast.team.slug}/work/"
    theirs = Job.objects.get(key="next-door")
    alice = cast.client("alice")
    for number in (theirs.pk, 10**30, 0):
        assert alice.post(f"{here}{number}/retry/").status_code == 404, number
    assert alice.get(f"/api/v1/teams/{cast.other_team.slug}/work/").status_code == 404
    assert alice.post(f"/api/v1/teams/{cast.other_team.slug}/work/{theirs.pk}/retry/").status_code == 404
    theirs.refresh_from_db()
    assert (theirs.wanted_at, theirs.error) == (None, "theirs")
    for name in ("bob", "rita", "vera"):
        assert cast.client(name).get(here).status_code == 403, name
        assert cast.client(name).post(f"{here}{jobs['failed'].pk}/retry/").status_code == 403, name


def test_texts_of_others_are_shown_as_they_are(cast: Any) -> None:
    text = "git.refused: \u202e<script>alert(1)</script>"
    Job.objects.create(kind="gone.kind", key='"><i>', team=cast.team, error=text, done_at=clock.now())
    page = cast.client("alice").get(reverse("spak-work", args=[cast.team.slug])).content.decode()
    assert "\u202e" not in page and "<script>alert" not in page and '"><i>' not in page
    assert "\u27e8U+202E\u27e9" in page and "gone.kind" in page
    row = Job.objects.get(kind="gone.kind")
    answer = cast.client("alice").post(f"/api/v1/teams/{cast.team.slug}/work/{row.pk}/retry/")
    assert (answer.status_code, answer.json()["code"]) == (409, "web.work_decided")
