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
from spakweb.store.ledger.workspaces import folder_of, store_of
from spakweb.store.runs.models import Run, RunRecord
from spakweb.store.sources.models import RunSource, Source
from spakweb.work.runs import files
from spakweb.work.runs.actions import fork
from spakweb.work.sources import actions
from spakweb.work.suites import actions as suites
from spakweb.work.teams import tokens
from spakweb.work.worker import execute

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


LOOKS = """AGENT Looks LEVEL 4 {
  CONFIG { HISTORY 2 }
  START -> look
  TASK look { step log: tool.run { cmd: "git log -p --format=%s" } success: exit_code(log) == 0 }
}
"""


def test_a_run_sees_the_commits_that_its_spec_asks_for_and_its_case_too(
    cast: Any, source: Source, repository: Repository, run_from: RunFrom
) -> None:
    parent = ""
    for number in range(3):
        text = {"a.txt": b"%d\n" % number, ".env": b"DB_PASSWORD=hunter22x9-of-old\n"}
        parent = repository.commit(text, parent=parent)

    def log(run: Run) -> str:
        lines = [decode(bytes(one.line)) for one in RunRecord.objects.filter(run=run, kind="act")]
        return next(str(one.body["out"]) for one in lines if "out" in one.body)

    run = run_from(text=LOOKS)
    assert (run.state, run.reason) == ("succeeded", "")
    assert "+2" in log(run) and "+1" in log(run) and "\n-0\n" not in log(run)
    lines = b"".join(bytes(one.line) for one in RunRecord.objects.filter(run=run))
    assert b"hunter22x9" not in lines
    again = run_from(text=LOOKS)
    assert again.history == run.history and again.files == run.files
    plain = run_from()
    assert plain.history == "" and plain.files == run.files
    suite = suites.make(cast["bob"], cast.team, "Nightly")
    case = suites.keep(cast["bob"], run, suite, "past")
    assert case.history == run.history
    twin = fork(cast["bob"], run, 3)
    execute.advance(twin.key)
    assert twin.history == run.history
    made = suites.begin(cast["bob"], suite, [run.version], 1, ("train", "gate", "sealed"))
    cell = made.cells.get().run
    execute.advance(cell.key)
    assert log(cell) == log(run)


def test_a_source_that_is_a_shallow_clone_says_so(
    source: Source, repository: Repository, run_from: RunFrom
) -> None:
    first = repository.commit(FILES)
    second = repository.commit({"a.txt": b"a"}, parent=first)
    (repository.folder / "shallow").write_text(f"{second}\n")
    run = run_from(text=LOOKS)
    assert run.state == "failed" and "git.shallow" in run.reason, run.reason


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
