"""What a copy of a folder holds: what git tracks or would track, as it is now, and nothing of the original
that a job could reach."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import socket
import stat
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from spak.errors import RunError, UsageError, UserError
from spak.repository import git as repository
from spak.workspace import Bounds, Copied, Wanted, Workspace
from spak.workspace.tree import MAX_DEPTH

GIT = ("git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always")
Copy = Callable[..., Copied]


def laid(folder: Path, files: dict[str, str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def git(folder: Path, *words: str) -> None:
    subprocess.run([*GIT, *words], cwd=folder, check=True, capture_output=True)


def committed(folder: Path, files: dict[str, str]) -> Path:
    laid(folder, files)
    git(folder, "init", "-q")
    git(folder, "add", "-A", "-f")
    git(folder, "commit", "-qm", "first")
    return folder


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return tmp_path / "source"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "run" / "workspace"


@pytest.fixture
def copied(source: Path, place: Path) -> Copy:
    def copy(
        bounds: Bounds | None = None, before: Callable[[str], None] | None = None, **wanted: object
    ) -> Copied:
        more = {} if before is None else {"before": before}
        space = Workspace(place, place.parent / "store", bounds=bounds, **more)  # type: ignore[arg-type]
        return space.copy_in(source, Wanted(**wanted))  # type: ignore[arg-type]

    return copy


def held(folder: Path) -> set[str]:
    """The files and links of a copy, without git's own."""
    found = (
        str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_symlink() or path.is_file()
    )
    return {path for path in found if not path.startswith(".git/")}


