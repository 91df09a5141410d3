"""A run's folder is its owner's alone, whatever the umask; the workspace keeps the modes that tools give."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli_kit import EXAMPLES, run_dir, spak


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0o000)
    yield
    os.umask(before)


def loose(folder: Path) -> dict[str, str]:
    """Paths in a run's folder that others could open, the workspace's own files left out."""
    found = {}
    for path in [folder, *folder.rglob("*")]:
        inside = path.relative_to(folder).parts
        if inside[:1] in (("workspace",), ("store",)) and len(inside) > 1:
            continue
        mode = stat.S_IMODE(path.lstat().st_mode)
        if (path.is_file() and mode & 0o077) or (path == folder and mode & 0o077):
            found["/".join(inside) or "."] = oct(mode)
    return found


def test_a_run_an_import_and_a_fork_are_private(tmp_path: Path, open_umask: None) -> None:
    code, document = spak(tmp_path, "run", str(EXAMPLES / "hello.spak"), "--json")
    assert code == 0
    folder = run_dir(tmp_path, document)
    assert loose(folder) == {}
    assert spak(tmp_path, "export", "latest", "-o", "out.jsonl", "--json")[0] == 0
    arguments = ("import", "out.jsonl", "--runs-dir", "other", "--json")
    assert spak(tmp_path, *arguments)[0] == 0
    assert loose(tmp_path / "other" / document["run"]) == {}
    code, made = spak(tmp_path, "fork", "latest", "--at", "3", "--json")
    assert loose(run_dir(tmp_path, made)) == {}
