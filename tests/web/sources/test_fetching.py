"""Runs that begin from a source: what they work on, what the first record says, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from sources_kit import Host, Repository
from spak.records import decode
from spak.workspace.store import Store
from spakweb.ledger.workspaces import folder_of, store_of
from spakweb.runs import files
from spakweb.runs.actions import fork
from spakweb.runs.models import Run, RunRecord
from spakweb.sources import actions
from spakweb.sources.models import RunSource, Source
from spakweb.suites import actions as suites
from spakweb.teams import tokens
from spakweb.worker import execute

FILES = {"README.md": b"# App\n", "run.sh": b"#!/bin/sh\n"}
RunFrom = Callable[..., Run]


def genesis(run: Run) -> dict[str, Any]:
    return decode(bytes(RunRecord.objects.get(run=run, seq=0).line)).body


def test_a_run_has_the_files_of_the_commit_and_its_first_record_says_which(
    source: Source, repository: Repository, run_from: RunFrom
) -> None:
    digest = repository.blob(FILES["run.sh"])
    inner = repository.tree({"deep.txt": b"deep\n"})
    first = repository.commit({**FILES, "run.sh": ("100755", digest), "lib": ("040000", inner)})
    run = run_from()
    assert (run.state, run.reason) == ("succeeded", "")
    found = {file.path: (file.state, files.content(run, file)) for file in files.files_of(run)}
    assert found == {
        "README.md": ("", b"# App\n"),
        "run.sh": ("", b"#!/bin/sh\n"),
        "lib/deep.txt": ("", b"deep\n"),
        "hello.txt": ("new", b"Hello"),
    }
    said = genesis(run)
    about = {"name": "app", "url": source.url, "ref": "refs/heads/main", "commit": first}
    assert said["host"]["source"] == about
    assert run.files is not None
    assert said["rules"]["r3"] == run.files.root
    store: Store = store_of(run)
    assert store.knows(run.files.root)


def test_links_that_stay_inside_are_links_in_the_run_too(
    cast: Any, source: Source, repository: Repository, run_from: RunFrom
) -> None:
    """They are frozen, laid out, shown, forked and left alone by the patch."""
    inner = repository.tree({"deep.txt": b"deep\n", "up": ("120000", repository.blob(b"../README.md"))})
    links = {"docs": ("120000", repository.blob(b"lib")), "on": ("120000", repository.blob(b"lib/up"))}
    repository.commit({**FILES, **links, "lib": ("040000", inner)})
    run = run_from()
    assert (run.state, run.reason) == ("succeeded", "")
    found = {file.path: (file.target, file.readable, file.state) for file in files.files_of(run)}
    assert found["docs"] == ("lib", False, "") and found["lib/up"] == ("../README.md", False, "")
    assert found["lib/deep.txt"] == ("", True, "")
    place = folder_of(run.key) / "workspace"
    assert (place / "docs").is_symlink() and (place / "on").read_bytes() == FILES["README.md"]
    page = cast.client("vera").get(f"/t/kernel-tuners/runs/{run.key}/?tab=workspace").content.decode()
    assert 'leads to <span class="mono">../README.md</span>' in page
    patch = cast.client("vera").get(f"/t/kernel-tuners/runs/{run.key}/changes.patch").content
    assert patch.count(b"diff --git") == 1 and b"hello.txt" in patch
    made = fork(cast["bob"], run, 1)
    execute.advance(made.key)
    assert genesis(made)["rules"]["r3"] == genesis(run)["rules"]["r3"]
    assert (folder_of(made.key) / "workspace" / "on").read_bytes() == FILES["README.md"]


def test_a_case_of_a_run_from_a_source_has_the_same_files(
    cast: Any, source: Source, repository: Repository, run_from: RunFrom
) -> None:
    """A suite's case begins with the commit's files, whatever becomes of the branch and the source."""
    repository.commit(FILES)
    run = run_from()
    suite = suites.make(cast["alice"], cast.team, "nightly")
    case = suites.keep(cast["alice"], run, suite, "first")
    repository.commit({"other": b"other"})
    actions.remove(cast["alice"], source)
    assert run.version is not None
    experiment = suites.begin(cast["alice"], suite, [run.version], splits=[case.split])
    cell = experiment.cells.get()
    execute.advance(cell.run.key)
    assert genesis(cell.run)["rules"]["r3"] == genesis(run)["rules"]["r3"]
    assert Run.objects.get(pk=cell.run_id).state == "succeeded"


def test_a_program_starts_one_and_is_told_of_the_commit(
    cast: Any, source: Source, repository: Repository
) -> None:
    commit = repository.commit(FILES, "refs/heads/release/1")
    _, secret = tokens.make(cast["bob"], "ci", 7, cast.team, ["start"])
    ci = Client(headers={"authorization": f"Bearer {secret}"})
    body = json.dumps({"source": {"name": "app", "ref": "release/1", "commit": commit}})
    made = ci.post(
        "/api/v1/teams/kernel-tuners/specs/small/runs/", body, content_type="application/json"
    ).json()
    assert made["source"] == {"name": "app", "url": source.url, "ref": "release/1", "commit": ""}
    execute.advance(made["key"])
    seen = ci.get(f"/api/v1/teams/kernel-tuners/runs/{made['key']}/").json()
    assert seen["source"]["ref"] == "refs/heads/release/1"
    assert (seen["source"]["commit"], seen["state"]) == (commit, "succeeded")
    assert seen["files"]


def test_a_fork_has_the_same_files_whatever_became_of_the_ref(
    cast: Any, source: Source, repository: Repository, run_from: RunFrom
) -> None:
    repository.commit(FILES)
    run = run_from()
    repository.commit({"other": b"other"})
    made = fork(cast["bob"], run, 1)
    execute.advance(made.key)
    made.refresh_from_db()
    assert genesis(made)["rules"]["r3"] == genesis(run)["rules"]["r3"]
    assert genesis(made)["host"]["source"] == genesis(run)["host"]["source"]
    assert RunSource.objects.get(run=made).commit == RunSource.objects.get(run=run).commit


def test_the_same_commit_is_fetched_once(
    source: Source, repository: Repository, host: Host, run_from: RunFrom
) -> None:
    repository.commit(FILES)
    one = run_from()
    asked = len(host.asked)
    two = run_from()
    assert one.files_id == two.files_id
    assert len(host.asked) - asked == 2  # which commit it is at, and no more
    repository.commit({"other": b"other"})
    assert run_from().files_id != one.files_id


def test_a_tag_that_names_a_commit_by_an_object_of_its_own(
    source: Source, repository: Repository, run_from: RunFrom
) -> None:
    from sources_kit import git

    commit = repository.commit(FILES)
    git(repository.folder, "tag", "-a", "-m", "one", "v1", commit)
    run = run_from("v1")
    begun = RunSource.objects.get(run=run)
    assert (begun.ref, begun.commit, run.state) == ("refs/tags/v1", commit, "succeeded")


@pytest.mark.parametrize("ref", ["main", "refs/heads/main"])
def test_short_and_full_names_are_the_same(
    source: Source, repository: Repository, run_from: RunFrom, ref: str
) -> None:
    repository.commit(FILES)
    assert run_from(ref).state == "succeeded"
