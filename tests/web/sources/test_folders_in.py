"""What comes in from a folder over a real repository: versions, patches, and texts that are left out."""

from __future__ import annotations

from typing import Any

import pytest

from folders_kit import WRONG, Push, of, spec, synced, words
from sources_kit import Repository
from spakweb.ground.audit.models import Event
from spakweb.store.folders.models import Folder, FolderFile
from spakweb.store.reviews.models import Patch
from spakweb.store.sources.models import Source
from spakweb.store.specs.models import Spec
from spakweb.work.reviews import actions as reviews
from spakweb.work.reviews import history
from spakweb.work.reviews.protection import protect, protect_team
from spakweb.work.specs.actions import archive, create_spec


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


@pytest.mark.findings("B3")
def test_a_push_that_widens_gets_a_patch(cast: Any, folder: Folder, push: Push) -> None:
    """Whoever pushed it: the folder's person is an admin, and did not look."""
    push({"tune.spak": spec()})
    synced(folder)
    protect_team(cast["alice"], cast.team, 0, widening="shared")
    push({"tune.spak": spec() + b"// more\n"})
    assert synced(folder) == [("tune.spak", "changed")]
    wide = spec().replace(b"LEVEL 1", b"LEVEL 2")
    push({"tune.spak": wide})
    assert synced(folder) == [("tune.spak", "patch")]
    assert words(folder) == "Patch 1 waits for review: the spec may do more by it."
    assert (of("tune").head.number, Patch.objects.get().latest.text) == (2, wide.decode())


def test_a_file_that_is_changed_back_closes_its_patch(cast: Any, folder: Folder, push: Push) -> None:
    push({"tune.spak": spec()})
    synced(folder)
    protect(cast["alice"], of("tune"), 1)
    push({"tune.spak": spec(path="lib")})
    synced(folder)
    push({"tune.spak": spec()})
    assert synced(folder) == []
    assert of("tune").head.number == 1
