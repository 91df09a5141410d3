"""The command line of a restricted sandbox: who drops what, in which order, and what can be seen inside.

    prlimit, setpriv (root only: limits; unprivileged user id, no groups, no new privileges)
      bwrap (every namespace, no capabilities, read-only system, filter) -> the job

Options go through descriptors (`--args`), so no host path is in a command line that the job or a neighbour
could read. Takes a job that `check` found sound; starts nothing.
"""

from __future__ import annotations

import os
import platform
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

from spak import data
from spak.ports import MIB, Job
from spak.sandbox import seccomp

INSIDE_UID = 64900
"""The user id that a job sees, whichever slot or user runs it (sandbox/etc/passwd names it)."""

PATH = "/usr/local/bin:/usr/bin:/bin"
MASK = "sandbox/masked"
"""What a job sees in the place of a file that is masked."""
MOST_MASKS = 200
_MERGED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_ETC = ("alternatives", "ld.so.cache")
_GATE = "echo && read -r _"
"""A shell says that it is there, waits for a line, and becomes the job; `spak.sandbox.live` says why."""
_FOR_A_SHELL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""Names of variables that a shell can export."""

_SYSTEM = tuple(Path("/", name) for name in ("usr", "etc", *_MERGED))
_OURS = frozenset(map(Path, ("/", "/proc", "/dev", "/sys", "/tmp", "/ws", "/usr", "/etc")))
_PRIVATE = tuple(map(Path, ("/proc", "/dev", "/sys", "/ws")))


@dataclass(frozen=True, slots=True)
class Programs:
    """The paths of the programs that a chain is made of."""

    bwrap: str
    setpriv: str
    prlimit: str


@dataclass(slots=True)
class Wiring:
    """Descriptors made for one start; the numbers go into the options, `passed` to the new process."""

    passed: list[int] = field(default_factory=list)

    def memory(self, content: bytes) -> int:
        """A descriptor to read the content from."""
        number = os.memfd_create("spak")
        self.passed.append(number)
        with open(number, "wb", closefd=False) as file:
            file.write(content)
        os.lseek(number, 0, os.SEEK_SET)
        return number

    def close(self) -> None:
        while self.passed:
            os.close(self.passed.pop())


def check(job: Job, descriptors: Iterable[int] = (), *, first_process: bool = False) -> str:
    """Empty, or why the job cannot be started so.

    A descriptor of a folder would be a way out: from it, the job could open any path of the host. A job that
    is the first process would have what it inherits open itself.
    """
    if first_process and job.inherit:
        return "a job that is its namespace's first process inherits no lock"
    for number in (*job.inherit, *descriptors):
        try:
            if stat.S_ISDIR(os.fstat(number).st_mode):
                return f"descriptor {number} is a folder of the host; only files, pipes and the like pass"
        except OSError as error:
            return f"descriptor {number} cannot be passed: {error.strerror}"
    if not job.argv or job.argv[0].startswith("-"):
        return "the command is empty or begins with a dash"
    words = [*job.argv, *job.env, *job.env.values(), str(job.workspace), *map(str, job.binds), job.folder]
    words += [job.home, *job.shown, *job.scratch]
    if any("\0" in word for word in words):
        return "a word of the command, its environment or a path has a NUL byte"
    if any(not name or "=" in name for name in job.env):
        return "a name in the environment is empty or has '='"
    if len(job.masked) > MOST_MASKS:
        return f"the workspace has more than {MOST_MASKS} secret files or folders of such; move them out"
    if any("\0" in name or Path(name).is_absolute() or ".." in Path(name).parts for name in job.masked):
        return "what is to be masked is no path of the workspace"
    if not job.workspace.is_dir():
        return f"the workspace {job.workspace} is not a folder"
    for bind in job.binds:
        if not bind.is_absolute() or ".." in bind.parts:
            return f"the toolchain path {bind} is not absolute"
        if bind in _OURS - {Path("/usr")} or any(bind.is_relative_to(private) for private in _PRIVATE):
            return f"{bind} cannot be shown inside: the sandbox has its own"
        if not bind.exists():
            return f"the toolchain path {bind} does not exist"
    return ""


def places(job: Job) -> list[str]:
    """Of a settled job: the workspace, the toolchains that need a mount of their own, one inside another
    after it, and the folders that are shown in the workspace."""
    return [str(job.workspace), *map(str, _apart(job)), *(f"{job.home}/{path}" for path in job.shown)]


def _apart(job: Job) -> list[Path]:
    system = [Path("/usr"), *(Path("/", name) for name in _MERGED)]
    return [bind for bind in toolchains(job) if not any(bind.is_relative_to(known) for known in system)]


def toolchains(job: Job) -> list[Path]:
    """The toolchains of a settled job; those in a folder that is shown are there with it."""
    there = [Path(job.home, path) for path in job.shown] if at_home(job) else []
    return [bind for bind in sorted(set(job.binds)) if not any(bind.is_relative_to(known) for known in there)]


def settled(job: Job) -> Job:
    """The job with its workspace resolved, and of the folders that it is shown those that have their places:
    a job before it may have put a link there, or on the way."""
    workspace = job.workspace.resolve()
    job = replace(job, workspace=workspace)
    if not job.home:
        return job

    def has_place(path: str) -> bool:
        return _is_folder(workspace / path) and (workspace / path).resolve() == workspace / path

    shown = tuple(path for path in job.shown if _is_folder(Path(job.home, path)) and has_place(path))
    own = (path for path in job.scratch if any(path.startswith(f"{one}/") for one in shown))
    scratch = tuple(path for path in own if _is_folder(Path(job.home, path)) and has_place(path))
    return replace(job, shown=shown, scratch=scratch)


def at_home(job: Job) -> bool:
    """Whether the workspace can be found at the path of the folder that it is a copy of: not where the
    sandbox or a toolchain has something of its own."""
    home = Path(job.home)
    if not job.home or home in _OURS or any(home.is_relative_to(one) for one in (*_PRIVATE, *_SYSTEM)):
        return False
    shown = [home / path for path in job.shown]
    return not any(
        home.is_relative_to(bind)
        or (bind.is_relative_to(home) and not any(bind.is_relative_to(one) for one in shown))
        for bind in job.binds
    )


def closed(job: Job) -> bool:
    """Whether the workspace's `.git` gets a mount of its own, so that nothing in the job can write it."""
    if not job.writable or job.repository:
        return False
    try:
        mode = (job.workspace / ".git").stat(follow_symlinks=False).st_mode
    except OSError:
        return False
    return stat.S_ISDIR(mode) or stat.S_ISREG(mode)


