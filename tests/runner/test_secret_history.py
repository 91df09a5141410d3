"""Values of files of secrets that only git's history has: no record holds them, whoever shows the history."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from cli_kit import raw, spak
from spak import config
from spak.commandline import places
from spak.ports import Call, Limits
from spak.runner import secret_history
from spak.sandbox import LAUNCHERS
from spak.tools.git import repository

pytestmark = pytest.mark.sandbox

FIRST, SECOND, GONE, AMENDED, STASHED = (
    "sk-first-8fQ2xL91", "zt9Qm-second-Pw73", "Kx55-of-a-lost-branch", "Vw20-was-amended", "Rr61-in-a-stash",
)  # fmt: skip
ALL = (FIRST, SECOND, GONE, AMENDED, STASHED)
AS_AUTHOR = {
    "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@spak.example", "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@spak.example",
    "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null",
}  # fmt: skip


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-c", "safe.directory=*", *words],
        cwd=folder,
        env={**os.environ, **AS_AUTHOR},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def committed(folder: Path, name: str, text: str, *more: str) -> str:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    git(folder, "add", "-f", name)
    git(folder, "commit", "-q", "-m", "a change", *more)
    return git(folder, "rev-parse", f"HEAD:{name}")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository in which secrets were, and are no more."""
    folder = tmp_path / "ws"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    committed(folder, "main.py", "print('hello')\n")
    committed(folder, "app/.env", f"API_KEY={FIRST}\n")
    (folder / "blob").write_text(committed(folder, "app/.env", f"API_KEY={SECOND}\nNAME=shop\n"))
    git(folder, "rm", "-q", "app/.env")
    git(folder, "commit", "-q", "-m", "remove it")
    git(folder, "checkout", "-q", "-b", "lost")
    committed(folder, "secrets.yaml", f"token: {GONE}\n")
    committed(folder, "id_rsa", f"{AMENDED}\n")
    committed(folder, "id_rsa", "nothing\n", "--amend")
    (folder / "id_rsa").write_text(f"{STASHED}\n")
    git(folder, "stash", "-q")
    git(folder, "checkout", "-q", "main")
    git(folder, "branch", "-q", "-D", "lost")
    return folder


def read(folder: Path, shown: tuple[str, ...] = ()) -> tuple[str, ...]:
    call = Call(
        "e", "t", {}, folder, LAUNCHERS["restricted"](), limits=Limits(), toolchain=config.toolchain()
    )
    return secret_history.values(call, shown)


def test_what_stood_in_files_of_secrets_is_found_wherever_history_has_it(project: Path) -> None:
    found = read(project)
    assert set(ALL) <= set(found) and "shop" not in found and "print('hello')" not in found
    git(project, "gc", "-q")
    assert set(ALL) <= set(read(project)), "in a pack"
    assert FIRST not in read(project, ("app/.env",)) and GONE in read(project, ("app/.env",))


def test_a_merge_and_an_empty_repository(project: Path, tmp_path: Path) -> None:
    git(project, "checkout", "-q", "-b", "side", "HEAD~1")
    committed(project, "other.py", "x = 1\n")
    git(project, "merge", "-q", "--no-commit", "main")
    committed(project, "server.key", "Evil-merge-Zz819\n")
    assert "Evil-merge-Zz819" in read(project)
    (tmp_path / "new").mkdir()
    git(tmp_path / "new", "init", "-q")
    assert read(tmp_path / "new") == ()
    assert read(tmp_path) == () and secret_history.mark(tmp_path) == ()


