"""What goes out to a folder over a real repository, and what is never written over."""

from __future__ import annotations

from typing import Any

import pytest

from folders_kit import Push, changed, in_git, job, of, spec, synced, words
from jobs_kit import wanted
from sources_kit import Repository, git
from spak.errors import RunError
from spakweb.ground.audit.models import Event
from spakweb.ground.errors import Refused
from spakweb.store.folders.models import Folder
from spakweb.store.reviews.models import Patch
from spakweb.store.sources.models import Source
from spakweb.work.folders import actions, steps
from spakweb.work.folders.queue import SYNC
from spakweb.work.reviews import actions as reviews
from spakweb.work.reviews.protection import protect
from spakweb.work.specs.actions import create_spec


def test_a_saved_version_becomes_one_commit_and_our_own_push_does_nothing(
    cast: Any, folder: Folder, push: Push, repository: Repository
) -> None:
    first = push({"tune.spak": spec(), "other.spak": spec("Other"), "keep.txt": b"kept"})
    synced(folder)
    changed(cast["bob"], "tune", spec(path="bob"))
    changed(cast["bob"], "other", spec("Other", "bob"))
    assert wanted(SYNC)  # saving asked for it
    assert synced(folder) == [("other.spak", "sent"), ("tune.spak", "sent")]
    made = repository.head()
    assert git(repository.folder, "rev-parse", f"{made}^") == first == folder_commit(made, repository)
    assert in_git(repository, "tune.spak") == spec(path="bob")
    assert git(repository.folder, "diff", "--name-only", first, made).split() == [
        "specs/other.spak", "specs/tune.spak"
    ]  # fmt: skip
    said = git(repository.folder, "log", "-1", "--format=%an|%B")
    assert said.startswith("bob|Update 2 specs") and "tune version 2, saved by bob: By hand" in said
    assert "Spak-Specs: other v2, tune v2" in said
    assert (folder.commit, folder.state) == (made, "same")
    assert synced(folder) == [] and repository.head() == made
    assert (of("tune").head.number, of("other").head.number) == (2, 2)
    changed(cast["bob"], "tune", spec(path="more"))
    assert synced(folder) == [("tune.spak", "sent")]
    assert git(repository.folder, "log", "-1", "--format=%s") == "tune: By hand"


def folder_commit(made: str, repository: Repository) -> str:
    return git(repository.folder, "rev-list", "--max-parents=0", made)


def test_a_commit_of_ours_under_another_name_is_known_by_its_text(
    cast: Any, folder: Folder, push: Push, repository: Repository
) -> None:
    """A worker that dies after its push, and somebody who copies a version over by hand."""
    push({"tune.spak": spec()})
    synced(folder)
    changed(cast["bob"], "tune", spec(path="bob"))
    push({"tune.spak": spec(path="bob")})
    at = repository.head()
    assert synced(folder) == [] and folder.state == "same"
    assert (repository.head(), of("tune").head.number) == (at, 2)


def test_a_merged_patch_goes_out(cast: Any, folder: Folder, push: Push, repository: Repository) -> None:
    push({"tune.spak": spec()})
    synced(folder)
    protect(cast["alice"], of("tune"), 1)
    patch = reviews.propose(cast["bob"], of("tune"), spec(path="bob").decode(), 1, "Look there")
    reviews.judge(cast["rita"], patch, 1, True)
    reviews.merge(cast["bob"], patch, 1)
    assert synced(folder) == [("tune.spak", "sent")]
    assert "Patch 1, revision 1: Look there" in git(repository.folder, "log", "-1", "--format=%B")
    assert in_git(repository, "tune.spak") == spec(path="bob")


def test_both_sides_changed_is_a_patch_and_neither_is_written_over(
    cast: Any, folder: Folder, push: Push, repository: Repository
) -> None:
    push({"tune.spak": spec()})
    synced(folder)
    changed(cast["bob"], "tune", spec(path="bob"))
    theirs = push({"tune.spak": spec("Tuned")})
    assert synced(folder) == [("tune.spak", "conflict")] and folder.state == "look"
    assert "Patch 1 has the file's text" in words(folder)
    assert repository.head() == theirs and of("tune").head.text == spec(path="bob").decode()
    assert synced(folder) == [("tune.spak", "patch")]
    changed(cast["bob"], "tune", spec(path="bob2"))
    assert synced(folder) == [("tune.spak", "waits")] and repository.head() == theirs
    patch = Patch.objects.get()
    assert (patch.latest.base.number, patch.latest.text) == (1, spec("Tuned").decode())
    made = reviews.update(cast["alice"], patch, 1)  # what both changed fits together
    reviews.judge(cast["rita"], patch, made.number, True)
    reviews.merge(cast["alice"], patch, made.number)
    assert synced(folder) == [("tune.spak", "sent")]
    assert in_git(repository, "tune.spak") == spec("Tuned", "bob2") == of("tune").head.text.encode()
    assert synced(folder) == []