class TestRepository:
    def test_work_that_is_not_committed_is_brought_and_what_is_ignored_is_not(
        self, source: Path, place: Path, copied: Copy
    ) -> None:
        committed(source, {"a.py": "1", "gone.py": "", ".gitignore": "*.log\nout/\n", "kept.log": "tracked"})
        laid(source, {"a.py": "2", "new.py": "3", "x.log": "", "out/deep/y": "", "sub/z.log": ""})
        (source / "gone.py").unlink()
        done = copied()
        assert held(place) == {"a.py", "new.py", ".gitignore", "kept.log"}
        assert (place / "a.py").read_text() == "2"
        assert (done.files, set(done.left_out)) == (4, {"x.log", "out", "sub"})
        assert "4 files copied" in done.line and "3 ignored left out" in done.line

    def test_the_users_own_list_of_what_to_ignore_counts(
        self, source: Path, place: Path, copied: Copy, tmp_path: Path
    ) -> None:
        committed(source, {"a": ""})
        laid(tmp_path, {"home/.gitconfig": f"[core]\nexcludesFile = {tmp_path}/mine\n", "mine": "*.swp\n"})
        laid(source, {"b.swp": "", "b": ""})
        copied(home=str(tmp_path / "home"))
        assert held(place) == {"a", "b"}

    def test_no_program_of_the_repository_runs(
        self, source: Path, place: Path, copied: Copy, tmp_path: Path
    ) -> None:
        committed(source, {"a.txt": "pointer", ".gitattributes": "*.txt filter=x\n"})
        spy = laid(tmp_path, {"spy": f"#!/bin/sh\ntouch {tmp_path}/ran\ncat\n"}) / "spy"
        spy.chmod(0o755)
        for name in (
            "filter.x.clean",
            "filter.x.smudge",
            "filter.x.process",
            "core.fsmonitor",
            "core.sshCommand",
            "core.pager",
            "core.askPass",
            "credential.helper",
            "core.editor",
            "diff.external",
        ):
            git(source, "config", name, str(spy))
        git(source, "config", "core.untrackedCache", "true")
        git(source, "config", "core.hooksPath", str(laid(tmp_path / "hooks", {})))
        for hook in ("post-index-change", "fsmonitor-watchman", "query-watchman", "post-checkout"):
            laid(tmp_path / "hooks", {hook: spy.read_text()})
            (tmp_path / "hooks" / hook).chmod(0o755)
        (source / "a.txt").write_text("changed")
        (tmp_path / "ran").unlink(missing_ok=True)
        index = (source / ".git/index").read_bytes()
        copied()
        assert not (tmp_path / "ran").exists() and (source / ".git/index").read_bytes() == index
        assert (place / "a.txt").read_text() == "changed"

    def test_pointers_of_large_files_stay_pointers(self, source: Path, place: Path, copied: Copy) -> None:
        pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n"
        committed(
            source, {"big.bin": pointer, ".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n"}
        )
        copied()
        assert (place / "big.bin").read_text() == pointer

    def test_submodules_and_repositories_below(
        self, source: Path, place: Path, copied: Copy, tmp_path: Path
    ) -> None:
        library = committed(tmp_path / "library", {"lib.c": "1", ".gitignore": "*.o\n"})
        committed(source, {"a": ""})
        git(source, "submodule", "add", "-q", str(library), "deps/lib")
        laid(source, {"deps/lib/lib.c": "2", "deps/lib/x.o": "", "deps/lib/new.c": ""})
        committed(source / "clone", {"own": "", ".gitignore": "junk\n", "junk": ""})
        git(source / "clone", "rm", "-q", "--cached", "junk")
        done = copied()
        assert held(place) == {
            "a", ".gitmodules", "deps/lib/lib.c", "deps/lib/.gitignore", "deps/lib/new.c", "clone/own",
            "clone/.gitignore",
        }  # fmt: skip
        assert (place / "deps/lib/lib.c").read_text() == "2"
        assert set(done.left_out) == {"deps/lib/x.o", "clone/junk"}
        assert not (place / "deps/lib/.git").exists() and not (place / "clone/.git").exists()

    def test_a_worktree(self, source: Path, place: Path, copied: Copy, tmp_path: Path) -> None:
        main = committed(tmp_path / "main", {"a": "1", ".gitignore": "x\n"})
        git(main, "worktree", "add", "-q", str(source))
        laid(source, {"a": "2", "x": ""})
        copied()
        assert held(place) == {"a", ".gitignore"} and (place / "a").read_text() == "2"
        assert not (place / ".git").exists()

    def test_a_sparse_checkout_brings_what_is_there(self, source: Path, place: Path, copied: Copy) -> None:
        committed(source, {"here/a": "", "there/b": "", "top": ""})
        git(source, "sparse-checkout", "set", "here")
        copied()
        assert held(place) == {"here/a", "top"}

    def test_a_part_of_a_repository(self, source: Path, place: Path, copied: Copy) -> None:
        committed(source.parent, {"source/a": "", "source/.gitignore": "b\n", "other": ""})
        laid(source, {"b": "", "c": ""})
        copied()
        assert held(place) == {"a", ".gitignore", "c"}

    def test_a_folder_that_the_repository_around_it_ignores(
        self, source: Path, place: Path, copied: Copy
    ) -> None:
        committed(source.parent, {".gitignore": "source/\n"})
        laid(source, {"a": "", "deep/b": ""})
        copied()
        assert held(place) == {"a", "deep/b"}

    def test_a_tracked_folder_that_became_a_link_is_not_followed(
        self, source: Path, place: Path, copied: Copy, tmp_path: Path
    ) -> None:
        committed(source, {"deep/a": "mine"})
        (source / "deep/a").unlink()
        (source / "deep").rmdir()
        (source / "deep").symlink_to(laid(tmp_path / "elsewhere", {"a": "somebody's"}))
        copied()
        assert held(place) == {"deep"} and (place / "deep").is_symlink()

    def test_only_a_part(self, source: Path, place: Path, copied: Copy) -> None:
        committed(source, {"apps/one/a": "", "apps/two/b": "", "lib/c": "", "top*": "", "topmost": ""})
        copied(only=("apps/one", "lib", "top*"))
        assert held(place) == {"apps/one/a", "lib/c", "top*"}

    def test_what_is_asked_for_though_it_is_ignored(self, source: Path, place: Path, copied: Copy) -> None:
        committed(source, {".gitignore": "gen/\n*.so\n.env\n"})
        laid(source, {"gen/api.py": "", "gen/deep/x.py": "", "pkg/fast.so": "", "other.so": "", ".env": ""})
        done = copied(bring=("gen", "pkg/*.so"))
        assert held(place) == {".gitignore", "gen/api.py", "gen/deep/x.py", "pkg/fast.so"}
        assert set(done.left_out) == {"other.so", ".env"}

    def test_folders_that_are_shown_and_those_that_are_empty(
        self, source: Path, place: Path, copied: Copy
    ) -> None:
        ignored = "node_modules\n/target\n.vite\n"
        committed(source, {".gitignore": ignored, "build/tracked": "", "web/a.js": ""})
        laid(source, {"web/node_modules/m/i.js": "", "node_modules/.cache/c": "", "target/x": ""})
        laid(source, {"web/.vite/y": "", "venv/lib/z.py": "", "build/new": ""})
        done = copied()
        assert held(place) == {".gitignore", "build/tracked", "build/new", "web/a.js"}
        assert set(done.shown) == {"web/node_modules", "node_modules", "venv"}
        assert set(done.scratch) == {"target", "web/.vite", "node_modules/.cache"} and done.left_out == ()
        assert all((place / path).is_dir() for path in (*done.shown, *done.scratch))
        assert "venv" in done.line and "shown read-only" in done.line

    @pytest.mark.parametrize("file", [".git/HEAD", ".git"])
    def test_what_is_no_repository_but_looks_so_is_not_taken_for_a_folder(
        self, source: Path, place: Path, copied: Copy, file: str
    ) -> None:
        laid(source, {"a": "", ".env": "", file: "gitdir: /nowhere"})
        with pytest.raises(RunError) as caught:
            copied()
        assert caught.value.code == "git.failed" and list(place.iterdir()) == []

    def test_a_broken_repository_is_a_clear_error(self, source: Path, place: Path, copied: Copy) -> None:
        committed(source, {"a": ""})
        (source / ".git/index").write_bytes(b"no index")
        with pytest.raises(RunError) as caught:
            copied()
        assert caught.value.code == "git.failed" and list(place.iterdir()) == []


