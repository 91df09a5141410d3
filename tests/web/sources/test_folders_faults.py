"""Folders that are gone, forced, huge or slow, workers that die, and people who lost their role."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F

from folders_kit import Push, changed, job, of, spec, synced
from jobs_kit import at_once, swept, worked
from sources_kit import Host, Repository, git
from spak.errors import RunError
from spakweb.ground import clock
from spakweb.ground.audit.models import Event
from spakweb.ground.teams.models import Membership
from spakweb.store.folders.models import Folder
from spakweb.store.jobs import leases
from spakweb.store.jobs.leases import until
from spakweb.store.jobs.models import Job
from spakweb.store.sources.failures import meant
from spakweb.store.sources.models import Source
from spakweb.store.specs.models import Spec
from spakweb.work.folders import actions, queue, reading, steps, taking
from spakweb.work.jobs import work


def test_a_history_that_was_forced_is_read_by_its_texts(
    cast: Any, folder: Folder, push: Push, repository: Repository
) -> None:
    push({"tune.spak": spec()})
    synced(folder)
    inner = ("040000", repository.tree({"tune.spak": spec(path="anew")}))
    forced = repository.commit({"specs": inner})  # upon nothing
    assert synced(folder) == [("tune.spak", "changed")] and folder.commit == forced


@pytest.mark.parametrize("what", ["branch", "repository", "folder", "away"])
def test_what_is_gone_is_told_and_changes_nothing(
    what: str, cast: Any, folder: Folder, push: Push, repository: Repository, host: Host
) -> None:
    push({"tune.spak": spec()})
    synced(folder)
    if what == "branch":
        git(repository.folder, "update-ref", "-d", "refs/heads/main")
    elif what == "repository":
        repository.folder.rename(repository.folder.with_name("moved.git"))
    elif what == "folder":
        repository.commit({"README.md": b"x"})
    else:
        host.instead = lambda path: 503
    found = synced(folder)
    assert of("tune").head.number == 1 and of("tune").archived_at is None
    if what == "folder":
        assert found == [("tune.spak", "removed")]
    elif what == "away":
        row = job()
        assert (row.tries, folder.state) == (1, "same") and row.wanted_at and row.due
        Job.objects.update(tries=len(steps.AWAY_WAITS), due=None)
        worked(queue.SYNC)
        folder.refresh_from_db()
        assert folder.state == "failed" and folder.error.startswith("git.unreachable")
    else:
        assert folder.state == "failed" and folder.error.startswith(("git.ref_unknown", "git.gone"))
        assert Event.objects.filter(action="source.folder_failed").count() == 1
        synced(folder)
        assert Event.objects.filter(action="source.folder_failed").count() == 1


def test_too_many_files_change_nothing(folder: Folder, push: Push, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST", 2)
    push({f"s{number}.spak": spec() for number in range(3)})
    synced(folder)
    assert folder.state == "failed" and folder.error.startswith("folder.files")
    assert Spec.objects.filter(slug__startswith="s").count() == 2  # the two teams' own


@pytest.mark.parametrize("role", ["viewer", "editor"])
def test_who_lost_the_role_turns_it_off(role: str, cast: Any, folder: Folder, push: Push) -> None:
    push({"tune.spak": spec()})
    Membership.objects.filter(user=cast["alice"]).update(role=role)
    synced(folder)
    assert (folder.active, folder.state) == (False, "failed") and "Syncing is off" in folder.error
    assert not Spec.objects.filter(slug="tune").exists()
    assert queue.want(Folder.objects.filter(pk=folder.pk)) == 0


@pytest.mark.findings("F5")
def test_one_worker_at_a_time_and_one_that_died_is_followed(
    folder: Folder, push: Push, monkeypatch: pytest.MonkeyPatch
) -> None:
    push({"tune.spak": spec()})
    now = clock.now()
    queue.want(Folder.objects.all())
    Job.objects.update(holder="another", lease_until=until(now))
    assert synced(folder) == [] and not Spec.objects.filter(slug="tune").exists()
    monkeypatch.setattr(clock, "now", lambda: until(now) + timedelta(seconds=1))
    assert synced(folder) == [("tune.spak", "created")]


@pytest.mark.findings("F5")
def test_the_lease_of_a_sync_is_renewed_until_it_is_lost(
    folder: Folder, push: Push, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the sync waits for: git may take minutes."""
    push({"tune.spak": spec()})
    kept: list[bool] = []
    lost, usual, keep = threading.Event(), steps._synced, work.Hold.keep

    def keeps(hold: work.Hold) -> bool:
        kept.append(keep(hold))
        if len(kept) == 2:
            Job.objects.update(fence=F("fence") + 1)  # another worker has it
        if not kept[-1]:
            lost.set()
        return kept[-1]

    def waits(*given: Any) -> Any:
        assert lost.wait(60)
        return usual(*given)

    monkeypatch.setattr(leases, "LEASE_S", 0.03)
    monkeypatch.setattr(work.Hold, "keep", keeps)
    monkeypatch.setattr(steps, "_synced", waits)
    worked(queue.SYNC)
    assert kept[:3] == [True, True, False] and not Spec.objects.filter(slug="tune").exists()


def test_no_folder_waits_for_a_clock_that_was_set_back(folder: Folder) -> None:
    Job.objects.update(due=clock.now() + timedelta(minutes=2), enqueued_at=clock.now())
    assert swept(queue.SYNC) == []
    Job.objects.update(enqueued_at=clock.now() + timedelta(hours=1))
    assert swept(queue.SYNC) == [str(folder.pk)]


