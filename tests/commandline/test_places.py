"""Which names are those of files that say what is run."""

from __future__ import annotations

import pytest

from spak.commandline import places
from spak.commandline.world import Seen


@pytest.mark.parametrize(
    "path",
    ["build.ninja", "CTestTestfile.cmake", ".rspec", "tox.toml", "pytest.toml", ".justfile", "app.csproj",
     "meson.build", "compose.yaml", "BUILD.bazel", "tsconfig.base.json"],
)  # fmt: skip
def test_what_builds_and_tests_look_for_by_themselves_is_control(path: str) -> None:
    assert places.place(Seen("inside", path, "file"), "edits") == "control"
