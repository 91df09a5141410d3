"""Addresses of git repositories: which are taken, and where a name leads when it is used.

Takes a text; gives an Address of one of three kinds: `https` (http only where the operator lets sources reach
what is not public), `ssh` (also written git@host:path), and `folder`, a repository on the worker's own disk
below a folder that the operator names (SPAK_WEB_SOURCE_FOLDERS). `pinned` looks the host up once and judges
every address that it stands for, as webhooks do.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from django.conf import settings

from spak.errors import RunError
from spak.policy import urls
from spak.tools.observe.paths import resolve
from spakweb.ground.errors import Refused
from spakweb.ground.outgoing import is_web_port

_SCP = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]{0,62})@([A-Za-z0-9.-]+):(?!//)/?(.+)", re.DOTALL)
_SSH = re.compile(r"ssh://(?:([A-Za-z0-9][A-Za-z0-9._-]{0,62})@)?(.+)", re.DOTALL)
_PATH = re.compile(r"/[A-Za-z0-9._~/+@-]+\Z")
SSH_PORT = 22
USER = "git"


@dataclass(frozen=True, slots=True)
class Address:
    """Where a repository is. Of a folder only `url`, which is file:// and its path."""

    kind: str
    url: str
    host: str = ""
    port: int = 0
    user: str = ""

    @property
    def protocol(self) -> str:
        """What git calls the way there."""
        return self.url.partition(":")[0]

    @property
    def folder(self) -> Path:
        """Where a repository on the disk is."""
        return Path(self.url.removeprefix("file://"))


def read(text: str) -> Address:
    """The address that a text names, written one way. Raises: Refused `git.url`."""
    given = text.strip()
    if given.startswith(("/", "file:")):
        return _folder(given)
    if scp := _SCP.fullmatch(given):
        given = f"ssh://{scp[1]}@{scp[2]}/{scp[3]}"
    user = ""
    if ssh := _SSH.fullmatch(given):
        user, given = ssh[1] or USER, f"ssh://{ssh[2]}"
    found = urls.parse(given)
    if isinstance(found, urls.Trouble):
        _refuse(f"This is not an address of a repository: {found.detail}.")
    if found.query or found.fragment or not _PATH.match(found.path):
        _refuse("The path of the repository has signs that are not taken, or there is none.")
    if "//" in found.path or "/-" in found.path or ".." in found.path.split("/"):
        _refuse("The path of the repository is not written plainly.")
    if found.scheme == "ssh":
        port = found.port or SSH_PORT
        place = found.host if port == SSH_PORT else f"{found.host}:{port}"
        return Address("ssh", f"ssh://{user}@{place}{found.path}", found.host, port, user)
    inside = set(settings.SOURCE_REACH) - {"public"}
    if found.scheme != "https" and not (found.scheme == "http" and inside):
        _refuse("A repository is reached over https or ssh.")
    if not is_web_port(found.port):
        _refuse(f"Port {found.port} is not one of the web: 80, 443, or 1024 and above.")
    place = (
        found.host if found.port == {"https": 443, "http": 80}[found.scheme] else f"{found.host}:{found.port}"
    )
    return Address("https", f"{found.scheme}://{place}{found.path}", found.host, found.port)


def look_up(host: str) -> tuple[str, ...]:
    """The addresses on the network that a name stands for; none where it stands for nothing."""
    return tuple(resolve(host))


def pinned(address: Address) -> str:
    """The address on the network that the connection goes to; empty for a folder, whose place is judged.

    Raises: RunError `git.reach`, `git.unreachable`, `git.gone`.
    """
    if address.kind == "folder":
        _judge(address.folder)
        return ""
    found = resolve(address.host)
    if not found:
        raise RunError("git.unreachable", f"{address.host} has no address", "is the name of the host right?")
    for one in found:
        if (kind := urls.reach_of(one)) not in settings.SOURCE_REACH:
            raise RunError(
                "git.reach",
                f"{address.host} is at an address that is {kind}, where no source may lead",
                f"the operator permits it with SPAK_WEB_SOURCE_REACH=public,{kind}",
            )
    return found[0]


def _folder(given: str) -> Address:
    path = given.removeprefix("file://")
    if not _PATH.match(path) or "//" in path or ".." in path.split("/"):
        _refuse("The path of the repository is not written plainly.")
    if not settings.SOURCE_FOLDERS:
        _refuse("Repositories on the platform's own disk are not permitted here.")
    if not any(Path(path).is_relative_to(folder) for folder in settings.SOURCE_FOLDERS):
        _refuse("The repository is in no folder that the operator named (SPAK_WEB_SOURCE_FOLDERS).")
    return Address("folder", f"file://{path.rstrip('/')}")


def _judge(path: Path) -> None:
    """Where the path leads now is below one of the operator's folders: links are followed and judged."""
    try:
        real = path.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise RunError("git.gone", "there is no repository at the source's path", "") from error
    folders = [Path(folder).resolve() for folder in settings.SOURCE_FOLDERS]
    if not any(real.is_relative_to(folder) for folder in folders):
        raise RunError(
            "git.reach", "the path leads out of the folders that the operator named",
            "the operator's setting is SPAK_WEB_SOURCE_FOLDERS",
        )  # fmt: skip


def _refuse(message: str) -> NoReturn:
    hint = "https://host/path/name.git, or git@host:path/name.git with a deploy key."
    raise Refused("git.url", message, hint)