@pytest.mark.parametrize("commits", [True, False])
@pytest.mark.parametrize("split", [True, False])
def test_what_was_only_staged_is_found(project: Path, tmp_path: Path, commits: bool, split: bool) -> None:
    folder = project if commits else tmp_path / "new"
    folder.mkdir(exist_ok=True)
    git(folder, "init", "-q")
    for name, text in ((".env", "API_KEY=Only-staged-Yy71\n"), ("x.py", "API_KEY = 'of-code-Yy72'\n")):
        (folder / name).write_text(text)
        git(folder, "add", "-f", name)
    if split:
        git(folder, "update-index", "--split-index")
    (folder / ".env").unlink()
    found = read(folder)
    assert "Only-staged-Yy71" in found and "of-code-Yy72" not in found and (FIRST in found) is commits
    assert "Only-staged-Yy71" not in read(folder, (".env",))


@pytest.mark.parametrize("content", [b"", b"DIRC\0\0\0\2\0\0\0\xff", b"x" * 100])
def test_an_index_that_is_none_hides_no_history(project: Path, content: bytes) -> None:
    (project / ".git/index").write_bytes(content)
    assert set(ALL) <= set(read(project))


def test_only_the_shared_index_that_an_index_names_is_copied(project: Path) -> None:
    (project / ".env").write_text("API_KEY=Only-staged-Yy71\n")
    git(project, "add", "-f", ".env")
    git(project, "update-index", "--split-index")
    with (project / f".git/sharedindex.{'0' * 40}").open("wb") as file:
        file.truncate(1 << 30)
    assert {"Only-staged-Yy71", FIRST} <= set(read(project))


def test_an_index_that_is_too_large_hides_no_history(project: Path) -> None:
    with (project / ".git/index").open("r+b") as file:
        file.truncate(1 << 30)
    assert set(ALL) <= set(read(project))


def test_an_index_of_another_working_tree_is_read_too(project: Path, tmp_path: Path) -> None:
    git(project, "worktree", "add", "-q", "--detach", str(tmp_path / "w"))
    (tmp_path / "w/.env").write_text("API_KEY=Elsewhere-Yy73\n")
    git(tmp_path / "w", "add", "-f", ".env")
    assert "Elsewhere-Yy73" in read(project)


def test_a_damaged_history_gives_what_can_be_read(project: Path) -> None:
    blob = (project / "blob").read_text()
    (project / ".git/objects" / blob[:2] / blob[2:]).unlink()
    found = read(project)
    assert SECOND not in found and {FIRST, GONE} <= set(found)
    (project / ".git/HEAD").write_text("ref: refs/heads/none\n")
    (project / ".git/logs/HEAD").write_text("f" * 40 + " " + "e" * 40 + " A <a@spak.example> 1 +0000\tx\n")
    assert FIRST in read(project)


def test_logs_that_lead_elsewhere_are_not_followed(project: Path, tmp_path: Path) -> None:
    named = git(project, "rev-parse", "HEAD")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/HEAD").write_text(f"{'a' * 40} {'b' * 40} x\n")
    shutil.rmtree(project / ".git/logs")
    (project / ".git/logs").symlink_to(tmp_path / "outside")
    assert "a" * 40 not in repository.tips(project) and named in repository.tips(project)
    (project / ".git/logs").unlink()
    (project / ".git/logs/refs").mkdir(parents=True)
    os.mkfifo(project / ".git/logs/HEAD")
    (project / ".git/logs/refs/x").symlink_to(tmp_path / "outside/HEAD")
    assert "a" * 40 not in repository.tips(project), "and nothing is waited for"


