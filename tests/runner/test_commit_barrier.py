"""The commit barrier: what is committed was checked, whichever door the commit takes (ADR 0022)."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barrier_kit import (
    ACTIONS,
    BAD,
    CHECK,
    DOORS,
    INNER,
    NO_COMMIT,
    SCRIPT,
    SCRIPTS,
    WALK,
    Barrier,
    files,
    git,
    line,
    opened,
    scripted,
    tool,
    tree_of,
)  # fmt: skip
from spak.commandline.findings import Deed, Reading
from spak.policy.repository import Opening, opening
from spak.ports import Call, Launcher
from spak.program import Step
from spak.sandbox.restricted import Restricted
from spak.tools.git import repository

GOOD = tool("write_file", path="a.py", content="good 2")
BROKEN = tool("write_file", path="a.py", content=f"{BAD} 2")
LATER = tool("write_file", path="b.py", content="good 3")
ADD = line("git", "add", "-A")

STATES = {
    "no_check": (GOOD, ADD),
    "failed_then_added": (BROKEN, CHECK, ADD),
    "written_after_the_check": (GOOD, CHECK, ADD, LATER),
    "staged_after_the_check": (GOOD, CHECK, LATER, ADD),
}
"""What was done before somebody tries to commit; after none of these may a commit be made."""

KEEPS = {
    "git_commit",
    "commit",
    "commit_all",
    "commit_empty",
    "commit_elsewhere",
    "commit_configured",
    "shell",
}
"""Doors that commit exactly the files of the workspace once all of them are staged."""


def _begun(folder: Path, launcher: Launcher | None, actions: Iterable[Step]) -> Barrier:
    made = opened(folder, launcher)
    for what in SCRIPTS:
        (made.place / f"{what}.py").write_text(scripted(what))
    (made.place / "Makefile").write_text("keep:\n\tgit add -A && git commit -m made\n")
    git(made.place, "add", "-A")
    git(made.place, "commit", "-q", "-m", "scripts")
    made.unchecked()
    for action in actions:
        assert made.do(action) in ("ok", "lint.bad"), (action, made.codes)
    return made


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Barrier]:
    """A run with all scripts, in which these actions were done; made once, and copied."""
    known: dict[tuple[str, bool], Barrier] = {}

    def copied(folder: Path, *actions: Step, launcher: Launcher | None = None) -> Barrier:
        key = repr(actions), launcher is not None
        if key not in known:
            known[key] = _begun(tmp_path_factory.mktemp("begun") / "run", launcher, actions)
        return known[key].copied(folder)

    return copied


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("door", DOORS)
def test_no_door_lets_an_unchecked_commit_through(
    tmp_path: Path, begun: Callable[..., Barrier], door: str, state: str
) -> None:
    barrier = begun(tmp_path / "run", *STATES[state])
    before = barrier.commits()
    barrier.do(DOORS[door])
    assert barrier.commits() == before, barrier.codes
    assert barrier.unchecked() == []


@pytest.mark.parametrize("door", DOORS)
def test_what_a_door_commits_after_a_check_was_checked(
    tmp_path: Path, begun: Callable[..., Barrier], door: str
) -> None:
    barrier = begun(tmp_path / "run", GOOD, CHECK, ADD)
    before = barrier.commits()
    barrier.do(DOORS[door])
    assert barrier.unchecked() == []
    assert (barrier.commits() != before) is (
        door in KEEPS | {"git_commit_paths", "commit_amend", "commit_only"} | {"stash", "stash_push"}
    ), barrier.codes
    if door in KEEPS:
        assert barrier.codes[-1] == "ok"
        assert tree_of(barrier.place, "HEAD") == files(barrier.place)


@pytest.mark.parametrize(
    "action",
    [
        line("git", "commit", "-m", "m"),
        line("git", "commit", "--allow-empty", "-m", "m"),
        line("git", "commit", "-am", "m"),
        line("git", "commit", "-m", "m", "--", "a.py"),
    ],
    ids=lambda step: " ".join(step.args["cmd"]),
)
def test_a_commit_that_leaves_a_checked_file_out_is_undone(tmp_path: Path, action: object) -> None:
    """`b.py` is new and not staged: the check saw it, the commit would not hold it."""
    barrier = opened(tmp_path / "run")
    for step in (GOOD, LATER, CHECK, line("git", "add", "a.py")):
        assert barrier.do(step) == "ok"
    head = git(barrier.place, "rev-parse", "HEAD")
    assert barrier.do(action) == "workspace.repository"  # type: ignore[arg-type]
    assert git(barrier.place, "rev-parse", "HEAD") == head
    assert barrier.do(tool("git_commit", message="m")) == "ok"
    assert barrier.unchecked() == []


def test_what_is_staged_but_not_in_the_files_is_not_committed(tmp_path: Path) -> None:
    barrier = opened(tmp_path / "run")
    for step in (BROKEN, ADD, GOOD, CHECK):
        assert barrier.do(step) == "ok"
    assert barrier.do(line("git", "commit", "-m", "m")) == "workspace.repository"
    assert barrier.do(line("git", "commit", "-am", "m")) == "ok"
    assert barrier.unchecked() == []


def test_staging_and_committing_keep_a_check_and_make_none(tmp_path: Path) -> None:
    barrier = opened(tmp_path / "run")
    commit = line("git", "commit", "-m", "m")
    for step in (GOOD, ADD, CHECK, line("git", "reset", "-q"), ADD, commit):
        assert barrier.do(step) == "ok"
    assert barrier.do(line("git", "commit", "--amend", "-m", "n")) == "ok"
    assert [signal for _, _, signal in barrier.state.r7.checks] == ["success"]
    assert barrier.do(tool("write_file", path="x.log", content="ignored")) == "ok"
    assert barrier.state.r7.checks == (), "an ignored file is a file"
    assert barrier.do(commit) == "policy.forbidden"


def test_a_merge_is_checked_before_it_is_committed(tmp_path: Path) -> None:
    barrier = opened(tmp_path / "run")
    assert barrier.do(CHECK) == "ok"
    assert barrier.do(DOORS["merge_no_ff"]) == "workspace.repository"
    assert barrier.do(NO_COMMIT["merge_open"]) == "ok"
    assert barrier.do(line("git", "commit", "-m", "m")) == "policy.forbidden"
    assert barrier.do(CHECK) == "ok"
    assert barrier.do(line("git", "commit", "-m", "m")) == "ok"
    assert barrier.unchecked() == []
    assert len(git(barrier.place, "rev-list", "-n", "1", "--parents", "HEAD").split()) == 3


@pytest.mark.parametrize(("door", "ended"), [("git_commit", "ok"), ("commit", "workspace.repository")])
def test_text_that_git_would_store_in_another_encoding_is_not_committed(
    tmp_path: Path, door: str, ended: str
) -> None:
    """What was checked are the bytes of the file, and git would store others."""
    barrier = opened(tmp_path / "run")
    attributes = tool("write_file", path=".gitattributes", content="*.py working-tree-encoding=UTF-16LE\n")
    for step in (GOOD, attributes, CHECK, ADD):
        assert barrier.do(step) == "ok"
    before = barrier.commits()
    assert barrier.do(DOORS[door]) == ended, "a refusal of the tool is a result"
    assert barrier.commits() == before


def test_another_check_does_not_forget_one_that_failed(tmp_path: Path) -> None:
    from dataclasses import replace

    barrier = opened(tmp_path / "run")
    assert barrier.do(BROKEN) == "ok"
    assert barrier.do(CHECK) == "ok"
    (barrier.place / "a.py").write_text("good by stealth")  # the same validator passes with other options
    barrier.do(replace(CHECK, args={"options": "others"}))
    assert sorted(signal for _, _, signal in barrier.state.r7.checks) == ["fail", "success"]
    assert barrier.do(line("git", "commit", "-am", "m")) == "policy.forbidden"


def test_hooks_of_the_workspace_do_not_run_on_a_line_that_opens_the_repository(tmp_path: Path) -> None:
    """`core.hooksPath` is the user's; what lies there may be written by anybody who writes files."""
    barrier = opened(tmp_path / "run")
    git(barrier.place, "config", "core.hooksPath", "hooks")
    hook = '#!/bin/sh\necho ran > ran\ngit commit -q --allow-empty -m "by a hook"\n'
    barrier.do(tool("write_file", path="hooks/post-checkout", content=hook))
    (barrier.place / "hooks/post-checkout").chmod(0o755)
    assert barrier.do(NO_COMMIT["branch"]) == "ok"
    assert not (barrier.place / "ran").exists()
    assert barrier.unchecked() == []