class TestFolder:
    def test_without_git_all_but_dependencies_is_brought(
        self, source: Path, place: Path, copied: Copy
    ) -> None:
        laid(source, {"a": "", "deep/b": "", ".spak/runs/x": "", "node_modules/m.js": "", "sub/.venv/x": "",
                      "sub/.git/HEAD": "x", "build/c": ""})  # fmt: skip
        (source / "empty").mkdir()
        done = copied()
        assert held(place) == {"a", "deep/b", "build/c"} and (place / "empty").is_dir()
        assert set(done.shown) == {"node_modules", "sub/.venv"} and done.left_out == ()

    def test_where_there_is_no_git_a_repository_is_not_copied_and_a_folder_is(
        self, source: Path, place: Path, copied: Copy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        laid(source, {"a": "", ".env": ""})
        for name in ("timeout", "prlimit"):
            laid(tmp_path, {"bin/none": ""})
            (tmp_path / "bin" / name).symlink_to(str(shutil.which(name)))
        monkeypatch.setattr(repository, "PATH", str(tmp_path / "bin"))
        copied()
        assert held(place) == {"a", ".env"}
        laid(source, {".git/HEAD": "ref: refs/heads/main\n", ".gitignore": ".env\n"})
        with pytest.raises(RunError) as caught:
            Workspace(tmp_path / "other/ws", tmp_path / "other/store").copy_in(source)
        assert caught.value.code == "git.missing"

    def test_only_files_go_in_and_none_is_shared(self, source: Path, place: Path, copied: Copy) -> None:
        laid(source, {"a": "mine"})
        os.mkfifo(source / "pipe")
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(source / "socket"))
        os.link(source / "a", source / "b")
        (source / "run").write_text("")
        (source / "run").chmod(0o4755)
        copied()
        assert held(place) == {"a", "b", "run"}
        assert {path.stat().st_nlink for path in place.iterdir()} == {1}
        assert stat.S_IMODE((place / "run").stat().st_mode) == 0o755
        (place / "a").write_text("the copy's")
        assert (source / "a").read_text() == "mine" == (place / "b").read_text()

    def test_names_that_are_no_utf8_or_differ_by_case_alone(
        self, source: Path, place: Path, copied: Copy
    ) -> None:
        names = {"bad\udcff.txt", "Readme", "README", " new\nline", "-n", "ü", "*"}
        for in_git in (False, True):
            for name in names:
                laid(source, {name: name.encode("utf-8", "surrogateescape").hex()})
            if in_git:
                git(source, "init", "-q")
            where = place if in_git else place.with_name("first")
            Workspace(where, where.with_name(f"{where.name}-store")).copy_in(source)
            assert held(where) == names
            assert (where / "Readme").read_text() != (where / "README").read_text()

    def test_the_copy_is_known_and_stored_before_it_is_scanned(self, source: Path, place: Path) -> None:
        laid(source, {"a": "1", ".env": "PASSWORD=h3xagon-lantern\n", "big": "x" * (2 << 20)})
        space = Workspace(place, place.parent / "store")
        space.copy_in(source)
        root = space.snapshot()
        assert root == Workspace(place, place.parent / "other").snapshot()
        space.begin("e")
        (place / "a").write_text("2")
        (place / "big").unlink()
        assert space.rollback() == ["a", "big"] and space.snapshot() == root
        assert space.secrets.files() == (".env",)

    def test_a_file_that_changes_while_it_is_copied(self, source: Path, place: Path, copied: Copy) -> None:
        laid(source, {"a": "1", "b": "1"})

        def once(call: str) -> None:
            if call == "write" and len((source / "a").read_text()) == 1:
                (source / "a").write_text("22")
                (source / "b").write_text("22")

        copied(before=once)
        assert {(place / name).read_text() for name in "ab"} == {"22"}

    def test_one_that_does_not_stop_changing_is_refused(
        self, source: Path, place: Path, copied: Copy
    ) -> None:
        laid(source, {"a": "1"})

        def always(call: str) -> None:
            if call == "write":
                (source / "a").write_text((source / "a").read_text() + "1")

        with pytest.raises(RunError) as caught:
            copied(before=always)
        assert caught.value.code == "workspace.changing" and "'a'" in caught.value.message
        assert list(place.iterdir()) == []

    @pytest.mark.parametrize("call", ["create", "write", "mkdir", "symlink"])
    @pytest.mark.parametrize(
        ("number", "code"),
        [(errno.ENOSPC, "workspace.full"), (errno.EDQUOT, "workspace.full"), (errno.EIO, "workspace.io"),
         (errno.EMFILE, "unavailable.host"), (errno.ENOMEM, "unavailable.host")],
    )  # fmt: skip
    def test_a_disk_or_a_host_that_gives_no_more_is_named_and_nothing_is_left(
        self, source: Path, place: Path, copied: Copy, call: str, number: int, code: str
    ) -> None:
        laid(source, {"a": "1", "deep/b": "1"})
        (source / "link").symlink_to("a")

        def failing(name: str) -> None:
            if name == call and list(place.iterdir()):
                raise OSError(number, os.strerror(number))

        with pytest.raises(UserError) as caught:
            copied(before=failing)
        assert caught.value.code == code and list(place.iterdir()) == []
        assert os.strerror(number) in caught.value.message and "resume" not in caught.value.hint

    @pytest.mark.parametrize("gone", ["z", "deep", "deep/b", "."])
    def test_what_vanishes_while_it_is_copied_is_named(
        self, source: Path, place: Path, copied: Copy, gone: str
    ) -> None:
        laid(source, {"a": "1", "deep/b": "1", "z": "1"})

        def vanishing(call: str) -> None:
            path = source / gone
            if call == "write" and list(place.iterdir()) and path.exists():
                shutil.rmtree(path) if path.is_dir() else path.unlink()

        with pytest.raises(RunError) as caught:
            copied(before=vanishing)
        assert caught.value.code == "workspace.changing" and "resume" not in caught.value.hint
        assert list(place.iterdir()) == []

    @pytest.mark.parametrize(
        ("bounds", "limit", "raised"),
        [
            (Bounds(entries=9), "9 files and folders", "`files`"),
            (Bounds(size_bytes=(2 << 20) - 1), "1 MiB", "`size_mib`"),
            (Bounds(store_bytes=1 << 20), "1 MiB", "`store_mib`"),
        ],
    )
    def test_too_much_is_refused_before_a_byte_is_copied(
        self, source: Path, place: Path, copied: Copy, bounds: Bounds, limit: str, raised: str
    ) -> None:
        laid(source, {f"data/{number}": "x" * 250_000 for number in range(9)} | {"a": "", "z": ""})
        with pytest.raises(RunError) as caught:
            copied(bounds)
        assert caught.value.code == "workspace.limit" and list(place.iterdir()) == []
        assert f"more than {limit}" in caught.value.message and "'data'" in caught.value.message
        assert all(word in caught.value.hint for word in (raised, "`only`", ".gitignore"))

    def test_too_deep_is_refused(self, source: Path, place: Path, copied: Copy) -> None:
        laid(source, {"deep/" * (MAX_DEPTH + 2) + "a": "", "b": ""})
        git(source, "init", "-q")
        with pytest.raises(RunError) as caught:
            copied()
        assert caught.value.code == "workspace.limit" and "folders in one another" in caught.value.message

    @pytest.mark.parametrize("path", ["/etc", "../x", "a/../../b", "a\0b"])
    @pytest.mark.parametrize("key", ["bring", "readonly", "only", "scratch"])
    def test_settings_name_what_lies_below(self, key: str, path: str) -> None:
        with pytest.raises(UsageError) as caught:
            Wanted(**{key: (path,)})
        assert caught.value.code == "usage.config"