def test_a_conflict_whose_patch_was_closed_goes_on_with_the_next_change(
    cast: Any, folder: Folder, push: Push, repository: Repository
) -> None:
    push({"tune.spak": spec()})
    synced(folder)
    changed(cast["bob"], "tune", spec(path="bob"))
    theirs = push({"tune.spak": spec(path="theirs")})
    synced(folder)
    patch = Patch.objects.get()
    reviews.close(cast["rita"], patch, 1)
    assert synced(folder) == [("tune.spak", "left")] and repository.head() == theirs
    again = push({"tune.spak": spec(path="theirs2")})  # still not what both had: a patch again
    assert synced(folder) == [("tune.spak", "conflict")] and Patch.objects.count() == 2
    assert of("tune").head.text == spec(path="bob").decode() and repository.head() == again
    reviews.close(cast["rita"], Patch.objects.get(number=2), 1)
    changed(cast["bob"], "tune", spec(path="both"))
    assert synced(folder) == [("tune.spak", "sent")]
    assert in_git(repository, "tune.spak") == spec(path="both")


def test_a_file_that_goes_back_after_its_patch_was_closed_gets_the_specs_version(
    cast: Any, folder: Folder, push: Push, repository: Repository
) -> None:
    push({"tune.spak": spec()})
    synced(folder)
    changed(cast["bob"], "tune", spec(path="bob"))
    push({"tune.spak": spec(path="theirs")})
    synced(folder)
    reviews.close(cast["rita"], Patch.objects.get(), 1)
    synced(folder)
    push({"tune.spak": spec()})
    assert synced(folder) == [("tune.spak", "sent")] and Patch.objects.count() == 1
    assert in_git(repository, "tune.spak") == spec(path="bob")
    assert synced(folder) == [] and folder.state == "same"


def test_a_spec_that_nobody_put_into_the_folder_does_not_go_out(
    cast: Any, source: Source, folder: Folder, push: Push, repository: Repository
) -> None:
    create_spec(cast["alice"], cast.team, "tune", spec(path="mine").decode())
    at = push({"tune.spak": spec(path="theirs")})
    assert synced(folder) == [("tune.spak", "conflict")]
    reviews.close(cast["rita"], Patch.objects.get(), 1)
    assert synced(folder) == [("tune.spak", "left")] and "never had its text" in words(folder)
    changed(cast["bob"], "tune", spec(path="secret"))
    assert synced(folder) == [("tune.spak", "left")] and repository.head() == at
    assert "never had its text" in words(folder) and folder.state == "look"
    push({"keep.txt": b"x"})
    assert synced(folder) == [("tune.spak", "removed")] and synced(folder) == []
    at = push({"tune.spak": spec(path="again")})  # a removal makes it nobody's either
    assert synced(folder) == [("tune.spak", "conflict")] and repository.head() == at
    assert of("tune").head.text == spec(path="secret").decode()
    reviews.close(cast["rita"], Patch.objects.get(number=2), 1)
    push({"keep.txt": b"x"})
    assert synced(folder) == [("tune.spak", "removed")]
    actions.include(cast["bob"], source, of("tune"))
    assert synced(folder) == [("tune.spak", "sent")]
    assert in_git(repository, "tune.spak") == spec(path="secret")


def test_a_spec_whose_first_patch_was_merged_with_its_own_changes_goes_out(
    cast: Any, folder: Folder, push: Push, repository: Repository
) -> None:
    create_spec(cast["alice"], cast.team, "tune", spec().decode())
    push({"tune.spak": spec("Tuned")})
    synced(folder)
    changed(cast["bob"], "tune", spec(path="bob"))
    patch = Patch.objects.get()
    made = reviews.update(cast["alice"], patch, 1)
    reviews.judge(cast["rita"], patch, made.number, True)
    reviews.merge(cast["alice"], patch, made.number)
    assert synced(folder) == [("tune.spak", "sent")]
    assert in_git(repository, "tune.spak") == spec("Tuned", "bob")


