"""A run whose next action is chosen from outside, on a real repository, and an oracle that knows no kernel.

`Barrier.do` lets the kernel judge one action after another and carries out what it permits, in the sandbox or
(for thousands of sequences) straight on the host. `Barrier.unchecked` compares every commit that any ref
reaches with the files that a check passed on, by hashes that are computed here.
"""

from __future__ import annotations

import atexit
import copy
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from kernel_kit import _refs
from law_kit import under
from spak import canon
from spak.kernel.gate import Gate, compiled
from spak.kernel.rules import Rules
from spak.kernel.state import State
from spak.kernel.step import step
from spak.lang.catalog import Catalog, NamedEntry, ValidatorEntry
from spak.ledger.memory import MemoryBlobs
from spak.ports import Job, Launcher, MeasureCall, Measurement, Outcome, Stream, Toolchain
from spak.program import Budgets, Program, Step, Task
from spak.records import Authority, Kind, Record
from spak.runner.history import History
from spak.runner.host import Host
from spak.runner.perform import Performer
from spak.tools import TOOLS
from spak.workspace import Workspace

ENV = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
}
OWN = ("-c", "safe.directory=*", "-c", "user.name=A", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
BAD = "bad"
"""A file whose text begins so fails the check."""
INNER = "inner"
"""A folder with a repository of its own, which the one at the top ignores."""


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", *OWN, *words], cwd=folder, env=ENV, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


class Lint:
    """Fails when the text of some file at the top begins with `bad`."""

    entry = ValidatorEntry("Lint", 1, "looks for bad files", {"type": "object"}, effect="pure")

    def __init__(self) -> None:
        self.passed: set[Tree] = set()

    def measure(self, call: MeasureCall) -> Measurement:
        good = not any(
            path.read_text().startswith(BAD) for path in call.workspace.iterdir() if path.is_file()
        )
        if good:
            self.passed |= {files(call.workspace), files(call.workspace / INNER)}
        found = {"severity": "error", "file": "a.py", "line": 1, "code": "bad", "message": "it is bad"}
        return Measurement(
            "checked",
            checks=({"name": "lint", "ok": good, "code": "" if good else "lint.bad"},),
            diagnostics=() if good else (found,),
        )


class Direct:
    """A launcher without walls: `/ws` is the workspace itself, nothing is read-only, scripts run."""

    entry = NamedEntry("restricted", "none", rank=1)

    def probe(self) -> str:
        return ""

    def run(self, job: Job) -> Outcome:
        own = job.workspace.parent / "own"
        argv = [
            word.replace("/tmp/spak-git", str(own)).replace('"/ws"', repr(str(job.workspace)))
            for word in job.argv
        ]
        if own.exists():
            shutil.rmtree(own)
        done = subprocess.run(
            argv, cwd=job.workspace, env={**ENV, **job.env}, input=job.stdin, capture_output=True
        )
        out, err = (Stream(data, len(data), canon.digest(data)) for data in (done.stdout, done.stderr))
        return Outcome("exited", done.returncode, out, err)

    def start(self, job: Job, pass_fds: Any = (), seccomp_extra: bytes = b"") -> Any:
        raise NotImplementedError


Tree = frozenset[tuple[str, str, str]]
"""Files by path: mode, path, git's hash of the content."""


def files(folder: Path) -> Tree:
    """The files of a folder but for its repository and what `.gitignore` names (`*.log` and `inner` here)."""
    found = set()
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if Path(place, name) not in (folder / ".git", folder / INNER)]
        for name in names:
            path = Path(place, name)
            if name.endswith(".log"):
                continue
            data = path.read_bytes()
            mode = "100755" if path.stat().st_mode & 0o100 else "100644"
            blob = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
            found.add((mode, str(path.relative_to(folder)), blob))
    return frozenset(found)


def tree_of(folder: Path, commit: str) -> Tree:
    """The files of a commit, each with the hash of the content that git gives out for it."""
    found = set()
    for row in git(folder, "ls-tree", "-r", "-z", commit).split("\0")[:-1] or []:
        about, path = row.split("\t", 1)
        mode, _, blob = about.split(" ")
        found.add((mode, path, blob))
    return frozenset(found)


