"""A worker that froze in a sync of a folder does nothing when it wakes after others synced it twice."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection

from folders_kit import Push, changed, in_git, job, of, spec, synced
from process_kit import WAIT_S
from sources_kit import Forge, Repository, git
from spakweb.ground import clock
from spakweb.store.folders.models import Folder, FolderFile
from spakweb.store.reviews.models import Patch
from spakweb.store.sources import fetching
from spakweb.store.specs.models import SpecVersion
from spakweb.work.folders import giving, queue, steps, taking
from spakweb.work.specs.actions import Stale, save_version

OLD, NEW, NEWER = (spec(path=name) for name in ("old", "new", "newer"))

Freeze = Callable[..., list[str]]


@pytest.fixture
def freeze(monkeypatch: pytest.MonkeyPatch) -> Freeze:
    """`freeze(where, name, meanwhile)`: the next worker stops right before (or after) it calls that function,
    for so long that it counts as gone, and wakes after `meanwhile`. Gives a list that holds the name once it
    was there."""

    def make(where: Any, name: str, meanwhile: Callable[[], None], after: bool = False) -> list[str]:
        usual, reached = getattr(where, name), []

        def late(*given: Any, **named: Any) -> Any:
            if reached:
                return usual(*given, **named)
            reached.append(name)
            done = usual(*given, **named) if after else None
            at = clock.now() + timedelta(minutes=10)
            monkeypatch.setattr(clock, "now", lambda: at)
            meanwhile()
            return done if after else usual(*given, **named)

        monkeypatch.setattr(where, name, late)
        return reached

    return make


def rows(folder: Folder) -> list[Any]:
    folder.refresh_from_db()
    known = FolderFile.objects.order_by("path").values_list("path", "there", "base", "seen", "sent", "patch")
    return [*known, folder.state, folder.error, job().holder, job().wanted_at]


@pytest.mark.parametrize("what", ["changed", "created", "removed"])
def test_what_comes_in(what: str, folder: Folder, push: Push, freeze: Freeze) -> None:
    push({} if what == "created" else {"tune.spak": OLD})
    synced(folder)
    push({"keep.txt": b"kept"} if what == "removed" else {"tune.spak": NEW})
    found: list[Any] = []

    def meanwhile() -> None:
        synced(folder)
        push({"tune.spak": NEWER})
        synced(folder)
        found.append(rows(folder))

    reached = freeze(taking._Taking, "_absent" if what == "removed" else "_one", meanwhile)
    synced(folder)
    assert reached and rows(folder) == found[0]
    assert of("tune").head.text.encode() == NEWER and not Patch.objects.exists()
    assert (
        SpecVersion.objects.filter(spec__slug="tune").count()
        == {"changed": 3, "created": 2, "removed": 2}[what]
    )
    assert synced(folder) == []


@pytest.mark.parametrize("point", [(steps.giving, "give"), (giving.pushing, "give")], ids=["commit", "push"])
def test_a_commit_that_goes_out(
    point: tuple[Any, str], cast: Any, folder: Folder, push: Push, repository: Repository, freeze: Freeze
) -> None:
    push({"tune.spak": OLD})
    synced(folder)
    changed(cast["bob"], "tune", NEW)
    found: list[Any] = []

    def meanwhile() -> None:
        assert synced(folder) == [("tune.spak", "sent")]
        changed(cast["bob"], "tune", NEWER)
        assert synced(folder) == [("tune.spak", "sent")]
        found.extend([rows(folder), repository.head()])

    reached = freeze(*point, meanwhile)
    synced(folder)
    assert reached and [rows(folder), repository.head()] == found
    assert in_git(repository, "tune.spak") == NEWER and synced(folder) == []


@pytest.mark.parametrize("point", ["propose", "looked", "push", "open"])
def test_a_pull_request(
    point: str, cast: Any, pulls: Folder, repository: Repository, forge: Forge, freeze: Freeze,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Somebody closes the pull request before it wakes: it opens no other, unless it had asked already."""
    changed(cast["bob"], "tune", NEW)
    looks = SimpleNamespace(listed=fetching.listed, commit_of=fetching.commit_of)
    monkeypatch.setattr(giving, "fetching", looks)
    found: list[Any] = []

    def state() -> list[Any]:
        known = FolderFile.objects.get()
        refs = git(repository.folder, "show-ref")
        return [rows(pulls), refs, known.pull_commits, known.pull_url, len(forge.pulls)]

    def meanwhile() -> None:
        assert synced(pulls) == [("tune.spak", "sent")]
        changed(cast["bob"], "tune", NEWER)
        assert synced(pulls) == [("tune.spak", "sent")]
        for one in forge.pulls:
            one["open"] = point == "open"
        found.extend(state())

    where = {
        "propose": (steps.giving, "propose"), "looked": (looks, "listed"), "push": (giving.pushing, "give"),
        "open": (giving.forges, "open_pull"),
    }[point]  # fmt: skip
    reached = freeze(*where, meanwhile, after=point == "looked")
    synced(pulls)
    assert reached and state() == found
    changed(cast["bob"], "tune", spec(path="last"))
    assert synced(pulls) == [("tune.spak", "sent")] and len(forge.pulls) == (1 if point == "open" else 2)


def test_a_person_who_saves_the_spec_meanwhile_and_the_sync_do_not_wait_for_each_other(
    cast: Any, folder: Folder, push: Push, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Saving takes the spec and then, to ask for a sync, the folder; so does the sync."""
    push({"tune.spak": OLD})
    synced(folder)
    push({"tune.spak": NEW})
    usual, asks, saved = taking._Taking._again, queue.want, Event()
    found: list[Any] = []

    def person() -> None:
        try:
            found.append(save_version(cast["bob"], of("tune"), NEWER.decode(), 1, "By hand"))
        except Exception as error:
            found.append(error)
        finally:
            connection.close()

    def asked(*given: Any) -> int:
        saved.set()
        return asks(*given)

    def while_somebody_saves(self: Any, *given: Any) -> Any:
        monkeypatch.setattr(queue, "want", asked)
        thread.start()
        saved.wait(1.0)  # SQLite has one writer: there nobody gets that far
        return usual(self, *given)

    thread = Thread(target=person)
    monkeypatch.setattr(taking._Taking, "_again", while_somebody_saves)
    [(_, what)] = synced(folder)
    thread.join(WAIT_S)
    assert (what, type(found[0])) in [("changed", Stale), ("conflict", SpecVersion)], (what, found)
