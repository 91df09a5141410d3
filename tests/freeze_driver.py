"""Workers that are stopped (SIGSTOP) at a chosen call, in processes of their own. Used by freeze_kit.py.

`changed` of a result: the first worker changed its folder after the run had ended. `wrong` lists all else.

Run as a program with the platform's settings in the environment. It reads one scenario a line and prints one
result a line, both JSON. In a scenario worker A stops before or after the nth call of a function; its lease
ends; worker B takes the run, and either ends it while A is stopped, or is itself stopped in the middle until
A has had its turn. The stop points are wrappers that exist in A's and B's process only. With `namespaces`
each worker is on a host of its own (namespace_kit.py), which sees no runs but those of its own data folder.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any

from django.db import DatabaseError, connection

from namespace_kit import Hosted, forked

WORDS = ("one", "two", "three")
SPEC = """\
task Marks {
  step make: tool.write_file { path: "mark.py" content: "import sys; open('log', 'a').write(sys.argv[1])" }
  step one: tool.run { cmd: "python3 mark.py one" }
  step look: tool.list_files { path: "." }
  step two: tool.run { cmd: "python3 mark.py two" }
  step three: tool.run { cmd: "python3 mark.py three" }
  success: file_exists("log")
}
"""
EXPECTED = "".join(WORDS)
COMMITS = r"""AGENT Commits LEVEL 4 {
  START -> grow
  TASK grow {
    step script: tool.write_file { path: "grow.py" content: "import os\nopen('half', 'w').write('x')\nos.makedirs('sub')\nos.kill(os.getpid(), 9)\n" }
    step undone: tool.run { cmd: "python3 grow.py" }
    NEXT { fail -> edit, success -> edit }
  }
  TASK edit {
    step write: tool.write_file { path: "a.py" content: "A = 1\n" }
    VALIDATOR Command { cmd: "true" }
    NEXT { success -> keep }
  }
  TASK keep {
    step commit: tool.git_commit { message: "Keep it" author: "Alice <alice@example.org>" time: 1700000000 }
  }
}
"""  # noqa: E501 - a line of a spec
"""A step that is always undone, and one that commits."""
SPECS = {"marks": SPEC, "commits": COMMITS}
TURN_S = 120.0
BY_MESSAGE = ("spakweb.work.worker.queue:", "spakweb.work.worker.tasks:")
"""Points that a worker passes which was sent a message, and that is not just told to advance a run."""
committing = threading.Lock()


def stop() -> None:
    """Stop this process, right here: a signal to the process would let this thread go on for a moment.

    With SQLite not inside its own group commit: all others would wait, and there is no server that would end
    it."""
    with committing if connection.vendor == "sqlite" else nullcontext():
        signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)


def one_at_a_time() -> None:
    """Let `stop` know when this process commits; and a process stopped in one transaction is in no other."""
    from spakweb.store.ledger.storage import DatabaseStorage
    from spakweb.store.ledger.writer import Writer

    real, saved = Writer._committed, DatabaseStorage._save

    def held(self: Writer, batches: Any) -> Any:
        with committing:
            return real(self, batches)

    def save(self: DatabaseStorage, name: str, content: Any) -> str:
        with committing:
            return saved(self, name, content)

    DatabaseStorage._save = save  # type: ignore[method-assign]

    Writer._committed = held  # type: ignore[method-assign]


def stop_at(point: str, after: bool, nth: int) -> None:
    """Stop this process before or after the nth call of `module:Class.function`."""
    module, _, path = point.partition(":")
    owner: Any = import_module(module)
    *classes, name = path.split(".")
    for part in classes:
        owner = getattr(owner, part)
    real, left = getattr(owner, name), [nth]

    def wrapped(*args: Any, **more: Any) -> Any:
        left[0] -= 1
        if left[0] == 0 and not after:
            stop()
        try:
            return real(*args, **more)
        finally:
            if left[0] == 0 and after:
                stop()

    setattr(owner, name, wrapped)


def child(data: Path, work: Callable[[], object], host: str = "", hidden: Sequence[Path] = ()) -> Hosted:
    """A process that is a worker with this data folder, and ends with its work; with the name of a host it is
    on one of its own."""
    from django.conf import settings
    from django.db import connections

    connections.close_all()

    def working() -> None:
        from spakweb.store.ledger import workspaces

        settings.DATA_DIR = data
        workspaces.BUSY_S = 0.3
        work()

    return forked(working, host, hidden)


def waited(worker: Hosted) -> str:
    """`stopped`, or how the process ended."""
    ends = time.monotonic() + TURN_S
    while time.monotonic() < ends:
        found = worker.state()
        if found != "runs":
            return found
        time.sleep(0.01)
    worker.kill()
    return "hangs"


def lease_ends(key: str) -> None:
    from datetime import timedelta

    from spakweb.ground import clock
    from spakweb.store.runs.models import Run

    held = Run.objects.filter(key=key).exclude(holder="")
    for _ in range(20):
        try:
            held.update(lease_until=clock.now() - timedelta(seconds=1))
            return
        except DatabaseError:  # whoever was stopped holds the row, until PostgreSQL takes it from them
            connection.close()


def advanced(key: str) -> None:
    from spakweb.work.worker import execute

    for _ in range(20):
        if not execute.advance(key):
            return


def tree(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text(errors="replace")
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def open_transactions() -> int:
    """Of other connections, in which nothing is asked."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction'")
        return int(cursor.fetchone()[0])