@cache
def _gate() -> Gate:
    return Gate(compiled(under(), "", {}))


CATALOG = Catalog(tools={name: tool.entry for name, tool in TOOLS.items()}, validators={"Lint": Lint.entry})
IDLE = Task("idle", steps=(Step("c", "check", "check"),), edges={"success": "act"}, retries=10**6)


def rules(action: Step) -> Rules:
    back = dict.fromkeys(("success", "fail", "timeout"), "idle")
    act = Task("act", steps=(action,), edges=back, retries=10**6)
    budgets = Budgets(steps=0, elapsed_ms=0, watchdog=0, rollbacks=10**6)
    program = Program("P", 4, "idle", {"idle": IDLE, "act": act}, budgets=budgets)
    return Rules(program, CATALOG, 7, "", "opening", _refs(program), _gate())


def tool(name: str, **args: Any) -> Step:
    return Step("s", "tool", name, args, on_fail="continue")


def line(*words: str) -> Step:
    return tool("run", cmd=list(words))


CHECK = Step("s", "validate", "Lint", {})


@cache
def _template() -> Path:
    """A repository with the branches `main` and `topic`, which differ by one file; each run gets a copy."""
    folder = Path(tempfile.mkdtemp(prefix="spak-barrier-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    place = folder / "ws"
    place.mkdir()
    git(place, "init", "-q", "-b", "main", "--template=")
    (place / ".git/hooks").mkdir()
    for name in ("user.name", "user.email"):
        git(place, "config", name, "a@b")
    git(place, "config", "alias.ci", "commit -q -a -m by-alias --allow-empty")
    for text in ("good 0", "good 1"):
        (place / "a.py").write_text(text)
        (place / ".gitignore").write_text("*.log\ninner/\n")
        git(place, "add", "-A")
        git(place, "commit", "-q", "-m", text)
    git(place, "checkout", "-q", "-b", "topic")
    (place / "t.py").write_text("good topic")
    git(place, "add", "-A")
    git(place, "commit", "-q", "-m", "topic")
    git(place, "checkout", "-q", "main")
    (place / "t.patch").write_text(git(place, "format-patch", "--stdout", "main..topic") + "\n")
    git(place, "add", "-A")
    git(place, "commit", "-q", "-m", "a patch")
    inner = place / INNER
    inner.mkdir()
    git(inner, "init", "-q", "-b", "main", "--template=")
    for name in ("user.name", "user.email"):
        git(inner, "config", name, "a@b")
    (inner / "i.py").write_text("good inner")
    git(inner, "add", "-A")
    git(inner, "commit", "-q", "-m", "inner")
    git(inner, "branch", "topic")
    return place


@cache
def _known() -> Mapping[str, Tree]:
    places = (_template(), _template() / INNER)
    return {
        commit: tree_of(place, commit)
        for place in places
        for commit in git(place, "rev-list", "--all").split()
    }


@dataclass
class Barrier:
    """One run in `folder`, whose workspace is `folder/ws`."""

    folder: Path
    launcher: Launcher = field(default_factory=Direct)
    state: State = field(default_factory=State)
    codes: list[str] = field(default_factory=list)
    """Of each action: how it ended, `ok` or the code of its denial or its undoing."""
    why: str = ""
    """Why the last one was undone."""

    def __post_init__(self) -> None:
        self.place = self.folder / "ws"
        shutil.copytree(_template(), self.place)
        self._seen: dict[Path, str] = {}
        self._commits: dict[Path, tuple[str, list[str]]] = {}
        self.known = dict(_known())
        self._work(frozenset())
        self.state = step(rules(CHECK), State(), self._record(Kind.GENESIS, {})).state

    def copied(self, folder: Path) -> Barrier:
        """Another run, which is where this one is."""
        other = copy.copy(self)
        shutil.copytree(self.folder, folder, symlinks=True)
        other.folder, other.place = folder, folder / "ws"
        other.codes, other.known = list(self.codes), dict(self.known)
        other._seen, other._commits = dict(self._seen), dict(self._commits)
        other._work(self.lint.passed)
        return other

    def _work(self, passed: Set[Tree]) -> None:
        self.lint = Lint()
        self.lint.passed |= passed
        programs = {"git": _which("git"), "python": sys.executable}
        binds = (Path(sys.prefix), Path(sys.base_prefix).resolve())
        host = Host(
            tools=TOOLS,
            validators={"Lint": self.lint},
            launcher=self.launcher,
            toolchain=Toolchain(programs=programs, binds=binds),
        )
        self.workspace = Workspace(self.place, self.folder / "store")
        self.performer = Performer(host, self.workspace, MemoryBlobs({}), rules(CHECK))

    def _record(self, kind: Kind, body: Mapping[str, Any]) -> Record:
        return Record(kind, Authority.PROPOSAL, canon.loads(canon.dumps(body)))

    def do(self, action: Step, approved: bool = False) -> str:
        """Judge and do one action; how it ended. A denied one ends a run: the state before it goes on.
        `approved`: as if a person had permitted it."""
        made = rules(action)
        waiting = self.state.r6
        assert waiting is not None and waiting.act == "check"
        found = step(made, self.state, self._record(Kind.ACT, {"of": waiting.id, "facts": []}))
        outcome = "ok"
        while not found.state.ended and found.effects[-1].task == "act":
            effect = found.effects[-1]
            done = self.performer.perform(effect, History(approved=approved))
            assert done is not None
            outcome = str(done.body.get("code", done.body.get("outcome", "")))
            self.why = str(done.body.get("why", ""))
            self.workspace.settle()
            found = step(made, found.state, self._record(done.kind, done.body))
        if found.state.ended:
            outcome = found.state.r7.codes[0]
        else:
            self.state = found.state
        self.codes.append("ok" if outcome == "exited" else outcome)
        return self.codes[-1]

    def repositories(self) -> list[Path]:
        """The top, and every folder below that has a repository with a HEAD."""
        return sorted(path.parent.parent for path in self.place.glob("**/.git/HEAD"))

    def commits(self, place: Path | None = None) -> list[str]:
        """Those that any ref reaches; git is asked again once a ref has changed."""
        place = place or self.place
        where, refs = place.relative_to(self.place), self._refs(place)
        if self._commits.get(where, ("",))[0] != refs:
            self._commits[where] = refs, self._reached(place)
        return self._commits[where][1]

    @staticmethod
    def _reached(place: Path) -> list[str]:
        born = subprocess.run(
            ["git", *OWN, "rev-parse", "-q", "--verify", "HEAD"], cwd=place, env=ENV, capture_output=True
        )
        return git(place, "rev-list", "--all", *(() if born.returncode else ("HEAD",))).split()

    @staticmethod
    def _refs(place: Path) -> str:
        """Every ref as it is on the disk, those of other worktrees and of a table of refs too."""
        top = place / ".git"
        found = (*(top / "refs").rglob("*"), *(top / "reftable").rglob("*"), *top.glob("worktrees/*/HEAD"))
        held = (*sorted(found), top / "HEAD", top / "packed-refs")
        return "".join(f"{path.relative_to(top)} {path.read_bytes()!r}\n" for path in held if path.is_file())

    def unchecked(self) -> list[str]:
        """New commits whose files no check passed on; of a stash its index may be what HEAD had."""
        return [commit for place in self.repositories() for commit in self._unchecked(place)]

    def _unchecked(self, place: Path) -> list[str]:
        refs, where = self._refs(place), place.relative_to(self.place)
        if refs == self._seen.get(where):
            return []
        self._seen[where] = refs
        stash = set()
        if (place / ".git/refs/stash").exists():
            index = git(place, "rev-list", "-n", "1", "--parents", "refs/stash").split()[2:]
            stash = set(index)
        wrong = []
        for commit in self.commits(place):
            if commit in self.known:
                continue
            tree = tree_of(place, commit)
            allowed = tree in self.lint.passed or (commit in stash and tree in self.known.values())
            self.known[commit] = tree
            if not allowed:
                wrong.append(commit)
        return wrong


def opened(folder: Path, launcher: Launcher | None = None) -> Barrier:
    folder.mkdir(parents=True, exist_ok=True)
    return Barrier(folder, launcher or Direct())


def _which(name: str) -> str:
    return shutil.which(name) or name


SCRIPT = """import os, subprocess, sys
def git(*words):
    done = subprocess.run(["git", "-c", "safe.directory=*", *words], capture_output=True, text=True)
    return done.stdout.strip()
def commit(folder):
    git("-C", folder, "add", "-A"); git("-C", folder, "commit", "-m", "x", "--allow-empty")
def made():
    return git("-C", "inner", "commit-tree", "HEAD^{tree}", "-m", "x")
"""
SCRIPTS: Mapping[str, str] = {
    "commit": 'git("add", "-A"); git("commit", "-q", "-m", "by a script", "--allow-empty")',
    "alias": 'git("ci")',
    "plumbing": 'git("update-ref", "HEAD", git("commit-tree", git("write-tree"), "-m", "x", "-p", "HEAD"))',
    "other_branch": 'git("update-ref", "refs/heads/x", git("commit-tree", "HEAD^{tree}", "-m", "x"))',
    "by_hand": 'open(".git/refs/heads/main", "w").write(git("commit-tree", "HEAD^{tree}", "-m", "x"))',
    "new_repository": 'os.rename(".git", "g"); git("init", "-q"); git("commit", "--allow-empty", "-m", "x")',
    "hook": 'p = ".git/hooks/post-checkout"; open(p, "w").write(sys.argv[0]); os.chmod(p, 0o755)',
    "config": 'git("config", "core.hooksPath", ".")',
    "stash": 'git("stash")',
    "index": 'git("add", "-A")',
    "inner": 'commit("inner")',
    "inner_by_hand": 'open("inner/.git/refs/heads/main", "w").write(made())',
    "inner_packed": 'open("inner/.git/packed-refs", "w").write(made() + " refs/heads/new\\n")',
    "inner_detached": 'open("inner/.git/HEAD", "w").write(made())',
    "inner_table": 'os.mkdir("inner/.git/reftable"); open("inner/.git/reftable/tables.list", "w").write("x")',
    "inner_worktree": 'git("-C", "inner", "worktree", "add", "--detach", "../w"); commit("w")',
    "a_new_one": 'git("init", "-q", "n"); commit("n")',
    "a_copied_one": 'import shutil; shutil.copytree("inner", "copy"); commit("copy")',
    "a_bare_one": 'git("init", "-q", "--bare", "b"); git("push", "./b", "HEAD:refs/heads/x")',
}
"""What a script of the workspace does to the repository; it is closed, so none of it may last."""


def scripted(what: str) -> str:
    return f"{SCRIPT}{SCRIPTS[what]}\n"


DOORS: Mapping[str, Step] = {
    "git_commit": tool("git_commit", message="m"),
    "git_commit_paths": tool("git_commit", message="m", paths=["a.py"]),
    "commit": line("git", "commit", "-m", "m"),
    "commit_all": line("git", "commit", "-am", "m"),
    "commit_empty": line("git", "commit", "--allow-empty", "-m", "m"),
    "commit_amend": line("git", "commit", "--amend", "-m", "m"),
    "commit_only": line("git", "commit", "-m", "m", "--", "a.py"),
    "commit_elsewhere": line("git", "-C", ".", "commit", "-m", "m"),
    "commit_configured": line("git", "-c", "user.name=B", "commit", "-m", "m"),
    "stash": line("git", "stash"),
    "stash_push": line("git", "stash", "push", "-m", "m"),
    "stash_pop": line("git", "stash", "pop"),
    "merge": line("git", "merge", "topic"),
    "merge_no_ff": line("git", "merge", "--no-ff", "-m", "m", "topic"),
    "rebase": line("git", "rebase", "topic"),
    "cherry_pick": line("git", "cherry-pick", "topic"),
    "revert": line("git", "revert", "--no-edit", "HEAD~1"),
    "am": line("git", "am", "t.patch"),
    "pull": line("git", "pull"),
    "notes": line("git", "notes", "add", "-m", "m"),
    "alias": line("git", "ci"),
    "commit_tree": line("git", "commit-tree", "HEAD^{tree}", "-m", "m"),
    "update_ref": line("git", "update-ref", "refs/heads/main", "topic"),
    "fast_import": line("git", "fast-import"),
    "hash_object": line("git", "hash-object", "-w", "a.py"),
    "write_tree": line("git", "write-tree"),
    "replace": line("git", "replace", "HEAD", "topic"),
    "write_ref": tool("write_file", path=".git/refs/heads/main", content="0" * 40 + "\n"),
    "write_hook": tool("write_file", path=".git/hooks/pre-commit", content="#!/bin/sh\n"),
    "patch_ref": tool(
        "apply_patch",
        patch="--- /dev/null\n+++ b/.git/refs/heads/new\n@@ -0,0 +1 @@\n+" + "0" * 40 + "\n",
    ),
    "inner_commit": line("git", "-C", "inner", "commit", "-m", "m"),
    "inner_commit_all": line("git", "-C", "inner", "commit", "-a", "--allow-empty", "-m", "m"),
    "inner_stash": line("git", "-C", "inner", "stash"),
    "inner_shell": line(
        "sh", "-c", "cd inner && git add i.py && git commit -m m && git add -A && git commit -m n"
    ),
    "inner_merge": line("git", "-C", "inner", "merge", "--no-ff", "-m", "m", "topic"),
    "new_shell": line("sh", "-c", "git init -q n && cd n && git add -A && git commit --allow-empty -m m"),
    "write_inner_ref": tool("write_file", path="inner/.git/refs/heads/main", content="0" * 40 + "\n"),
    "shell": line("sh", "-c", "git add -A; git commit -m m"),
    "make": line("make", "keep"),
    **{f"script_{what}": line("python", f"{what}.py") for what in SCRIPTS},
    **{f"code_{what}": tool("python_repl", code=scripted(what)) for what in ("commit", "plumbing")},
}
"""Every way to a commit that we know."""

NO_COMMIT: Mapping[str, Step] = {
    "add": line("git", "add", "-A"),
    "add_one": line("git", "add", "a.py"),
    "remove": line("git", "rm", "--cached", "-q", "a.py"),
    "branch": line("git", "checkout", "-q", "-b", "new"),
    "switch": line("git", "switch", "-q", "topic"),
    "back": line("git", "switch", "-q", "main"),
    "reset": line("git", "reset", "--soft", "HEAD~1"),
    "unstage": line("git", "reset", "-q"),
    "restore": line("git", "restore", "a.py"),
    "tag": line("git", "tag", "v1"),
    "merge_open": line("git", "merge", "--no-commit", "--no-ff", "topic"),
    "merge_abort": line("git", "merge", "--abort"),
    "pick_open": line("git", "cherry-pick", "-n", "topic"),
    "status": line("git", "status"),
    "inner_add": line("git", "-C", "inner", "add", "-A"),
    "inner_branch": line("git", "-C", "inner", "switch", "-q", "topic"),
    "inner_unstage": line("git", "-C", "inner", "reset", "-q"),
    "init": line("git", "init", "-q", "m"),
}
"""What changes the repository, or looks at it, and makes no commit."""

WRITES: Mapping[str, Step] = {
    **{
        f"write_{name}_{number}": tool("write_file", path=f"{name}.py", content=f"{text} {number}")
        for name, text in (("a", "good"), ("b", "good"), ("a", BAD))
        for number in (5, 6)
    },
    **{
        f"write_inner_{name}_{number}": tool(
            "write_file", path=f"{INNER}/{name}.py", content=f"good {number}"
        )
        for name in ("i", "j")
        for number in (5, 6)
    },
    "write_ignored": tool("write_file", path="x.log", content="log"),
    **{
        f"make_{what}": tool("write_file", path=f"{what}.py", content=scripted(what))
        for what in ("commit", "plumbing", "other_branch", "index", "inner", "inner_by_hand", "a_new_one")
    },
}

ACTIONS: Mapping[str, Step] = {**DOORS, **NO_COMMIT, **WRITES, "check": CHECK}
WALK = (
    (*WRITES,),
    (
        "check",
        "check",
        "check",
        "add",
        "git_commit",
        "git_commit",
        "commit",
        "commit_all",
        "commit_amend",
        "merge_open",
        "inner_add",
        "inner_commit",
    ),
    tuple(ACTIONS),
)
"""A sequence draws each action from one of these: so files are written, and most checks precede a commit."""
