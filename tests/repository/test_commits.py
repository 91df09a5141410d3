"""The bare repository of a run begins upon a repository that somebody else made, whatever that is."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from git_http_kit import git
from spak.repository.begun import follow, git_folder


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "text", "zero"])
def test_a_git_that_is_none_is_no_repository_and_nothing_waits(tmp_path: Path, kind: str) -> None:
    place = tmp_path / ".git"
    match kind:
        case "pipe":
            os.mkfifo(place)
        case "device":
            place.symlink_to("/dev/zero")
        case "folder":
            place.mkdir()
        case "text":
            place.write_text("gitdir: nowhere\n")
        case _:
            place.write_text("gitdir: \0\n")
    assert git_folder(place) is None
    follow(tmp_path / "bare", tmp_path)
    assert not (tmp_path / "bare").exists()


@pytest.mark.parametrize("name", ["a\x85b", "a\u2028b", "a\x0cb", "a\nb"])
def test_a_folder_may_be_called_anything(tmp_path: Path, name: str) -> None:
    repo = tmp_path / name / "repo"
    repo.mkdir(parents=True)
    git(repo, "init", "-q")
    git(repo, "commit", "-q", "--allow-empty", "-m", "one")
    follow(tmp_path / "bare", repo)
    about = json.loads((tmp_path / "bare/spak.json").read_text())
    if "\n" in name:
        assert "line feed" in about["trouble"]
    else:
        assert git(tmp_path / "bare", "rev-parse", "refs/spak/base") == git(repo, "rev-parse", "HEAD")
