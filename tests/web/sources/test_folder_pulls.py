"""Versions that go out as pull requests: one for each spec, which newer versions update."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from folders_kit import Push, changed, in_git, job, spec, synced, words
from sources_kit import Forge, Repository, git
from spak.errors import RunError
from spakweb.store.folders.models import Folder, FolderFile
from spakweb.work.folders import giving
from spakweb.work.sources import forges

BRANCH = "spak/specs-kernel-tuners-tune"
REF = f"refs/heads/{BRANCH}"


def test_a_newer_version_updates_the_pull_request_that_is_open(
    cast: Any, pulls: Folder, repository: Repository, push: Push, forge: Forge
) -> None:
    first = changed(cast["bob"], "tune", spec(path="bob"))
    at = repository.head()
    assert synced(pulls) == [("tune.spak", "sent")] and repository.head() == at
    url = forge.pulls[0]["shown"]["html_url"]
    assert (forge.pulls[0]["head"], forge.pulls[0]["base"], pulls.pull_url) == (BRANCH, "main", url)
    assert pulls.result[0]["pull_url"] == url and in_git(repository, "tune.spak", REF) == spec(path="bob")
    assert synced(pulls) == [("tune.spak", "waits")] and pulls.result[0]["pull_url"] == url
    at = push({"tune.spak": spec(), "other.spak": spec("Other")})  # main goes on
    second = changed(cast["bob"], "tune", spec(path="more"))
    assert ("tune.spak", "sent") in synced(pulls)
    assert len(forge.pulls) == 1 and in_git(repository, "tune.spak", REF) == spec(path="more")
    assert git(repository.folder, "rev-parse", f"{REF}^").strip() == at, "one commit upon what main is now"
    [made] = forge.pulls
    assert f"version {second.number}," in made["body"] and f"version {first.number}," not in made["body"]
    assert made["title"] == "tune: By hand"
    page = cast.client("vera").get("/t/kernel-tuners/sources/s/shop/").content.decode()
    assert f'<a href="{url}" rel="noreferrer">its pull request</a>' in page


def test_each_spec_has_its_own(cast: Any, pulls: Folder, push: Push, forge: Forge) -> None:
    push({"tune.spak": spec(), "other.spak": spec("Other")})
    synced(pulls)
    for name in ("tune", "other"):
        changed(cast["bob"], name, spec(path="bob"))
    assert synced(pulls) == [("other.spak", "sent"), ("tune.spak", "sent")]
    assert [one["head"] for one in forge.pulls] == ["spak/specs-kernel-tuners-other", BRANCH]
    changed(cast["bob"], "other", spec(path="more"))
    assert sorted(synced(pulls)) == [("other.spak", "sent"), ("tune.spak", "waits")]
    assert len(forge.pulls) == 2


@pytest.mark.parametrize("ended", ["merged", "closed", "branch removed"])
def test_once_it_is_merged_or_closed_the_next_version_opens_another(
    cast: Any, pulls: Folder, repository: Repository, forge: Forge, ended: str
) -> None:
    changed(cast["bob"], "tune", spec(path="bob"))
    synced(pulls)
    forge.pulls[0]["open"] = False
    if ended == "merged":
        git(repository.folder, "update-ref", "refs/heads/main", REF)
        assert synced(pulls) == [] and pulls.state == "same"
    if ended == "branch removed":
        git(repository.folder, "update-ref", "-d", REF)
    changed(cast["bob"], "tune", spec(path="more"))
    assert synced(pulls) == [("tune.spak", "sent")] and len(forge.pulls) == 2
    assert pulls.result[0]["pull_url"] == forge.pulls[1]["shown"]["html_url"]
    assert in_git(repository, "tune.spak", REF) == spec(path="more")


def test_a_branch_that_somebody_else_pushed_to_is_left_and_reported(
    cast: Any, pulls: Folder, repository: Repository, forge: Forge
) -> None:
    changed(cast["bob"], "tune", spec(path="bob"))
    synced(pulls)
    theirs = repository.commit({"README.md": b"# theirs\n"}, REF, repository.head(REF))
    changed(cast["bob"], "tune", spec(path="more"))
    for _ in range(2):
        assert synced(pulls) == [("tune.spak", "wrong")] and repository.head(REF) == theirs
        assert "folder.pull_changed" in words(pulls) and (pulls.state, pulls.error) == ("look", "")
    forge.pulls[0]["open"] = False
    git(repository.folder, "update-ref", "-d", REF)
    assert synced(pulls) == [("tune.spak", "sent")] and len(forge.pulls) == 2


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_worker_that_dies_while_it_pushes_is_followed(
    cast: Any, pulls: Folder, repository: Repository, push: Push, forge: Forge,
    monkeypatch: pytest.MonkeyPatch, when: str,
) -> None:  # fmt: skip
    """Whether the branch was moved or not: it is known as our own."""
    changed(cast["bob"], "tune", spec(path="bob"))
    synced(pulls)
    usual: Callable[..., None] = giving.pushing.give

    def dies(*given: Any) -> None:
        if when == "after":
            usual(*given)
        raise RuntimeError

    monkeypatch.setattr(giving.pushing, "give", dies)
    changed(cast["bob"], "tune", spec(path="more"))
    synced(pulls)
    assert "RuntimeError" in job().error
    monkeypatch.setattr(giving.pushing, "give", usual)
    push({"tune.spak": spec(), "other.spak": spec("Other")})
    assert ("tune.spak", "sent") in synced(pulls)
    assert len(forge.pulls) == 1 and in_git(repository, "tune.spak", REF) == spec(path="more")
    assert FolderFile.objects.get(spec__slug="tune").pull_commits[-1] == repository.head(REF)


def test_what_the_api_refuses_is_told_and_goes_on_later(cast: Any, pulls: Folder, forge: Forge) -> None:
    changed(cast["bob"], "tune", spec(path="bob"))
    forge.instead = (422, b'{"message": "no"}')
    synced(pulls)
    assert pulls.state == "failed" and pulls.error.startswith("git.pull_refused")
    forge.instead = None
    assert synced(pulls) == [("tune.spak", "sent")] and len(forge.pulls) == 1


def test_an_open_one_without_a_number_is_refused(
    cast: Any, pulls: Folder, forge: Forge, monkeypatch: pytest.MonkeyPatch
) -> None:
    forge.instead = (200, b'[{"html_url": "https://git.example/1", "number": "x", "title": "a"}]')
    with pytest.raises(RunError, match="no number"):
        forges.open_pull(pulls.source, forges.Pull(BRANCH, "main", "b", ""), follow=True)
