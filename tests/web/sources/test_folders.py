"""A folder of .spak files: who sets it up, its page, and the signed messages that sync it."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.urls import reverse

import signed_kit
from folders_kit import PAGE, WRONG, Push, changed, of, spec, synced
from sources_kit import Repository
from spakweb.ground.audit.models import Event
from spakweb.ground.errors import Refused
from spakweb.store.folders.models import Folder, FolderFile
from spakweb.store.runs.models import Run
from spakweb.store.sources.models import Source
from spakweb.work.folders import actions
from spakweb.work.incoming import actions as incoming
from spakweb.work.jobs import queue as jobs
from spakweb.work.jobs import work
from spakweb.work.specs.actions import create_spec
from spakweb.work.triggers import actions as triggers
from spakweb.work.worker import execute


@pytest.mark.parametrize(
    ("about", "code"),
    [({"branch": ""}, "git.ref"), ({"branch": "refs/tags/v1"}, "git.ref"), ({"branch": "a..b"}, "git.ref"),
     ({"branch": "other"}, "git.ref_not_allowed"), ({"path": "../up"}, "folder.path"),
     ({"path": "a//b"}, "folder.path"), ({"path": ":(glob)*"}, "folder.path"),
     ({"path": "-a"}, "folder.path"),
     ({"path": "a\0b"}, "folder.path"), ({"path": ".git"}, "folder.path"),
     ({"path": "a" * 300}, "folder.path"),
     ({"out": "force"}, "folder.out"), ({"out": "pull"}, "git.forge")],
    ids=range(13),
)  # fmt: skip
def test_what_cannot_be_set_up(cast: Any, source: Source, about: dict[str, str], code: str) -> None:
    with pytest.raises(Refused) as why:
        actions.set_up(cast["alice"], source, **{"branch": "main", "path": "specs", "out": "none", **about})
    assert why.value.code == code and not Folder.objects.exists()


def test_roles(cast: Any, folder: Folder, source: Source) -> None:
    with pytest.raises(PermissionDenied):
        actions.set_up(cast["rita"], source, "main")
    with pytest.raises(PermissionDenied):
        actions.remove(cast["rita"], source)
    for act in (actions.sync_now, lambda who, where: actions.include(who, where, cast.spec)):
        with pytest.raises(PermissionDenied):
            act(cast["vera"], source)
    actions.sync_now(cast["bob"], source)


def test_another_folder_begins_anew(cast: Any, folder: Folder, push: Push, source: Source) -> None:
    push({"tune.spak": spec()})
    synced(folder)
    made = actions.set_up(cast["alice"], source, "main", "other")
    assert made.pk != folder.pk and not FolderFile.objects.exists()
    assert of("tune").head.number == 1
    actions.remove(cast["alice"], source)
    with pytest.raises(Refused) as why:
        actions.sync_now(cast["bob"], source)
    assert why.value.code == "folder.none"


def test_the_page(cast: Any, source: Source, push: Push) -> None:
    alice = cast.client("alice")
    assert "Set up a folder" in alice.get(PAGE).content.decode()
    form = {"do": "set", "branch": "main", "path": "specs", "out": "commit"}
    assert (
        "no folder of a repository"
        in alice.post(f"{PAGE}folder/", {**form, "path": ".."}, follow=True).content.decode()
    )
    assert alice.post(f"{PAGE}folder/", form).status_code == 302
    folder = Folder.objects.get()
    push({"tune.spak": spec(), "<b>.spak": b"x", "bad.spak": WRONG})
    assert cast.client("bob").post(f"{PAGE}folder/", {"do": "sync"}).status_code == 302
    synced(folder)
    page = cast.client("vera").get(PAGE).content.decode()
    assert "Needs a look" in page and "Not saved: line 1" in page and "<b>" not in page
    assert "Sync now" not in page and "Sync now" in cast.client("bob").get(PAGE).content.decode()
    assert alice.post(f"{PAGE}folder/", {"do": "include", "spec": "small"}).status_code == 302
    assert alice.post(f"{PAGE}folder/", {"do": "include", "spec": "no"}).status_code == 404
    assert alice.post(f"{PAGE}folder/", {"do": "dance"}).status_code == 400
    assert cast.client("vera").post(f"{PAGE}folder/", {"do": "sync"}).status_code == 403
    assert alice.post(f"{PAGE}folder/", {"do": "remove"}).status_code == 302
    page = cast.client("vera").get("/t/kernel-tuners/specs/tune/v/1/").content.decode()
    assert "specs/tune.spak" in page
    done = Event.objects.filter(action__startswith="source.folder_").order_by("pk")
    names = [action.removeprefix("source.folder_") for action in done.values_list("action", flat=True)]
    assert names == ["set", "asked", "synced", "included", "removed"]


def test_a_signed_push_makes_a_version_and_its_repetition_nothing(
    cast: Any, folder: Folder, push: Push, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        jobs, "send", lambda kind, key, queue: work.do(kind, key)
    )  # a worker that is there at once
    receiver, secret = incoming.open_for(cast["alice"], source)
    address = reverse("spak-hook-receive", args=[receiver.key])
    commit = push({"tune.spak": spec()})
    body = signed_kit.push(commit=commit)
    headers = signed_kit.github(secret, body)
    assert signed_kit.post(address, body, headers).json()["state"] == "done"
    assert of("tune").head.provenance["origin"]["commit"] == commit
    changed(cast["bob"], "tune", spec(path="bob"))  # and that it goes out, whose push comes back
    folder.refresh_from_db()
    assert folder.commit != commit and of("tune").head.number == 2
    body = signed_kit.push(commit=folder.commit)
    assert signed_kit.post(address, body, signed_kit.github(secret, body)).json()["state"] == "done"
    at = folder.commit
    folder.refresh_from_db()
    assert (folder.commit, folder.state, folder.result, of("tune").head.number) == (at, "same", [], 2)


def test_a_signed_push_starts_a_run_on_its_commit(cast: Any, source: Source, repository: Repository) -> None:
    text = """AGENT Deploy LEVEL 2 {
  INPUTS { who: string }
  START -> one
  TASK one { step a: tool.write_file { path: "who.txt" content: "{{input.who}}" } }
}
"""
    made = create_spec(cast["alice"], cast.team, "deploy", text)
    trigger, secret = triggers.add(
        cast["bob"], made, "main", event="push", ref="main", source="app", mapping={"who": "/pusher/name"}
    )
    address = reverse("spak-hook-receive", args=[trigger.receiver.key])
    commit = repository.commit({"README.md": b"# App\n"})
    body = signed_kit.push(commit=commit, pusher={"name": "mona"})
    answer = signed_kit.post(address, body, signed_kit.github(secret, body))
    run = Run.objects.get(key=answer.json()["run"])
    execute.advance(run.key)
    run.refresh_from_db()
    assert (run.state, run.begun_from.commit) == ("succeeded", commit), run.reason
    assert run.inputs == {"who": "mona"}