MANY = {f"s{number}.spak": spec() for number in range(4)}


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Callable[[timedelta], list[str]]:
    """`slow(time)`: each new file takes that long from now on; gives those that were done, as they come."""
    made: list[str] = []
    now, usual = clock.now(), taking._Taking._one

    def make(each: timedelta) -> list[str]:
        def late(self: Any, path: str, text: str) -> Any:
            done = usual(self, path, text)
            made.extend([path] if done is not None else [])
            at = now + each * len(made)
            monkeypatch.setattr(clock, "now", lambda: at)
            assert self.hold.keep()  # as its thread does every five seconds
            assert not Job.objects.filter(work.ready(clock.now())).exists()
            return done

        monkeypatch.setattr(taking._Taking, "_one", late)
        return made

    return make


def test_a_sync_that_takes_long_stays_in_the_hand_of_its_worker(
    folder: Folder, push: Push, slow: Callable[[timedelta], list[str]]
) -> None:
    push(MANY)
    slow(timedelta(seconds=170))
    assert synced(folder) == [(path, "created") for path in MANY]
    row = job()
    assert (row.holder, row.wanted_at, folder.state) == ("", None, "same")


def test_a_sync_ends_in_the_end_and_the_next_one_goes_on(
    folder: Folder, push: Push, slow: Callable[[timedelta], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    push(MANY)
    monkeypatch.setattr(queue, "LONGEST", timedelta(seconds=300))
    made = slow(timedelta(seconds=170))
    synced(folder)
    assert made == ["s0.spak", "s1.spak"]
    row = job()
    assert row.wanted_at and row.due and (row.tries, row.holder) == (1, "")
    assert synced(folder) == [("s2.spak", "created"), ("s3.spak", "created")]
    push({**MANY, **{f"t{number}.spak": spec() for number in range(3)}})
    queue.want(Folder.objects.all())
    Job.objects.update(tries=len(steps.AWAY_WAITS))  # one time after the other
    work.do(queue.SYNC, str(folder.pk))
    folder.refresh_from_db()
    assert made[-1] == "t1.spak" and folder.state == "failed"
    assert folder.error == "folder.late: the sync took longer than 5 minutes"


@pytest.mark.parametrize("when", ["files", "before", "after"])
def test_a_folder_that_is_removed_meanwhile_stops_its_sync(
    when: str, cast: Any, source: Source, folder: Folder, push: Push, repository: Repository,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    at = push({"tune.spak": spec()})
    synced(folder)
    changed(cast["bob"], "tune", spec(path="bob"))
    if when == "files":
        at = push({"a.spak": spec(), "b.spak": spec(), "tune.spak": spec()})
    where, name = {
        "files": (taking._Taking, "_one"), "before": (steps.taking, "take"), "after": (steps.giving, "give")
    }[when]  # fmt: skip
    usual, calls = getattr(where, name), []

    def then_removed(*given: Any) -> Any:
        done = usual(*given)
        if not calls:
            actions.remove(cast["alice"], source)
        calls.append(done)
        return done

    monkeypatch.setattr(where, name, then_removed)
    queue.want(Folder.objects.filter(pk=folder.pk))
    work.do(queue.SYNC, str(folder.pk))
    assert len(calls) == 1 and not Folder.objects.exists()
    assert (repository.head() == at) == (when != "after")
    assert Spec.objects.filter(slug__in=("a", "b")).count() == (when == "files")
    assert not Event.objects.filter(action="source.folder_synced", pk__gt=last_removed()).exists()


def last_removed() -> int:
    return Event.objects.get(action="source.folder_removed").pk


def test_no_hook_filter_or_attribute_of_the_repository_has_a_say(
    folder: Folder, push: Push, repository: Repository, tmp_path: Any
) -> None:
    trap = tmp_path / "trap"
    push({"tune.spak": spec(), ".gitattributes": b"*.spak filter=evil text eol=crlf export-ignore\n"})
    git(repository.folder, "config", "filter.evil.smudge", f"touch {trap}")
    assert synced(folder) == [("tune.spak", "created")]
    assert of("tune").head.text.encode() == spec() and not trap.exists()


@pytest.mark.parametrize("place", ["git_of", "fetching.fetch", "taking.take"])
@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), RunError("workspace.full", "the disk is full", "")]
)
def test_a_full_disk_fails_no_sync(
    folder: Folder, push: Push, monkeypatch: pytest.MonkeyPatch, place: str, error: Exception
) -> None:
    """However long it lasts; with room the next one goes on within seconds."""
    push({"tune.spak": spec()})

    def full(*given: Any, **named: Any) -> Any:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(f"spakweb.work.folders.steps.{place}", full)
        synced(folder)
        for _ in range(len(steps.AWAY_WAITS) + 1):
            at_once(queue.SYNC)
    folder.refresh_from_db()
    assert (
        folder.state != "failed"
        and not folder.error
        and not Event.objects.filter(action="source.folder_failed")
    )
    row = job()
    assert row.wanted_at and not row.holder and row.tries == 0
    assert row.due is not None and row.due <= clock.now() + timedelta(seconds=10)
    assert synced(folder) == [("tune.spak", "created")]


@pytest.mark.parametrize("said", ["fatal: write error: {}", "x\nerror: cannot open x: {}"])
def test_git_says_that_the_disk_is_full(said: str) -> None:
    """Its own words, and not those of the other end."""
    found = meant(said.format("No space left on device"))
    assert found is not None and found.code == "workspace.full"
    found = meant("remote: fatal: write error: No space left on device\nremote rejected")
    assert found is not None and found.code == "git.push_refused"
