"""What the text of a path alone decides about where it leads: for whoever judges before there is a workspace.

Takes a path as it is written; gives the Seen that a look at any workspace would give, or None where links or
the place of the workspace could lead elsewhere. It opens nothing. Decided are:

- what is no path: empty, too long, with a NUL
- a path that begins with `..`, before any name that could be a link: above the workspace. Its own folder is
  not named by such a path: the guest sees it as /ws
- an absolute path below a folder of the system, in which no workspace lies
- a path with a `.git` in it: git's own folder
"""

from __future__ import annotations

import re

from spak import paths
from spak.policy.actions import Seen

_SYSTEM = re.compile(
    r"(s?bin|boot|etc|lib\w*|proc|sys|usr/(s?bin|lib\w*|include|share))(/.*)?|usr|dev|", re.DOTALL
)
"""Folders of the system in which no workspace lies, and those above them; without the first `/`."""


def refused(text: str) -> Seen | None:
    """What is seen of a text that is no path; None where it is one."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        return Seen("refused", ascii(text), note="not valid text")
    if not text or size > paths.MAX_BYTES or "\0" in text:
        return Seen("refused", text[:80], note="empty, too long, or with a NUL")
    if any(len(part.encode()) > paths.MAX_COMPONENT for part in text.split("/")):
        return Seen("refused", text[:80], note="a file name of more than 255 bytes")
    return None


def decided(text: str) -> Seen | None:
    """What is seen of a path in every workspace; None where that depends on the workspace."""
    found = refused(text)
    if found is not None:
        return found
    below = inside(text)
    parts = [part for part in below.split("/") if part not in ("", ".")]
    if below.startswith("/"):
        system = ".." not in parts and _SYSTEM.fullmatch("/".join(parts))
        return Seen("outside", text) if system else None
    if parts[:1] == [".."]:
        return Seen("outside", text)
    if ".." not in parts and any(part.casefold() == ".git" for part in parts):
        return Seen("inside", "/".join(parts))
    return None


def inside(text: str) -> str:
    """The path with the guest's name of the workspace taken away."""
    guest = text == paths.GUEST_ROOT or text.startswith(paths.GUEST_ROOT + "/")
    return "." + text[len(paths.GUEST_ROOT) :] if guest else text
