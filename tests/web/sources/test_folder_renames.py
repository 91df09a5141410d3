"""A file that was renamed in git stays the file of its spec, with its name, its versions and its patch."""

from __future__ import annotations

from typing import Any

import pytest

from folders_kit import PAGE, Push, changed, in_git, of, spec, synced, words
from sources_kit import Repository
from spakweb.ground.teams.models import Membership, Role
from spakweb.store.folders.models import Folder, FolderFile
from spakweb.store.reviews.models import Patch
from spakweb.store.specs.models import Spec
from spakweb.work.folders.taking import renamed
from spakweb.work.reviews.protection import protect
from spakweb.work.specs.actions import create_spec


def files() -> set[tuple[str, str]]:
    return {(row.path, row.spec.slug) for row in FolderFile.objects.all()}


def test_a_renamed_file_keeps_its_spec(cast: Any, folder: Folder, push: Push, repository: Repository) -> None:
    push({"tune.spak": spec()})
    synced(folder)
    changed(cast["alice"], "tune", spec(path="lib"))
    assert synced(folder) == [("tune.spak", "sent")]
    push({"fast.spak": spec(path="lib")})
    assert synced(folder) == [("fast.spak", "moved")]
    assert "it was tune.spak: the spec keeps its name" in words(folder) and folder.state == "same"
    assert files() == {("fast.spak", "tune")}
    assert [one.number for one in of("tune").versions.all()] == [2, 1]
    assert synced(folder) == []
    changed(cast["alice"], "tune", spec(path="src"))
    assert synced(folder) == [("fast.spak", "sent")]
    assert in_git(repository, "fast.spak") == spec(path="src")


def test_a_renamed_and_edited_file_is_a_version(folder: Folder, push: Push, repository: Repository) -> None:
    push({"tune.spak": spec(), "other.spak": spec("Other")})
    synced(folder)
    push({"gpu": ("040000", repository.tree({"fast.spak": spec(path="lib")})), "other.spak": spec("Other")})
    assert synced(folder) == [("gpu/fast.spak", "moved"), ("gpu/fast.spak", "changed")]
    assert files() == {("gpu/fast.spak", "tune"), ("other.spak", "other")}
    assert of("tune").head.number == 2 and Spec.objects.filter(slug="gpu-fast").count() == 0


def test_another_folder_with_the_same_name(folder: Folder, push: Push, repository: Repository) -> None:
    push({"gpu": ("040000", repository.tree({"tune.spak": spec()}))})
    synced(folder)
    push({"gpu-tune.spak": spec()})
    assert synced(folder) == [("gpu-tune.spak", "moved")]
    assert files() == {("gpu-tune.spak", "gpu-tune")}


def test_a_patch_that_is_open_follows(cast: Any, folder: Folder, push: Push) -> None:
    push({"tune.spak": spec()})
    synced(folder)
    protect(cast["alice"], of("tune"), 1)
    push({"tune.spak": spec(path="lib")})
    assert synced(folder) == [("tune.spak", "patch")]
    push({"fast.spak": spec(path="lib")})
    assert synced(folder) == [("fast.spak", "moved"), ("fast.spak", "patch")]
    push({"fast.spak": spec(path="src")})
    assert synced(folder) == [("fast.spak", "patch")]
    assert Patch.objects.get().latest.text == spec(path="src").decode()


def test_imports_find_it_by_both_names(folder: Folder, push: Push) -> None:
    model = b'SYSTEM_MODEL Facts {\n  AXIOM "It holds."\n}\n'
    user = b'IMPORT "facts.spak"\n' + spec("User")
    push({"facts.spak": model, "user.spak": user})
    assert dict(synced(folder)) == {"facts.spak": "created", "user.spak": "created"}
    push({"truths.spak": model, "user.spak": user.replace(b"facts.spak", b"truths.spak")})
    assert synced(folder) == [("truths.spak", "moved"), ("user.spak", "changed")]
    push({"truths.spak": model, "user.spak": user})
    assert synced(folder) == [("user.spak", "changed")]


def test_a_name_that_another_spec_has_is_no_rename(cast: Any, folder: Folder, push: Push) -> None:
    create_spec(cast["alice"], cast.team, "fast", spec("Mine", "mine").decode())
    push({"tune.spak": spec()})
    synced(folder)
    push({"fast.spak": spec()})
    assert synced(folder) == [("fast.spak", "conflict"), ("tune.spak", "removed")]
    assert of("fast").head.number == 1


def test_a_file_that_was_gone_before_is_made_anew(folder: Folder, push: Push) -> None:
    push({"tune.spak": spec(), "other.spak": spec("Other", "z")})
    synced(folder)
    push({"other.spak": spec("Other", "z")})
    assert synced(folder) == [("tune.spak", "removed")]
    push({"other.spak": spec("Other", "z"), "fast.spak": spec()})
    assert synced(folder) == [("fast.spak", "created")]


TEXT = "".join(f"line {n}\n" for n in range(20))
OTHER = "".join(f"other {n}\n" for n in range(20))


@pytest.mark.parametrize(
    ("gone", "new", "pairs"),
    [
        ({"a": TEXT}, {"b": TEXT}, [("a", "b")]),
        ({"a": TEXT}, {"b": OTHER}, []),
        ({"a": TEXT}, {"b": TEXT + OTHER}, []),
        ({"a": TEXT}, {"b": TEXT + "more\n", "c": TEXT}, [("a", "c")]),
        ({"a": TEXT, "c": OTHER}, {"b": OTHER, "d": TEXT}, [("a", "d"), ("c", "b")]),
        ({"a": TEXT, "c": TEXT}, {"b": TEXT, "d": TEXT}, [("a", "b"), ("c", "d")]),
        ({"a": ""}, {"b": ""}, [("a", "b")]),
        ({}, {"b": TEXT}, []),
        ({f"a{n}": TEXT + f"{n}" for n in range(30)}, {f"b{n}": TEXT + f"{n + 1}" for n in range(30)},
         [(f"a{n + 1}", f"b{n}") for n in range(29)]),
    ],
    ids=["same", "other", "half", "best", "crossed", "equal", "empty", "none", "many"],
)  # fmt: skip
def test_which_names_belong_together(gone: Any, new: Any, pairs: Any) -> None:
    assert sorted(renamed(gone, new)) == sorted(pairs)


def test_a_team_with_one_admin_is_told_what_that_means(cast: Any, folder: Folder) -> None:
    alice, words = cast.client("alice"), "nobody approves a patch of their own"
    assert words in alice.get(PAGE).content.decode()
    assert words not in cast.client("bob").get(PAGE).content.decode()
    Membership.objects.filter(team=cast.team, user=cast["bob"]).update(role=Role.ADMIN)
    assert words not in alice.get(PAGE).content.decode()


def test_the_page_follows_a_sync(cast: Any, folder: Folder, push: Push) -> None:
    alice = cast.client("alice")
    assert 'hx-select="#synced"' in alice.get(PAGE).content.decode()
    push({"tune.spak": spec()})
    synced(folder)
    assert 'hx-select="#synced"' not in alice.get(PAGE).content.decode()
    answer = alice.post(f"{PAGE}folder/", {"do": "sync"}, follow=True).content.decode()
    assert 'hx-select="#synced"' in answer and "Reload" not in answer
