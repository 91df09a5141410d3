"""A copy that goes on from earlier ones holds what one without them holds, whatever became of their cache."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from spak.files.disk import Disk
from spak.workspace import Workspace, copying, earlier, index, tree
from spak.workspace.store import Store

FILES = 40


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few files are worth while, an index is written, and what was just written counts as old."""
    monkeypatch.setattr(earlier, "LEAST", 10)
    monkeypatch.setattr(index, "LEAST", 10)
    monkeypatch.setattr(tree, "_RACY_NS", -1_000_000)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder, draw = tmp_path / "source", random.Random(3)
    for number in range(FILES):
        path = folder / f"d{number % 4}" / f"f{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(draw.randbytes(500))
    (folder / "d0/f0.py").chmod(0o755)
    (folder / "notes.txt").write_text("password: h3xagon-lantern-42\n")
    (folder / "empty").write_text("")
    return folder


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The files of the user's that were opened since it was last emptied."""
    names: set[str] = set()
    really = copying._open

    def spying(name: str, at: int, flags: int) -> int:
        if not flags & os.O_DIRECTORY:
            names.add(name)
        return really(name, at, flags)

    monkeypatch.setattr(copying, "_open", spying)
    monkeypatch.setattr(copying, "_clone", lambda old, new: False)
    return names


Copy = Callable[[], Workspace]


@pytest.fixture
def copied(source: Path, tmp_path: Path) -> Copy:
    numbers: Iterator[int] = iter(range(99))

    def copy() -> Workspace:
        run = tmp_path / f"runs/r{next(numbers)}"
        space = Workspace(run / "workspace", run / "store")
        space.copy_in(source, runs=tmp_path / "runs")
        return space

    return copy


def plain(source: Path, tmp_path: Path) -> str:
    """The root of a copy without a cache."""
    with_none = Workspace(tmp_path / "plain/workspace", tmp_path / "plain/store")
    with_none.copy_in(source)
    root = with_none.snapshot()
    shutil.rmtree(tmp_path / "plain")
    return root


def is_whole(space: Workspace, source: Path, tmp_path: Path) -> None:
    """It holds what the folder holds, and its way back leads there, also for who opens it anew."""
    root = space.snapshot()
    assert root == plain(source, tmp_path)
    assert all(path.lstat().st_nlink == 1 for path in space.directory.rglob("*") if path.is_file())
    again = Workspace(space.directory, space._store.folder)
    again.begin("e")
    for path in list(again.directory.rglob("*")):
        if path.is_file():
            path.write_bytes(b"spoiled")
    again.rollback()
    assert again.snapshot() == root
    assert again.secrets.files() == space.secrets.files() == ("notes.txt",)


def cache(tmp_path: Path) -> Path:
    [folder] = (tmp_path / "runs/.copies").iterdir()
    return folder


def test_the_second_one_reads_and_keeps_nothing_again(
    source: Path, tmp_path: Path, copied: Copy, opened: set[str]
) -> None:
    first = copied()
    assert len(opened) == FILES + 2
    opened.clear()
    second = copied()
    assert len(opened) <= 1  # the first one shows whether blocks can be shared
    assert (source / "d0/f0.py").stat().st_mtime_ns == (second.directory / "d0/f0.py").stat().st_mtime_ns
    is_whole(first, source, tmp_path)
    is_whole(second, source, tmp_path)
    packs = [space._store.folder / "shared/pack" for space in (first, second)]
    assert packs[0].samefile(packs[1]) and packs[0].samefile(cache(tmp_path) / "pack")
    assert packs[0].stat().st_mode & 0o777 == 0o400


