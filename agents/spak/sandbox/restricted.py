"""The `restricted` launcher: bubblewrap as an unprivileged user, with a filter, limits and no network.

Takes a `ports.Job`, gives a `ports.Outcome`; what a job does wrong is a status, never an exception. It
shares the kernel with the host. It does not judge what may run (that is the policy's), keep a quota on the
workspace's disk, or fall back to anything weaker: where it does not work, `probe` says why and what mends it.

Started by root, each sandbox runs under a user id of its own and the workspace is given to that id (`slots`).
Started by anyone else it runs under their own id, which needs unprivileged user namespaces.
"""

from __future__ import annotations

import errno
import os
import platform
import re
import secrets
import shutil
import subprocess
import threading
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from spak.errors import BugError, UnavailableError
from spak.files.disk import short_of
from spak.files.faults import is_fault
from spak.files.scratch import Scratch
from spak.lang.catalog import NamedEntry
from spak.ports import Child, Job, Limits, Outcome
from spak.sandbox import cgroup, chain, plumbing, rlimits, seccomp, slots
from spak.sandbox.live import Live, NotStarted, StartError

_SEARCH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
_LEAST = (0, 8)
_INSTALL = "install it: apt-get install bubblewrap (Debian, Ubuntu), dnf install bubblewrap (Fedora)"

_NAMESPACES = (
    "allow user namespaces: sysctl -w user.max_user_namespaces=10000, where it exists"
    " kernel.unprivileged_userns_clone=1, on Ubuntu 24.04 kernel.apparmor_restrict_unprivileged_userns=0"
)
_CONTAINER = (
    "inside a container, start that one with"
    " --security-opt seccomp=unconfined --security-opt systempaths=unconfined"
)


_CROWDED, _USERS_TRIED = os.strerror(errno.EAGAIN), 3
Begun = TypeVar("Begun", bound=Outcome | Live)


class Refused(Exception):
    """The job cannot be started as it is; becomes an Outcome with status `launcher`."""


