"""What a step that may write sees of files of secrets as it begins: the same as any other look, though it
reads nothing where the scan of its beginning says that there is nothing to read."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from spak.runner import Host, secret_guard
from spak.runner.secret_guard import Reader, SecretGuard
from spak.workspace import Workspace

TOKEN, OTHER = "hunter22x-of-the-remote", "hunter44y-of-the-remote"
SETTINGS = '[remote "origin"]\n\turl = https://bob:{}@host.example/a.git\n'
BODY = "MIIEowIBAAKCAQEAzK2vRt9qLmN"
PRIVATE = f"-----BEGIN {{0}} KEY-----\n{BODY}\n-----END {{0}} KEY-----\n"
Change = Callable[[Path], object]


def put(name: str, text: str) -> Change:
    def change(folder: Path) -> None:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)

    return change


def unnoticed(folder: Path) -> None:
    """Other settings of as many bytes and as old."""
    path = folder / ".git/config"
    before = path.stat()
    path.write_text(SETTINGS.format(OTHER))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


CHANGES: dict[str, list[Change]] = {
    "an ordinary file": [put("a.py", "x = 1\n"), put("a.py", "x = 2\n"), lambda at: (at / "a.py").unlink()],
    "a file by its name": [put("app/a.py", ""), put("app/.env", "PASSWORD=hunter55z-of-a-file\n")],
    "a file by what is in it": [put("notes.txt", "hello\n"), put("notes.txt", "password: hunter66w-of-it\n")],
    "one that goes": [put(".env", "PASSWORD=hunter55z-of-a-file\n"), lambda at: (at / ".env").unlink()],
    "one that is moved": [
        put("s/.env", "PASSWORD=hunter55z-of-a-file\n"),
        lambda at: (at / "s/.env").rename(at / "plain"),
        put("a.py", "x = 1\n"),
        lambda at: (at / "plain").rename(at / "s/other"),
    ],
    "one that comes back": [
        put(".env", "no more than words\n"),
        lambda at: (at / ".env").unlink(),
        put("a.py", "x = 1\n"),
        put("plain", "no more than words\n"),
    ],
    "one that is shown": [put("shown.env", "PASSWORD=hunter55z-of-a-file\n"), put("a.py", "x = 1\n")],
}


def known(guard: SecretGuard) -> tuple[object, ...]:
    """All that a guard knows."""
    return guard._paths, guard._marks, set(guard._seen), set(guard._values), guard._followed


@pytest.mark.parametrize("settled_ns", [0, 1 << 62], ids=["long ago", "just now"])
@pytest.mark.parametrize("changes", CHANGES.values(), ids=list(CHANGES))
def test_a_step_sees_what_a_look_sees(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: list[Change], settled_ns: int
) -> None:
    monkeypatch.setattr(secret_guard, "_SETTLED_NS", settled_ns)
    (tmp_path / "ws").mkdir()
    space = Workspace(tmp_path / "ws", tmp_path / "store")
    host = Host(shown_secrets=("shown.env",))
    by_step, by_look = SecretGuard(host, space), SecretGuard(host, space)
    nothing: Change = lambda at: None  # noqa: E731
    for number, change in enumerate(
        (nothing, nothing, *(one for each in changes for one in (each, nothing)))
    ):
        change(space.directory)
        space.begin(f"e{number}")
        by_step.look_begun()
        by_look.look()
        assert known(by_step) == known(by_look), number
        space.commit()
        space.settle()


def test_what_a_look_between_steps_masks_is_looked_at_again(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    space = Workspace(tmp_path / "ws", tmp_path / "store")
    guard = SecretGuard(Host(), space)
    path = tmp_path / "ws/.env"
    for number in range(2):
        space.begin(f"e{number}")
        guard.look_begun()
        space.rollback()
    path.write_text("PASSWORD=hunter55z-of-a-file\n")
    guard.look(fresh=True)
    assert guard._paths == (".env",)
    path.unlink()
    space.begin("e2")
    guard.look_begun()
    assert guard._paths == ()


def test_what_lay_there_only_between_scan_and_look_is_not_taken_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, secret, other = "key/a.pem", PRIVATE.format("RSA PRIVATE"), PRIVATE.format("PUBLIC")
    monkeypatch.setattr(secret_guard, "_SETTLED_NS", 0)
    name = path.partition("/")[0]
    put(path, other)(tmp_path)
    (tmp_path / name).rename(tmp_path / "aside")
    put(path, secret)(tmp_path / "ws")
    space = Workspace(tmp_path / "ws", tmp_path / "store")
    guard = SecretGuard(Host(), space)
    space.begin("e1")
    (tmp_path / "ws" / name).rename(tmp_path / "kept")
    (tmp_path / "aside").rename(tmp_path / "ws" / name)
    guard.look_begun()
    (tmp_path / "ws" / name).rename(tmp_path / "aside")
    (tmp_path / "kept").rename(tmp_path / "ws" / name)
    space.rollback()
    space.begin("e2")
    guard.look_begun()
    assert BODY not in guard.clean(f"it is {BODY}")


def test_steps_without_secrets_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a step costs that changes no more than ordinary files."""
    reads = []
    read = Reader.read
    monkeypatch.setattr(Reader, "read", lambda *given: reads.append(1) or read(*given))
    put("a.py", "x = 1\n")(tmp_path / "ws")
    space = Workspace(tmp_path / "ws", tmp_path / "store")
    guard = SecretGuard(Host(), space)
    for number in range(5):
        put("sub/b.py", f"x = {number // 2}\n")(tmp_path / "ws")
        space.begin(f"e{number}")
        guard.look_begun()
        space.commit()
        space.settle()
    assert len(reads) == 1
