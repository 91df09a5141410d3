"""Runs on a repository with secrets, history and settings that name programs: what leaves, what is obeyed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli_calls import Cli
from git_http_kit import git

pytestmark = pytest.mark.sandbox

OLD = "x7-Kq9-old-Pa55phrase"
HEAD = "AGENT P LEVEL 4 { CONFIG { MODE full_auto, BUDGET { watchdog: 9 } CONFIG_HERE } START -> a\n"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository whose first commit had a password in `.env`."""
    folder = tmp_path / "repo"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / ".env").write_text(f"DB_PASSWORD={OLD}\n")
    (folder / "app.py").write_text("X = 1\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")
    git(folder, "rm", "-q", ".env")
    git(folder, "commit", "-q", "-m", "without the password")
    return folder


def run(cli: Cli, repo: Path, *steps: str, config: str = "") -> tuple[str, str, Path]:
    """The refusal's or the last output's texts, the whole trace, and where the commits of the run are."""
    (repo.parent / "p.spak").write_text(
        HEAD.replace("CONFIG_HERE", config)
        + 'TASK a { step w: tool.write_file { path: "app.py" content: "X = 2\\n" }\n'
        + "\n".join(f"  step s{number}: {text}" for number, text in enumerate(steps))
        + '\n  VALIDATOR Command { cmd: "true" } NEXT { success -> b } }\n'
        + 'TASK b { step k: tool.git_commit { message: "fix" on_fail: continue } } }\n'
    )
    done = cli("run", "p.spak", "--workspace", str(repo), "--json")
    folder = next(path.parent for path in repo.parent.rglob("trace.jsonl"))
    trace = (folder / "trace.jsonl").read_text()
    acts = [json.loads(line)["body"] for line in trace.splitlines() if '"kind":"act"' in line]
    return done.out + str([act.get("out") for act in acts]), trace, folder / "store/git"


def committed(bare: Path) -> list[str]:
    return git(bare, "log", "--format=%s", "--all", "--not", "refs/spak/base").split()


def test_files_of_secrets_that_lie_there_are_refused_and_named(cli: Cli, repo: Path) -> None:
    """No attack: they were never committed and are not ignored."""
    (repo / ".env").write_text("DB_PASSWORD=hunter22x9-of-today\n")
    (repo / "conf").mkdir()
    (repo / "conf/prod.yml").write_text("db_password: hunter33y8-of-today\n")
    (repo / "notes.txt").write_text("password = hunter44z7-of-today\n")
    said, trace, bare = run(cli, repo)
    assert "git_commit.secret" in said
    assert all(f"'{name}'" in said for name in (".env", "conf/prod.yml", "notes.txt"))
    assert committed(bare) == [] and "of-today" not in trace
    assert git(repo, "log", "--format=%s").splitlines() == ["without the password", "first"]


def test_a_value_of_history_is_not_there_to_be_found(cli: Cli, repo: Path) -> None:
    look = 'tool.run { cmd: "git log -p --all" }'
    walk = 'tool.run { cmd: "grep -r Pa55phrase /ws" }'
    said, trace, bare = run(cli, repo, look, walk, 'tool.run { cmd: "git log --oneline" }')
    assert OLD not in trace
    assert "The files that the run began with" in said and "without the password" not in said
    assert committed(bare) == ["fix"]
    assert git(bare, "log", "-1", "--format=%P", "spak") == git(repo, "rev-parse", "HEAD")


def test_settings_that_name_programs_start_none(cli: Cli, repo: Path, tmp_path: Path) -> None:
    (repo / "fmt.sh").write_text("#!/bin/sh\ncat\n")
    (repo / "fmt.sh").chmod(0o755)
    (repo / "data.csv").write_text("a,b\n")
    (repo / ".gitattributes").write_text("*.csv filter=fmt diff=fmt merge=fmt\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "a filter")
    for name in (
        "filter.fmt.clean",
        "filter.fmt.smudge",
        "diff.fmt.textconv",
        "merge.fmt.driver",
        "core.fsmonitor",
    ):
        git(repo, "config", name, f"{tmp_path}/evil.sh")
    (tmp_path / "evil.sh").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\ncat\n")
    (tmp_path / "evil.sh").chmod(0o755)
    (repo / ".env").write_text("DB_PASSWORD=hunter22x9-of-today\n")
    (repo / ".gitignore").write_text(".env\n")
    steal = "#!/bin/sh\\ncat .env | base64 | base64 > out.txt; cat\\n"
    said, _, bare = run(
        cli,
        repo,
        f'tool.write_file {{ path: "fmt.sh" content: "{steal}" }}',
        'tool.write_file { path: "data.csv" content: "c,d\\n" }',
        'tool.run { cmd: "git add data.csv" }',
        'tool.run { cmd: "ls" }',
    )
    assert not (tmp_path / "ran").exists() and "out.txt" not in said
    assert "git_commit.filter" in said and committed(bare) == []


def test_history_comes_where_the_spec_asks_for_it(cli: Cli, repo: Path) -> None:
    log = 'tool.run { cmd: "git log --format=%an:%s" }'
    said, trace, bare = run(cli, repo, log, 'tool.run { cmd: "git log -p --all" }', config="HISTORY 9")
    assert "A:without the password" in said and "A:first" in said
    assert OLD not in trace and committed(bare) == ["fix"]
