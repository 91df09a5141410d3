"""A workspace may be stopped anywhere: at every call that changes the disk, by an exception or by kill -9."""

from __future__ import annotations

import errno
import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from fault_points import FaultPoints
from spak.errors import RunError
from spak.workspace import Workspace
from workspace.trees import Print, fingerprint, plant

pytestmark = pytest.mark.faults


class Stopped(BaseException):
    """The process is gone; nothing may tidy up after it."""


@dataclass
class Hook:
    """Does something at one call and counts them all."""

    at: int
    act: Callable[[], None]
    calls: list[str] = field(default_factory=list)

    def __call__(self, call: str) -> None:
        self.calls.append(call)
        if len(self.calls) == self.at:
            self.act()


def _stop() -> None:
    raise Stopped


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _full() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _edit(folder: Path, mark: bytes) -> None:
    (folder / "src" / "a.c").write_bytes(b"edited " + mark)
    (folder / f"made-{mark.decode()}").mkdir()
    (folder / f"made-{mark.decode()}" / "f").write_bytes(mark)
    shutil.rmtree(folder / "src" / "deep", ignore_errors=True)
    (folder / "run.sh").chmod(0o600)
    if (folder / "link").is_symlink():
        (folder / "link").unlink()
        (folder / "link").mkdir()


@dataclass
class Story:
    """Two steps, the second rolled back, beside what the ledger would say meanwhile."""

    folder: Path
    pending: str | None = "e1"
    expected: list[Print] = field(default_factory=list)

    def play(self, space: Workspace) -> None:
        self.expected = [fingerprint(self.folder)]
        space.begin("e1")
        _edit(self.folder, b"1")
        root = space.commit()
        self.expected, self.pending = [fingerprint(self.folder)], "e2"  # the ledger's flush
        space.settle()
        assert space.begin("e2") == root
        _edit(self.folder, b"2")
        space.rollback()


def _story(place: Path) -> Story:
    folder = place / "ws"
    folder.mkdir(parents=True)
    plant(folder)
    return Story(folder)


def _length(place: Path) -> int:
    hook = Hook(0, _stop)
    story = _story(place)
    story.play(Workspace(story.folder, place / "store", before=hook))
    return len(hook.calls)


def _check(story: Story, store: Path, why: object) -> None:
    space = Workspace(story.folder, store)
    space.recover(story.pending, "")
    assert fingerprint(story.folder) in story.expected, why
    assert space.pending() is None
    space.begin("e9")
    assert space.rollback() == []


def test_stopped_at_every_call(tmp_path: Path, fault_points: FaultPoints) -> None:
    calls = _length(tmp_path / "dry")
    assert calls > 25
    for at in range(1, calls + 1):
        place = tmp_path / str(at)
        story = _story(place)
        hook = Hook(at, _stop)
        with pytest.raises(Stopped):
            story.play(Workspace(story.folder, place / "store", before=hook))
        _check(story, place / "store", (at, hook.calls[-1]))
        shutil.rmtree(place)
        fault_points["stopped"] += 1


def test_stopped_at_every_call_of_the_recovery_too(tmp_path: Path, fault_points: FaultPoints) -> None:
    def half_done(place: Path) -> Story:
        story = _story(place)
        space = Workspace(story.folder, place / "store")
        story.expected = [fingerprint(story.folder)]
        space.begin("e1")
        _edit(story.folder, b"1")
        return story

    hook = Hook(0, _stop)
    dry = half_done(tmp_path / "dry")
    Workspace(dry.folder, tmp_path / "dry" / "store", before=hook).recover("e1", "")
    calls = len(hook.calls)
    assert calls > 20
    for at in range(1, calls + 1):
        place = tmp_path / str(at)
        story = half_done(place)
        hook = Hook(at, _stop)
        with pytest.raises(Stopped):
            Workspace(story.folder, place / "store", before=hook).recover("e1", "")
        _check(story, place / "store", (at, hook.calls[-1]))
        shutil.rmtree(place)
        fault_points["stopped"] += 1


def test_killed_for_real(tmp_path: Path, fault_points: FaultPoints) -> None:
    calls = _length(tmp_path / "dry")
    for at in range(1, calls + 1):
        place = tmp_path / str(at)
        story = _story(place)
        before = fingerprint(story.folder)
        child = os.fork()
        if child == 0:
            try:
                said = os.open(place / "said", os.O_WRONLY | os.O_CREAT)
                space = Workspace(story.folder, place / "store", before=Hook(at, _kill))
                space.begin("e1")
                _edit(story.folder, b"1")
                space.commit()
                os.write(said, b"flushed")
                space.settle()
                space.begin("e2")
                _edit(story.folder, b"2")
                space.rollback()
            finally:
                os._exit(9)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, at
        story.expected, story.pending = [before], "e1"
        if (place / "said").read_bytes():
            reference = _story(tmp_path / f"{at}-reference")
            _edit(reference.folder, b"1")
            story.expected, story.pending = [fingerprint(reference.folder)], "e2"
        _check(story, place / "store", at)
        fault_points["killed"] += 1


def test_a_full_disk_at_every_call_loses_nothing(tmp_path: Path, fault_points: FaultPoints) -> None:
    """Each call once fails for want of space; the step can still be undone when there is some again."""
    calls = _length(tmp_path / "dry")
    for at in range(1, calls + 1):
        place = tmp_path / str(at)
        story = _story(place)
        hook = Hook(at, _full)
        space = Workspace(story.folder, place / "store", before=hook)
        with pytest.raises(RunError) as caught:
            story.play(space)
        assert caught.value.code == "workspace.full" and caught.value.hint
        if space._state == "open":
            space.rollback()
            assert fingerprint(story.folder) in story.expected, (at, hook.calls[-1])
            assert not list(story.folder.rglob(".spak-*"))
        _check(story, place / "store", (at, hook.calls[-1]))
        shutil.rmtree(place)
        fault_points["disk full"] += 1


def test_a_mutant_that_forgets_the_effects_name_is_found(tmp_path: Path) -> None:
    """The trap of notes on recovery: undoing a committed step because another one is pending."""
    place = tmp_path / "mutant"
    story = _story(place)
    space = Workspace(story.folder, place / "store")
    space.begin("e1")
    _edit(story.folder, b"1")
    space.commit()
    after = fingerprint(story.folder)
    naive = Workspace(story.folder, place / "store")
    seen = naive.pending()
    assert seen is not None
    naive.recover(seen.effect, seen.root)  # what a resume that does not compare the names would do
    assert fingerprint(story.folder) != after
