"""The `docker` launcher: a hardened container of the Docker engine; `gvisor` is the same under runsc.

Takes a `ports.Job`, gives a `ports.Outcome`; what a job does wrong is a status, never an exception. A
workspace has a warm container, and each job is one `exec` in it: the guest inside (sandbox/base/guest.c)
puts limits and our system call filter on the job, keeps the time, ends everything that the job started and
empties the scratch folders. What did not end cleanly takes its container along.

The engine has to run on this machine, since folders are shown to it by path. Whoever may use it is root on
this machine in all but name: only what starts sandboxes gets its socket. It passes no descriptors into a
container.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import platform
import secrets
import signal
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from spak import data
from spak.cancel import TURN_S, apart
from spak.errors import BugError, UnavailableError
from spak.files.scratch import Scratch
from spak.lang.catalog import NamedEntry
from spak.ports import MIB, Child, Job, Limits, Outcome, Status
from spak.sandbox import chain, docker_engine, docker_wire, seccomp, slots
from spak.sandbox.awake import Awake
from spak.sandbox.docker_engine import EngineError
from spak.sandbox.docker_warm import Ended, Key, Pool, Step, Warm, open_container
from spak.sandbox.live import NotStarted

IMAGE = "spak-sandbox:latest"
GPU_IMAGE = "spak-sandbox-gpu:latest"
GUEST = "sandbox/base/guest.c"
EMPTIED = ("/tmp", "/dev/shm", "/dev/mqueue")

_OVERHEAD = 4
"""Processes of ours under the same user: the container's first, the guest, the engine's in passing."""
_GVISOR_PROCESSES = 512
"""runsc counts its own threads."""
_OOM_S = 1.0
_ALL = 0xFFFFFFFF
_LIMIT_SIGNALS = (signal.SIGXCPU, signal.SIGXFSZ)
_HARMLESS = {signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH, signal.SIGTSTP, signal.SIGSTOP,
             signal.SIGTTIN, signal.SIGTTOU}  # fmt: skip
_FATAL = {int(one) for one in signal.Signals if one < 32} - _HARMLESS

_pool = Pool()
_swept: set[str] = set()
_watchers: dict[str, docker_engine.Watcher] = {}
_guard = threading.Lock()


def leave() -> None:
    """Let go of everything that this process holds of engines; at its end, or in a test of that."""
    _pool.close()
    for watcher in _watchers.values():
        watcher.close()
    _watchers.clear()
    _swept.clear()
    docker_engine.disconnect()


atexit.register(leave)


class Refused(Exception):
    """The job cannot be started as it is; becomes an Outcome with status `launcher`."""


def guest_hash() -> str:
    """What an image has to be built from."""
    return hashlib.sha256(data.path(GUEST).read_bytes()).hexdigest()[:16]


class Docker:
    """Raises: UnavailableError `unavailable.sandbox` without an engine, our image, or the runtime."""

    entry = NamedEntry("docker", "a hardened container of the Docker engine, no network", rank=2)
    image_name = IMAGE
    runtime = ""
    hardening: Mapping[str, str] = {"CapEff": "0000000000000000", "NoNewPrivs": "1", "Seccomp": "2"}
    """What /proc/self/status says inside, in its order."""

    def __init__(self) -> None:
        try:
            self._filter = seccomp.program(platform.machine())
        except BugError as error:
            raise UnavailableError(
                "unavailable.sandbox",
                f"the sandbox has no system call list for {platform.machine()}",
                "use an x86_64 or aarch64 machine",
            ) from error
        self._client = docker_engine.connect()
        try:
            with docker_engine.engine_errors():
                self._info: Mapping[str, Any] = self._client.info()
        except EngineError as error:
            raise UnavailableError(
                "unavailable.sandbox", f"no Docker engine answers: {error}", "spak doctor"
            ) from error
        self._check_engine()
        self._image = docker_engine.image_id(
            self._client, self.image_name, guest_hash(), self.image_name == GPU_IMAGE
        )
        self._root = os.geteuid() == 0
        self._watcher = self._prepared()

    # ---- ports.Launcher

    def run(self, job: Job) -> Outcome:
        """Run it to its end."""
        try:
            try:
                return self._in(self._opened(job, fresh=False), job, b"")
            except Ended:  # a warm one may have gone since: then a new one
                return self._in(self._opened(job, fresh=True), job, b"")
        except (Refused, Ended) as error:
            return Outcome("launcher", 125, detail=str(error))

    def start(self, job: Job, pass_fds: Sequence[int] = (), seccomp_extra: bytes = b"") -> Child:
        """Start the job in a container of its own and return; a thread carries its output.

        Its `pid` is 0: what is inside has no number here that means something. Descriptors cannot be passed.
        """
        try:
            if pass_fds:
                raise Refused("the docker launcher passes no descriptors; measure in the restricted launcher")
            return Running(self, self._admit(job, pass_fds, fresh=True), job, seccomp_extra)
        except Refused as error:
            return NotStarted(str(error))

    def probe(self) -> str:
        """A nonce comes back by both ways, and a file that anyone on the host may read does not."""
        nonce, secret = secrets.token_hex(16), secrets.token_hex(16)
        with Scratch("probe") as folder:
            folder.chmod(0o755)
            hidden = folder / "secret"
            hidden.write_text(secret)
            workspace = folder / "ws"
            workspace.mkdir()
            script = (
                'echo "$1" | tee made; cat "$2" /etc/shadow; '
                f'grep -E "^({"|".join(self.hardening)}):" /proc/self/status; '
                "tr '\\0' '\\n' </proc/1/environ; tail -n +3 /proc/net/dev | grep -v ' lo:'"
            )
            job = Job(
                ("/bin/sh", "-c", script, "probe", nonce, str(hidden)), workspace, limits=Limits(wall_s=10)
            )
            outcome = self.run(job)
            made = workspace / "made"
            ours = made.exists() and made.read_text().strip() == nonce
        text = outcome.stdout.data.decode(errors="replace")
        if not text.startswith(nonce):
            why = outcome.detail or outcome.stderr.data.decode(errors="replace") or outcome.status
            return f"{why.strip()}; to fix: start the engine, or see docs/sandbox.md"
        wanted = [nonce, *(f"{name}:\t{value}" for name, value in self.hardening.items())]
        if secret in text or text.splitlines() != wanted or not ours:
            return "the sandbox started but does not isolate; please report it with the output of spak doctor"
        return ""

    def describe(self) -> str:
        """What is in force here, in a line; limits that the kernel does not keep are tried, not believed."""
        loose = self.loose_limits()
        limits = f"NOT kept: {', '.join(loose)}" if loose else "limits of memory and processes kept"
        runtime = self.runtime or str(self._info.get("DefaultRuntime", "runc"))
        return (
            f"engine {self._info.get('ServerVersion', '?')}, {runtime}, image {self._image[7:19]}, {limits}"
        )

    def loose_limits(self) -> list[str]:
        """Limits that the engine accepts and the kernel does not keep, found by going beyond them."""
        limits = Limits(wall_s=20, memory_bytes=64 * MIB, processes=16)
        fill = "head -c 100000000 /dev/zero | tail -c 100000000 > /dev/null"
        fork = (
            "for i in $(seq 64); do sleep 5 & done"  # ends where one cannot be made; what was made is ended
        )
        with Scratch("probe") as folder:
            folder.chmod(0o755)
            tried = {
                name: self.run(Job(("/bin/sh", "-c", text), folder, limits=limits))
                for name, text in (("memory", fill), ("processes", fork))
            }
        return [name for name, outcome in tried.items() if outcome.exit == 0]

    def _opened(self, job: Job, fresh: bool) -> Warm:
        """`_admit`, apart: the engine may be slow to answer. Raises: Refused, Cancelled."""
        return apart(lambda: self._admit(job, (), fresh=fresh), job.cancel, late=Warm.close)

    # ---- containers

    def host_config(self) -> dict[str, Any]:
        """What this launcher adds to a container's host configuration."""
        more: dict[str, Any] = {"Runtime": self.runtime} if self.runtime else {}
        if any("name=userns" in option for option in self._info.get("SecurityOptions") or ()):
            more["UsernsMode"] = "host"  # the workspace belongs to the user by its number out here
        return more

    def _check_engine(self) -> None:
        options = " ".join(self._info.get("SecurityOptions") or ())
        fault = mend = ""
        if self._info.get("OSType", "linux") != "linux":
            fault, mend = "the engine runs no Linux containers", "switch it to Linux containers"
        elif "name=rootless" in options:
            fault, mend = "the engine is rootless: folders would change hands", "use the system's engine"
        elif not self._info.get("MemoryLimit", True) or not self._info.get("PidsLimit", True):
            fault, mend = "the engine cannot limit memory or processes here", "enable those control groups"
        elif self.runtime and self.runtime not in (self._info.get("Runtimes") or {}):
            fault, mend = f"the engine has no runtime {self.runtime}", "install it; see docs/sandbox.md"
        if fault:
            raise UnavailableError("unavailable.sandbox", fault, mend)

    def _prepared(self) -> docker_engine.Watcher:
        """Once for each engine: sweep up what the dead left, listen for memory."""
        with _guard:
            base = f"{os.getpid()} {self._client.base_url}"
            if base not in _swept:
                try:
                    docker_engine.sweep(self._client)
                except EngineError:
                    pass  # what it is for will be told by the job
                _swept.add(base)
            return _watchers.setdefault(base, docker_engine.Watcher(self._client))

    def _admit(self, job: Job, pass_fds: Sequence[int], fresh: bool = False) -> Warm:
        """A container for the job, warm or new, with the workspace given to its user. Raises: Refused."""
        if why := chain.check(job, pass_fds):
            raise Refused(why)
        job = chain.settled(job)
        workspace = job.workspace
        try:
            for path in (workspace, *job.binds, *job.masked, job.home, *job.shown):
                str(path).encode("utf-8")
        except UnicodeEncodeError as error:
            raise Refused(f"the engine takes no path that is not UTF-8: {error.object!r}") from error
        slot = None
        try:
            if self._root:
                slot = slots.take(workspace)
                slots.own(workspace, slot.uid)
            user = slot.uid if slot else os.geteuid()
            return self._warm(job, workspace, user, slot, fresh)
        except BaseException as error:
            if slot is not None:
                slot.release()
            if isinstance(error, slots.SlotError | OSError | EngineError):
                raise Refused(str(error)) from error
            raise

    def _warm(self, job: Job, workspace: Path, user: int, slot: slots.Slot | None, fresh: bool) -> Warm:
        group = user if slot else os.getegid()
        processes = job.limits.processes + _OVERHEAD
        more = self.host_config()
        key = Key(
            self._image, f"{user}:{group}", workspace, job.writable, tuple(chain.toolchains(job)),
            job.limits.memory_bytes, max(processes, _GVISOR_PROCESSES) if self.runtime else processes,
            json.dumps(more, sort_keys=True), _identity(workspace / ".git") if chain.closed(job) else None,
            tuple((*one, *_identity(chain.place_of(job, one[0]))) for one in chain.masks(job)),
            job.home if chain.at_home(job) else "",
            tuple((f"{job.home}/{path}", path, False) for path in job.shown)
            + tuple((str(workspace / path), path, True) for path in job.scratch if job.writable),
        )  # fmt: skip
        while not fresh and (found := _pool.take(key)) is not None:
            if self._lives(found):
                if slot is not None:
                    slot.release()  # the container holds one of the same number already
                return found
            found.close()
        labels = {docker_engine.LABEL: docker_engine.owner(), docker_engine.GUEST_LABEL: guest_hash()}
        return open_container(self._client, self._watcher, key, slot, labels, more)

    def _lives(self, warm: Warm) -> bool:
        """Whether the folder is still the one that the container shows: a path may have been made anew."""
        try:
            info = warm.key.workspace.stat()
        except OSError:
            return False
        return (
            (info.st_dev, info.st_ino) == warm.place
            and not warm.heard.oom.is_set()
            and not warm.heard.ended.is_set()
        )

    def _in(self, warm: Warm, job: Job, extra: bytes) -> Outcome:
        """The job in that container; afterwards the container waits for the next one, or is gone.

        Raises: Ended when the engine did not even begin the job.
        """
        nonce = secrets.token_hex(16)
        env = {"PATH": chain.PATH, "HOME": "/ws", "TMPDIR": "/tmp", "LANG": "C.UTF-8", **job.env}
        processes = job.limits.processes + _OVERHEAD if self._root else _ALL
        filters = [one for one in (extra, self._filter) if one]
        packed = docker_wire.pack(
            job.argv, env, job.limits, processes, nonce, filters, EMPTIED, chain.place(job)
        )
        clean = False
        try:
            step = warm.step(packed, nonce, job.stdin, job.limits, job.heard, job.cancel)
            outcome = _outcome(warm, job.limits, step)
            clean = step.report is not None and not step.report.left and outcome.status in ("exited", "crash")
        finally:
            if clean:
                _pool.give(warm)
            else:
                warm.close()
        return outcome


