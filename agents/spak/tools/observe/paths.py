"""What is seen where a path leads: for the gate, which judges actions before anybody opens a file.

Takes the workspace's folder; gives `look`, `spread` and `read` for a `spak.policy` World. A path is followed
one component at a time as the kernel would, links read and not believed by their names; nothing is opened
but to read a file for a patch, and the beginning of text and data to see whether it holds a secret. Whoever
carries an action out walks the path again and uses the descriptor (`spak.files.beneath`): what is seen here
decides a permission and is never itself the opening.
"""

from __future__ import annotations

import errno
import glob
import os
import posixpath
import re
import socket
import stat
from dataclasses import dataclass
from pathlib import Path

from spak import paths
from spak.cancel import Cancel, apart
from spak.commandline.world import HOLDS_SECRET
from spak.errors import UserError
from spak.files import beneath
from spak.files.walk import of_git, walk
from spak.policy import textual
from spak.policy.actions import TOO_MANY, Seen
from spak.secrets import which
from spak.secrets.files import holds

MAX_LINKS = 40
MAX_MATCHES = 200
MAX_BELOW = 50_000
"""Files and folders below one that are looked at."""
MAX_DEPTH = 256
"""Folders inside one another; what lies deeper cannot be told."""
MAX_SETTINGS = 1 << 20
_CREDENTIALS = re.compile(rb"(?i)://[^/\s@]*:[^/\s@]*@|extraheader|token|passw|secret")
_WILD = re.compile(r"[*?\[]")
_WIDER = re.compile(r"\[.*\]|\?|\*+", re.DOTALL)
MAX_ADDRESSES = 16
RESOLVE_S = 10


