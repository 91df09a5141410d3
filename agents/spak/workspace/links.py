"""Where symbolic links lead among files that are not on a disk yet.

Takes the target of each link by its path; `Way.leaves` says why a link is none that stays
inside, or nothing. Links are followed as Linux does it, those on the way too; a name that is not there is
taken as a folder. A link that leads nowhere, or in a circle, stays inside: whoever opens it finds nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from spak.errors import UsageError
from spak.paths import OURS

FOLLOWED = 40
"""So many links on one way are a circle. Source: path_resolution(7)."""
STEPS = 1_000_000
"""Names that are looked at for all links of a tree."""


class Way:
    """Follows the links of one set of files."""

    def __init__(self, links: Mapping[str, str]) -> None:
        self._links = links
        self._left = STEPS

    def leaves(self, path: str) -> str:
        """Why the link at that path does not stay inside; empty where it does. Raises: UsageError."""
        at = path.split("/")[:-1]
        todo = [self._links[path]]
        followed = 0
        while todo:
            target = todo.pop()
            if target.startswith("/"):
                return "which is no relative path"
            part, _, rest = target.partition("/")
            if rest.strip("/"):
                todo.append(rest.lstrip("/"))
            self._step()
            if part in ("", "."):
                continue
            if part == "..":
                if not at:
                    return "which leads out of the folder"
                at.pop()
                continue
            at.append(part)
            if at == [OURS]:
                return f"which leads into {OURS}"
            inner = self._links.get("/".join(at))
            if inner is not None:
                followed += 1
                if followed >= FOLLOWED:
                    return ""
                at.pop()
                todo.append(inner)
        return ""

    def _step(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise UsageError("upload.link", "There are too many links to follow.", "Take them out.")