def test_nothing_goes_out_unless_it_may(
    cast: Any, source: Source, push: Push, repository: Repository
) -> None:
    folder = actions.set_up(cast["alice"], source, "main", "specs")
    at = push({"tune.spak": spec()})
    synced(folder)
    changed(cast["bob"], "tune", spec(path="bob"))
    assert not wanted(SYNC)
    assert synced(folder) == [("tune.spak", "left")] and repository.head() == at
    with pytest.raises(Refused) as why:
        actions.include(cast["bob"], source, cast.spec)
    assert why.value.code == "folder.nothing_out"
    actions.set_up(cast["alice"], source, "main", "specs", "commit")
    assert synced(folder) == [("tune.spak", "sent")]


def test_a_spec_is_put_into_the_folder(
    cast: Any, folder: Folder, push: Push, repository: Repository, source: Source
) -> None:
    push({"tune.spak": spec()})
    synced(folder)
    actions.include(cast["bob"], source, cast.spec)
    with pytest.raises(Refused) as why:
        actions.include(cast["bob"], source, cast.spec)
    assert why.value.code == "folder.taken"
    assert synced(folder) == [("small.spak", "sent")]
    assert in_git(repository, "small.spak") == cast.spec.head.text.encode()
    push({"tune.spak": spec()})  # removed there: it is not made again
    assert synced(folder) == [("small.spak", "removed")] and synced(folder) == []


@pytest.mark.parametrize("what", ["folder", "link", "above"])
def test_what_is_in_the_way_is_not_written_over(
    what: str, cast: Any, source: Source, folder: Folder, push: Push, repository: Repository
) -> None:
    inner = ("040000", repository.tree({"kept": b"x"}))
    link = ("120000", repository.blob(b"elsewhere"))
    if what == "above":
        at = repository.commit({"specs": b"a file"})
    else:
        at = push({"small.spak": inner if what == "folder" else link})
    actions.include(cast["bob"], source, cast.spec)
    found = synced(folder)
    assert repository.head() == at
    assert (folder.state, found) == ("look", [("small.spak", "wrong")])
    assert what == "link" or words(folder).startswith("folder.place: ")


def test_a_folder_in_the_way_of_one_file_holds_up_no_other(
    cast: Any, source: Source, folder: Folder, push: Push, repository: Repository
) -> None:
    push({"small.spak": ("040000", repository.tree({"kept": b"x"})), "tune.spak": spec()})
    synced(folder)
    actions.include(cast["bob"], source, cast.spec)
    changed(cast["bob"], "tune", spec(path="bob"))
    assert synced(folder) == [("small.spak", "wrong"), ("tune.spak", "sent")]
    assert in_git(repository, "tune.spak") == spec(path="bob")
    assert in_git(repository, "small.spak/kept") == b"x\n"
    assert git(repository.folder, "log", "-1", "--format=%s") == "tune: By hand"
    assert (folder.state, folder.error) == ("look", "")


def test_what_came_in_is_told_where_nothing_can_go_out(
    cast: Any, folder: Folder, push: Push, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*given: Any) -> None:
        raise RunError("git.push_refused", "the branch is protected", "")

    monkeypatch.setattr(steps.giving, "give", refused)
    push({"tune.spak": spec()})
    actions.include(cast["bob"], source, cast.spec)
    assert synced(folder) == [("tune.spak", "created")]
    assert folder.state == "failed" and folder.error.startswith("git.push_refused")
    assert of("tune").head.number == 1
    assert Event.objects.get(action="source.folder_synced").detail["created"] == 1


def test_a_branch_that_moves_while_it_is_pushed_to_is_synced_again(
    cast: Any, folder: Folder, push: Push, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    push({"tune.spak": spec(), "other.spak": spec("Other")})
    synced(folder)
    changed(cast["bob"], "tune", spec(path="bob"))
    usual, moved = steps.giving.give, []

    def late(*given: Any) -> Any:
        if not moved:
            moved.append(push({"tune.spak": spec(), "other.spak": spec("Other", "theirs")}))
        return usual(*given)

    monkeypatch.setattr(steps.giving, "give", late)
    synced(folder)
    assert repository.head() == moved[0] and job().tries == 1 and job().due is not None
    assert synced(folder) == [("other.spak", "changed"), ("tune.spak", "sent")]
    assert git(repository.folder, "rev-parse", "main^") == moved[0]
    assert in_git(repository, "other.spak") == spec("Other", "theirs")
