"""Servers of a test's own, thrown away with its folder: Redis and PostgreSQL, killed and started again.

Where one is not installed the test is skipped, in CI it fails. `bench/bench_platform.py` uses them too.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

QUIET: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
START_S = 120


def binary(name: str) -> str:
    """The newest of PostgreSQL's folders, else what the path has; empty when it is nowhere."""
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return str(found[-1]) if found else shutil.which(name) or ""


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Server:
    """One process that listens on a port and can be started again on the same one."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, _free_port()
        folder.mkdir(parents=True, exist_ok=True)
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Any:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(120)

    def start(self) -> None:
        self.process = self.begin()
        ends = time.monotonic() + START_S
        while not self.answers():
            assert time.monotonic() < ends, "the server does not start"
            time.sleep(0.1)
            if self.process.poll() is not None:  # what the one before it held is not free yet
                self.process = self.begin()

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def begin(self) -> subprocess.Popen[bytes]:
        raise NotImplementedError

    def answers(self) -> bool:
        with socket.socket() as asked:
            return asked.connect_ex(("127.0.0.1", self.port)) == 0


class Redis(Server):
    needs = "redis-server"

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def begin(self) -> subprocess.Popen[bytes]:
        words = ["--port", str(self.port), "--save", "", "--bind", "127.0.0.1", "--maxclients", "9000"]
        return subprocess.Popen([self.needs, *words], cwd=self.folder, **QUIET)

    def flush(self) -> None:
        with socket.create_connection(("127.0.0.1", self.port)) as to:
            to.sendall(b"FLUSHALL\r\n")
            assert to.recv(16).startswith(b"+OK")


class Postgres(Server):
    needs = "postgres"

    def __init__(self, folder: Path, *, durable: bool = True, copied: Path | None = None) -> None:
        """Not durable: it survives its own crash, and starts again at once; not that of the machine.
        `copied` is the data folder of a stopped server to begin with, instead of an empty one."""
        super().__init__(folder)
        self._who: dict[str, Any] = {}
        self._options = [] if durable else ["-c", "fsync=off"]
        if os.getuid() == 0:  # PostgreSQL refuses to run as root: another user owns the folder then
            ours = Path(tempfile.gettempdir()).resolve()
            for place in (folder.resolve(), *folder.resolve().parents):
                if place.stat().st_uid == 0 and ours in place.parents:
                    place.chmod(0o755)
            os.chown(folder, 65534, 65534)
            self._who = {"user": 65534, "group": 65534, "extra_groups": []}
        if copied is None:
            made = [binary("initdb"), "-D", "data", "-U", "spak", "-A", "trust", "--no-sync"]
            subprocess.run(made, check=True, capture_output=True, cwd=folder, **self._who)
        else:
            self._copy(copied)

    def _copy(self, data: Path) -> None:
        """The owner of each file is the user of the server."""
        copy = self.folder / "data"
        shutil.copytree(data, copy)
        if self._who:
            for path in (copy, *copy.rglob("*")):
                os.chown(path, self._who["user"], self._who["group"])

    @property
    def url(self) -> str:
        return f"postgresql://spak@127.0.0.1:{self.port}/postgres"

    def begin(self) -> subprocess.Popen[bytes]:
        options = ["-p", str(self.port), "-c", "listen_addresses=127.0.0.1", "-k", str(self.folder)]
        more = ["-c", "max_connections=300"]
        return subprocess.Popen(
            [binary("postgres"), "-D", "data", *options, *more, *self._options],
            cwd=self.folder,
            **QUIET,
            **self._who,
        )

    def answers(self) -> bool:
        asked = [binary("pg_isready"), "-h", "127.0.0.1", "-p", str(self.port)]
        return subprocess.run(asked, **QUIET, check=False).returncode == 0

    def kill(self) -> None:
        """As a crash: all of its processes end at once, without a checkpoint."""
        assert self.process is not None
        self.process.send_signal(3)
        self.process.wait(120)