def test_what_changed_is_read_though_it_hides_its_time(
    source: Path, tmp_path: Path, copied: Copy, opened: set[str]
) -> None:
    copied()
    path, before = source / "d1/f1.py", (source / "d1/f1.py").stat()
    path.write_bytes(bytes(500))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    (source / "d2/f2.py").rename(source / "d2/other.py")
    (source / "d3/f3.py").unlink()
    shutil.copy2(source / "d3/f7.py", source / "d3/copy.py")
    opened.clear()
    space = copied()
    assert opened >= {"f1.py", "copy.py"} and len(opened) <= 4
    is_whole(space, source, tmp_path)
    is_whole(copied(), source, tmp_path)


def test_what_changed_shortly_before_it_was_read_is_not_taken_for_known(
    source: Path, tmp_path: Path, copied: Copy, opened: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree, "_RACY_NS", 10**15)
    copied()
    opened.clear()
    copied()
    assert len(opened) == FILES + 2


@pytest.mark.parametrize(
    ("changed", "read", "known"),
    [(5_000_000_001, 5_300_000_000, True), (5_000_000_001, 5_050_000_000, False),
     (5_000_000_000, 6_900_000_000, False), (5_000_000_000, 7_100_000_000, True)],
)  # fmt: skip
def test_where_a_disk_counts_seconds_the_time_is_longer(
    changed: int, read: int, known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree, "_RACY_NS", 100_000_000)
    found = os.stat_result((0o100644, 1, 1, 1, 0, 0, 0, 5, 5, 5), {"st_ctime_ns": changed, "st_mtime_ns": 5})
    assert tree.settled(found, read) == known


def garbage(path: Path) -> None:
    path.chmod(0o600)
    path.write_bytes(b"garbage" * 999)


def emptied(path: Path) -> None:
    path.chmod(0o600)
    path.write_bytes(b"")


def cut(path: Path) -> None:
    path.chmod(0o600)
    os.truncate(path, path.stat().st_size // 2)


def flipped(path: Path) -> None:
    path.chmod(0o600)
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 255]))


def huge(path: Path) -> None:
    path.chmod(0o600)
    os.truncate(path, 1 << 40)


def a_link(path: Path) -> None:
    moved = path.rename(path.with_name(f"real-{path.name}"))
    path.symlink_to(moved)


def a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def writable(path: Path) -> None:
    path.chmod(0o666)


def of_another(path: Path) -> None:
    if os.geteuid() == 0:
        os.chown(path, 12345, 12345)
    else:
        path.chmod(0o666)


DAMAGE = [garbage, emptied, cut, flipped, huge, a_link, a_pipe, a_folder, writable, of_another, Path.unlink]