def test_very_many_names_of_commits_are_bounded(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (project / ".git/logs/HEAD").open("a") as file:
        file.writelines(f"{n:040x} {n + 1:040x} A <a@spak.example> 1 +0000\tx\n" for n in range(1, 5000))
    monkeypatch.setattr(repository, "MAX_REFS", 1000)
    monkeypatch.setattr(repository, "MAX_BYTES", 100_000)
    assert len(repository.tips(project)) <= 1000
    assert isinstance(read(project), tuple)


def test_settings_of_the_repository_start_nothing(project: Path) -> None:
    with (project / ".git/config").open("a") as file:
        file.write('[core]\n\tfsmonitor = "touch /ws/started"\n\tpager = "touch /ws/started"\n')
        file.write('[diff "x"]\n\ttextconv = "touch /ws/started"\n\tcommand = "touch /ws/started"\n')
    (project / ".gitattributes").write_text("* diff=x\n")
    assert set(ALL) <= set(read(project)) and not (project / "started").exists()


def test_the_bound_on_commits_keeps_the_newest(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        monkeypatch.setitem(AS_AUTHOR, "GIT_COMMITTER_DATE", f"204{number}-01-01T00:00:00Z")
        committed(project, ".env", f"PASSWORD=new-one-{number}xX\n")
    monkeypatch.setattr(secret_history, "COMMITS", 2)
    found = read(project)
    assert "new-one-2xX" in found and FIRST not in found


def test_the_mark_changes_with_objects_from_elsewhere_and_not_with_a_commit(project: Path) -> None:
    before = secret_history.mark(project)
    committed(project, "main.py", "print('again')\n")
    assert secret_history.mark(project) == before != ()
    (project / ".git/FETCH_HEAD").write_text("")
    assert secret_history.mark(project) != before


@pytest.mark.parametrize(
    "path",
    [
        ".env", "a/.env.local", ".ENV", "a/b/server.pem", ".ssh/config", "x/.aws/y/z.py", "secrets/data.txt",
        "secrets/a/b", "a/secrets/x.py", "secrets.py", ".env.example", "main.py", "a/id_rsa", "id_rsa/x",
        "deploy.tfvars", "a\nb/.netrc", "credentials/__init__.py", ".docker", "docs/secrets.md",
    ],
)  # fmt: skip
def test_the_pattern_of_paths_leaves_no_secret_out(path: str) -> None:
    found = re.fullmatch(places.SECRET_PATHS, path, re.I | re.S) is not None
    assert found or not places.secret(path)
    assert not found or places.secret(path), "more than is needed"


SPEC = """
AGENT Historian LEVEL 5 {
  CONFIG { MODE full_auto }
  START -> look
  TASK look { GOAL "Look back."
    step log: tool.run { cmd: "git log -p --all" on_fail: continue }
    step show: tool.run { cmd: "git show BLOB" on_fail: continue }
    step cat: tool.run { cmd: "git cat-file -p BLOB" on_fail: continue }
    step by_hand: tool.run { cmd: "python3 read.py" on_fail: continue }
    VALIDATOR PyTest { paths: ["test_read.py"] }
  }
}
"""
READ = """
import pathlib, zlib
for path in sorted(pathlib.Path(".git/objects").glob("??/*")):
    data = zlib.decompress(path.read_bytes())
    if data.startswith(b"blob"):
        print(data)
"""


def test_no_record_of_a_run_holds_a_value_of_the_history(project: Path, tmp_path: Path) -> None:
    (project / "read.py").write_text(READ)
    (project / "test_read.py").write_text(
        "import subprocess\n\ndef test_it():\n"
        "    assert subprocess.run(['python3', 'read.py'], capture_output=True, text=True).stdout == ''\n"
    )
    (tmp_path / "a.spak").write_text(SPEC.replace("BLOB", (project / "blob").read_text()))
    code, found = spak(tmp_path, "run", "a.spak", "--workspace", "ws", "--json")
    assert code in (0, 1), found
    kept = tmp_path / ".spak/runs" / found["run"]
    shown = raw(tmp_path, "show", found["run"], "--json").stdout
    lines = [json.loads(line) for line in (kept / "trace.jsonl").read_text().splitlines()]
    outs = [str(line["body"]["out"]) for line in lines if "out" in line.get("body", {})]
    assert sum("[redacted:key]" in out for out in outs) >= 3, outs
    for value in ALL:
        assert value not in shown
        for file in kept.rglob("*"):
            if file.is_file() and not {"store", "workspace"} & set(file.relative_to(kept).parts):
                assert value.encode() not in file.read_bytes(), (value, file)
    assert spak(tmp_path, "replay", found["run"], "--json")[0] == 0
