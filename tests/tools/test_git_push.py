"""`git_push` with real git on both sides: what reaches a repository on loopback, and what does not go out."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from commits_kit import RunOf
from git_http_kit import git, serving
from spak.ports import ToolResult

pytestmark = pytest.mark.sandbox

HOST = "git.example"
Push = Callable[..., ToolResult]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Any]:
    with serving(tmp_path / "remote") as found:
        yield found


@pytest.fixture
def repo(workspace: Path) -> Path:
    git(workspace, "init", "-q", "-b", "main")
    return commit(workspace, "a.txt", "one\n")


@pytest.fixture
def push(do: Callable[..., ToolResult], repo: Path, server: Any, tmp_path: Path, begun: list[RunOf]) -> Push:
    """A push of a run that begins now, or `goes_on`."""
    numbers = count()

    def work(
        branch: str = "spak/work", path: str = "app.git", *, goes_on: bool = False, **args: Any
    ) -> ToolResult:
        if not goes_on:
            begun[:] = [RunOf(repo, tmp_path / f"store{next(numbers)}")]
        more = {name: args.pop(name) for name in ("observed", "reach") if name in args}
        seen = {"observed": {"hosts": [[HOST, ["127.0.0.1"]]]}, "reach": ("public", "loopback"), **more}
        url = args.pop("url", f"http://{HOST}:{server.server_port}/{path}")
        return do("git_push", url=url, branch=branch, call_fields=seen, **args)

    return work


def commit(folder: Path, name: str, text: str, *more: str) -> Path:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    git(folder, "add", "-A", "-f", ".")
    git(folder, "commit", "-q", "-m", name, *more)
    return folder


def refused(result: ToolResult) -> str:
    assert (result.status, result.exit) == ("exited", 1), result.output
    return str(result.diagnostics[0]["code"])


def at(server: Any, branch: str = "spak/work") -> str:
    return git(server.bare, "rev-parse", branch)


def test_a_branch_is_made_and_then_moved_forward(push: Push, repo: Path, server: Any) -> None:
    done = push()
    assert done.exit == 0 and at(server) == git(repo, "rev-parse", "HEAD"), done.output
    assert git(server.bare, "show", "spak/work:a.txt") == "one"
    assert (done.requests, done.key["ref"]) == (2, "refs/heads/spak/work") and done.request_bytes > 100
    commit(repo, "b.txt", "two\n")
    assert push().exit == 0 and at(server) == git(repo, "rev-parse", "HEAD")
    git(server.bare, "fsck", "--strict")
    again = push()
    assert again.exit == 0 and b"already" in again.output and again.requests == 1
    assert {head["Host"] for _, _, head, _ in server.seen} == {f"{HOST}:{server.server_port}"}


def test_the_named_commit_goes_out_and_no_later_one(push: Push, repo: Path, server: Any) -> None:
    first = git(repo, "rev-parse", "HEAD")
    commit(repo, "later.txt", "not yet\n")
    assert push(commit=first).exit == 0 and at(server) == first
    assert refused(push(commit="ab" * 20)) == "git_push.missing"
    tree = git(repo, "rev-parse", "HEAD^{tree}")
    assert refused(push(commit=tree)) == "git_push.missing" and at(server) == first


def test_a_branch_is_not_moved_back_or_aside(push: Push, repo: Path, server: Any) -> None:
    first = git(repo, "rev-parse", "HEAD")
    commit(repo, "b.txt", "two\n")
    assert push().exit == 0
    there = at(server)
    assert refused(push(commit=first)) == "git_push.behind"
    git(repo, "reset", "-q", "--hard", first)
    commit(repo, "c.txt", "three\n")
    assert refused(push()) == "git_push.behind"
    git(repo, "reflog", "expire", "--expire=now", "--all")
    git(repo, "gc", "-q", "--prune=now")
    assert refused(push()) == "git_push.behind" and at(server) == there, "a commit that it does not have"


@pytest.mark.parametrize("name", [".env", "prod.env.bak", "app/.ssh/config", "keys/id_rsa"])
def test_no_new_commit_carries_a_file_of_secrets_out(push: Push, repo: Path, server: Any, name: str) -> None:
    commit(repo, name, "PASSWORD=hunter22\n")
    git(repo, "rm", "-q", "--cached", name)
    git(repo, "commit", "-q", "-m", "gone again")
    result = push()
    assert refused(result) == "git_push.secret" and name.encode() in result.output
    assert [request[0] for request in server.seen] == ["GET"] and git(server.bare, "for-each-ref") == ""


def test_no_file_of_secrets_goes_out_where_history_cannot_be_read(
    push: Push, repo: Path, server: Any
) -> None:
    """git's log ends where a parent has no tree; the pack of what is new is made all the same."""
    assert push().exit == 0
    tree = git(repo, "rev-parse", "HEAD^{tree}")
    there = at(server)
    commit(repo, ".env", "PASSWORD=hunter22\n")
    commit(repo, "b.txt", "two\n")
    (repo / ".git/objects" / tree[:2] / tree[2:]).unlink()
    assert refused(push()) == "git.failed" and at(server) == there