def end_transactions() -> None:
    """As the limit of idle transactions does."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state = 'idle in transaction'"
        )


def namespaces() -> list[str]:
    """Those of this process that make a host."""
    return [str(Path(f"/proc/self/ns/{kind}").readlink()) for kind in ("net", "uts", "ipc", "pid", "mnt")]


class Site:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.own = namespaces()
        self.runs = {name: root / name / "runs" for name in "ab"}
        for place in self.runs.values():
            place.mkdir(parents=True, exist_ok=True)

    def start(self, spec: str = "marks") -> str:
        from spakweb.ground.teams.models import User
        from spakweb.work.runs.actions import start

        alice = User.objects.get()
        return start(alice, alice.teams.get().specs.get(slug=spec), mode="full_auto").key

    def folder(self, host: str, key: str) -> Path:
        return self.root / host / "runs" / key / "workspace"

    def worker(self, name: str, data: str, work: Callable[[], object], namespaces: bool) -> Hosted:
        """A process of worker `name` with that data folder; in namespaces it sees no runs of another."""
        if not namespaces:
            return child(self.root / data, work)
        hidden = [self.runs["b" if data == "a" else "a"], Path("/run/spak")]
        return child(self.root / data, work, f"host-{name}", [place for place in hidden if place.is_dir()])

    def scenario(self, asked: dict[str, Any]) -> dict[str, Any]:
        from spakweb.work.worker import execute, tasks

        key = self.start(asked.get("spec", "marks"))
        others = "b" if asked["apart"] else "a"
        inside = asked["namespaces"]
        if asked["begun"]:
            waited(self.worker("a", "a", lambda: execute.advance(key, 0), inside))

        def first() -> None:
            if inside:
                self.must_be_on("host-a", "b")
            stop_at(asked["point"], asked["after"], asked["nth"])
            if asked["point"].startswith(BY_MESSAGE):
                tasks.advance(key)
            advanced(key)

        def second() -> None:
            if inside:
                self.must_be_on("host-b", "a" if asked["apart"] else "b")
            if asked["second"]:
                stop_at(*asked["second"])
            advanced(key)

        a = self.worker("a", "a", first, inside)
        said = {"a": waited(a), "key": key}
        if said["a"] != "stopped":
            return {**said, "reached": False, "wrong": self.wrong(key, ["a"])}
        lease_ends(key)
        b = self.worker("b", others, second, inside)
        said["b"] = waited(b)
        kept = tree(self.folder("a", key))
        ended = self.state(key) == "succeeded"
        a.go_on()
        said["a"] = waited(a)
        said["changed"] = ended and tree(self.folder("a", key)) != kept
        if said["b"] == "stopped":
            b.go_on()
            said["b"] = waited(b)
        said["rounds"] = 0
        while self.state(key) != "succeeded" and said["rounds"] < 5:
            lease_ends(key)
            waited(self.worker("b", others, lambda: advanced(key), inside))
            said["rounds"] += 1
        wrong = self.wrong(key, [others, "a"])
        wrong += [f"worker {name}: {said[name]}" for name in "ab" if not said[name].startswith("ended 0")]
        return {**said, "reached": True, "blocked": not ended, "wrong": wrong}

    def must_be_on(self, host: str, hidden: str) -> None:
        """Raises: AssertionError when this process is on no host of its own."""
        assert (os.uname().nodename, os.getpid()) == (host, 2)
        assert not set(namespaces()) & set(self.own)
        assert not any(self.runs[hidden].iterdir())

    def inside(self, point: str, nth: int) -> dict[str, Any]:
        """A worker is stopped at a statement of its group commit, on PostgreSQL; what another host does
        meanwhile (on the same one it may have to wait for the folder)."""
        from spakweb.ground import clock
        from spakweb.ground.database.lock_wait import locked
        from spakweb.ground.teams.models import User
        from spakweb.store.ledger import store
        from spakweb.store.runs.models import Run
        from spakweb.work.runs.actions import request_control
        from spakweb.work.worker import tasks

        key, other = self.start(), self.start()

        def first() -> None:
            store.LEASE_S, store.RENEW_S = 1.0, 0.3
            stop_at(f"spakweb.store.ledger.writer_sql:{point}", True, nth)
            advanced(key)

        a = child(self.root / "a", first)
        said: dict[str, Any] = {"a": waited(a), "open": {}}
        while not Run.objects.filter(key=key, lease_until__lt=clock.now()).exists():
            time.sleep(0.1)
        said["swept"] = tasks.sweep_up(at_once=True)
        said["open"]["after the sweep"] = open_transactions()
        try:
            request_control(User.objects.get(), Run.objects.get(key=key), "cancel")
            said["cancel"] = "done"
        except DatabaseError as error:
            said["cancel"] = "refused" if locked(error) else str(error)
        said["open"]["after the cancel"] = open_transactions()
        waited(child(self.root / "b", lambda: tasks.advance(other)))
        said["other"] = self.state(other)
        said["open"]["after another run"] = open_transactions()
        end_transactions()
        waited(child(self.root / "b", lambda: advanced(key)))
        said["state"] = self.state(key)
        a.go_on()
        said["a"] += f", {waited(a)}"
        said["wrong"] = self.wrong(key, ["b"])
        return said

    def state(self, key: str) -> str:
        from spakweb.store.runs.models import Run

        return str(Run.objects.get(key=key).state)

    def wrong(self, key: str, hosts: list[str]) -> list[str]:
        """What is not as one undisturbed worker would have left it."""
        from spak.kernel.replay import replay
        from spak.ledger import verify
        from spak.workspace import Workspace
        from spakweb.store.ledger.store import DatabaseLedgers
        from spakweb.store.runs.models import Run

        run = Run.objects.get(key=key)
        if (run.state, run.holder) != ("succeeded", ""):
            return [f"the run is {run.state} {run.reason!r}, held by {run.holder!r}"]
        found = []
        reader = DatabaseLedgers().reader(key)
        lines = [line for _, line in reader.read()]
        records = [record for record, _ in reader.read()]
        if not verify(lines, exported=False, blobs=reader.blobs).ok:
            found.append("the ledger does not verify")
        replayed = replay(iter(records))
        if replayed.difference is not None or replayed.missing:
            found.append("the replay differs")
        done = [record.body["of"] for record in records if record.kind == "act" and "outcome" in record.body]
        if len(set(done)) != len(done) or len(done) < len(WORDS) + 2:
            found.append(f"effects in the ledger: {done}")
        roots = {}
        for host in hosts:
            place = self.folder(host, key)
            if place.exists():
                looked = Workspace(place, self.root / "looked" / key / host)
                roots[host] = looked.snapshot()
        right = [host for host, root in roots.items() if root == replayed.state.r3]
        if not right:
            found.append(f"no folder is what R3 says: {roots} {replayed.state.r3}")
        for host in right[:1]:
            found += in_folder(self.folder(host, key), str(run.name))
        return found


def in_folder(folder: Path, spec: str) -> list[str]:
    """What the workspace of a run of that spec shows of effects done twice, or not undone."""
    if spec == "marks":
        log = (folder / "log").read_text()
        return [] if log == EXPECTED else [f"effects in the workspace: {log!r}"]
    line = ["git", "-c", "safe.directory=*", "rev-list", "--all", "--reflog"]
    place = folder.parent / "store/git"
    commits = subprocess.run(line, cwd=place, capture_output=True, text=True, check=True).stdout.split()
    found = [] if len(commits) == 1 else [f"commits: {commits}"]
    return found + [f"{name} was not undone" for name in ("half", "sub") if (folder / name).exists()]


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "spakweb.settings")
    import django

    django.setup()
    from django.conf import settings

    from spakweb.ground.teams.models import User
    from spakweb.work.specs.actions import create_spec
    from spakweb.work.teams.actions import create_team
    from spakweb.work.worker import queue

    one_at_a_time()
    queue.send = lambda key, queue="default": None  # nobody takes messages here
    if not User.objects.exists():
        alice = User.objects.create_user("alice", "alice@spak.example", "a long secret")
        team = create_team(alice, "Tuners")
        for name, text in SPECS.items():
            create_spec(alice, team, name, text)
    site = Site(Path(settings.DATA_DIR).parent)
    print("ready", flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        found = site.inside(*asked["inside"]) if "inside" in asked else site.scenario(asked)
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
