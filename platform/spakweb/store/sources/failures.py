"""What git says when it fails, as an error of ours: `meant(said)` gives a RunError `git.*` or
one of a fault of the host, or None.

git has exit 128 for everything, so its English is read (the commands run with LC_ALL=C). The first that fits
counts. A code of its own is for what somebody can do something about.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from spak.errors import RunError

MESSAGES: Sequence[tuple[str, Sequence[str]]] = (
    ("workspace.full", (r"(?m)^(?!remote:).*(?:No space left|Disk quota exceeded)",)),
    ("workspace.io", (r"(?m)^(?!remote:).*(?:Input/output error|Read-only file system)",)),
    ("unavailable.host", (r"(?m)^(?!remote:).*(?:Too many open files|Resource temporarily unavailable)",)),
    (
        "git.huge",
        (
            *(r"died of signal 25\b", "File too large"),
            *("out of memory", "Cannot allocate memory", r"died of signal 24\b"),
        ),
    ),
    ("git.redirect", ("redirect", r"returned error: 30\d")),
    (
        "git.credentials",
        (
            *("Authentication failed", "could not read (?:Username|Password)", r"returned error: 40[13]"),
            *("Permission denied", "access denied", "not authorized"),
        ),
    ),
    ("git.host_key", ("Host key verification failed", "HOST IDENTIFICATION HAS CHANGED")),
    ("git.ref_unknown", ("couldn't find remote ref", "no such ref was fetched")),
    ("git.moved", ("not our ref", "unadvertised object", "did not send all necessary objects")),
    ("git.branch_taken", ("stale info", "non-fast-forward", "fetch first", "already exists")),
    ("git.push_refused", ("hook declined", "protected branch", "remote rejected")),
    (
        "git.gone",
        (
            *("[Nn]ot found", "does not appear to be a git repo", "not a git repo", "does not exist"),
            *(r"returned error: 4(?:04|10)", "dubious ownership"),
        ),
    ),
    (
        "git.damaged",
        (
            *("fsck error", "in packed object", "bad (?:object|tree|pack)", "invalid index-pack", "corrupt"),
            *("unresolved deltas", "inflate"),
        ),
    ),
    (
        "git.unreachable",
        (
            *("SSL", "certificate", "[Tt]imed out", "Failed to connect", "Could not resolve", "refused"),
            *("[Rr]eset", "unreachable", r"returned error: 5\d\d", "hung up", "early EOF", "transfer closed"),
            *("Empty reply", "too slow", "Connection closed", "RPC failed"),
        ),
    ),
    ("git.gone", ("Could not read from remote repo",)),
)
"""Codes, with what git says of each."""
WORDS: Mapping[str, tuple[str, str]] = {
    "workspace.full": ("the disk of the worker is full", "it goes on by itself when there is room again"),
    "workspace.io": (
        "the disk of the worker failed or is read-only",
        "it goes on by itself when it works again",
    ),
    "unavailable.host": (
        "git was short of descriptors or processes",
        "it goes on by itself; does it stay so, the operator raises the limits of the worker",
    ),
    "git.huge": (
        "the repository is larger than the files of a run may be, or git needs more memory than it is given",
        "leave large files out of it; the operator's setting is SPAK_WEB_RUN_FILES_MB",
    ),
    "git.redirect": (
        "the server sends on to another address, which is not followed",
        "add a source with the address that the repository has now",
    ),
    "git.credentials": (
        "the server does not accept the credentials of the source",
        "an admin of the team gives new ones on the page Sources",
    ),
    "git.host_key": (
        "the host does not prove itself by a key that the source names",
        "compare its key with the one that it publishes, and add the source with that",
    ),
    "git.ref_unknown": ("the repository has no such ref", "is the name right?"),
    "git.moved": ("the ref was moved while it was fetched", "start the run again"),
    "git.branch_taken": ("the repository has a branch of that name already", "choose another name"),
    "git.push_refused": (
        "the repository did not take the branch",
        "its own rules, or the rights of the credentials, are against it",
    ),
    "git.gone": (
        "there is no repository at the source's address, or it is not shown to the source's credentials",
        "is it renamed or deleted? May the credentials read it?",
    ),
    "git.damaged": ("the repository sent something damaged, or made to do harm", "git fsck says what"),
    "git.unreachable": (
        "the repository's server cannot be reached, has no good certificate, or broke off",
        "try again later",
    ),
}


def meant(said: str) -> RunError | None:
    """The error that the words stand for; None for words that are not known."""
    for code, patterns in MESSAGES:
        if any(re.search(pattern, said) for pattern in patterns):
            status = re.search(r"returned error: (5\d\d)", said)
            return answered(int(status[1])) if status and code == "git.unreachable" else of(code)
    return None


def of(code: str) -> RunError:
    """The error of a code, in its words."""
    return RunError(code, *WORDS[code])


def answered(status: int, who: str = "the repository's server") -> RunError:
    """The error of a server that answers, and cannot serve now."""
    return RunError("git.unreachable", f"{who} answered {status}", WORDS["git.unreachable"][1])


def late() -> RunError:
    """The error of what takes too long."""
    return RunError(
        "git.timeout",
        "the repository did not answer, or was not fetched, in the time that is given",
        "try again later, or ask the operator about SPAK_WEB_SOURCE_S",
    )
