"""Zips that people bring: what is in them is what a workspace holds, or they are refused in words."""

from __future__ import annotations

import io
import os
import stat
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spak.errors import UsageError, UserError
from spak.workspace import Workspace
from spak.workspace.unpack import Contents, Limits, look, unpack

SMALL = Limits(files=20, size_bytes=1 << 20)


def zipped(*entries: tuple[str | zipfile.ZipInfo, bytes], packing: int = zipfile.ZIP_DEFLATED) -> io.BytesIO:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", packing) as archive:
        for name, data in entries:
            archive.writestr(name, data)
    return made


def of_mode(name: str, mode: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.create_system = 3
    info.external_attr = mode << 16
    return info


def code(archive: io.BytesIO, limits: Limits = SMALL) -> str:
    with pytest.raises(UsageError) as refused:
        look(archive, limits)
    assert refused.value.message and refused.value.hint
    return refused.value.code


def test_the_root_is_that_of_the_workspace(tmp_path: Path) -> None:
    """What is hashed while it is read is what the run's first record names."""
    archive = zipped(
        ("src/a.py", b"print(1)\n"), ("b.txt", b""), ("empty/", b""), (of_mode("run.sh", 0o100755), b"#!"),
        ("名前/Ünïcode ﷽ 🎈.txt", b"any script"), ("inner.zip", zipped(("x", b"y")).getvalue()),
    )  # fmt: skip
    seen = look(archive, SMALL)
    into = tmp_path / "workspace"
    into.mkdir()
    assert unpack(archive, into, SMALL) == seen
    assert seen.root == Workspace(into, tmp_path / "store").snapshot()
    assert [item.path for item in seen.items] == [
        "b.txt", "inner.zip", "run.sh", "src/a.py", "名前/Ünïcode ﷽ 🎈.txt",
    ]  # fmt: skip
    assert (into / "run.sh").stat().st_mode & 0o777 == 0o755
    assert (into / "src/a.py").stat().st_mode & 0o777 == 0o644
    assert (into / "inner.zip").read_bytes()[:2] == b"PK"  # a zip in a zip is a file
    assert (into / "empty").is_dir()
    assert seen.size == sum(path.stat().st_size for path in into.rglob("*") if path.is_file())


def test_the_same_files_in_another_order_are_the_same_files() -> None:
    one = look(zipped(("a/x", b"1"), ("b", b"2")), SMALL)
    other = look(zipped(("b", b"2"), ("a/", b""), ("a/x", b"1"), packing=zipfile.ZIP_STORED), SMALL)
    assert one.root == other.root != look(zipped(("a/x", b"1"), ("b", b"3")), SMALL).root


def test_what_is_no_part_of_the_files_is_left_out() -> None:
    seen = look(zipped(("a", b"1"), ("__MACOSX/._a", b"x"), (".spak/runs/1", b"x")), SMALL)
    assert [item.path for item in seen.items] == ["a"]
    assert seen.left_out == ("__MACOSX/._a", ".spak/runs/1")


@pytest.mark.parametrize(
    ("names", "folder", "paths"),
    [(("shop/", "shop/a", "shop/lib/b"), "shop", ["a", "lib/b"]), (("shop/lib/a",), "shop", ["lib/a"]),
     (("shop/a", "__MACOSX/._a", "shop/.spak/x"), "shop", ["a"]), (("店/名.txt",), "店", ["名.txt"]),
     (("shop/a", "b"), "", ["b", "shop/a"]), (("a",), "", ["a"]), (("shop/",), "", []), ((), "", [])],
    ids=str,
)  # fmt: skip
def test_a_single_folder_around_the_files_is_left_out(
    names: tuple[str, ...], folder: str, paths: list[str], tmp_path: Path
) -> None:
    archive = zipped(*((name, b"1" if name[-1] != "/" else b"") for name in names))
    seen = look(archive, SMALL, strip=True)
    assert (seen.folder, [item.path for item in seen.items]) == (folder, paths)
    assert unpack(archive, tmp_path, SMALL, folder) == seen
    assert seen.root == Workspace(tmp_path, tmp_path.parent / f"{tmp_path.name}.store").snapshot()
    assert look(archive, SMALL).folder == ""


def of_windows(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo("x")
    info.filename, info.create_system = name, 0
    return info


def test_names_of_windows_part_folders_by_backslashes(tmp_path: Path) -> None:
    """As Compress-Archive of Windows PowerShell 5.1 writes them; the file's name never led out."""
    archive = zipped((of_windows("src\\a.py"), b"1"), (of_windows("src\\sub\\"), b""))
    seen = look(archive, SMALL, strip=True)
    assert (seen.folder, [item.path for item in seen.items]) == ("src", ["a.py"])
    assert unpack(archive, tmp_path, SMALL, "src") == seen and (tmp_path / "sub").is_dir()
    for name in ("..\\x", "a\\..\\..\\x", "\\x"):
        assert code(zipped((of_windows(name), b"1"))) == "upload.name"


def test_git_of_any_folder_is_left_out(tmp_path: Path) -> None:
    """Its settings may hold passwords; no run reads it."""
    names = (".git/config", "lib/.git/HEAD", "sub/.git", ".gitignore", "a.py")
    archive = zipped(*((name, b"1") for name in names))
    seen = look(archive, SMALL)
    assert [item.path for item in seen.items] == [".gitignore", "a.py"]
    assert seen.left_out == names[:3] and unpack(archive, tmp_path, SMALL) == seen
    inside = zipped(("top/.git/config", b"1"), ("top/a.py", b"1"))
    assert [item.path for item in look(inside, SMALL, strip=True).items] == ["a.py"]


@pytest.mark.parametrize(
    "name",
    ["../x", "a/../../x", "/etc/passwd", "a//b", "./x", "a/./b", "..", "C:\\x", "a\\..\\..\\x", "a\nb",
     "x" * 256, "/".join("d" * 140)],
)  # fmt: skip
def test_names_that_lead_out_or_cannot_be_made_are_refused(name: str, tmp_path: Path) -> None:
    assert code(zipped((name, b"1"))) == "upload.name"
    (tmp_path / "in").mkdir()
    with pytest.raises(UsageError):
        unpack(zipped((name, b"1")), tmp_path / "in", SMALL)
    assert [path.name for path in tmp_path.rglob("*")] == ["in"]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [(stat.S_IFLNK | 0o777, "upload.link"), (stat.S_IFCHR | 0o666, "upload.device"),
     (stat.S_IFBLK | 0o666, "upload.device"), (stat.S_IFIFO | 0o666, "upload.device"),
     (stat.S_IFSOCK | 0o666, "upload.device")],
)  # fmt: skip
def test_links_and_devices_are_refused(mode: int, expected: str) -> None:
    assert code(zipped((of_mode("a", mode), b"/etc/passwd"))) == expected


LINKS = Limits(files=40, size_bytes=1 << 20, links=True)


def link(name: str, target: str) -> tuple[zipfile.ZipInfo, bytes]:
    return of_mode(name, stat.S_IFLNK | 0o777), target.encode("utf-8", "surrogateescape")


def test_links_that_stay_inside_are_kept_as_links(tmp_path: Path) -> None:
    archive = zipped(
        link("a", "src/one.py"), ("src/one.py", b"1"), link("src/up", "../src/./one.py"), link("all", "."),
        link("gone", "nothing/here"), link("circle", "circle"), link("on", "src/up"), link("ünï", "src"),
        link("back", "all/all/src/../a"),
    )  # fmt: skip
    seen = look(archive, LINKS)
    into = tmp_path / "in"
    into.mkdir()
    assert unpack(archive, into, LINKS) == seen
    assert (into / "on").readlink() == Path("src/up") and (into / "on").read_bytes() == b"1"
    assert (into / "back").read_bytes() == b"1"
    assert seen.root == Workspace(into, tmp_path / "store").snapshot()
    assert code(archive) == "upload.link"


def test_links_below_the_folder_around_are_judged_from_there(tmp_path: Path) -> None:
    archive = zipped(("shop/lib/b", b"1"), link("shop/b", "lib/b"))
    seen = look(archive, LINKS, strip=True)
    assert unpack(archive, tmp_path, LINKS, seen.folder) == seen
    assert (tmp_path / "b").read_bytes() == b"1"
    out = zipped(("shop/lib/b", b"1"), link("shop/b", "../shop/lib/b"))
    assert look(out, LINKS).folder == ""
    with pytest.raises(UsageError) as why:
        look(out, LINKS, strip=True)
    assert why.value.code == "upload.link"


@pytest.mark.parametrize(
    "entries",
    [
        [link("a", "/etc/passwd")], [link("a", "..")], [link("x/y/a", "../../../b")],
        [link("a", ".spak/runs")],
        [link("a", "./x/../.spak")], [link("a", "")], [link("a", "b\nc")], [link("a", "b\x00c")],
        [link("a", "no-text-\udcff")], [link("a", "x" * 4001)], [link("a/", "b")],
        [link("x/y/top", "../.."), link("out", "x/y/top/..")],  # by its name alone it stays inside
        [link("one", "two"), link("two", "three"), link("three", "../four")],
    ],
    ids=range(13),
)  # fmt: skip
def test_links_that_lead_out_are_refused_by_name(entries: list[Any], tmp_path: Path) -> None:
    archive = zipped(*entries)
    assert code(archive, LINKS) == "upload.link"
    with pytest.raises(UsageError):
        unpack(archive, tmp_path, LINKS)
    assert not any(path.is_symlink() for path in tmp_path.rglob("*") if "out" in path.name)


@pytest.mark.parametrize("entries", [[link("a", "b"), ("a/c", b"1")], [("a", b"1"), link("a", "b")]], ids=str)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_nothing_is_written_by_way_of_a_link(entries: list[Any], tmp_path: Path) -> None:
    with pytest.raises(UsageError) as why:
        unpack(zipped(*entries), tmp_path, LINKS)
    assert why.value.code == "upload.twice"


def test_links_cannot_keep_us_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spak.workspace.links.STEPS", 500)
    assert code(zipped(*(link(str(n), "x/" * 300) for n in range(4))), LINKS) == "upload.link"


def test_rights_of_an_owner_are_not_taken_along(tmp_path: Path) -> None:
    unpack(zipped((of_mode("a", stat.S_IFREG | 0o6755), b"")), tmp_path, SMALL)
    assert (tmp_path / "a").stat().st_mode & 0o7777 == 0o755


@pytest.mark.parametrize(
    "names", [("a", "a"), ("a", "a/b"), ("a/b", "a"), ("a/", "a"), ("a/b/c", "a/b")], ids=str
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_one_name_for_two_things_is_refused(names: tuple[str, ...]) -> None:
    assert code(zipped(*((name, b"") for name in names))) == "upload.twice"


def test_sizes_are_counted_and_not_believed() -> None:
    """A bomb: a few kilobytes that say nothing of the gigabyte that they become."""
    bomb = bytearray(zipped(("bomb", b"\0" * (3 << 20))).getvalue())
    assert len(bomb) < 10_000
    entry = bomb.index(b"PK\1\2")
    for at in (entry + 24, 22):
        struct.pack_into("<I", bomb, at, 7)
    assert code(io.BytesIO(bytes(bomb))) in ("upload.size", "upload.archive")
    assert code(zipped(("bomb", b"\0" * (3 << 20)))) == "upload.size"
    halves = zipped(*((str(number), b"\0" * (600 << 10)) for number in range(2)))
    assert code(halves) == "upload.size"


def test_many_files_are_refused_before_their_list_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    assert code(zipped(*((str(number), b"") for number in range(21)))) == "upload.files"
    assert code(zipped(("/".join("abcdefghijklmnopqrstu"), b""))) == "upload.files"  # folders count too
    lying = bytearray(zipped(*((str(number), b"") for number in range(21))).getvalue())
    struct.pack_into("<HH", lying, len(lying) - 14, 1, 1)
    assert code(io.BytesIO(bytes(lying))) in ("upload.files", "upload.archive")

    def never(*_: object, **__: object) -> zipfile.ZipFile:
        raise AssertionError("the list was read")

    many = zipped(*((f"{number}", b"") for number in range(40)))
    long = io.BytesIO(many.getvalue()[:-22] + b"PK\6\7" + bytes(16) + many.getvalue()[-22:])
    monkeypatch.setattr("spak.workspace.unpack.zipfile.ZipFile", never)
    assert code(many) == code(long) == "upload.files"


def _encrypted() -> bytes:
    data = bytearray(zipped(("a", b"secret")).getvalue())
    data[6] |= 1
    data[data.index(b"PK\1\2") + 8] |= 1
    return bytes(data)


def _flipped() -> bytes:
    data = bytearray(zipped(("a", b"some text"), packing=zipfile.ZIP_STORED).getvalue())
    data[data.index(b"some")] ^= 1
    return bytes(data)


@pytest.mark.parametrize(
    "make",
    [lambda: b"", lambda: b"no zip", lambda: b"PK\5\6", _encrypted, _flipped,
     lambda: zipped(("a", b"some text " * 9)).getvalue()[20:],
     lambda: zipped(("a", b"1"), packing=zipfile.ZIP_LZMA).getvalue()],
    ids=["empty", "text", "cut", "encrypted", "damaged", "begins late", "lzma"],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_whole(make: Callable[[], bytes]) -> None:
    assert code(io.BytesIO(make())) == "upload.archive"


def test_no_files_are_a_workspace_too() -> None:
    seen = look(zipped(), SMALL)
    assert isinstance(seen, Contents) and seen.items == () and seen.size == 0


MANY = (
    ("src/a.py", b"print(1)\n"),
    ("src/big", bytes(range(256)) * 5000),
    ("empty", b""),
    ("b", b"2" * 9000),
)
FEW_MB = Limits(files=20, size_bytes=8 << 20)


@pytest.mark.parametrize("packing", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED], ids=["stored", "deflated"])
def test_a_workspace_reads_nothing_again_that_it_unpacked(
    packing: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its contents are in the store, and its root is that of the archive, without a second look at a file."""
    monkeypatch.setattr("spak.workspace.tree._RACY_NS", -(10**12))  # what was just written counts as settled
    archive = zipped(*MANY, packing=packing)
    seen = look(archive, FEW_MB)
    place = Workspace(tmp_path / "ws", tmp_path / "store")
    place.unpack_in(archive, FEW_MB, seen.root)

    def never(*_: object) -> int:
        raise AssertionError("a file was read again")

    with monkeypatch.context() as patched:
        patched.setattr("spak.files.disk.Disk.open_file", never)
        assert place.snapshot() == seen.root
    for path in ("src/a.py", "src/big", "b"):
        (tmp_path / "ws" / path).unlink()
    place.restore(seen.root)
    for path, data in MANY:
        assert (tmp_path / "ws" / path).read_bytes() == data


def test_what_changes_right_after_it_was_unpacked_is_seen(tmp_path: Path) -> None:
    """Of the same size, and within what a clock can tell apart."""
    archive = zipped(*MANY)
    place = Workspace(tmp_path / "ws", tmp_path / "store")
    place.unpack_in(archive, FEW_MB, look(archive, FEW_MB).root)
    (tmp_path / "ws/b").write_bytes(b"3" * 9000)
    assert place.snapshot() == look(zipped(*MANY[:3], ("b", b"3" * 9000)), FEW_MB).root


@pytest.mark.parametrize("packing", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED], ids=["stored", "deflated"])
@pytest.mark.parametrize("damage", ["flipped", "cut"])
def test_an_archive_that_was_damaged_since_it_came_fills_no_workspace(
    damage: str, packing: int, tmp_path: Path
) -> None:
    archive = zipped(*MANY, packing=packing)
    root, data = look(archive, FEW_MB).root, bytearray(archive.getvalue())
    if damage == "flipped":
        data[30 + len("src/a.py") + 1] ^= 1  # of the first file
    else:
        del data[60:90]
    place = Workspace(tmp_path / "ws", tmp_path / "store")
    with pytest.raises(UserError) as refused:
        place.unpack_in(io.BytesIO(bytes(data)), FEW_MB, root)
    assert refused.value.code in ("upload.changed", "upload.archive")
    assert not any((tmp_path / "ws").iterdir())


def test_rights_do_not_depend_on_who_unpacks(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        unpack(zipped(("a", b"1"), (of_mode("run.sh", 0o100755), b"#!")), tmp_path, SMALL)
    finally:
        os.umask(before)
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("a", "run.sh")] == [0o644, 0o755]