def masks(job: Job) -> list[tuple[str, bool]]:
    """What is to be masked and is there: the path below the workspace, and whether it is a folder."""
    found = []
    for name in job.masked:
        try:
            mode = place_of(job, name).stat(follow_symlinks=False).st_mode
        except OSError:
            continue
        if not stat.S_ISLNK(mode):
            found.append((name, stat.S_ISDIR(mode)))
    return found


def place_of(job: Job, name: str) -> Path:
    """Where the host has a path of the workspace: what is shown lies in the folder that was copied."""
    return Path(job.home if any(name.startswith(f"{path}/") for path in job.shown) else job.workspace, name)


def hidden(paths: Iterable[str], uid: int) -> bool:
    """Whether that user may not walk to one of the paths, by the mode bits of every folder on the way."""
    return any(
        not _enterable(parent, uid)
        for path in map(Path, paths)
        for start in {path, path.resolve()}
        for parent in start.parents
    )


def command(
    job: Job,
    programs: Programs,
    wiring: Wiring,
    uid: int | None,
    sources: Sequence[str],
    *,
    first_process: bool = False,
    filters: Sequence[bytes] = (),
    limits: Sequence[str] = (),
) -> list[str]:
    """The whole argument vector.

    `uid` is the user to drop to, None to stay who we are; `sources` are where to find `places` now; `limits`
    are prlimit's options on the way down.
    """
    line: list[str] = []
    if uid is not None:
        drop = ("--reuid", str(uid), "--regid", str(uid), "--clear-groups", "--no-new-privs")
        line += [programs.prlimit, *limits, "--", programs.setpriv, *drop, "--"]
    lock = job.inherit[0] if job.inherit else None
    inner = [*_isolation(wiring, first_process, filters, lock), *_sights(job, wiring, sources, first_process)]
    options = b"".join(os.fsencode(option) + b"\0" for option in inner)  # the last one may be empty
    return [*line, programs.bwrap, "--args", str(wiring.memory(options)), "--", *_gate(job), *job.argv]


def _gate(job: Job) -> tuple[str, ...]:
    """The shell that becomes the job. It keeps the job's variables under names of ours and exports them when
    it goes on: `LD_PRELOAD` would otherwise run code of the job before its limits are in force."""
    kept = list(_kept(job))
    own = "".join(f' && export {name}="${our}" && unset {our}' for our, name, _ in kept if _exports(name))
    rest = [our for our, name, _ in kept if not _exports(name)]
    through = "/usr/bin/env " + "".join(f"-u {our} " for our in rest) + "-- " if rest else ""
    words = "".join(f'"${our}" ' for our in rest)
    return ("/bin/sh", "-c", f'{_GATE}{own} && exec {through}{words}"$@"', "spak")


