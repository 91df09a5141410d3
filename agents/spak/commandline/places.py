"""What kind of place a path is, by its name and by what was seen there."""

from __future__ import annotations

from spak.commandline.world import HOLDS_SECRET, Seen
from spak.door import is_known, read_by
from spak.secrets import which

_REPLACES = frozenset({"writes", "redirects", "deletes"})
"""Ways of use that do not show what a file held."""


def place(seen: Seen, how: str) -> str:
    """The word for a path's place: outside, refused, root, git, secret, control, hard_link, or inside."""
    if seen.place != "inside":
        return seen.place
    parts = [part for part in seen.path.split("/") if part not in ("", ".")]
    if any(map(which.of_git, parts)):
        return "git"
    if not parts:
        return "root"
    if seen.kind == "file" and seen.links > 1:
        return "hard_link"
    if which.secret(seen.path) or (how not in _REPLACES and seen.note == HOLDS_SECRET):
        return "secret"
    path = "/".join(parts)
    return "control" if read_by(path) or (how == "edits" and not is_known(path)) else "inside"
