"""The system's git, as a worker may run it on what it does not trust.

Takes a Remote and an empty folder; gives a `Git` whose `local` and `remote` run one command each in a bare
repository of that folder. Nothing of the caller's environment, of the machine's settings or of a repository
decides what git does: no hooks, filters, helpers, prompts, proxies or redirects, one protocol, and over the
network one address, which was judged. There is never a work tree. Time, sizes of files, memory and CPU are
bounded; a command that is broken off leaves no process. Credentials are in the environment of the command or
in a file of its folder, never among its arguments. What goes wrong is a RunError `git.*` in our words.
"""

from __future__ import annotations

import base64
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from spak.errors import RunError
from spakweb.sources.addresses import Address
from spakweb.sources.failures import late, meant, of

TURN_S = 0.05
MAX_STDERR = 2000
"""Bytes of what git says at its end that are looked at."""
MEMORY, OPEN_FILES = 1 << 30, 256
PATH = "/usr/local/bin:/usr/bin:/bin"
SSH, WRAPPER = "ssh", "timeout"
_FSIZE, _CPU = 128 + signal.SIGXFSZ, 128 + signal.SIGXCPU
_LATE = frozenset({124, _CPU, 128 + signal.SIGKILL})

SETTINGS: Mapping[str, str] = {
    "core.hooksPath": "/dev/null",
    "core.attributesFile": "/dev/null",
    "core.excludesFile": "/dev/null",
    "core.fsmonitor": "false",
    "core.askPass": "",
    "credential.helper": "",
    "commit.gpgSign": "false",
    "push.gpgSign": "false",
    "push.recurseSubmodules": "no",
    "submodule.recurse": "false",
    "fetch.recurseSubmodules": "false",
    "fetch.fsckObjects": "true",
    "fetch.unpackLimit": "1",  # one pack, whose size is bounded as that of a file
    "gc.auto": "0",
    "maintenance.auto": "false",
    "pack.threads": "1",
    "transfer.bundleURI": "false",
    "protocol.version": "2",
    "http.followRedirects": "false",
    "http.proxy": "",
    "http.sslVerify": "true",
    "http.lowSpeedLimit": "500",
    "http.lowSpeedTime": "30",
}
"""Above all that a machine or a repository could set."""


@dataclass(frozen=True, slots=True)
class Remote:
    """A repository elsewhere, the address on the network that stands for its host, and what proves who asks.

    `secret` is a token, or a private key where the address is of ssh.
    """

    address: Address
    at: str = ""
    user: str = ""
    secret: str = field(default="", repr=False)
    host_keys: str = ""


