"""A run whose next action is chosen from outside, on a copy of a real repository, and an oracle that knows no
kernel.

`Barrier.do` lets the kernel judge one action after another and carries out what it permits, in the sandbox or
(for thousands of sequences) straight on the host. `Barrier.unchecked` compares every commit that the run
could give away with the files that a check passed on, by hashes that are computed here.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
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
from spak.repository.begun import follow
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
            self.passed.add(files(call.workspace))
        found = {"severity": "error", "file": "a.py", "line": 1, "code": "bad", "message": "it is bad"}
        return Measurement(
            "checked",
            checks=({"name": "lint", "ok": good, "code": "" if good else "lint.bad"},),
            diagnostics=() if good else (found,),
        )


class Direct:
    """A launcher without walls: nothing is read-only, scripts run."""

    entry = NamedEntry("restricted", "none", rank=1)

    def probe(self) -> str:
        return ""

    def run(self, job: Job) -> Outcome:
        done = subprocess.run(
            list(job.argv), cwd=job.workspace, env={**ENV, **job.env}, input=job.stdin, capture_output=True
        )
        out, err = (Stream(data, len(data), canon.digest(data)) for data in (done.stdout, done.stderr))
        return Outcome("exited", done.returncode, out, err)

    def start(self, job: Job, pass_fds: Any = (), seccomp_extra: bytes = b"") -> Any:
        raise NotImplementedError


Tree = frozenset[tuple[str, str, str]]
"""Files by path: mode, path, git's hash of the content."""


def files(folder: Path) -> Tree:
    """The files of a folder but for its repository and what `.gitignore` names (`*.log` here)."""
    found = set()
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if Path(place, name) != folder / ".git"]
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
    """A user's repository with two commits; each run begins with a copy of its files."""
    folder = Path(tempfile.mkdtemp(prefix="spak-barrier-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    place = folder / "user"
    place.mkdir()
    git(place, "init", "-q", "-b", "main", "--template=")
    for text in ("good 0", "good 1"):
        (place / "a.py").write_text(text)
        (place / ".gitignore").write_text("*.log\n")
        git(place, "add", "-A")
        git(place, "commit", "-q", "-m", text)
    return place


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
    said: str = ""
    """What the last one printed."""
    committed: str = ""
    """The call of the last commit."""

    def __post_init__(self) -> None:
        self.place = self.folder / "ws"
        shutil.copytree(_template(), self.place, ignore=shutil.ignore_patterns(".git"))
        self.lint = Lint()
        programs = {"git": _which("git"), "python": sys.executable}
        binds = (Path(sys.prefix), Path(sys.base_prefix).resolve())
        host = Host(
            tools=TOOLS,
            validators={"Lint": self.lint},
            launcher=self.launcher,
            toolchain=Toolchain(programs=programs, binds=binds),
        )
        self.workspace = Workspace(self.place, self.folder / "store")
        follow(self.workspace.git.repository, _template())
        begun = replace(rules(CHECK), r3=self.workspace.snapshot())
        self.performer = Performer(host, self.workspace, MemoryBlobs({}), begun)
        self.state = step(rules(CHECK), State(), self._record(Kind.GENESIS, {})).state

    def _record(self, kind: Kind, body: Mapping[str, Any]) -> Record:
        return Record(kind, Authority.PROPOSAL, canon.loads(canon.dumps(body)))

    def do(self, action: Step) -> str:
        """Judge and do one action; how it ended. A denied one ends a run: the state before it goes on."""
        made = rules(action)
        waiting = self.state.r6
        assert waiting is not None and waiting.act == "check"
        found = step(made, self.state, self._record(Kind.ACT, {"of": waiting.id, "facts": []}))
        outcome = "ok"
        while not found.state.ended and found.effects[-1].task == "act":
            effect = found.effects[-1]
            done = self.performer.perform(effect, History(committed=self.committed))
            assert done is not None
            outcome = str(done.body.get("code", done.body.get("outcome", "")))
            self.why, self.said = str(done.body.get("why", "")), str(done.body.get("out", ""))
            if effect.name == "git_commit" and done.body.get("exit") == 0:
                self.committed = effect.id
            self.workspace.settle()
            found = step(made, found.state, self._record(done.kind, done.body))
        if found.state.ended:
            outcome = found.state.r7.codes[0]
        else:
            self.state = found.state
        self.codes.append("ok" if outcome == "exited" else outcome)
        return self.codes[-1]

    def commits(self) -> list[str]:
        """Those of the run, newest first: nothing else can leave it as a commit."""
        bare = self.workspace.git.repository
        return git(bare, "rev-list", "--all", "--not", "refs/spak/base").split()

    def unchecked(self) -> list[str]:
        """Commits of the run whose files no check passed on; and what the user's repository has of it."""
        bare = self.workspace.git.repository
        wrong = [commit for commit in self.commits() if tree_of(bare, commit) not in self.lint.passed]
        return wrong + git(_template(), "rev-list", "--all").split()[2:]


def opened(folder: Path, launcher: Launcher | None = None) -> Barrier:
    folder.mkdir(parents=True, exist_ok=True)
    return Barrier(folder, launcher or Direct())


def _which(name: str) -> str:
    return shutil.which(name) or name


GOOD = tool("write_file", path="a.py", content="good 2")
BROKEN = tool("write_file", path="a.py", content=f"{BAD} 2")
LATER = tool("write_file", path="b.py", content="good 3")
LOG = tool("write_file", path="x.log", content="ignored")
SCRIPT = """import subprocess
for words in (["add", "-A"], ["commit", "-qm", "by a script", "--allow-empty"]):
    subprocess.run(["git", "-c", "safe.directory=*", *words], check=True)
"""
WRITE = tool("write_file", path="commit.py", content=SCRIPT)
WAYS: Mapping[str, Step] = {
    "git_commit": tool("git_commit", message="m"),
    "add and commit": line("sh", "-c", "git add -A && git commit -qm m"),
    "commit -am": line("git", "commit", "-qam", "m"),
    "by a subprocess": line("python", "commit.py"),
}
"""How a job may try to commit; a file written after a clean check is one of the states before it."""
ACTIONS: Mapping[str, Step] = {
    **WAYS, "good": GOOD, "broken": BROKEN, "later": LATER, "log": LOG, "write": WRITE, "check": CHECK,
    "add": line("git", "add", "-A"), "stash": line("git", "stash"), "amend": line("git", "commit", "--amend"),
}  # fmt: skip
WALK = (["check", "good", "log"], ["git_commit"], [*ACTIONS])