@dataclass(frozen=True, slots=True)
class Observer:
    """Eyes on one workspace."""

    root: Path
    """Absolute, with its own links resolved."""

    def look(self, text: str) -> Seen:
        """Where the path leads from the workspace. Never raises for a path, however odd."""
        found = textual.refused(text)
        return self._walk(textual.inside(text)) if found is None else found

    def _walk(self, text: str) -> Seen:
        asked = text
        at: list[str] = [] if text.startswith("/") else list(self.root.parts[1:])
        queue = list(reversed(text.split("/")))
        links = 0
        while queue:
            part = queue.pop()
            if part in ("", "."):
                continue
            if part == "..":
                if at:
                    at.pop()
                continue
            whole = "/" + "/".join([*at, part])
            try:
                target = os.readlink(whole)  # noqa: PTH115 - a text, as the kernel takes it
            except OSError as error:
                if error.errno == errno.ENAMETOOLONG:
                    return Seen("refused", asked[:80], note="too long a path")
                at.append(part)
                continue
            links += 1
            if links > MAX_LINKS:
                return self._seen(asked, [*at, part], loop=True)
            if whole.startswith("/proc/"):
                return Seen("outside", asked, "other", note="a link of the system")
            if target.startswith("/"):
                at = []
                if target == paths.GUEST_ROOT or target.startswith(paths.GUEST_ROOT + "/"):
                    at = list(self.root.parts[1:])
                    target = target[len(paths.GUEST_ROOT) :]
            queue.extend(reversed(target.split("/")))
        return self._seen(asked, at)

    def _seen(self, asked: str, at: list[str], loop: bool = False) -> Seen:
        own = list(self.root.parts[1:])
        if at[: len(own)] != own:
            return Seen("outside", asked)
        if "".join(at[len(own) :][:1]).casefold() == paths.OURS:  # no part of the workspace
            return Seen("outside", asked)
        below = "/".join(at[len(own) :]) or "."
        if loop:
            return Seen("inside", below, "other", note="links that go round")
        whole = "/" + "/".join(at)
        try:
            status = os.lstat(whole)
        except OSError:
            return Seen("inside", below)
        if stat.S_ISREG(status.st_mode):
            note = HOLDS_SECRET if holds(below, whole) else ""
            return Seen("inside", below, "file", status.st_nlink, note)
        return Seen("inside", below, "folder" if stat.S_ISDIR(status.st_mode) else "other")

    def spread(self, pattern: str) -> tuple[str, ...]:
        """The paths that a glob may match, relative to the workspace; rather more than a shell would find.

        Shells differ about brackets, and about what one letter is: here both stand for any text. What can not
        be told, and more matches than are looked at, is TOO_MANY.
        """
        parts = pattern.split("/")
        first = next((at for at, part in enumerate(parts) if _WILD.search(part)), len(parts))
        head, tail = "/".join(parts[:first]), [_WIDER.sub("*", part) for part in parts[first:]]
        if "\0" in pattern or len(pattern) > paths.MAX_BYTES or ".." in tail:
            return (TOO_MANY,)
        start = self.look(head or ("/" if pattern.startswith("/") else "."))
        if start.place != "inside":  # which is judged by itself
            return (head or "/",)
        found = []
        for match in glob.iglob("/".join(tail), root_dir=self.root / start.path, include_hidden=True):  # noqa: PTH207 - patterns as a shell takes them
            found.append(posixpath.normpath(posixpath.join(start.path, match)))
            if len(found) > MAX_MATCHES or not _is_text(match):
                return (TOO_MANY,)
        return tuple(sorted(found))

    def below(self, folder: str) -> tuple[tuple[str, str], ...]:
        """The secrets and the links below a folder of the workspace; links are not followed."""
        start = self.look(folder)
        if start.place != "inside":  # which is judged by itself
            return ()
        found: list[tuple[str, str]] = []
        try:
            for count, entry in enumerate(walk(self.root, start.path, MAX_DEPTH, _closed), 1):
                too_deep = entry.kind == "folder" and entry.path.count("/") + 1 >= MAX_DEPTH
                if count > MAX_BELOW or len(found) > MAX_MATCHES or too_deep or not _is_text(entry.name):
                    return (*found, (TOO_MANY, ""))
                if entry.kind == "link":
                    found.append((entry.whole, "link"))
                elif of_git(entry.name) and self._keeps_credentials(f"{entry.whole}/config"):
                    found.append((f"{entry.whole}/config", "file"))
                elif entry.secret:
                    found.append((entry.whole, "file"))
        except (OSError, UserError):  # a file, or gone meanwhile
            return tuple(found)
        return tuple(found)

    def _keeps_credentials(self, path: str) -> bool:
        """Whether settings of git hold a password or a token, or cannot be read."""
        try:
            return _CREDENTIALS.search(beneath.read_beneath(self.root, path, MAX_SETTINGS)) is not None
        except UserError as error:
            return error.code != "path.missing"

    def read(self, text: str) -> bytes | None:
        """The content of a regular file of the workspace, None where nothing is there."""
        try:
            return beneath.read_beneath(self.root, text)
        except UserError as error:
            if error.code == "path.missing":
                return None
            raise


def _closed(folder: str) -> bool:
    """A folder that is not entered: what is in it is git's own, or as secret as the folder is."""
    return of_git(folder) or which.secret(folder)


def _is_text(name: str) -> bool:
    """False for the name of a file that is no UTF-8: no record could hold it."""
    try:
        return bool(name.encode())
    except UnicodeEncodeError:
        return False


def resolve(host: str, cancel: Cancel | None = None) -> tuple[str, ...]:
    """The addresses that the host's name stands for now, in the order of their text; none where it has none.

    The answer is what a request connects to: the name is not looked up a second time. Raises: Cancelled.
    """

    def ask() -> tuple[str, ...]:
        try:
            rows = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            return ()
        return tuple(sorted({str(row[4][0]) for row in rows})[:MAX_ADDRESSES])

    try:
        return apart(ask, cancel, limit_s=RESOLVE_S)
    except TimeoutError:
        return ()
