"""Zips of uploads and cases are stored whole or not at all: on a full disk, and when a process is killed."""

from __future__ import annotations

import errno
import io
import os
import resource
import signal
import stat
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from spakweb.ground import clock
from spakweb.store.ledger import packs, stored_files, uploads
from spakweb.store.runs.models import Upload

BYTES = os.urandom(50_000)


@pytest.fixture(autouse=True)
def media(settings: Any, tmp_path: Path) -> Path:
    settings.MEDIA_ROOT = tmp_path / "media"
    return tmp_path / "media"


@pytest.fixture
def case(tmp_path: Path) -> Path:
    (tmp_path / "case").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "case/data.bin").write_bytes(BYTES)
    return tmp_path / "case"


def archive() -> io.BytesIO:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as made:
        made.writestr("data.bin", BYTES)
    return held


@contextmanager
def full_disk() -> Iterator[None]:
    """The kernel takes no more than the beginning of a file."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def files(media: Path) -> list[Path]:
    return [path for path in media.rglob("*") if path.is_file()]


def test_a_full_disk_leaves_no_half_of_a_case(media: Path, case: Path, tmp_path: Path) -> None:
    with full_disk(), pytest.raises(OSError) as caught:
        packs.put(case)
    assert caught.value.errno == errno.EFBIG and files(media) == []
    packs.fill(packs.put(case), tmp_path / "out")
    assert (tmp_path / "out/data.bin").read_bytes() == BYTES


def test_a_full_disk_leaves_no_half_of_an_upload(media: Path) -> None:
    with full_disk(), pytest.raises(OSError):
        uploads.store("key", archive())
    assert files(media) == []
    uploads.store("key", archive())
    [path] = files(media)
    assert path.name == "key.zip" and stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_case_that_an_older_version_wrote_half_is_written_again(
    media: Path, case: Path, tmp_path: Path
) -> None:
    path = media / "cases" / f"{packs.key_of(case)}.zip"
    path.parent.mkdir(parents=True)
    path.write_bytes(packs.zipped(case)[:100])
    packs.fill(packs.put(case), tmp_path / "out")
    assert (tmp_path / "out/data.bin").read_bytes() == BYTES


def test_a_writer_that_is_killed_leaves_nothing_under_the_name(
    media: Path, case: Path, tmp_path: Path
) -> None:
    child = os.fork()
    if child == 0:
        os.fsync = lambda fd: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[assignment]
        try:
            packs.put(case)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)
    [left] = files(media)
    assert left.name.startswith(".")
    packs.fill(packs.put(case), tmp_path / "out")
    os.utime(left, (1, 1))
    stored_files.tidy("cases")
    assert [path.name for path in files(media)] == [f"{packs.key_of(case)}.zip"]


@pytest.mark.django_db
def test_an_upload_whose_row_was_never_written_goes_after_a_day(cast: Any, media: Path) -> None:
    kept, _ = uploads.keep(cast["bob"], cast.team, "mine", archive(), 1)
    for key in ("lost", "young"):
        uploads.store(key, archive())
    for key in ("lost", kept.key):
        os.utime(media / "uploads" / f"{key}.zip", (1, 1))
    Upload.objects.update(made_at=clock.now())
    uploads.drop(10)
    assert {path.stem for path in files(media)} == {kept.key, "young"}
