"""A folder of .spak files and specs of the team, over a real repository: what comes in, what goes out, and
what is never written over."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.urls import reverse

import signed_kit
from sources_kit import Forge, Host, Repository, git
from spak.errors import RunError
from spakweb import clock
from spakweb.audit.models import Event
from spakweb.errors import Refused
from spakweb.folders import actions, queue, reading, steps, taking
from spakweb.folders.models import Folder, FolderFile
from spakweb.incoming import actions as incoming
from spakweb.reviews import actions as reviews
from spakweb.reviews import history
from spakweb.reviews.models import Patch
from spakweb.reviews.protection import protect
from spakweb.runs.models import Run
from spakweb.sources import actions as sources
from spakweb.sources.models import Source
from spakweb.specs.actions import archive, create_spec, save_version
from spakweb.specs.models import Spec, SpecVersion
from spakweb.teams.models import Membership
from spakweb.triggers import actions as triggers
from spakweb.worker import execute

SPEC = """\
AGENT {name} LEVEL 1 {{
  START -> one
  TASK one {{
    step a: tool.list_files {{ path: "{path}" }}
    NEXT {{ success -> two }}
  }}
  TASK two {{
    step b: tool.list_files {{ path: "." }}
  }}
}}
"""
WRONG = b"AGENT Broken { START -> nowhere }\n"
PAGE = "/t/kernel-tuners/sources/s/app/"


def spec(name: str = "Tune", path: str = ".") -> bytes:
    return SPEC.format(name=name, path=path).encode()


Push = Callable[..., str]


@pytest.fixture
def push(repository: Repository) -> Push:
    """`push({"tune.spak": b"..."})`: the whole folder specs, in a commit on main upon the one before."""

    def make(files: dict[str, Any], ref: str = "refs/heads/main") -> str:
        entries = {"README.md": b"# App\n", "specs": ("040000", repository.tree(files))}
        try:
            parent = repository.head(ref)
        except AssertionError:
            parent = ""
        return repository.commit(entries, ref, parent)

    return make


@pytest.fixture
def folder(cast: Any, source: Source) -> Folder:
    return actions.set_up(cast["alice"], source, "main", "specs", "commit")


def synced(folder: Folder) -> list[tuple[str, str]]:
    """Sync it; gives path and outcome of each line."""
    queue.want(Folder.objects.filter(pk=folder.pk))
    steps.sync(folder.pk)
    folder.refresh_from_db()
    return [(line["path"], line["what"]) for line in folder.result]


def words(folder: Folder) -> str:
    return " ".join(line["words"] for line in folder.result)


def of(slug: str) -> Spec:
    return Spec.objects.select_related("head", "team").get(slug=slug)


def changed(who: Any, slug: str, text: bytes | str) -> SpecVersion:
    """Somebody saves a version in the browser."""
    found = of(slug)
    data = text if isinstance(text, str) else text.decode()
    made = save_version(who, found, data, found.head.number, "By hand")
    assert isinstance(made, SpecVersion)
    return made


def in_git(repository: Repository, path: str, ref: str = "refs/heads/main") -> bytes:
    return (git(repository.folder, "show", f"{ref}:specs/{path}") + "\n").encode()


# ---- in


def test_files_become_specs_and_pushes_become_versions(
    cast: Any, folder: Folder, push: Push, source: Source
) -> None:
    first = push({"tune.spak": spec(), "notes.txt": b"x"})
    assert synced(folder) == [("tune.spak", "created")]
    made = of("tune")
    assert (made.head.text, made.head.author, made.made_by) == (spec().decode(), cast["alice"], cast["alice"])
    assert made.head.provenance["origin"] == {
        "source": "app", "path": "specs/tune.spak", "ref": "refs/heads/main", "commit": first, "author": "T"
    }  # fmt: skip
    assert (folder.state, folder.commit, folder.error) == ("same", first, "")
    second = push({"tune.spak": spec(path="lib"), "other.spak": spec("Other")})
    assert synced(folder) == [("other.spak", "created"), ("tune.spak", "changed")]
    made = of("tune")
    assert (made.head.number, made.head.message) == (2, f"From app {second[:12]} by T: change")
    assert synced(folder) == [] and folder.state == "same"
    push({"other.spak": spec("Other")})
    assert synced(folder) == [("tune.spak", "removed")]
    assert of("tune").archived_at is None and synced(folder) == []
    push({"other.spak": spec("Other"), "tune.spak": spec(path="again")})
    assert synced(folder) == [("tune.spak", "changed")]
    done = Event.objects.filter(action="source.folder_synced").order_by("pk")
    assert [event.detail.get("created", 0) for event in done] == [1, 1, 0, 0]


def test_files_in_folders_of_the_folder_have_their_path_in_their_name(
    folder: Folder, push: Push, repository: Repository
) -> None:
    push({"a": ("040000", repository.tree({"tune.spak": spec()})), "tune.spak": spec("Other")})
    assert synced(folder) == [("a/tune.spak", "created"), ("tune.spak", "created")]
    assert {(row.path, row.spec.slug) for row in FolderFile.objects.all()} == {
        ("a/tune.spak", "a-tune"), ("tune.spak", "tune")
    }  # fmt: skip


def test_a_text_with_errors_is_reported_and_the_others_come_in(folder: Folder, push: Push) -> None:
    push({"bad.spak": WRONG, "tune.spak": spec(), "binary.spak": b"\xff\xfe\x00", "nul.spak": b"a\0b"})
    found = dict(synced(folder))
    assert found == {
        "bad.spak": "invalid",
        "binary.spak": "wrong",
        "nul.spak": "wrong",
        "tune.spak": "created",
    }
    assert "line 1" in words(folder) and "lang.empty" in words(folder) and folder.state == "look"
    assert not Spec.objects.filter(slug__in=("bad", "binary", "nul")).exists()
    push({"tune.spak": WRONG})
    assert ("tune.spak", "invalid") in synced(folder)
    assert of("tune").head.number == 1
    assert ("tune.spak", "invalid") in synced(folder)  # told until it is mended
    push({"tune.spak": spec(path="lib")})
    assert ("tune.spak", "changed") in synced(folder)


def test_a_spec_may_import_another_of_the_same_push(folder: Folder, push: Push) -> None:
    importing = b'IMPORT "shared.spak"\n' + spec("Tune")
    shared = b'TASK common { step a: tool.list_files { path: "." } }\n'
    push({"a.spak": importing, "shared.spak": shared})
    assert synced(folder) == [("shared.spak", "created"), ("a.spak", "created")]
    push({"a.spak": b'IMPORT "gone.spak"\n' + spec("Tune"), "shared.spak": shared})
    assert synced(folder) == [("a.spak", "invalid")]


@pytest.mark.parametrize(
    ("name", "entry"),
    [("link.spak", ("120000", "")), ("module.spak", ("160000", "1" * 40)), ("\u202eevil.spak", b""),
     ("caf\udcff.spak", b""), ("-n.spak", b""), ("a\nb.spak", b""), ("UP.SPAK", b""), ("___.spak", b"good"),
     ("big.spak", b"# " + b"x" * 600_000),
     ("lfs.spak", b"version https://git-lfs.github.com/spec/v1\noid x\n")],
    ids=range(10),
)  # fmt: skip
def test_odd_files_are_left_out_in_words_and_hold_up_no_other(
    name: str, entry: Any, folder: Folder, push: Push, repository: Repository
) -> None:
    if isinstance(entry, tuple) and not entry[1]:
        entry = ("120000", repository.blob(b"/etc/passwd"))
    entry = spec() if entry in (b"", b"good") else entry
    push({name: entry, "tune.spak": spec()})
    found = dict(synced(folder))
    assert found.pop("tune.spak") == "created"
    assert list(found.values()) == ["wrong"], found
    assert set(Spec.objects.values_list("slug", flat=True)) == {"small", "tune"}
    assert "passwd" not in str(folder.result)


def test_two_paths_of_one_name_and_names_that_are_taken(
    cast: Any, folder: Folder, push: Push, repository: Repository
) -> None:
    create_spec(cast["alice"], cast.team, "mine", spec("Mine").decode())
    create_spec(cast["alice"], cast.team, "old", spec("Old").decode())
    archive(cast["alice"], of("old"))
    push({"a_b.spak": spec(), "a": ("040000", repository.tree({"b.spak": spec()})),
          "mine.spak": spec("Mine"), "old.spak": spec("Old", "x")})  # fmt: skip
    found = synced(folder)
    assert found == [("a/b.spak", "created"), ("a_b.spak", "wrong"), ("old.spak", "wrong")]
    assert FolderFile.objects.get(path="mine.spak").spec == of("mine")  # the same text: taken over


def test_a_spec_that_was_there_with_another_text_is_a_conflict_and_keeps_its_text(
    cast: Any, folder: Folder, push: Push
) -> None:
    mine = create_spec(cast["alice"], cast.team, "tune", spec(path="mine").decode())
    push({"tune.spak": spec(path="theirs")})
    assert synced(folder) == [("tune.spak", "conflict")]
    patch = Patch.objects.get()
    assert of("tune").head == mine.head and patch.latest.text == spec(path="theirs").decode()
    assert synced(folder) == [("tune.spak", "patch")] and Patch.objects.count() == 1
    reviews.judge(cast["rita"], patch, 1, True)
    reviews.merge(cast["alice"], patch, 1)
    assert synced(folder) == [] and of("tune").head.text == spec(path="theirs").decode()


def test_a_protected_spec_gets_a_patch_with_author_and_commit(cast: Any, folder: Folder, push: Push) -> None:
    push({"tune.spak": spec()})
    synced(folder)
    protect(cast["alice"], of("tune"), 1)
    commit = push({"tune.spak": spec(path="lib")})
    assert synced(folder) == [("tune.spak", "patch")]
    patch = Patch.objects.get()
    assert (of("tune").head.number, patch.state, patch.author) == (1, "open", cast["alice"])
    assert patch.origin["commit"] == commit and patch.origin["author"] == "T"
    assert commit in patch.rationale and "by T" in patch.rationale
    again = push({"tune.spak": spec(path="lib2")})
    assert synced(folder) == [("tune.spak", "patch")]
    patch.refresh_from_db()
    assert (Patch.objects.count(), patch.latest.number, patch.origin["commit"]) == (1, 2, again)
    reviews.judge(cast["rita"], patch, 2, True)
    version = reviews.merge(cast["bob"], patch, 2)
    assert version.provenance["origin"]["commit"] == again
    assert history.verify(of("tune")) == []
    assert synced(folder) == [] and folder.state == "same"
    assert of("tune").head.text == spec(path="lib2").decode()


def test_a_file_that_is_changed_back_closes_its_patch(cast: Any, folder: Folder, push: Push) -> None:
    push({"tune.spak": spec()})
    synced(folder)
    protect(cast["alice"], of("tune"), 1)
    push({"tune.spak": spec(path="lib")})
    synced(folder)
    push({"tune.spak": spec()})
    assert synced(folder) == []
    assert of("tune").head.number == 1


# ---- out


def test_a_saved_version_becomes_one_commit_and_our_own_push_does_nothing(
    cast: Any, folder: Folder, push: Push, repository: Repository
) -> None:
    first = push({"tune.spak": spec(), "other.spak": spec("Other"), "keep.txt": b"kept"})
    synced(folder)
    changed(cast["bob"], "tune", spec(path="bob"))
    changed(cast["bob"], "other", spec("Other", "bob"))
    folder.refresh_from_db()
    assert folder.wanted_at is not None  # saving asked for it
    assert synced(folder) == [("other.spak", "sent"), ("tune.spak", "sent")]
    made = repository.head()
    assert git(repository.folder, "rev-parse", f"{made}^") == first == folder_commit(made, repository)
    assert in_git(repository, "tune.spak") == spec(path="bob")
    assert git(repository.folder, "diff", "--name-only", first, made).split() == [
        "specs/other.spak", "specs/tune.spak"
    ]  # fmt: skip
    said = git(repository.folder, "log", "-1", "--format=%an|%B")
    assert said.startswith("SPAK|Update 2 specs") and "tune version 2, saved by bob: By hand" in said
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
    folder.refresh_from_db()
    assert folder.wanted_at is None
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


def test_a_pull_request_waits_and_is_not_opened_twice(
    cast: Any, ground: None, repository: Repository, host: Host, push: Push
) -> None:
    forge = Forge()
    try:
        (repository.folder.parent / "shop").mkdir()
        moved = repository.folder.parent / "shop" / "app.git"
        repository.folder.rename(moved)
        repository.folder = moved
        source = sources.add(
            cast["alice"], cast.team, "shop", host.url("shop/app.git"), ["main"], forge="github",
            api_url=forge.url, api_token=Forge.TOKEN,
        )  # fmt: skip
        folder = actions.set_up(cast["alice"], source, "main", "specs", "pull")
        at = push({"tune.spak": spec()})
        synced(folder)
        changed(cast["bob"], "tune", spec(path="bob"))
        assert synced(folder) == [("tune.spak", "sent")]
        assert repository.head() == at and len(forge.pulls) == 1
        assert forge.pulls[0]["base"] == "main" and forge.pulls[0]["head"] == folder.pull_branch
        assert folder.pull_url == forge.pulls[0]["shown"]["html_url"]
        assert synced(folder) == [("tune.spak", "waits")] and len(forge.pulls) == 1
        git(repository.folder, "update-ref", "refs/heads/main", f"refs/heads/{folder.pull_branch}")
        assert synced(folder) == [] and folder.state == "same"  # it was merged there
        changed(cast["bob"], "tune", spec(path="more"))
        forge.instead = (422, b'{"message": "no"}')
        assert synced(folder) is not None
        assert folder.state == "failed" and folder.error.startswith("git.pull_refused")
        forge.instead = None
        assert synced(folder) == [("tune.spak", "sent")] and len(forge.pulls) == 2
    finally:
        forge.close()


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
    assert repository.head() == moved[0] and folder.tries == 1 and folder.not_before is not None
    assert synced(folder) == [("other.spak", "changed"), ("tune.spak", "sent")]
    assert git(repository.folder, "rev-parse", "main^") == moved[0]
    assert in_git(repository, "other.spak") == spec("Other", "theirs")


# ---- what goes wrong


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
        assert (folder.tries, folder.state) == (1, "same") and folder.wanted_at and folder.not_before
        Folder.objects.update(tries=steps.TRIES, not_before=None)
        steps.sync(folder.pk)
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


def test_one_worker_at_a_time_and_one_that_died_is_followed(
    folder: Folder, push: Push, monkeypatch: pytest.MonkeyPatch
) -> None:
    push({"tune.spak": spec()})
    Folder.objects.update(claimed_at=clock.now())
    assert synced(folder) == [] and not Spec.objects.filter(slug="tune").exists()
    later = clock.now() + queue.LOST + queue.LOST
    monkeypatch.setattr("django.conf.settings.SOURCE_S", 1)
    monkeypatch.setattr(clock, "now", lambda: later)
    assert synced(folder) == [("tune.spak", "created")]


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
            assert not queue.free().exists()
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
    assert (folder.claimed_at, folder.wanted_at, folder.state) == (None, None, "same")


def test_a_sync_ends_in_the_end_and_the_next_one_goes_on(
    folder: Folder, push: Push, slow: Callable[[timedelta], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    push(MANY)
    monkeypatch.setattr(queue, "LONGEST", timedelta(seconds=300))
    made = slow(timedelta(seconds=170))
    synced(folder)
    assert made == ["s0.spak", "s1.spak"]
    assert folder.wanted_at and folder.not_before and (folder.tries, folder.claimed_at) == (1, None)
    assert synced(folder) == [("s2.spak", "created"), ("s3.spak", "created")]
    push({**MANY, **{f"t{number}.spak": spec() for number in range(3)}})
    Folder.objects.update(wanted_at=clock.now(), tries=steps.TRIES)  # one time after the other
    steps.sync(folder.pk)
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
    steps.sync(folder.pk)
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


# ---- by signed messages


def test_a_signed_push_makes_a_version_and_its_repetition_nothing(
    cast: Any, folder: Folder, push: Push, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "send", steps.sync)  # a worker that is there at once
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


# ---- people


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