def test_a_new_repository_is_made_by_git_init_and_its_first_commit_was_checked(tmp_path: Path) -> None:
    import shutil

    barrier = opened(tmp_path / "run")
    shutil.rmtree(barrier.place / ".git")
    assert barrier.do(line("git", "init", "-q", "-b", "main")) == "ok"
    assert barrier.do(ADD) == "ok"
    assert barrier.do(tool("git_commit", message="m")) == "policy.forbidden"
    assert barrier.do(CHECK) == "ok"
    assert barrier.do(tool("git_commit", message="m")) == "ok"
    assert tree_of(barrier.place, "HEAD") == files(barrier.place)


OPENINGS: list[tuple[str, Opening | None]] = [
    ("git add -A", Opening()),
    ("git -c user.name=B add .", Opening()),
    ("git commit -m 'a; ./x.sh'", Opening(commits=True)),
    ("git merge topic", Opening(commits=True)),
    ("git merge --no-commit topic", Opening()),
    ("git merge --no-commit --commit topic", Opening(commits=True)),
    ("git merge -m --abort topic", Opening(commits=True)),
    ("git merge -n topic", Opening(commits=True)),
    ("git revert -n HEAD", Opening()),
    ("git rebase --abort", Opening()),
    ("git stash apply", Opening()),
    ("git stash", Opening(commits=True)),
    ("git config user.name B", Opening(configures=True)),
    ("timeout 5 git add -A", Opening()),
    ("git status", None),
    ("git log", None),
    ("git pull", None),
    ("git fetch", None),
    ("git update-ref HEAD x", None),
    ("git ci", None),
    ("git -c core.hooksPath=x add -A", None),
    ("git rebase --exec ./x.sh main", None),
    ("make", None),
    ("python x.py", None),
    ("./git add -A", None),
    ("xargs git add", None),
    ("", None),
]