class GVisor(Docker):
    """The same under gVisor: the job's system calls do not reach the host's kernel."""

    entry = NamedEntry("gvisor", "a container under gVisor (runsc), no network", rank=3)
    runtime = "runsc"
    hardening: Mapping[str, str] = {"CapEff": "0000000000000000", "Seccomp": "2"}
    """Debian's runsc says nothing of new privileges, and gives none."""


class Running:
    """A job that runs in a thread (ports.Child)."""

    pid = 0

    def __init__(self, launcher: Docker, warm: Warm, job: Job, extra: bytes) -> None:
        self._warm = warm
        self._outcome: Outcome | None = None
        self._ended = threading.Event()
        self._why = ""

        job = replace(job, cancel=None)  # its starter ends it

        def carry() -> None:
            try:
                self._outcome = launcher._in(warm, job, extra)
            except Ended as error:
                self._outcome = Outcome("launcher", 125, detail=str(error))
            finally:
                self._ended.set()

        threading.Thread(target=carry, name="spak-docker", daemon=True).start()

    def poll(self) -> int | None:
        """The exit code, None while it lives."""
        return None if self._outcome is None else self._outcome.exit

    def kill(self) -> None:
        """End everything inside; returns when the engine has reaped it."""
        self._end("ended by its starter", "exited")

    def wait(self, timeout_s: float) -> Outcome:
        """How it ended. One that still runs when the time is up is ended, with status `timeout`."""
        clock = Awake()
        while not self._ended.wait(max(0.0, min(TURN_S, timeout_s - clock.now()))):
            if clock.now() >= timeout_s:
                self._end(f"still running after the {timeout_s:g} s that its starter gave", "timeout")
        if self._outcome is None:
            raise BugError("bug.sandbox", "the thread that watched a container ended before it")
        return self._outcome

    def _end(self, why: str, status: Status) -> None:
        if self._ended.is_set():
            return
        self._warm.kill()
        self._ended.wait()
        if self._outcome is not None and self._outcome.status in ("crash", "launcher"):
            code = 124 if status == "timeout" else 128 + signal.SIGKILL
            self._outcome = replace(self._outcome, status=status, exit=code, detail=why)


