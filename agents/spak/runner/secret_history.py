"""Values of files of secrets that only git's history has: an `.env` that was committed once and is gone, or
has another value today. `git show HASH`, `git log -p` and whoever reads `.git/objects` would show them.

Takes a Call for the workspace; gives the values, and a mark that differs when objects came from elsewhere.
git lists the history in the sandbox, without settings or hooks of the repository; nothing is written. It is
bounded: the newest COMMITS commits that a ref or a log of git leads to, FILES states of files, BYTES in all.
What is staged is read too. Repositories below the top, and what was staged once and in no commit, are not
(ADR 0047).
"""

from __future__ import annotations

import base64
from collections.abc import Collection
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import chain, zip_longest
from pathlib import Path

from spak.commandline import places
from spak.ports import Call
from spak.runner import secret_values
from spak.tools.git import repository

COMMITS, FILES, BYTES = 20_000, 500, 4 << 20
SECONDS = 20
"""In which the commits are listed; what was listed until then counts."""
_MARKS = ("packed-refs", "FETCH_HEAD", "objects/pack")
"""What changes when commits come from elsewhere: those of the run itself hold files that were seen."""

Mark = tuple[int, ...]


def mark(workspace: Path) -> Mark:
    """Which history there is; empty where there is none to read."""
    top = workspace / repository.GIT
    times = [_changed(top / name) for name in ("HEAD", *_MARKS)]
    return tuple(times[1:]) if times[0] else ()


def values(call: Call, shown: Collection[str] = ()) -> tuple[str, ...]:
    """The values, of each file in turn, the shortest first. `shown` are patterns of paths that are no
    secrets. Raises: Cancelled."""
    tips = repository.tips(call.workspace)
    if not tips and not (call.workspace / repository.GIT / "index").is_file():
        return ()
    order = {
        "tips": sorted(tips), "secret": places.SECRET_PATHS, "commits": COMMITS, "most": FILES,
        "bytes": secret_values.MAX_BYTES, "room": BYTES, "seconds": SECONDS,
    }  # fmt: skip
    limits = replace(call.limits, wall_s=max(call.limits.wall_s, 2.0 * SECONDS))
    found = repository.ask(replace(call, limits=limits), order)
    held = []
    for path, text in found.get("files", ()):
        data = base64.b64decode(text)
        public = secret_values.is_public(path, data)
        if places.secret(path) and not public and not any(fnmatchcase(path, one) for one in shown):
            held.append(sorted(secret_values.values(path, data), key=lambda item: (len(item), item)))
    in_turn = chain.from_iterable(zip_longest(*held))
    return tuple(dict.fromkeys(value for value in in_turn if value is not None))


def _changed(path: Path) -> int:
    try:
        return path.lstat().st_mtime_ns
    except OSError:
        return 0