class TestHint:
    DONE = Copied("/home/u/p", 1, left_out=("gen", "conf/.env"))

    @pytest.mark.parametrize(
        "text",
        ["gen", "gen/api.py", "No such file: '/ws/gen/api.py'", "cat ./gen/x", "/home/u/p/gen", "a gen/b c"],
    )
    def test_a_text_that_names_it(self, text: str) -> None:
        assert 'bring = ["gen"]' in self.DONE.hint([text])

    @pytest.mark.parametrize("text", ["", "generate", "regen/x", "env", "conf", "x.gen", "/"])
    def test_one_that_does_not(self, text: str) -> None:
        assert self.DONE.hint(["", text]) == ""

    def test_its_record(self, tmp_path: Path) -> None:
        done = Copied("/p", 3, ("venv",), ("build",), ("odd\udcff",))
        done.write(tmp_path)
        assert Copied.read(tmp_path) == done and Copied.read(tmp_path / "none") is None
        (tmp_path / "copied.json").write_text("[]")
        assert Copied.read(tmp_path) is None


def test_an_index_that_lists_what_is_no_file_of_the_folder_brings_none_of_it(
    source: Path, place: Path, copied: Copy
) -> None:
    """A repository that somebody else made: its index may name its settings, or lead out."""
    committed(source, {"a.txt": "a\n", "sub/.git/config": "x\n"})
    laid(source.parent / "outside", {"other.txt": "of the host\n"})
    paths = ("../outside/other.txt", "./a.txt", ".git/config", "a.txt", "x/../../outside/other.txt")
    index = b"DIRC" + struct.pack(">2I", 2, len(paths)) + b"".join(map(_entry, paths))
    (source / ".git/index").write_bytes(index + hashlib.sha1(index).digest())
    copied()
    assert held(place) == {"a.txt"} and not (place / ".git").exists()


def _entry(path: str) -> bytes:
    """One entry of an index. Source: gitformat-index(5)."""
    numbers = struct.pack(">10I", 0, 0, 0, 0, 0, 0, 0o100644, 0, 0, 1)
    entry = numbers + hashlib.sha1(b"blob 0\0").digest() + struct.pack(">H", len(path)) + path.encode()
    return entry + b"\0" * (8 - len(entry) % 8)


@pytest.mark.parametrize("pattern", ["a**b", "***", "x" * 300, "*/" * 2000 + "x"])
def test_a_pattern_that_is_none_is_an_error_of_the_settings(source: Path, copied: Copy, pattern: str) -> None:
    committed(source, {"a.txt": "a\n"})
    with pytest.raises(UsageError) as caught:
        copied(bring=(pattern,))
    assert caught.value.code == "usage.config"


def test_a_pattern_for_all_brings_the_folder_and_nothing_of_ours(
    source: Path, place: Path, copied: Copy
) -> None:
    committed(source, {"a.txt": "a\n", ".gitignore": "out\n"})
    laid(source, {"out/b.txt": "b\n", ".spak/runs/c.txt": "c\n"})
    copied(bring=("**",))
    assert held(place) == {".gitignore", "a.txt", "out/b.txt"}