def _kept(job: Job) -> Iterator[tuple[str, str, str]]:
    """The job's variables: the name under which the shell keeps each, its own name, and the value, or for a
    name that no shell exports the assignment for `env`."""
    ours = "spak_"
    while any(name.startswith(ours) for name in job.env):
        ours += "_"
    for number, (name, value) in enumerate(job.env.items()):
        yield f"{ours}{number}", name, value if _exports(name) else f"{name}={value}"


def _exports(name: str) -> bool:
    return _FOR_A_SHELL.fullmatch(name) is not None


def _isolation(
    wiring: Wiring, first_process: bool, filters: Iterable[bytes], lock: int | None
) -> Iterator[str]:
    """`lock` stays open in bwrap's first process, which lives as long as anything inside and which no job can
    reach (`_sights`): the job itself could release it, or find a file of the host by it."""
    yield from ("--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent")
    yield from ("--cap-drop", "ALL", "--clearenv", "--new-session", "--hostname", "spak")
    yield from ("--uid", str(INSIDE_UID), "--gid", str(INSIDE_UID))
    if first_process:
        yield "--as-pid-1"
    if lock is not None:
        yield from ("--sync-fd", str(lock))
    for one in (seccomp.program(platform.machine()), *filters):
        yield from ("--add-seccomp-fd", str(wiring.memory(one)))


def _sights(job: Job, wiring: Wiring, sources: Sequence[str], first_process: bool) -> Iterator[str]:
    """What can be seen, in order: a later mount covers an earlier one, and `/` closes after the last.

    bwrap's first process is covered: by `/proc/1/fd` the workspace lock would be found, by `/proc/1/mem` its
    code be changed.
    """
    yield from _system()
    yield from ("--proc", "/proc", "--dev", "/dev")
    if not first_process:
        yield from ("--perms", "0555", "--size", "4096", "--tmpfs", "/proc/1", "--remount-ro", "/proc/1")
    yield from ("--size", str(max(16 * MIB, min(job.limits.memory_bytes // 4, 512 * MIB))), "--tmpfs", "/tmp")
    for name, content in _etc():
        yield from ("--perms", "0644", "--ro-bind-data", str(wiring.memory(content)), f"/etc/{name}")
    toolchains = _apart(job)
    for source, target in zip(sources[1:], toolchains, strict=False):
        yield from ("--ro-bind", source, str(target))
    yield from ("--bind" if job.writable else "--ro-bind", sources[0], "/ws")
    for source, path in zip(sources[1 + len(toolchains) :], job.shown, strict=True):
        yield from ("--ro-bind", source, f"/ws/{path}")
    for path in job.scratch if job.writable else ():
        yield from ("--bind", f"{sources[0]}/{path}", f"/ws/{path}")
    if at_home(job):
        yield from ("--symlink", "/ws", job.home)
    if closed(job):
        yield from ("--ro-bind", f"{sources[0]}/.git", "/ws/.git")
    for name, is_folder in masks(job):
        if is_folder:
            yield from ("--perms", "0555", "--size", "4096", "--tmpfs", f"/ws/{name}")
            yield from ("--remount-ro", f"/ws/{name}")
        else:
            notice = wiring.memory(data.path(MASK).read_bytes())
            yield from ("--perms", "0444", "--ro-bind-data", str(notice), f"/ws/{name}")
    yield from ("--remount-ro", "/", "--size", str(64 * MIB), "--tmpfs", "/dev/shm", "--remount-ro", "/dev")
    yield from ("--chdir", place(job))
    env = {"PATH": PATH, "HOME": "/ws", "TMPDIR": "/tmp", "LANG": "C.UTF-8"}
    env |= {our: kept for our, _, kept in _kept(job)}
    for name, value in env.items():
        yield from ("--setenv", name, value)


def place(job: Job) -> str:
    """The working directory as it is named inside."""
    return f"/ws/{job.folder}" if job.folder else "/ws"


def _system() -> Iterator[str]:
    """The host's programs and libraries, read-only, and nothing else of it."""
    yield from ("--ro-bind", "/usr", "/usr")
    for name in _MERGED:
        path = Path("/", name)
        if path.is_symlink():
            yield from ("--symlink", str(path.readlink()), str(path))
        elif path.is_dir():
            yield from ("--ro-bind", str(path), str(path))
    yield from ("--perms", "0755", "--dir", "/etc")
    for name in _ETC:
        yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")


@lru_cache
def _etc() -> tuple[tuple[str, bytes], ...]:
    """The few files that libc and tools look for, with nothing of the host in them."""
    files = sorted(data.path("sandbox/etc").iterdir())
    return tuple((file.name, file.read_bytes()) for file in files)


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.stat(follow_symlinks=False).st_mode)
    except OSError:
        return False


def _enterable(folder: Path, uid: int) -> bool:
    info = folder.stat()
    bit = 0o100 if info.st_uid == uid else 0o010 if info.st_gid == uid else 0o001
    return bool(info.st_mode & bit)