@pytest.mark.parametrize(("text", "wanted"), OPENINGS)
def test_calls_that_open_the_repository(text: str, wanted: Opening | None) -> None:
    import shlex

    assert opening("run", {"cmd": shlex.split(text)}) == wanted
    assert opening("nsight", {"cmd": shlex.split(text)}) is None
    assert opening("run", {"cmd": text}) is None and opening("run", {}) is None
    assert opening("git_commit", {"message": text}) == Opening(tool=True)


@pytest.mark.parametrize("about", ["./x.sh", "git log"])
@pytest.mark.parametrize("kind", ["builds", "writes", "executes", "unknown_binary", "installs_locked"])
def test_a_line_on_which_anything_else_runs_opens_nothing(
    monkeypatch: pytest.MonkeyPatch, kind: str, about: str
) -> None:
    """A script on the same line could write the repository by itself."""
    reading = Reading(deeds=[Deed(1, "commits", "git add"), Deed(2, "reads", "git log")])
    monkeypatch.setattr("spak.policy.repository.read_line", lambda text, world: reading)
    assert opening("run", {"cmd": ["x"]}) == Opening()
    reading.deeds.append(Deed(3, kind, about))
    assert opening("run", {"cmd": ["x"]}) is None


PATHS = [
    ("index", True), ("HEAD", True), ("ORIG_HEAD", True), ("COMMIT_EDITMSG", True), ("MERGE_HEAD", True),
    ("refs/heads/a/b", True), ("refs/stash", True), ("logs/HEAD", True), ("logs/refs/heads/a", True),
    ("objects/ab", True), ("objects/ab/" + "c" * 38, True), ("rebase-merge/done", True),
    ("config", False), ("config.worktree", False), ("hooks", False), ("hooks/pre-commit", False),
    ("info/attributes", False), ("info/exclude", False), ("objects/info/alternates", False),
    ("commondir", False), ("gitdir", False), ("modules/x/config", False), ("worktrees/x/HEAD", False),
    ("refs/replace/" + "c" * 40, False), ("refs/remotes/origin/main", False), ("shallow", False),
    ("objects/ab/x", False), ("index\n", False),
]  # fmt: skip


@pytest.mark.parametrize(("path", "kept"), PATHS)
def test_what_says_how_git_works_is_not_changed_by_git(tmp_path: Path, path: str, kept: bool) -> None:
    """Whatever a line that opens the repository did: these files of it may not be other ones afterwards."""
    barrier = opened(tmp_path / "run")
    call = Call("c", "run", {}, barrier.place, None)
    for about, changes in ((Opening(), kept), (Opening(configures=True), kept or path == "config")):
        known = repository.before(call, about)
        assert (repository.trouble(call, known, [".git", f".git/{path}"]) == "") is changes
        assert repository.trouble(call, known, ["a.py", f"in/.git/{path}"]) == ""
    assert repository.trouble(call, None, [f".git/{path}"]) != ""


