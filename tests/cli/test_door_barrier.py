"""Whatever a run commits and however it does: what no check passed on does not leave it (`block_commit`)."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from cli_kit import spak

pytestmark = pytest.mark.sandbox

SPEC = """AGENT Mends LEVEL 2 {{
    START -> mend
    TASK mend {{
        GOAL "Change the files."
        step write: tool.write_file {{ path: "src/app.py" content: "broken" }}
        VALIDATOR Command {{ cmd: "false" }}
        NEXT {{ success -> give  fail -> give }}
    }}
    TASK give {{
        GOAL "Commit them all the same."
        step commit: {step}
    }}
}}
"""
CODE = "import subprocess; subprocess.run(['git', 'commit', '-qam', 'x'])"
COMMITS = {
    "add and commit": 'tool.run { cmd: "bash -c \\"git add -A && git commit -qm x\\"" on_fail: continue }',
    "commit -am": 'tool.run { cmd: "git commit -qam x" on_fail: continue }',
    "git_commit": 'tool.git_commit { message: "x" on_fail: continue }',
    "a subprocess": f"tool.python_repl {{ code: {json.dumps(CODE)} on_fail: continue }}",
}


def git(folder: Path, *words: str) -> str:
    line = ["git", "-c", "user.name=a", "-c", "user.email=a@b.example", *words]
    return subprocess.run(line, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    (made / "src").mkdir(parents=True)
    (made / "src/app.py").write_text("one = 1\n")
    git(made, "init", "-q", "-b", "main")
    git(made, "add", "-A")
    git(made, "commit", "-qm", "first")
    return made


LATE = """AGENT Late LEVEL 2 {{
    START -> mend
    TASK mend {{
        GOAL "Change the files, and check them."
        step write: tool.write_file {{ path: "src/app.py" content: "two = 2" }}
        VALIDATOR Command {{ cmd: "true" }}
        NEXT {{ success -> late }}
    }}
    TASK late {{
        GOAL "Write after the check."
        step write: tool.write_file {{ path: "src/app.py" content: "broken" }}
        step commit: {step}
    }}
}}
"""


@pytest.mark.parametrize("way", COMMITS)
def test_nothing_that_was_written_after_a_clean_check_leaves(tmp_path: Path, project: Path, way: str) -> None:
    (tmp_path / "late.spak").write_text(LATE.format(step=COMMITS[way]))
    _, seen = spak(tmp_path, "run", "late.spak", "--workspace", "project", "--json")
    run, before = str(seen["run"]), git(project, "rev-parse", "HEAD")
    for more in ((), ("--branch", "spak/x")):
        code, found = spak(tmp_path, "apply", run, "--json", *more)
        refused = found.get("blocked") or found["error"]["code"]
        assert (code, refused) in ((4, ["No Check Ran"]), (1, "apply.no_commits")), found
    assert (project / "src/app.py").read_text() == "one = 1\n"
    refs = git(project, "for-each-ref", "--format=%(refname)")
    assert (git(project, "rev-parse", "HEAD"), refs) == (before, "refs/heads/main")


def test_a_run_without_checks_leaves_and_one_that_checks_last_too(tmp_path: Path, project: Path) -> None:
    for text in (
        'task A { step w: tool.write_file { path: "src/app.py" content: "two = 2" } }',
        'task A { step w: tool.write_file { path: "src/app.py" content: "x" } success: file_exists("src") }',
    ):
        (tmp_path / "a.spak").write_text(text)
        _, seen = spak(tmp_path, "run", "a.spak", "--workspace", "project", "--json")
        code, found = spak(tmp_path, "apply", str(seen["run"]), "--json")
        assert (code, found["blocked"], len(found["applied"])) == (0, [], 1)


@pytest.mark.parametrize("way", COMMITS)
def test_nothing_of_a_failed_check_leaves(tmp_path: Path, project: Path, way: str) -> None:
    (tmp_path / "mends.spak").write_text(SPEC.format(step=COMMITS[way]))
    _, seen = spak(tmp_path, "run", "mends.spak", "--workspace", "project", "--json")
    before = git(project, "rev-parse", "HEAD")
    code, found = spak(tmp_path, "apply", str(seen["run"]), "--json")
    assert (code, found["blocked"]) == (4, ["Check Failed"])
    assert (project / "src/app.py").read_text() == "one = 1\n"
    refs = git(project, "for-each-ref", "--format=%(refname)")
    assert (git(project, "rev-parse", "HEAD"), refs) == (before, "refs/heads/main")


FOUND = {
    "Build Broken": ("sarif", '{"runs": [{"tool": {"driver": {}}, "results": [{"level": "error"}]}]}'),
    "Build Panicked": ("go", "panic: nil map\n\tx.go:4 +0x2e"),
}


@pytest.mark.parametrize("reason", FOUND)
def test_what_a_tool_found_holds_a_commit_whatever_its_exit_code(
    tmp_path: Path, project: Path, reason: str
) -> None:
    form, text = FOUND[reason]
    (project / "report.txt").write_text(text)
    (tmp_path / "mend.spak").write_text(
        SPEC.format(step=COMMITS["git_commit"]).replace(
            'cmd: "false"', f'cmd: "cat report.txt" diagnostics: {form}'
        )
    )
    _, seen = spak(tmp_path, "run", "mend.spak", "--workspace", "project", "--json")
    code, found = spak(tmp_path, "apply", str(seen["run"]), "--json")
    assert code == 4 and reason in found["blocked"], found