def test_no_new_commit_carries_a_secret_out_by_what_is_in_it(push: Push, repo: Path, server: Any) -> None:
    commit(repo, "docs/notes.txt", "use ghp_" + "a1B2" * 9 + "\n")
    result = push()
    assert refused(result) == "git_push.secret" and b"docs/notes.txt" in result.output
    assert git(server.bare, "for-each-ref") == ""


def test_a_commit_of_the_run_goes_out_and_no_other_branch_of_the_user(
    do: Callable[..., ToolResult], push: Push, repo: Path, server: Any, begun: list[RunOf]
) -> None:
    git(repo, "switch", "-q", "-c", "private")
    other = git(commit(repo, "p.txt", "private\n"), "rev-parse", "HEAD")
    git(repo, "switch", "-q", "main")
    assert refused(push(commit=other)) == "git_push.missing"
    (repo / "b.txt").write_text("of the run\n")
    assert do("git_commit", message="m").exit == 0
    assert push(goes_on=True).exit == 0 and at(server) == begun[0].head()
    assert git(server.bare, "ls-tree", "--name-only", "spak/work") == "a.txt\nb.txt"


def test_what_would_run_by_itself_goes_out_where_the_call_names_it(
    do: Callable[..., ToolResult], push: Push, repo: Path, server: Any
) -> None:
    """Of each commit that goes out, and not of those that the user had."""
    commit(repo, "src/__init__.py", "")
    commit(repo, "Makefile", "all:\n")
    assert push().exit == 0, "what the user committed is no change of the run"
    for name in ("conftest.py", "src/app.py"):
        (repo / name).write_text("x = 1\n")
    (repo / "Makefile").unlink()
    assert do("git_commit", message="more").exit == 0
    there = at(server)
    result = push(goes_on=True)
    assert refused(result) == "door.unsigned"
    assert b"Makefile, conftest.py" in result.output and b"app.py" not in result.output
    (repo / "conftest.py").unlink()
    (repo / "Makefile").write_text("all:\n")
    assert do("git_commit", message="less").exit == 0
    assert refused(push(goes_on=True, runs=["conftest.py"])) == "door.unsigned", "an earlier commit has it"
    assert at(server) == there
    assert push(goes_on=True, runs=["conftest.py", "Makefile"]).exit == 0
    assert git(server.bare, "ls-tree", "-r", "--name-only", "spak/work").endswith("src/app.py")
    (repo / "src/app.py").write_text("x = 2\n")
    assert do("git_commit", message="last").exit == 0
    assert push(goes_on=True).exit == 0, "what is there already was let out before"


def test_of_a_folder_without_a_repository_what_the_run_changed_is_looked_at(
    do: Callable[..., ToolResult], push: Push, repo: Path, server: Any
) -> None:
    shutil.rmtree(repo / ".git")
    (repo / "src").mkdir()
    for path in ("Makefile", "src/app.py", "src/tool.xyz"):
        (repo / path).write_text("one\n")
    assert refused(push()) == "git_push.missing", "the run begins, and has made no commit"
    (repo / "src/app.py").write_text("two\n")
    assert do("git_commit", message="m").exit == 0
    assert push(goes_on=True).exit == 0
    assert git(server.bare, "ls-tree", "-r", "--name-only", "spak/work").split()[0] == "Makefile"
    (repo / "Makefile").write_text("two\n")
    assert do("git_commit", message="m").exit == 0
    assert refused(push(goes_on=True)) == "door.unsigned"
    result = push("spak/other", goes_on=True)
    assert refused(result) == "door.unsigned" and b"by itself: Makefile [" in result.output


