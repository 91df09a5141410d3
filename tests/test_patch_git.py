"""Patches as git and diff write them: what `git apply` makes of one, ours makes too.

The oracle is the installed git, on small repositories with awkward names, line ends and blank lines.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from spak import patch
from spak.patch import PatchRefused

FILES: Mapping[str, bytes] = {
    "ä.txt": b"eins\nzwei\n",
    "with space.txt": b"one\ntwo\n",
    'dir ü/q"uote.txt': b"x\ny\n",
    "b b/a a.txt": b"x\n",
    "crlf.txt": b"a\r\nb\r\nc\r\n",
    "mixed.txt": b"m\r\nn\n",
    "blank.txt": b"a\n\nB\n\n",
    "bare.txt": b"one\ntwo",
    "naïve name/ö -.txt": b"1\n2\n3\n4\n5\n6\n7\n8\n9\n",
}
EDITS: Mapping[str, Callable[[bytes], bytes]] = {
    "first": lambda data: b"changed" + data[data.index(b"\n") :] if b"\n" in data else b"changed",
    "last": lambda data: data[: data.rindex(b"\n") + 1] + b"added\n",
    "middle": lambda data: data.replace(b"B", b"b b").replace(b"b\r", b"beta\r").replace(b"5", b"five"),
}
FORMS: Mapping[str, Callable[[str], str]] = {
    "as_written": lambda text: text,
    "without_git_headers": lambda text: "".join(
        line for line in text.splitlines(keepends=True) if not line.startswith(("diff ", "index "))
    ),
    "blanks_stripped": lambda text: text.replace("\n \n", "\n\n"),
    "end_cut": lambda text: text.rstrip("\n "),
}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q")
    for name, data in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "files")
    return tmp_path


def git(folder: Path, *args: str, given: bytes = b"") -> bytes:
    settings = ("-c", "user.name=n", "-c", "user.email=n@example.org", "-c", "core.autocrlf=false")
    return subprocess.run(
        ["git", *settings, *args], cwd=folder, input=given, capture_output=True, check=True
    ).stdout


def ours(folder: Path, text: str) -> dict[str, bytes | None]:
    def read(path: str) -> bytes | None:
        return (folder / path).read_bytes() if (folder / path).is_file() else None

    changes = patch.apply(text, read)
    assert not isinstance(changes, PatchRefused), (changes, text)
    return {change.path: change.after for change in changes}


def theirs(folder: Path, text: str, paths: list[str]) -> dict[str, bytes | None]:
    git(folder, "apply", "--whitespace=nowarn", "-", given=text.encode())
    return {path: (folder / path).read_bytes() if (folder / path).is_file() else None for path in paths}


def written(folder: Path, *flags: str) -> str:
    """The diff of what was changed, which is undone."""
    git(folder, "add", "-A")
    text = git(folder, "diff", "--cached", *flags).decode()
    git(folder, "reset", "-q", "--hard")
    return text


@pytest.mark.parametrize("form", sorted(FORMS))
@pytest.mark.parametrize("flags", [(), ("-U1",), ("--no-prefix",)], ids=["plain", "U1", "no_prefix"])
def test_edits(repository: Path, flags: tuple[str, ...], form: str) -> None:
    for name, data in FILES.items():
        for edit in EDITS.values():
            new = edit(data)
            if new == data:
                continue
            (repository / name).write_bytes(new)
            text = FORMS[form](written(repository, *flags))
            assert ours(repository, text) == {name: new}, (name, text)


def test_git_agrees(repository: Path) -> None:
    for name, data in FILES.items():
        (repository / name).write_bytes(EDITS["first"](data))
    text = written(repository)
    assert ours(repository, text) == theirs(repository, text, sorted(FILES))


@pytest.mark.parametrize("name", sorted(FILES))
def test_renames_deletions_and_modes(repository: Path, name: str) -> None:
    target = f"näw {Path(name).name}"
    git(repository, "mv", name, target)
    text = written(repository, "-M")
    assert ours(repository, text) == {name: None, target: FILES[name]}
    (repository / name).unlink()
    assert ours(repository, written(repository)) == {name: None}
    (repository / name).chmod(0o755)
    text = written(repository)
    (change,) = patch.apply(text, lambda path: FILES[path])  # type: ignore[misc]
    assert (change.path, change.mode) == (name, 0o755)


@pytest.mark.parametrize(
    "name", ['new "quoted".txt', "neu ü.txt", "plain.txt", "b.txt b/b.txt", "a b/c d/e f"]
)
@pytest.mark.parametrize("data", [b"", b"one\n\ntwo\n"])
def test_new_files(repository: Path, name: str, data: bytes) -> None:
    (repository / name).parent.mkdir(parents=True, exist_ok=True)
    (repository / name).write_bytes(data)
    assert ours(repository, written(repository)) == {name: data}


@pytest.mark.parametrize("end", ["", "\r\n"], ids=["cut", "whole"])
@pytest.mark.parametrize("name", ["ä.txt", "with space.txt", "crlf.txt", "blank.txt"])
def test_a_patch_with_carriage_returns(repository: Path, name: str, end: str) -> None:
    new = EDITS["last"](FILES[name]) if name != "crlf.txt" else FILES[name] + b"d\r\n"
    (repository / name).write_bytes(new)
    text = written(repository).replace("\r\n", "\n").rstrip("\n").replace("\n", "\r\n") + end
    assert ours(repository, text) == {name: new}


def test_names_with_times_as_diff_writes_them(repository: Path) -> None:
    stamp = "\t2026-01-28 12:30:01.000000000 +0000"
    for name, quoted in (
        ("ä.txt", r'"{}/\303\244.txt"'),
        ("with space.txt", '"{}/with space.txt"'),
        ("with space.txt", "{}/with space.txt"),
    ):
        head = f"--- {quoted.format('a')}{stamp}\n+++ {quoted.format('b')}{stamp}\n"
        first, second = FILES[name].decode().split("\n")[:2]
        text = f"{head}@@ -1,2 +1,2 @@\n {first}\n-{second}\n+other\n"
        assert ours(repository, text) == {name: f"{first}\nother\n".encode()}


NAMED = {
    "a quote in a name": 'diff --git "a/q\\"x" "b/q\\"x"\n--- "a/q\\"x"\n+++ "b/q\\"x"\n'
    "@@ -1 +1 @@\n-x\n+y\n",
    "a time": '--- "a/x y"\t2026-01-01\n+++ "b/x y"\t2026-01-01\n@@ -1 +1 @@\n-x\n+y\n',
    "a cut end": "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-x\n+y\n",
}


@pytest.mark.parametrize("text", NAMED.values(), ids=NAMED)
def test_forms_that_git_and_diff_write_are_read(text: str) -> None:
    assert not isinstance(patch.read_patch(text), PatchRefused)


@pytest.mark.parametrize(
    "text",
    [
        "--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+" + "x" * (1 << 19) + "\n",
        '{"path": "x", "after_content": "' + "x" * (1 << 19) + '", "after_hash": "' + "A" * 43 + '"}',
    ],
    ids=["diff", "object"],
)
def test_a_very_long_line_is_refused(text: str) -> None:
    refused = patch.read_patch(text)
    assert isinstance(refused, PatchRefused)
    assert (refused.code, refused.path) == ("patch.long_line", "x") and "65536" in refused.message
    whole = patch.read_patch(text.replace("x" * (1 << 19), "x" * (1 << 20)))
    assert isinstance(whole, PatchRefused) and whole.code == "patch.too_large"


def test_a_header_that_counts_lines_without_end_ends_quickly() -> None:
    for count in (9, 10**8):
        text = f"--- a/x\n+++ b/x\n@@ -1,{count + 1} +1,{count + 1} @@\n-x\n+y\n"
        refused = patch.read_patch(text)
        assert isinstance(refused, PatchRefused) and refused.code == "patch.hunk"