@pytest.mark.parametrize("file", ["list", "pack", "index"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_cache_is_never_believed_and_never_an_error(
    source: Path, tmp_path: Path, copied: Copy, opened: set[str], file: str, damage: Callable[[Path], None]
) -> None:
    copied()
    damage(cache(tmp_path) / file)
    for _ in range(2):
        is_whole(copied(), source, tmp_path)
    opened.clear()
    copied()
    assert len(opened) <= 1


@pytest.mark.parametrize("which", [".copies", "one"])
@pytest.mark.parametrize("damage", [writable, of_another, a_link])
def test_folders_of_others_are_not_used(
    source: Path, tmp_path: Path, copied: Copy, opened: set[str], which: str, damage: Callable[[Path], None]
) -> None:
    copied()
    damage(cache(tmp_path) if which == "one" else tmp_path / "runs/.copies")
    opened.clear()
    copied()
    assert len(opened) == FILES + 2


def test_what_another_version_said_of_secrets_is_not_believed(
    copied: Copy, opened: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that this version knows as one of secrets is masked, whatever an earlier one found."""
    with monkeypatch.context() as older:
        older.setattr(copying.which, "finds", lambda path, data: frozenset())
        older.setattr(earlier, "__version__", "0.0.1")
        copied()
    space = copied()
    space.snapshot()
    assert "notes.txt" in opened and space.secrets.files() == ("notes.txt",)


def test_a_list_beside_another_pack(source: Path, tmp_path: Path, copied: Copy) -> None:
    copied()
    other = (cache(tmp_path) / "list").read_bytes()
    for path in source.rglob("*.py"):
        path.write_bytes(path.read_bytes()[::-1])
    copied()
    (cache(tmp_path) / "list").write_bytes(other)
    is_whole(copied(), source, tmp_path)
    is_whole(copied(), source, tmp_path)


@pytest.mark.parametrize("call", ["link", "replace", "mkdir", "utime"])
@pytest.mark.parametrize("number", range(3))
def test_what_cannot_be_remembered_is_not(
    source: Path, tmp_path: Path, copied: Copy, monkeypatch: pytest.MonkeyPatch, call: str, number: int
) -> None:
    of = os if call in ("link", "utime") else Path
    really, left = getattr(of, call), [number]

    def failing(path: object, *words: object, **more: object) -> object:
        if ".copies" in f"{path}{words}":
            left[0] -= 1
            if left[0] < 0:
                raise OSError(28, "No space left on device")
        return really(path, *words, **more)

    with monkeypatch.context() as patched:
        patched.setattr(of, call, failing)
        is_whole(copied(), source, tmp_path)
        is_whole(copied(), source, tmp_path)
    is_whole(copied(), source, tmp_path)


def test_where_much_is_new_a_new_pack_is_shared_and_old_runs_keep_theirs(
    source: Path, tmp_path: Path, copied: Copy
) -> None:
    first = copied()
    root = first.snapshot()
    (source / "d0/f4.py").write_bytes(b"one")
    second = copied()
    assert (second._store.folder / "shared/pack").samefile(first._store.folder / "shared/pack")
    for number in range(10):
        (source / f"d0/new{number}").write_text(f"{number}")
    third = copied()
    assert not (third._store.folder / "shared/pack").samefile(first._store.folder / "shared/pack")
    is_whole(third, source, tmp_path)
    is_whole(copied(), source, tmp_path)
    (first.directory / "d0/f4.py").unlink()
    assert Workspace(first.directory, first._store.folder).restore(root) == ["d0/f4.py"]
    elsewhere = Workspace(tmp_path / "fork/workspace", tmp_path / "fork/store")
    elsewhere.restore(root, first._store.folder)
    assert elsewhere.snapshot() == root


def test_folders_that_were_copied_long_ago_are_forgotten(
    source: Path, tmp_path: Path, copied: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(earlier, "KEPT", 2)
    copied()
    for number in range(3):
        other = shutil.copytree(source, tmp_path / f"other{number}")
        run = tmp_path / f"runs/o{number}"
        Workspace(run / "workspace", run / "store").copy_in(other, runs=tmp_path / "runs")
    assert len(list((tmp_path / "runs/.copies").iterdir())) == 2


def test_few_files_are_not_remembered(source: Path, tmp_path: Path, copied: Copy) -> None:
    shutil.rmtree(source)
    source.mkdir()
    (source / "a").write_text("1")
    assert copied().snapshot() and not (tmp_path / "runs/.copies").exists()


def test_a_quota_counts_what_is_shared(source: Path, tmp_path: Path, copied: Copy) -> None:
    first = copied()
    shared = Store(first._store.folder, Disk(), 1)
    shared.look()
    assert shared.shared is not None and shared.shared.size > FILES * 500


def test_a_copy_waits_for_no_file_and_the_first_commit_for_all(source: Path, copied: Copy) -> None:
    """What a loss of power takes of the files before is in the store."""
    space = copied()
    root = space.snapshot()
    assert space.fsyncs <= 5  # two packs and their folders, and the index
    for path in space.directory.rglob("*.py"):
        os.truncate(path, 0)
    again = Workspace(space.directory, space._store.folder)
    again.restore(root)
    assert again.snapshot() == root
    calls: list[str] = []
    again = Workspace(space.directory, space._store.folder, before=calls.append)
    for content in ("1", "2"):
        again.begin("e")
        (space.directory / "new").write_text(content)
        again.commit()
        again.settle()
    assert calls.count("syncfs") == 1
