"""The Docker engine: finding it, what a hardened container is, what is told of memory, sweeping up.

Everything that asks the engine is here and in images.py; errors of the engine's are EngineError, an engine
that cannot be used at all is UnavailableError. Containers carry their owner in a label, so that what a dead
process left behind can be told from what a living one uses.
"""

from __future__ import annotations

import os
import re
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spak.errors import UnavailableError
from spak.files.disk import short_of
from spak.files.faults import is_fault
from spak.ports import MIB

LABEL = "org.spak.owner"
GUEST_LABEL = "org.spak.guest"
API_LEAST = (1, 41)
TIMEOUT_S = 60

_MASKED = [
    "/proc/acpi",
    "/proc/asound",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/scsi",
    "/proc/sched_debug",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/sysrq-trigger",
    "/sys",
]
_EMPTY = "ro,nosuid,nodev,noexec,mode=0555,size=4k"
_READ_ONLY = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys"]
_START = "start it, or set DOCKER_HOST; docs/sandbox.md lists what it needs"
_BUILD = "spak sandbox build"


_clients: dict[tuple[int, str], Any] = {}
"""One for a process and an engine: what it asks of an engine at once goes over connections of its own."""


class EngineError(Exception):
    """The engine refused or went away; the text is its own."""


@contextmanager
def engine_errors() -> Iterator[None]:
    """The SDK's exceptions as EngineError."""
    import docker.errors  # type: ignore[import-untyped]
    import requests

    try:
        yield
    except docker.errors.APIError as error:
        raise EngineError(str(error.explanation or error).strip()) from error
    except requests.ConnectionError as error:  # its text is the representation of what urllib3 raised
        raise EngineError("the engine does not answer: it is down, or cut the line") from error
    except (docker.errors.DockerException, requests.RequestException, OSError) as error:
        raise EngineError(str(error)) from error


def connect() -> Any:
    """The SDK's low-level client of the engine that DOCKER_HOST names, or the usual socket.

    Raises: UnavailableError `unavailable.sandbox`: no SDK, no engine, one that is too old;
    `unavailable.host`.
    """
    try:
        import docker
    except ImportError as error:
        raise UnavailableError(
            "unavailable.sandbox", "Docker's Python package is not installed", "pip install 'spak[platform]'"
        ) from error
    address = os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"
    where = (os.getpid(), address)
    try:
        with engine_errors():
            if address.startswith("unix://"):  # the SDK leaves sockets open that nobody listened to
                with socket.socket(socket.AF_UNIX) as knock:
                    knock.connect(address.removeprefix("unix://"))
            client = _clients.get(where) or docker.from_env(timeout=TIMEOUT_S).api
            try:
                version = tuple(map(int, client.version()["ApiVersion"].split(".")))
            except BaseException:
                _clients.pop(where, None)
                client.close()
                raise
            _clients[where] = client
    except EngineError as error:
        reason = str(error).partition("\n")[0][:300]
        if is_fault(error):
            raise short_of(f"no Docker engine was asked at {address}: {reason}") from error
        raise UnavailableError(
            "unavailable.sandbox", f"no Docker engine answers at {address}: {reason}", _START
        ) from error
    if version < API_LEAST:
        raise UnavailableError(
            "unavailable.sandbox", f"the engine's API {'.'.join(map(str, version))} is older than 1.41",
            "install Docker 20.10 or later",
        )  # fmt: skip
    return client


def disconnect() -> None:
    """Close every client."""
    while _clients:
        _clients.popitem()[1].close()


def image_id(client: Any, name: str, guest: str, gpu: bool = False) -> str:
    """The id of our image, which holds the guest of this version. Raises: UnavailableError."""
    build = f"{_BUILD} --gpu" if gpu else _BUILD
    import docker.errors

    try:
        with engine_errors():
            found = client.inspect_image(name)
    except EngineError as error:
        if isinstance(error.__cause__, docker.errors.ImageNotFound):
            raise UnavailableError(
                "unavailable.sandbox", f"the engine has no image {name}", f"build it: {build}"
            ) from error
        raise UnavailableError("unavailable.sandbox", f"no Docker engine answers: {error}", _START) from error
    if (found["Config"].get("Labels") or {}).get(GUEST_LABEL) != guest:
        raise UnavailableError(
            "unavailable.sandbox", f"the image {name} was built by another version", f"build it: {build}"
        )
    return str(found["Id"])


