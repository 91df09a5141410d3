"""One attack in a fresh copy of the world, and what is seen of it from outside.

`Carrier.carry` puts the copy there, opens the listeners, runs the spec with `spak run` in a process of its
own, brings home what may come home with `spak apply`, and lets a victim work in the folder or takes the apply
back. A control gives `wall`, which takes a wall away in the processes of `spak` before they begin.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from bench.harm import oracles
from bench.harm.attack import Attack, filled, spec
from bench.harm.filling_attacks import FILES, SIZE_MIB, STORE_MIB
from bench.harm.user import become
from bench.harm.world import CASE, ENVIRONMENT, World, git, token
from cli_calls import Done, forked, nothing

USER = 64999
"""Of the ordinary user."""
LIMITS = "[sandbox]\nwall_s = 20\ncpu_s = 20\nmemory_mib = 512\nprocesses = 64\n"
AWAY = ("runs", "ran", "p.spak", "spak.toml")
"""Of the world, what is looked at apart."""
SLACK_MIB, SLACK_FILES = 16, 500
"""Of the records of a run, not counted in its quota."""


@dataclass(slots=True)
class Seen:
    """What one attack did, by oracle; `said` is what the run said of itself, for people."""

    state: str = ""
    green: bool = False
    """Whether it succeeded, and not only by its own tests."""
    harm: dict[str, list[str]] = field(default_factory=dict)
    said: str = ""
    held: list[str] = field(default_factory=list)

    def note(self, kind: str, found: list[str]) -> None:
        """Keep what was found, if it was anything."""
        if found:
            self.harm.setdefault(kind, []).extend(found)


@dataclass(slots=True)
class Carrier:
    """Carries attacks out in copies of a world; `uid` is the user who runs them, None for this one."""

    world: World
    place: Path
    uid: int | None = None
    launcher: str = "restricted"
    sealed: bool = False
    """Whether each run has sealed checks."""
    limits: str = LIMITS
    """What the settings say of jobs."""
    copies: int = 1
    """Workspaces of a run, each with its store and its quota."""

    def carry(self, attack: Attack, wall: Callable[[], None] = nothing) -> Seen:
        """Do it. Raises: AssertionError where the spec is invalid."""
        with tempfile.TemporaryDirectory(dir=self.place, ignore_cleanup_errors=True) as folder:
            base = Path(folder)
            base.chmod(0o755)
            subprocess.run(["cp", "-a", f"{self.world.base}/.", folder], check=True)
            listeners = oracles.Listeners(base)
            try:
                return self._carried(attack, base, listeners, wall)
            finally:
                listeners.close()
                _end(folder)

    def _carried(
        self, attack: Attack, base: Path, listeners: oracles.Listeners, wall: Callable[[], None]
    ) -> Seen:
        ws, ran, seen = base / "ws", base / "ran", Seen()
        places = {
            "@BASE@": str(base), "@RAN@": str(ran), "@TCP@": str(listeners.tcp), "@UDP@": str(listeners.udp),
            "@ABSTRACT@": listeners.abstract,
        }  # fmt: skip
        self._prepare(attack, base, places)
        whole, mine = oracles.digests(base, *AWAY), oracles.digests(ws)
        done = self._started(attack, base, wall, places)
        run = next(iter(base.glob("runs/*/trace.jsonl")), base / "none/trace.jsonl").parent
        document = _document(done)
        code = str(document.get("error", {}).get("code", ""))
        assert not code.startswith(("lang.", "bug.")), f"{attack.name}: {done.out}{done.err}"
        seen.state = str(document.get("state", code))
        seen.green = seen.state == "succeeded" and not document.get("by_own_tests")
        seen.said = done.out + done.err
        changed = oracles.differing(whole, oracles.digests(base, *AWAY))
        seen.note("outside", [path for path in changed if not (attack.in_place and path.startswith("ws"))])
        seen.note("run folder", _forged(run) if run.name != "none" else [])
        seen.note("left", _left(str(base)))
        if run.name == "none":
            return seen
        if attack.settings.startswith("[workspace]"):
            for kind, found in _over(run, self.copies).items():
                seen.note(kind, found)
        applied = self._apply(attack, base, wall, seen)
        new = oracles.differing(mine, oracles.digests(ws))
        written = [path for path in new if (ws / path).is_file()]
        out = (_text(ws / path) for path in written)
        seen.note("secret", oracles.leaks(oracles.texts_of(run, seen.said, *out), self.world.values))
        seen.note("landed", [path for path in attack.lands if path in new and path not in seen.held])
        if not attack.confirmed:
            self._victims(run, ws, ran, bool(written), seen)
        if attack.following:
            words = (*attack.following, "--json", "--runs-dir", str(base / "runs_next"))
            done = self._called(ws / "part", base, wall, *words)
            seen.said += done.out + done.err
        seen.note("bytes", listeners.reached())
        if attack.confirmed and (applied or attack.in_place):
            for _ in range(5):
                if self._spak(base, wall, "apply", run.name, "--undo").code != 0:
                    break
            seen.note("destroyed", oracles.differing(mine, oracles.digests(ws)))
        return seen

    def _started(
        self, attack: Attack, base: Path, wall: Callable[[], None], places: Mapping[str, str]
    ) -> Done:
        """The run of the attack's spec."""
        words = ("--workspace", "ws", *(["--in-place"] if attack.in_place else []))
        words += ("--sealed", CASE) if self.sealed else ()
        return self._spak(base, wall, "run", "p.spak", *words)

    def _prepare(self, attack: Attack, base: Path, places: Mapping[str, str]) -> None:
        ws = base / "ws"
        for path, text in attack.files.items():
            (ws / path).parent.mkdir(parents=True, exist_ok=True)
            (ws / path).write_text(filled(text, places))
        if attack.files:
            git(ws, "add", "-f", "--", *attack.files)
            git(ws, "commit", "-qm", "more", "--", *attack.files)
        (base / "p.spak").write_text(spec(attack, places))
        (base / "spak.toml").write_text(f"{self.limits}{filled(attack.settings, places)}")
        (base / "ran").chmod(0o777)
        if self.uid is not None:
            subprocess.run(["chown", "-R", f"{self.uid}:{self.uid}", str(base)], check=True)

    def _spak(self, base: Path, wall: Callable[[], None], *words: str) -> Done:
        return self._called(base, base, wall, *words, "--json", "--runs-dir", "runs")

    def _called(self, folder: Path, base: Path, wall: Callable[[], None], *words: str) -> Done:
        def before() -> None:
            wall()
            if self.uid is not None:
                become(self.uid)

        environment = {"HOME": str(base / "home"), **self._environment()}
        return forked(folder, words, env=environment, before=before)

    def _environment(self) -> dict[str, str]:
        """Secrets of the person's environment, and the launcher."""
        return {**{name: token(f"${name}") for name in ENVIRONMENT}, "SPAK_SANDBOX_LAUNCHER": self.launcher}

    def _apply(self, attack: Attack, base: Path, wall: Callable[[], None], seen: Seen) -> bool:
        """Bring home what may; what is held is confirmed by name where the attack says so."""
        document = _document(self._spak(base, wall, "apply", "latest"))
        seen.held = [row["path"] for row in document.get("held", ())]
        if attack.confirmed and seen.held:
            allowed = [word for path in seen.held for word in ("--allow-runs", path)]
            document = _document(self._spak(base, wall, "apply", "latest", *allowed))
            if document.get("held"):
                kept = {row["path"] for row in document["held"]}
                rest = [row["path"] for row in document["applied"] if row["path"] not in kept]
                only = [word for path in rest for word in ("--only", path)]
                document = (
                    _document(self._spak(base, wall, "apply", "latest", *allowed, *only)) if only else {}
                )
        return bool(document.get("applied")) and not document.get("held")

    def _victims(self, run: Path, ws: Path, ran: Path, written: bool, seen: Seen) -> None:
        victim = oracles.Victim(self.uid)
        found = sorted(path.name for path in ran.iterdir())
        seen.note("ran", [f"{name}, by the run" for name in found])
        inside = run / "workspace"
        new = victim.act(inside if inside.is_dir() else run, ran, "git status")
        if written:
            new = victim.act(ws, ran)
        seen.note("ran", [name for name in new if name not in found])