def test_an_odd_name_does_not_go_out(do: Callable[..., ToolResult], push: Push, repo: Path) -> None:
    push()
    (repo / "a\u202eyp.md").write_text("x\n")
    assert do("git_commit", message="m").exit == 0
    assert refused(push(goes_on=True)) == "door.odd"


def test_nothing_of_the_repository_decides(push: Push, repo: Path, server: Any, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    for name, value in (
        ("remote.origin.url", "http://elsewhere.example/"), ("core.fsmonitor", f"touch {mark}"),
        ("core.sshCommand", f"touch {mark}"), ("credential.helper", f"!touch {mark}"),
        ("http.proxy", "http://127.0.0.1:1"), ("pack.packSizeLimit", "1"),
        ("url.http://127.0.0.1:1/.insteadOf", "http://"),
    ):  # fmt: skip
        git(repo, "config", name, value)
    hook = repo / ".git/hooks/pre-push"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {mark}\n")
    hook.chmod(0o755)
    assert push().exit == 0 and at(server) == git(repo, "rev-parse", "HEAD") and not mark.exists()


def test_the_token_goes_with_the_request_alone(push: Push, repo: Path, server: Any) -> None:
    server.password = "bot:t0ken-1"
    assert refused(push()) == "git_push.denied"
    assert refused(push(token="t0ken-1")) == "git_push.denied", "another login"
    done = push(token="t0ken-1", login="bot")
    assert done.exit == 0 and b"t0ken" not in done.output and at(server) == git(repo, "rev-parse", "HEAD")


@pytest.mark.parametrize(
    ("args", "code"),
    [
        ({"observed": {}}, "http_request.address"),
        ({"reach": ("public",)}, "http_request.reach"),
        ({"observed": {"hosts": [[HOST, ["93.184.216.34"]]]}}, "git_push.url"),
        ({"url": f"http://someone@{HOST}/app.git"}, "git_push.url"),
        ({"url": "/srv/git/app.git"}, "git_push.url"),
        ({"path": "app.git?service=x"}, "git_push.url"),
        ({"branch": "a..b"}, "git_push.branch"),
        ({"branch": "x\0y"}, "git_push.branch"),
        ({"branch": "x\n0000"}, "git_push.branch"),
        ({"token": "a\r\nX-B: c"}, "git_push.login"),
        ({"token": "a", "login": "x:y"}, "git_push.login"),
        ({"commit": "--all" + "a" * 35}, "git_push.missing"),
    ],
)
def test_what_is_refused_before_anything_is_sent(
    push: Push, server: Any, args: dict[str, Any], code: str
) -> None:
    assert refused(push(**args)) == code and server.seen == []


KIND = {"Content-Type": "application/x-git-receive-pack-advertisement"}


@pytest.mark.parametrize(
    "answer",
    [
        (404, {}, b""), (301, {"Location": "http://elsewhere.example/app.git"}, b""), (200, {}, b"hello"),
        (200, KIND, b"zzzz"), (200, KIND, b"0003"), (200, KIND, b"00ff"), (200, KIND, b"-001"),
        (200, KIND, b"0000" * (3 << 20)),
    ],
)  # fmt: skip
def test_a_host_that_is_no_repository(push: Push, server: Any, answer: Any) -> None:
    server.answer = answer
    assert refused(push()) == "git_push.failed" and len(server.seen) == 1


def test_a_branch_that_the_host_protects(push: Push, server: Any) -> None:
    hook = server.bare / "hooks/update"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    result = push()
    assert refused(result) == "git_push.refused" and b"hook declined" in result.output


def test_a_pack_that_is_too_large(
    push: Push, repo: Path, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spak.tools.git_push.MAX_PACK", 10)
    assert refused(push()) == "git_push.size" and len(server.seen) == 1