NAMES = st.lists(st.sampled_from(WALK).flatmap(st.sampled_from), min_size=4, max_size=14)


def no_commit_is_unchecked(names: list[str], launcher: Launcher | None = None) -> int:
    """Do the actions one after another; how many commits were made."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        barrier = opened(Path(folder) / "run", launcher)
        before = len(barrier.known)
        for name in names:
            barrier.do(ACTIONS[name])
            assert barrier.unchecked() == [], list(zip(names, barrier.codes, strict=False))
        return len(barrier.known) - before


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(NAMES)
def test_no_sequence_commits_what_was_not_checked(names: list[str]) -> None:
    no_commit_is_unchecked(names)


# ---- in the sandbox


@pytest.fixture(scope="module")
def launcher() -> Restricted:
    return Restricted()


@pytest.mark.sandbox
@pytest.mark.parametrize("door", DOORS)
def test_no_door_is_open_in_the_sandbox(
    tmp_path: Path, begun: Callable[..., Barrier], launcher: Restricted, door: str
) -> None:
    barrier = begun(tmp_path / "run", GOOD, CHECK, ADD, LATER, launcher=launcher)
    before = barrier.commits()
    barrier.do(DOORS[door])
    assert barrier.commits() == before, barrier.codes
    for action in (CHECK, ADD, DOORS[door]):
        barrier.do(action)
    assert barrier.unchecked() == []
    assert barrier.commits() != before or door not in KEEPS


@pytest.mark.sandbox
@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
@given(NAMES)
def test_no_sequence_in_the_sandbox_commits_what_was_not_checked(names: list[str]) -> None:
    no_commit_is_unchecked(names, Restricted())


def test_a_merge_that_only_moves_the_branch_is_a_commit_too(tmp_path: Path) -> None:
    barrier = opened(tmp_path / "run")
    git(barrier.place, "checkout", "-q", "-b", "ahead")
    (barrier.place / "a.py").write_text("broken")
    git(barrier.place, "commit", "-q", "-a", "-m", "nobody checked it")
    git(barrier.place, "checkout", "-q", "main")
    before = git(barrier.place, "rev-parse", "main")
    assert barrier.do(CHECK) == "ok"
    assert barrier.do(line("git", "merge", "ahead")) == "workspace.repository"
    assert git(barrier.place, "rev-parse", "main") == before


@pytest.mark.parametrize("kind", ["gitfile", "link", "commondir"])
@pytest.mark.parametrize("door", ["commit_all", "script_commit"])
def test_a_repository_that_is_elsewhere_in_the_workspace_is_no_door(
    tmp_path: Path, kind: str, door: str
) -> None:
    """git follows a file or a link `.git` to another folder of the workspace; so does the barrier."""
    barrier = opened(tmp_path / "run")
    place = barrier.place
    if kind == "commondir":
        (place / ".git").rename(place / "store")
        (place / ".git").mkdir()
        (place / ".git" / "commondir").write_text("../store\n")
        (place / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    else:
        (place / ".git").rename(place / "store")
        (place / ".git").write_text("gitdir: store\n") if kind == "gitfile" else (place / ".git").symlink_to(
            "store"
        )
    before = git(place, "rev-parse", "main")
    assert barrier.do(tool("write_file", path="commit.py", content=scripted("commit"))) == "ok"
    assert barrier.do(tool("write_file", path="a.py", content="broken")) == "ok"
    barrier.do(CHECK)
    assert barrier.do(DOORS[door]) != "ok"
    assert git(place, "rev-parse", "main") == before
    assert barrier.do(tool("write_file", path="a.py", content="good 9")) == "ok", "ordinary files go on"
    assert barrier.do(CHECK) == "ok"
    assert barrier.do(DOORS[door]) != "ok"
    assert git(place, "rev-parse", "main") == before


# ---- repositories below the top

NEW = tool("write_file", path=f"{INNER}/j.py", content="good 7")


def below(*words: str) -> Step:
    return line("git", "-C", INNER, *words)


def test_a_repository_below_the_top_takes_what_was_checked_and_all_of_it(tmp_path: Path) -> None:
    barrier = opened(tmp_path / "run")
    inner = barrier.place / INNER
    before = barrier.commits(inner)
    for step in (
        tool("write_file", path=f"{INNER}/i.py", content="good 8"),
        NEW,
        below("add", "i.py"),
        CHECK,
    ):
        assert barrier.do(step) == "ok"
    assert barrier.do(below("commit", "-m", "a part")) == "workspace.repository"
    assert barrier.do(line("sh", "-c", "cd inner && git commit -m a && git add . && git commit -m b")) != "ok"
    assert barrier.commits(inner) == before
    for step in (below("add", "-A"), CHECK, below("commit", "-q", "-m", "all of it")):
        assert barrier.do(step) == "ok"
    assert tree_of(inner, "HEAD") == files(inner)
    assert barrier.unchecked() == []
    assert barrier.do(below("reset", "-q", "--soft", "HEAD~1")) == "ok", "to a commit that was there"
    assert barrier.do(CHECK) == "ok"
    assert barrier.do(below("merge", "--ff-only", "HEAD@{1}")) == "ok", "its files are the checked ones"


def test_a_merge_below_the_top_takes_over_no_other_files(tmp_path: Path) -> None:
    barrier = opened(tmp_path / "run")
    inner = barrier.place / INNER
    git(inner, "checkout", "-q", "topic")
    (inner / "i.py").write_text("good, and nobody checked it")
    git(inner, "commit", "-q", "-a", "-m", "ahead")
    git(inner, "checkout", "-q", "main")
    for step in (CHECK, below("merge", "topic"), CHECK, below("cherry-pick", "topic")):
        barrier.do(step)
    assert barrier.codes == ["ok", "workspace.repository"] * 2
    assert barrier.do(below("merge", "-q", "--no-commit", "--no-ff", "topic")) == "ok"
    for step in (CHECK, below("commit", "-q", "-m", "m")):
        assert barrier.do(step) == "ok"
    assert tree_of(inner, "HEAD") == files(inner)


def test_a_new_repository_below_the_top_begins_with_what_was_checked(tmp_path: Path) -> None:
    barrier = opened(tmp_path / "run")
    for step in (line("git", "init", "-q", "n"), tool("write_file", path="n/x.py", content="good 1")):
        assert barrier.do(step) == "ok"
    for step in (line("git", "-C", "n", "add", "-A"), CHECK):
        assert barrier.do(step) == "ok"
    new = barrier.place / "n"
    author = ("-c", "user.name=A", "-c", "user.email=a@b")
    barrier.lint.passed.add(files(new))
    assert barrier.do(line("git", "-C", "n", *author, "commit", "-q", "-m", "m")) == "ok"
    assert tree_of(new, "HEAD") == files(new)


TIDY = "git('-C', 'inner', 'pack-refs', '--all'); git('-C', 'inner', 'add', '-A')"
HALF = """import shutil
h = made(); shutil.copytree('inner/.git/objects', 'x/objects')
os.makedirs('x/refs/heads'); open('x/refs/heads/y', 'w').write(h)"""
REST = "open('x/HEAD', 'w').write('ref: refs/heads/z\\n')"


def test_a_script_may_tidy_below_the_top_and_makes_no_half_of_a_repository(tmp_path: Path) -> None:
    barrier = opened(tmp_path / "run")
    for text, code in ((TIDY, "ok"), (HALF, "ok"), (REST, "workspace.repository")):
        assert barrier.do(tool("write_file", path="s.py", content=f"{SCRIPT}{text}\n")) == "ok"
        assert barrier.do(line("python", "s.py")) == code
    assert not (barrier.place / INNER / ".git/refs/heads/main").exists()
    assert (barrier.place / "x/refs/heads/y").exists() and not (barrier.place / "x/HEAD").exists()


def test_a_bare_repository_in_the_workspace_takes_no_commit(tmp_path: Path) -> None:
    barrier = opened(tmp_path / "run")
    git(barrier.place, "clone", "-q", "--bare", INNER, "store")
    before = git(barrier.place / "store", "rev-parse", "main")
    deed = "open('store/refs/heads/main', 'w').write(made())"
    assert barrier.do(tool("write_file", path="s.py", content=f"{SCRIPT}{deed}\n")) == "ok"
    assert barrier.do(line("python", "s.py")) == "workspace.repository"
    assert git(barrier.place / "store", "rev-parse", "main") == before