class Restricted:
    """Raises: UnavailableError `unavailable.sandbox` where bubblewrap or what it needs is not installed."""

    entry = NamedEntry("restricted", "bubblewrap as an unprivileged user, no network, seccomp", rank=1)

    def __init__(self) -> None:
        bwrap = _program("bwrap", _INSTALL)
        self._root = os.geteuid() == 0
        drop = [_program(name, "install util-linux") if self._root else "" for name in ("setpriv", "prlimit")]
        self._programs = chain.Programs(bwrap, *drop)
        found = Path(bwrap).stat()
        self.version = _version(bwrap, (found.st_ino, found.st_size, found.st_mtime_ns))
        try:
            seccomp.program(platform.machine())
        except BugError as error:
            raise UnavailableError(
                "unavailable.sandbox",
                f"the sandbox has no system call list for {platform.machine()}",
                "use an x86_64 or aarch64 machine, or the docker launcher",
            ) from error

    def run(self, job: Job) -> Outcome:
        """Run it to its end."""

        def begin(job: Job, slot: slots.Slot | None) -> Outcome | Live:
            if slot is not None and chain.hidden(chain.places(job), slot.uid):
                return self._carry(job, slot, (), False, b"")
            return self._here(job, slot)

        try:
            found = self._begun(job, begin)
        except Refused as error:
            return Outcome("launcher", 125, detail=str(error))
        if isinstance(found, Outcome):
            return found
        try:
            return found.result(job.cancel)
        except BaseException:
            found.kill()
            raise

    def start(self, job: Job, pass_fds: Sequence[int] = (), seccomp_extra: bytes = b"") -> Child:
        """Start the job as the first process of its namespace and return; a thread carries its output.

        A job that cannot be started gives a child that has ended already, with status `launcher`.
        """

        def begin(job: Job, slot: slots.Slot | None) -> Live:
            return self._carry(job, slot, pass_fds, True, seccomp_extra)

        try:
            return self._begun(job, begin, pass_fds, first_process=True)
        except Refused as error:
            return NotStarted(str(error))

    def _begun(
        self,
        job: Job,
        begin: Callable[[Job, slots.Slot | None], Begun],
        pass_fds: Sequence[int] = (),
        *,
        first_process: bool = False,
    ) -> Begun:
        """Begin it, for root as a user of its own. A sandbox whose starter was killed takes a moment to end,
        and until then its processes count against that user's limit: then it is another one.

        Raises: Refused."""
        avoid: set[int] = set()
        while True:
            settled, slot = self._admit(job, pass_fds, first_process=first_process, avoid=avoid)
            try:
                return begin(settled, slot)
            except Refused as error:
                if slot is None or _CROWDED not in str(error) or len(avoid) == _USERS_TRIED:
                    raise
                avoid.add(slot.uid)

    def _admit(
        self,
        job: Job,
        pass_fds: Sequence[int] = (),
        *,
        first_process: bool = False,
        avoid: Collection[int] = (),
    ) -> tuple[Job, slots.Slot | None]:
        """The job with its workspace resolved and, for root, given to a user of its own. Raises: Refused."""
        if why := chain.check(job, pass_fds, first_process=first_process):
            raise Refused(why)
        job = chain.settled(job)
        if not self._root:
            return job, None
        slot = None
        try:
            slot = slots.take(job.workspace, avoid)
            slots.own(job.workspace, slot.uid)
        except BaseException as error:
            _release(slot)
            if isinstance(error, slots.SlotError | OSError):
                raise Refused(str(error)) from error
            raise
        return job, slot

    def _here(self, job: Job, slot: slots.Slot | None) -> Outcome:
        try:
            return self._spawn(job, slot.uid if slot else None, (), False, b"").pump(job.stdin, job.cancel)
        finally:
            _release(slot)

    def _carry(
        self, job: Job, slot: slots.Slot | None, pass_fds: Sequence[int], first_process: bool, extra: bytes
    ) -> Live:
        """Start it in a thread that stays with it to its end: bwrap dies with the thread that started it."""
        started: Future[Live] = Future()

        def carry() -> None:
            try:
                live = self._spawn(job, slot.uid if slot else None, pass_fds, first_process, extra)
            except BaseException as error:
                _release(slot)
                started.set_exception(error)
                return
            started.set_result(live)
            try:
                live.pump(job.stdin)
            finally:
                _release(slot)

        try:
            threading.Thread(target=carry, name="spak-sandbox", daemon=True).start()
        except RuntimeError as error:  # the host has no thread left
            _release(slot)
            raise Refused(str(error)) from error
        return started.result()

    def _spawn(
        self, job: Job, uid: int | None, pass_fds: Sequence[int], first_process: bool, extra: bytes
    ) -> Live:
        """bwrap with its shell waiting inside. Raises: Refused."""
        try:
            return self._chain(job, uid, pass_fds, first_process, extra)
        except (StartError, slots.SlotError, OSError) as error:
            raise Refused(str(error)) from error

    def _chain(
        self, job: Job, uid: int | None, pass_fds: Sequence[int], first_process: bool, extra: bytes
    ) -> Live:
        sources = chain.places(job)
        if uid is not None and chain.hidden(sources, uid):
            sources = plumbing.lay(sources, slots.private_folder())
        group = cgroup.create(job.limits.memory_bytes)
        limits = rlimits.wanted(job.limits, watched=group is None)
        wiring = chain.Wiring()
        try:
            line = chain.command(
                job,
                self._programs,
                wiring,
                uid,
                sources,
                first_process=first_process,
                filters=(extra,) if extra else (),
                limits=rlimits.options(limits),
            )
            process = subprocess.Popen(
                line,
                env={},
                cwd="/",
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                pass_fds=(*wiring.passed, *job.inherit, *pass_fds),
                start_new_session=True,
                umask=0o022,
            )
        except BaseException:
            if group is not None:
                group.close()
            raise
        finally:
            wiring.close()
        late, watched = limits if uid is None else {}, job.workspace if job.writable else None
        return Live(process, job.limits, group, late, job.heard, job.cancel, watched)

    def probe(self) -> str:
        """A nonce comes back from inside, and a file that anyone on the host may read does not."""
        nonce, secret = secrets.token_hex(16), secrets.token_hex(16)
        with Scratch("probe") as folder:
            folder.chmod(0o755)
            hidden = folder / "secret"
            hidden.write_text(secret)
            workspace = folder / "ws"
            workspace.mkdir()
            script = (
                'echo "$1"; cat "$2" /etc/shadow; grep -E "^(Seccomp|NoNewPrivs|CapEff):" /proc/self/status; '
                "tr '\\0' '\\n' </proc/1/environ"
            )
            job = Job(
                ("/bin/sh", "-c", script, "probe", nonce, str(hidden)), workspace, limits=Limits(wall_s=10)
            )
            outcome = self.run(job)
        text = outcome.stdout.data.decode(errors="replace")
        if not text.startswith(nonce):
            return _mend(outcome.detail or outcome.stderr.data.decode(errors="replace") or outcome.status)
        wanted = [nonce, "CapEff:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"]
        if secret in text or text.splitlines() != wanted:
            return "the sandbox started but does not isolate; please report it with the output of spak doctor"
        return ""

    def describe(self) -> str:
        """What is in force here, in a line."""
        places = cgroup.hierarchies()
        memory = f"memory by control group v{places.version}" if places.version else "memory by watching"
        who = f"users {slots.UIDS[0]}-{slots.UIDS[-1]}" if self._root else "your own user"
        return f"bubblewrap {'.'.join(map(str, self.version))}, {who}, {memory}, seccomp {platform.machine()}"


def _release(slot: slots.Slot | None) -> None:
    if slot is not None:
        slot.release()


def _program(name: str, hint: str) -> str:
    found = shutil.which(name, path=_SEARCH)
    if found is None:
        raise UnavailableError("unavailable.sandbox", f"{name} is not installed", hint)
    return found


@lru_cache(4)
def _version(bwrap: str, mark: tuple[int, int, int]) -> tuple[int, ...]:
    """What a program says of itself, asked once for a file that has this inode, size and time."""
    try:
        text = subprocess.run([bwrap, "--version"], capture_output=True, text=True, timeout=20, env={}).stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        if is_fault(error):
            raise short_of(f"{bwrap} did not start: {error}") from error
        raise UnavailableError("unavailable.sandbox", f"{bwrap} does not start: {error}", _INSTALL) from error
    version = tuple(map(int, re.findall(r"\d+", text)))
    if version < _LEAST:
        raise UnavailableError("unavailable.sandbox", f"{text.strip() or bwrap} is older than 0.8", _INSTALL)
    return version


def _mend(reason: str) -> str:
    """The reason with what mends it."""
    low = reason.lower()
    if "namespace" in low or "uid map" in low:
        mend = _NAMESPACES
    elif "proc" in low and "mount" in low:
        mend = _CONTAINER
    else:
        mend = "see docs/sandbox.md"
    return f"{reason.strip()}; to fix: {mend}"
