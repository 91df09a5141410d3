"""Refs of a repository: how they are written, and which of a source's a run may begin from.

A pattern is a full name (`refs/heads/main`), or a short one, which means a branch; `*` stands for anything. A
ref that is asked for by its short name may be a branch or a tag.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from spakweb.ground.errors import Refused

MOST, LONGEST = 40, 200
HEADS, TAGS = "refs/heads/", "refs/tags/"
COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?\Z")
_NAME = re.compile(r"[A-Za-z0-9_.+#@=,%!()&'][^\x00-\x20\x7f~^:?*\[\\\"`$;<>|]*\Z")
_PATTERN = re.compile(r"[A-Za-z0-9_*][A-Za-z0-9_.*/@+#=-]*\Z")


def name(text: str) -> str:
    """A ref as git lets it be written. Raises: Refused `git.ref`. Source: git-check-ref-format(1)."""
    parts = text.split("/")
    bad = not _NAME.match(text) or len(text) > LONGEST or ".." in text or "@{" in text or text.endswith(".")
    bad = bad or any(not part or part.startswith((".", "-")) or part.endswith(".lock") for part in parts)
    if bad or not text.isprintable():
        hint = "A branch or a tag, such as main, v1.2 or refs/tags/v1.2."
        raise Refused("git.ref", f"{text[:60]!r} cannot be the name of a ref.", hint, 422)
    return text


def candidates(ref: str) -> list[str]:
    """The full names that it may have, the likelier first."""
    return [ref] if ref.startswith("refs/") else [HEADS + ref, TAGS + ref]


def allowed(ref: str, patterns: Sequence[str]) -> list[str]:
    """Those of its candidates that a pattern allows. Raises: Refused `git.ref`, `git.ref_not_allowed`."""
    found = [full for full in candidates(name(ref)) if any(matches(full, one) for one in patterns)]
    if not found:
        hint = f"The source allows: {', '.join(patterns)}."
        raise Refused("git.ref_not_allowed", f"No run begins from {ref[:60]!r} of this source.", hint, 422)
    return found


def usual(patterns: Iterable[str]) -> str:
    """What is taken where none is named: the first pattern that is a name. Raises: Refused `git.ref`."""
    for pattern in patterns:
        if "*" not in pattern:
            return pattern
    raise Refused("git.ref", "The source has no ref of its own.", "Name a branch or a tag.", 422)


def patterns(texts: Iterable[str]) -> list[str]:
    """The patterns that a form names, in full. Raises: Refused `git.refs`."""
    words = [word for text in texts for word in text.replace(",", " ").split()]
    found = list(dict.fromkeys(one if one.startswith("refs/") else HEADS + one for one in words))
    for one in found:
        plain = one.replace("*", "x")
        if not _PATTERN.match(one) or len(one) > LONGEST or ".." in one or "//" in one or plain.endswith("/"):
            raise Refused(
                "git.refs", f"{one[:60]!r} is not a pattern of refs.", "main, release/*, refs/tags/v*", 422
            )
    if not 0 < len(found) <= MOST:
        raise Refused("git.refs", f"A source allows 1 to {MOST} refs.", "main, release/*, refs/tags/v*", 422)
    return found


def matches(full: str, pattern: str) -> bool:
    """Whether a full name is one that the pattern means."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), full, re.DOTALL) is not None
