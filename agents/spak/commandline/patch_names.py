"""The names that a patch would change, as far as its text tells."""

from __future__ import annotations

import re

from spak.commandline.world import TOO_MANY

MAX_NAMES = 20_000
_MAKES_LINK = re.compile(r"^(?:new (?:file )?mode 12|index \S+ 12|copy from|rename from)", re.MULTILINE)
_CODED = re.compile(
    r"^Content-Transfer-Encoding: *(?!7bit|8bit)"
    r"|^[ \tX]*(?:---|\+\+\+|\*\*\*|Index|diff|rename|copy)[^\n]*\\",
    re.MULTILINE | re.IGNORECASE,
)
"""Names that are written in another form than the one they have."""
_NAMED = re.compile(
    r"^[ \tX]*(?:(?:---|\+\+\+|\*\*\*|(?:rename|copy) (?:from|to)|diff --git|diff -\S+) +|Index: *)"
    r"([^\r\n]*)",
    re.MULTILINE,
)


def is_patch(text: str) -> bool:
    """Whether a line of the text names a file as patches do."""
    return _NAMED.search(text) is not None


def patched(text: str) -> list[str]:
    """The names of a patch, also with any number of leading folders taken away: programs guess how many."""
    if _MAKES_LINK.search(text) or _CODED.search(text):  # what later goes through it is nobody's to see
        return [TOO_MANY]
    found = []
    for line in _NAMED.findall(text)[: MAX_NAMES + 1]:
        for name in re.split(r"[\t ]+", line):
            parts = name.strip('"').split("/")
            if name not in ("", "/dev/null", "----", "****"):
                found += ["/".join(parts[at:]) for at in range(len(parts))]
    return list(dict.fromkeys(found))