def container(
    image: str,
    user: str,
    workspace: Path,
    writable: bool,
    binds: tuple[Path, ...],
    memory_bytes: int,
    processes: int,
    labels: Mapping[str, str],
    more: Mapping[str, Any],
    closed: bool = False,
    masked: Sequence[tuple[str, bool]] = (),
    notice: Path = Path(),
    home: str = "",
    shown: Sequence[tuple[str, str, bool]] = (),
) -> dict[str, Any]:
    """The body of the engine's `POST /containers/create`; `more` goes into its HostConfig; `closed`
    shows the workspace's `.git` read-only; `masked` are its paths that are, and whether they are folders;
    `notice` is what stands in the place of a file; `home` is where the workspace is found too; `shown` are
    folders of the host, where the workspace has them, and whether they are writable."""
    scratch = max(16 * MIB, min(memory_bytes // 4, 512 * MIB))
    tops = ("/ws", home) if home else ("/ws",)
    mounts = [_bind(workspace, top, writable) for top in tops]
    mounts += [_bind(path, str(path), False) for path in sorted(binds)]
    empty: dict[str, str] = {}
    for top in tops:
        mounts += [_bind(Path(place), f"{top}/{path}", mine) for place, path, mine in shown]
        if closed:
            mounts.append(_bind(workspace / ".git", f"{top}/.git", False))
        mounts += [_bind(notice, f"{top}/{name}", False) for name, is_folder in masked if not is_folder]
        empty |= {f"{top}/{name}": _EMPTY for name, is_folder in masked if is_folder}
    return {
        "Image": image,
        "Entrypoint": ["/opt/spak/guest"],
        "Cmd": ["hold"],
        "User": user,
        "WorkingDir": "/ws",
        "Hostname": "spak",
        "OpenStdin": True,
        "StdinOnce": True,  # its input ends with whoever started it; the guest ends then
        "AttachStdin": True,
        "Tty": False,
        "StopSignal": "SIGKILL",
        "Labels": dict(labels),
        "HostConfig": {
            "AutoRemove": True,
            "NetworkMode": "none",
            "ReadonlyRootfs": True,
            "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges"],
            "PidsLimit": processes,
            "Memory": memory_bytes,
            "MemorySwap": memory_bytes,  # the same: no swap
            "OomScoreAdj": 500,
            "IpcMode": "private",
            "CgroupnsMode": "private",
            "ShmSize": 64 * MIB,
            "Tmpfs": {"/tmp": f"rw,nosuid,nodev,exec,mode=1777,size={scratch}", **empty},
            "Mounts": mounts,
            "LogConfig": {"Type": "none"},  # a log would lie outside of every limit
            "Dns": ["127.0.0.1"],  # else the host's servers stand in resolv.conf
            "DnsSearch": ["."],
            "MaskedPaths": list(_MASKED),
            "ReadonlyPaths": list(_READ_ONLY),
            "Ulimits": [{"Name": "core", "Soft": 0, "Hard": 0}],
            "RestartPolicy": {"Name": "no"},
            **more,
        },
    }


def _bind(source: Path, target: str, writable: bool) -> dict[str, Any]:
    return {
        "Type": "bind", "Source": str(source), "Target": target, "ReadOnly": not writable,
        "BindOptions": {"Propagation": "rprivate"},
    }  # fmt: skip


def line(stream: Any) -> socket.socket:
    """The socket under what the SDK gives for an attached stream."""
    found: socket.socket = getattr(stream, "_sock", stream)
    return found


def drop(stream: Any) -> None:
    """Close an attached stream, with the answer that it came in."""
    under, response = line(stream), getattr(stream, "_response", None)
    with suppress(OSError):
        under.shutdown(socket.SHUT_RDWR)
    if response is not None:
        with suppress(OSError, ValueError):
            response.close()
    with suppress(OSError):
        stream.close()
        under.close()


# ---- owners


def owner() -> str:
    """This process, told apart from a later one of the same number."""
    return f"{_namespace()}-{os.getpid()}-{_started(os.getpid())}"


def alive(label: str) -> bool:
    """Whether the process of that label lives, as far as can be seen: another namespace's is left alone."""
    namespace, _, rest = label.partition("-")
    pid, _, started = rest.partition("-")
    if namespace != str(_namespace()) or not pid.isdecimal():
        return True
    return _started(int(pid)) == started


def sweep(client: Any) -> int:
    """Remove the containers of processes that ended; how many."""
    with engine_errors():
        found = client.containers(all=True, filters={"label": [LABEL]})
    gone = [one["Id"] for one in found if not alive(one["Labels"].get(LABEL, ""))]
    for number in gone:
        remove(client, number)
    return len(gone)


def remove(client: Any, number: str) -> None:
    """End a container and everything in it; one that is gone already is fine."""
    with suppress(EngineError), engine_errors():
        client.kill(number)
    with suppress(EngineError), engine_errors():
        client.remove_container(number, force=True, v=True)


def _namespace() -> int:
    return Path("/proc/self/ns/pid").stat().st_ino


def _started(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


# ---- memory


def oom_counter(client: Any, number: str) -> Path | None:
    """The kernel's file that counts kills for want of memory in the container, where it can be read here."""
    with suppress(EngineError, OSError), engine_errors():
        pid = client.inspect_container(number)["State"]["Pid"]
        for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
            _, names, path = line.split(":", 2)
            if number not in path:  # another machine's process, or another namespace's
                continue
            old = Path(f"/sys/fs/cgroup/memory{path}/memory.oom_control")
            found = old if "memory" in names.split(",") else Path(f"/sys/fs/cgroup{path}/memory.events")
            if found.exists() and os.access(found, os.R_OK):
                return found
    return None


def oom_kills(counter: Path | None) -> int:
    """How many there were; none when the file is gone or was never there."""
    if counter is None:
        return 0
    with suppress(OSError):
        found = re.search(r"^oom_kill (\d+)$", counter.read_text(), re.MULTILINE)
        return int(found[1]) if found else 0
    return 0


@dataclass(frozen=True, slots=True)
class Heard:
    """What the engine said of one container."""

    oom: threading.Event = field(default_factory=threading.Event)
    """It ran out of memory."""
    ended: threading.Event = field(default_factory=threading.Event)


class Watcher:
    """Hears from the engine which of this process's containers ended or ran out of memory; those it ends."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._guard = threading.Lock()
        self._heard: dict[str, Heard] = {}
        self._thread: threading.Thread | None = None
        self._stream: Any = None

    def watch(self, number: str) -> Heard:
        """What will be heard of the container. Raises: EngineError."""
        with self._guard:
            heard = self._heard[number] = Heard()
            if self._thread is None or not self._thread.is_alive():
                with engine_errors():
                    wanted = {"event": ["oom", "die"], "label": [f"{LABEL}={owner()}"]}
                    self._stream = self._client.events(filters=wanted, decode=True)
                    self._thread = threading.Thread(
                        target=self._listen, args=(self._stream,), name="spak-docker-events", daemon=True
                    )
                    self._thread.start()
        return heard

    def forget(self, number: str) -> None:
        """Forget what was heard of a container."""
        with self._guard:
            self._heard.pop(number, None)

    def close(self) -> None:
        """Hear nothing any more."""
        if self._thread is not None and self._thread.is_alive():
            with suppress(EngineError), engine_errors():
                self._stream.close()
            self._thread.join(1)

    def _listen(self, stream: Any) -> None:
        with suppress(EngineError), engine_errors():
            for event in stream:
                number = str(event.get("id", ""))
                with self._guard:
                    heard = self._heard.get(number)
                if heard is not None and event.get("Action", event.get("status")) == "die":
                    heard.ended.set()
                elif heard is not None:
                    heard.oom.set()
                    with suppress(EngineError), engine_errors():
                        self._client.kill(number)