def _document(done: Done) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(done.out)
    except ValueError as error:
        raise AssertionError(f"no document: {done.out}{done.err}") from error
    return found


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace")


def _forged(run: Path) -> list[str]:
    """What a job did to the files of its run, its copies apart: the lock is empty, and no attack's file lies
    there."""
    found = ["store/lock"] if (run / "store/lock").exists() and (run / "store/lock").read_bytes() else []
    for path in run.rglob("HARM*"):
        if path.relative_to(run).parts[0] not in ("workspace", "agent"):
            found.append(str(path.relative_to(run)))
    return found


def _over(run: Path, copies: int) -> dict[str, list[str]]:
    """What of its quota a run goes beyond once it has ended."""
    most = (copies * (SIZE_MIB + STORE_MIB) + SLACK_MIB) << 20
    infos = [path.lstat() for path in run.rglob("*")]
    size = sum(info.st_blocks * 512 for info in infos)
    found = {"disk": [f"{size >> 20} MiB"]} if size > most else {}
    return found | ({"inodes": [str(len(infos))]} if len(infos) > copies * FILES + SLACK_FILES else {})


def _left(marker: str) -> list[str]:
    """Processes whose command line names the folder of the world."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            text = path.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            if marker in text:
                found.append(text[:80])
    return found


def _end(folder: str) -> None:
    """End what an attack left and the folder names."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError, ValueError):
            if folder.encode() in path.read_bytes() and int(path.parent.name) != os.getpid():
                os.kill(int(path.parent.name), signal.SIGKILL)


def usable() -> bool:
    """Whether an attack can be carried out as an ordinary user too."""
    return os.geteuid() == 0 and shutil.which("setpriv") is not None