@dataclass(slots=True)
class Git:
    """git in one folder, until `ends` (time.monotonic) and as long as `wanted` says so."""

    folder: Path
    of: Remote
    ends: float
    most_bytes: int
    wanted: Callable[[], bool] = lambda: True

    def begin(self) -> None:
        """Make the bare repository, and the files that ssh reads."""
        self.folder.mkdir(parents=True, mode=0o700)
        self.local("init", "--quiet", "--bare", "--template=", ".")
        if self.of.address.kind == "ssh":
            self._keep("key", self.of.secret)
            lines = [
                f"{self.of.address.host} {line}" for line in self.of.host_keys.splitlines() if line.strip()
            ]
            self._keep("known_hosts", "\n".join([*lines, ""]))
        if (
            self.of.address.kind == "folder"
        ):  # of another user's repository the operator has said that it is good
            self._keep("settings", f'[safe]\n\tdirectory = "{self.of.address.folder}"\n')

    def local(self, *words: str, given: IO[bytes] | None = None, most: int = 0) -> bytes:
        """What a command of the own repository says, which reads `given`. Raises: RunError `git.*`."""
        return self._run(words, self._environment(), given, most or self.most_bytes)

    def remote(self, *words: str) -> bytes:
        """What a command says that talks to the repository. Raises: RunError `git.*`."""
        return self._run(words, self._environment(network=True), None, self.most_bytes)

    def pipe(self, *words: str, given: IO[bytes]) -> subprocess.Popen[bytes]:
        """A command of the own repository whose answer is read while it comes; whoever asks closes it."""
        return subprocess.Popen(
            self._line(words, self.most_bytes), env=self._environment(), cwd=self.folder, stdin=given,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip

    def left_s(self) -> float:
        """Seconds until the time is over. Raises: RunError `git.timeout`."""
        left = self.ends - time.monotonic()
        if left <= 0:
            raise late()
        return left

    def _keep(self, name: str, text: str) -> None:
        fd = os.open(self.folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "w") as file:
            file.write(text)

    def _line(self, words: Sequence[str], most: int) -> list[str]:
        seconds = max(1, int(self.left_s()) + 1)
        limits = [
            f"--fsize={most}",
            f"--data={MEMORY}",
            f"--cpu={seconds}",
            "--core=0",
            f"--nofile={OPEN_FILES}",
        ]
        return [WRAPPER, "-k", "1", str(seconds), "prlimit", *limits, "--", "git", *words]

    def _environment(self, *, network: bool = False) -> dict[str, str]:
        found = {
            "PATH": PATH, "HOME": str(self.folder), "LC_ALL": "C", "GIT_DIR": str(self.folder),
            "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_SYSTEM": os.devnull, "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0", "GIT_ALLOW_PROTOCOL": "none",
        }  # fmt: skip
        settings = dict(SETTINGS)
        if network:
            found |= self._way(settings)
        for number, (name, value) in enumerate(settings.items()):
            found |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
        return {**found, "GIT_CONFIG_COUNT": str(len(settings))}

    def _way(self, settings: dict[str, str]) -> dict[str, str]:
        """How the repository is reached: what of it is a variable, and what is added to the settings."""
        address = self.of.address
        found = {"GIT_ALLOW_PROTOCOL": address.protocol}
        if address.kind == "https":
            at = f"[{self.of.at}]" if ":" in self.of.at else self.of.at
            settings["http.curloptResolve"] = f"{address.host}:{address.port}:{at}"
            if self.of.secret:
                pair = base64.b64encode(f"{self.of.user}:{self.of.secret}".encode()).decode()
                settings["http.extraHeader"] = f"Authorization: Basic {pair}"
        elif address.kind == "ssh":
            found |= {"GIT_SSH_COMMAND": shlex.join(self._ssh()), "GIT_SSH_VARIANT": "ssh"}
        else:
            found["GIT_CONFIG_GLOBAL"] = str(self.folder / "settings")
        return found

    def _ssh(self) -> list[str]:
        options = {
            "HostName": self.of.at, "HostKeyAlias": self.of.address.host, "CheckHostIP": "no",
            "UserKnownHostsFile": str(self.folder / "known_hosts"), "GlobalKnownHostsFile": os.devnull,
            "StrictHostKeyChecking": "yes", "UpdateHostKeys": "no", "BatchMode": "yes",
            "IdentityFile": str(self.folder / "key"), "IdentitiesOnly": "yes", "IdentityAgent": "none",
            "PreferredAuthentications": "publickey", "ForwardAgent": "no", "ClearAllForwardings": "yes",
            "PermitLocalCommand": "no", "ProxyCommand": "none", "ProxyJump": "none", "ControlMaster": "no",
            "ControlPath": "none", "ConnectTimeout": "15", "ServerAliveInterval": "10",
            "ServerAliveCountMax": "3",
        }  # fmt: skip
        given = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        return [SSH, "-F", os.devnull, *given]

    def _run(self, words: Sequence[str], env: Mapping[str, str], given: IO[bytes] | None, most: int) -> bytes:
        with TemporaryFile() as stdout, TemporaryFile() as stderr:
            try:
                process = subprocess.Popen(
                    self._line(words, most), env=dict(env), cwd=self.folder,
                    stdin=given or subprocess.DEVNULL, stdout=stdout, stderr=stderr, start_new_session=True,
                )  # fmt: skip
            except FileNotFoundError as error:
                hint = "the operator installs git, coreutils and util-linux there"
                raise RunError("git.missing", "the worker has no git that it can start", hint) from error
            try:
                self._until_done(process)
            finally:
                end(process)
            if process.returncode:
                stderr.seek(max(0, stderr.seek(0, os.SEEK_END) - MAX_STDERR))
                raise self._meant(process.returncode, stderr.read().decode(errors="replace"))
            stdout.seek(0)
            return stdout.read()

    def _until_done(self, process: subprocess.Popen[bytes]) -> None:
        while True:
            try:
                process.wait(TURN_S)
            except subprocess.TimeoutExpired:
                self.left_s()
                if not self.wanted():
                    raise RunError(
                        "git.cancelled", "the run was cancelled while its files came", ""
                    ) from None
            else:
                return

    def _meant(self, status: int, stderr: str) -> RunError:
        status = status if status >= 0 else 128 - status
        if status in _LATE:
            return late()
        found = meant(stderr)
        cut = found is not None and found.code == "git.damaged" and self._is_full()  # git does not say so
        if status == _FSIZE or cut:
            return of("git.huge")
        if found is not None:
            return found
        lines = [line for line in stderr.splitlines() if line.startswith(("fatal:", "error:"))] or [""]
        words = "".join(sign for sign in lines[-1][:160] if " " <= sign <= "~")
        if self.of.secret and self.of.secret in words:
            words = ""
        message = f"git ended with {status}: {words or 'it said nothing'}"
        return RunError("git.failed", message, "does git do it by hand?")

    def _is_full(self) -> bool:
        """Whether a pack was cut off where files of this folder end."""
        packs = (self.folder / "objects" / "pack").glob("tmp_pack_*")
        return any(path.stat().st_size >= self.most_bytes for path in packs)


def end(process: subprocess.Popen[bytes]) -> None:
    """The command and all that it started, gone."""
    if process.stdout is not None:
        process.stdout.close()
    if process.poll() is None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