def _identity(path: Path) -> tuple[int, int]:
    info = path.stat(follow_symlinks=False)
    return info.st_dev, info.st_ino


def _outcome(warm: Warm, limits: Limits, step: Step) -> Outcome:
    """The guest's words and the engine's as one of the ends that the port knows."""
    found = step.report
    killed = 128 + signal.SIGKILL
    status: Status
    number, detail, cpu_ms = 0, "", found.cpu_ms if found else 0
    if found is not None:
        number = found.number + 128 if found.kind == "s" else found.number
    if warm.out_of_memory(_OOM_S if found is None or number == killed else 0):
        status, number, detail = "oom", killed, f"more than {limits.memory_bytes} bytes of memory (engine)"
    elif step.full:
        status, number, detail = "limit", killed, step.full
    elif found is None:
        timeout = step.wall_ms >= 1000 * limits.wall_s
        status, number, detail = (
            ("timeout", 124, step.trouble) if timeout else ("crash", killed, step.trouble)
        )
    elif found.kind == "t":
        status, number, detail = "timeout", 124, f"still running after {limits.wall_s:g} s"
    elif found.kind == "c" or (number == killed and cpu_ms >= 1000 * limits.cpu_s):
        status, number, detail = "limit", killed, f"more than {limits.cpu_s} s of CPU time"
    elif found.kind == "e":
        status, number, detail = "launcher", 125, f"the job could not be started: {os.strerror(found.number)}"
    elif number - 128 in _LIMIT_SIGNALS:
        status, detail = "limit", f"ended by {signal.Signals(number - 128).name}"
    elif number - 128 in _FATAL:
        status, detail = "crash", f"ended by {signal.Signals(number - 128).name}"
    else:
        status = "exited"
    return Outcome(status, number, step.out.stream(), step.err.stream(), step.wall_ms, cpu_ms, detail)
