"""A workspace run by an ordinary user: rights that a tool took away come back, and hinder nothing."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from spak.errors import RunError
from spak.workspace import Workspace
from workspace.trees import fingerprint, plant

NOBODY = 65534


def _as_nobody(work: Callable[[Path], None]) -> str:
    """Do it in a child that is not root; gives what went wrong there."""
    place = Path(tempfile.mkdtemp())
    if os.geteuid() == 0:
        os.chown(place, NOBODY, NOBODY)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        said = b""
        os.closerange(3, write)
        os.closerange(write + 1, 1 << 16)  # so that its limits count what it opens, not what the worker holds
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setresgid(NOBODY, NOBODY, NOBODY)
                os.setresuid(NOBODY, NOBODY, NOBODY)
            work(place)
        except BaseException:
            said = traceback.format_exc().encode()
        finally:
            os.write(write, said[-4000:])
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        said = pipe.read().decode()
    os.waitpid(child, 0)
    for path in [place, *place.rglob("*")]:
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o700)
    shutil.rmtree(place)
    return said


def _take_rights_away(place: Path) -> None:
    folder = place / "ws"
    folder.mkdir()
    plant(folder)
    (folder / "src" / "b.c").chmod(0o400)
    (folder / "src").chmod(0o555)
    before = fingerprint(folder)
    space = Workspace(folder, place / "store")
    root = space.begin("e1")

    (folder / "src").chmod(0o755)
    (folder / "src" / "a.c").write_bytes(b"spoiled")
    (folder / "src" / "deep" / "er" / "new").mkdir()
    (folder / "src" / "deep" / "er" / "new" / "er").mkdir()
    (folder / "src" / "deep" / "er" / "new" / "er").chmod(0)
    (folder / "src" / "deep" / "er" / "new").chmod(0)
    (folder / "src" / "deep").chmod(0o500)
    (folder / "src").chmod(0)
    (folder / "private").chmod(0)
    (folder / "run.sh").unlink()
    folder.chmod(0o500)

    space.rollback()
    assert fingerprint(folder) == before
    assert space.snapshot() == root


def _commit_what_may_not_be_read(place: Path) -> None:
    folder = place / "ws"
    folder.mkdir()
    plant(folder)
    space = Workspace(folder, place / "store")
    space.begin("e1")
    (folder / "private").write_bytes(b"changed")
    (folder / "private").chmod(0)
    (folder / "src").chmod(0)
    root = space.commit()
    assert (folder / "private").stat().st_mode & 0o777 == 0
    assert folder.joinpath("src").stat().st_mode & 0o777 == 0
    (folder / "src").chmod(0o755)
    (folder / "private").chmod(0o600)
    assert (folder / "private").read_bytes() == b"changed" and space.snapshot() == root


def _store_that_may_not_be_written(place: Path) -> None:
    folder = place / "ws"
    folder.mkdir()
    plant(folder)
    (place / "store").mkdir(mode=0o555)
    with pytest.raises(RunError) as caught:
        Workspace(folder, place / "store").snapshot()
    assert caught.value.code == "workspace.readonly" and caught.value.hint
    (place / "store").chmod(0o755)


def _copy_what_may_not_be_read(place: Path) -> None:
    source = place / "source"
    (source / "shut").mkdir(parents=True)
    for path in ("a", "shut/b"):
        (source / path).write_text("")
    for number, make in enumerate(("true", "git init -q")):
        subprocess.run([*make.split()], cwd=source, check=True)
        for name in ("a", "shut"):
            (source / name).chmod(0)
            with pytest.raises(RunError) as caught:
                Workspace(place / f"{number}{name}/ws", place / f"{number}{name}/store").copy_in(source)
            assert caught.value.code == "workspace.unreadable" and f"'{name}'" in caught.value.message
            (source / name).chmod(0o755)
    (source / ".gitignore").write_text("shut/\n")
    (source / "shut").chmod(0)
    copied = Workspace(place / "ignored/ws", place / "ignored/store").copy_in(source)
    assert (copied.files, copied.left_out) == (2, ("shut",))


def _copy_under_limits_that_may_not_be_raised(place: Path) -> None:
    subprocess.run(["git", "init", "-q", str(place / "source")], check=True)
    (place / "source/a").write_text("")
    resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
    assert Workspace(place / "ws", place / "store").copy_in(place / "source").files == 1


@pytest.mark.parametrize(
    "work",
    [
        _take_rights_away,
        _commit_what_may_not_be_read,
        _store_that_may_not_be_written,
        _copy_what_may_not_be_read,
        _copy_under_limits_that_may_not_be_raised,
    ],
)
def test_as_an_ordinary_user(work: Callable[[Path], None]) -> None:
    assert _as_nobody(work) == ""
