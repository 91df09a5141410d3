from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spak.ports import Measurement, Toolchain
from spak.validators.linter import Linter
from validator_calls import call, codes, write

pytestmark = pytest.mark.sandbox


def measure(workspace: Path, tool: str, **options: Any) -> Measurement:
    return Linter().measure(call(workspace, {"tool": tool, **options}))


def found(result: Measurement) -> list[tuple[str, str, int, str]]:
    return [(item["severity"], item["file"], item["line"], item["code"]) for item in result.diagnostics]


def test_ruff_findings(tmp_path: Path) -> None:
    write(tmp_path, a__py="import os\n\nprint(missing)\n", b__py="x = 1\n")
    result = measure(tmp_path, "ruff")
    assert found(result) == [("warning", "a.py", 1, "F401"), ("error", "a.py", 3, "F821")]
    assert codes(result) == {"errors": "lint_error"}
    assert result.metrics == {"errors": 1, "warnings": 1, "files": 2}


def test_below_a_folder_only_what_the_law_would_let_be_read(tmp_path: Path) -> None:
    workspace = write(tmp_path, a__py="x = 1\n")
    for name in (".git/hooks/pre.py", ".ssh/agent.py", "deep/inner/b.py"):
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text("import os\n")
    (workspace / "linked.py").symlink_to("deep/inner/b.py")
    (workspace / "folder").symlink_to("deep")
    result = measure(workspace, "ruff")
    assert found(result) == [("warning", "deep/inner/b.py", 1, "F401")]
    assert result.metrics["files"] == 2
    assert measure(workspace, "ruff", paths=["linked.py", "folder", "../x", "a.py"]).metrics["files"] == 1


def test_ruff_takes_python_that_is_broken(tmp_path: Path) -> None:
    result = measure(write(tmp_path, a__py="def f(:\n"), "ruff")
    assert found(result)[0] == ("error", "a.py", 1, "invalid-syntax")


def test_ruff_selects_and_counts_warnings(tmp_path: Path) -> None:
    write(tmp_path, a__py="import os\nimport sys\n")
    assert codes(measure(tmp_path, "ruff", max_warnings=2)) == {}
    assert codes(measure(tmp_path, "ruff", max_warnings=1)) == {"warnings": "too_many_warnings"}
    assert measure(tmp_path, "ruff", select=["E9"]).metrics["warnings"] == 0


def test_ruff_ignores_the_projects_configuration_and_comments_if_told(tmp_path: Path) -> None:
    write(tmp_path, ruff__toml='lint.ignore = ["F401"]\n', a__py="import os  # noqa\n")
    assert measure(tmp_path, "ruff").metrics["warnings"] == 0
    assert measure(tmp_path, "ruff", ignore_noqa=True).metrics["warnings"] == 1


def test_ruff_that_refuses_is_incomplete(tmp_path: Path) -> None:
    result = measure(write(tmp_path, a__py="x = 1\n"), "ruff", select=["QQQ1"])
    assert codes(result) == {"ran": "incomplete"}


def test_gcc_findings(tmp_path: Path) -> None:
    write(tmp_path, a__c="int f(void) { int unused; return missing; }\n", b__c="int g(int x) { return 0; }\n")
    result = measure(tmp_path, "gcc")
    assert sorted(found(result)) == [
        ("error", "a.c", 1, "error"),
        ("warning", "a.c", 1, "-Wunused-variable"),
        ("warning", "b.c", 1, "-Wunused-parameter"),
    ]
    assert codes(result) == {"errors": "lint_error"}


def test_gcc_takes_a_further_warning(tmp_path: Path) -> None:
    write(tmp_path, a__c="int x;\nint f(void) { int x = 1; return x; }\n")
    assert measure(tmp_path, "gcc").metrics["warnings"] == 0
    assert measure(tmp_path, "gcc", select=["-Wshadow"]).metrics["warnings"] == 1
    assert codes(measure(tmp_path, "gcc")) == {}


def test_gcc_with_a_missing_include(tmp_path: Path) -> None:
    result = measure(write(tmp_path, a__c='#include "absent.h"\n'), "gcc")
    assert codes(result) == {"errors": "lint_error"}


@pytest.mark.parametrize("tool", ["ruff", "gcc"])
def test_no_file_is_no_pass(tmp_path: Path, tool: str) -> None:
    write(tmp_path, notes__txt="hello\n")
    for paths in (["."], ["absent"], ["../"], ["notes.d"]):
        assert codes(measure(tmp_path, tool, paths=paths)) == {"files": "no_files"}


def test_links_are_not_followed(tmp_path: Path) -> None:
    workspace = tmp_path / "ws"
    workspace.mkdir()
    write(tmp_path, outside__py="import os\n")
    (workspace / "link.py").symlink_to(tmp_path / "outside.py")
    (workspace / "dir").symlink_to(tmp_path)
    assert codes(measure(workspace, "ruff", paths=["dir", "link.py"])) == {"files": "no_files"}


def test_file_names_are_no_options(tmp_path: Path) -> None:
    (tmp_path / "--fix.py").write_text("import os\n")
    (tmp_path / "--fix.py").chmod(0o644)
    assert found(measure(tmp_path, "ruff")) == [("warning", "--fix.py", 1, "F401")]


def test_a_tool_that_is_not_installed(tmp_path: Path) -> None:
    result = Linter().measure(call(tmp_path, {"tool": "ruff"}, toolchain=Toolchain()))
    assert (result.status, codes(result)) == ("unavailable", {"toolchain": "toolchain"})
