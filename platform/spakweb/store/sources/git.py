"""The system's git, as a worker may run it on what it does not trust, and with a repository elsewhere.

Takes a Remote and an empty folder; gives a `Git` (spak.repository.git) whose `remote` also runs commands that
use the network: without proxies and redirects, by one protocol, and to one address, which was judged.
Credentials are in the environment of the command or in a file of its folder, never among its arguments. What
goes wrong is a RunError `git.*` in our words.
"""

from __future__ import annotations

import base64
import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

from spak.errors import RunError
from spak.repository import git as host
from spak.repository.git import configured, end
from spakweb.store.sources.addresses import Address
from spakweb.store.sources.failures import late, meant, of

__all__ = ["Git", "Remote", "end"]

SSH = "ssh"

SETTINGS: Mapping[str, str] = {
    **host.SETTINGS,
    "push.gpgSign": "false",
    "push.recurseSubmodules": "no",
    "fetch.recurseSubmodules": "false",
    "fetch.fsckObjects": "true",
    "fetch.unpackLimit": "1",  # one pack, whose size is bounded as that of a file
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


NOWHERE = Remote(Address("none", "none:"))


@dataclass(slots=True)
class Git(host.Git):
    """git in one folder, and with the repository `of`."""

    of: Remote = NOWHERE

    def begin(self) -> None:
        """Make the bare repository, and the files that ssh reads."""
        host.Git.begin(self)
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

    def remote(self, *words: str) -> bytes:
        """What a command says that talks to the repository. Raises: RunError `git.*`."""
        settings = self.settings()
        way = self._way(settings)
        return self._run(words, {**self.environment(), **way, **configured(settings)}, None, self.most_bytes)

    def settings(self) -> dict[str, str]:
        """What git is told in place of a configuration."""
        return dict(SETTINGS)

    def _keep(self, name: str, text: str) -> None:
        fd = os.open(self.folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "w") as file:
            file.write(text)

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

    def _meant(self, cut: bool, stderr: str) -> RunError | None:
        found = meant(stderr)
        cut = cut or (found is not None and found.code == "git.damaged" and self._is_full())
        return of("git.huge") if cut else found  # git does not say so of a pack that was cut off

    def _shown(self, said: str) -> str:
        return "" if self.of.secret and self.of.secret in said else said

    def _late(self) -> RunError:
        return late()

    def _missing(self) -> RunError:
        hint = "the operator installs git, coreutils and util-linux there"
        return RunError("git.missing", "the worker has no git that it can start", hint)

    def _is_full(self) -> bool:
        """Whether a pack was cut off where files of this folder end."""
        packs = (self.folder / "objects" / "pack").glob("tmp_pack_*")
        return any(path.stat().st_size >= self.most_bytes for path in packs)
