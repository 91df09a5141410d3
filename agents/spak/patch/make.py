"""A unified diff of files before and after, which `spak.patch.apply` turns back into exactly these files.

Each file names the hash of its content before, so that the patch fits nothing else; without that line git
takes the patch too.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator

from spak import canon
from spak.patch.model import lines_of

CONTEXT = 3
Edit = tuple[str, bytes | None, bytes | None]
"""A path with the content before and after; None where there is no such file."""


def make(edits: Iterable[Edit], hashed: bool = True) -> str:
    """The patch of all edits that change something; empty when none does. Contents are UTF-8."""
    return "".join("".join(_file(*edit, hashed)) for edit in edits if edit[1] != edit[2])


def _file(path: str, before: bytes | None, after: bytes | None, hashed: bool) -> Iterator[str]:
    old, new = lines_of(before or b""), lines_of(after or b"")
    yield f"diff --git {_name('a/' + path)} {_name('b/' + path)}\n"
    if before is None or after is None:
        yield "new file mode 100644\n" if before is None else "deleted file mode 100644\n"
    if old or new:
        yield f"--- {_name('a/' + path) if before is not None else '/dev/null'}\n"
        yield f"+++ {_name('b/' + path) if after is not None else '/dev/null'}\n"
    if before is not None and hashed:
        yield f"before-hash sha256:{canon.digest(before)}\n"
    for group in difflib.SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(CONTEXT):
        first, last = group[0], group[-1]
        yield f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@\n"
        for tag, a, b, c, d in group:
            if tag == "equal":
                yield from (_line(" ", line) for line in old[a:b])
                continue
            yield from (_line("-", line) for line in old[a:b])
            yield from (_line("+", line) for line in new[c:d])


def _range(start: int, end: int) -> str:
    return f"{start + (end > start)},{end - start}"


def _line(sign: str, line: bytes) -> str:
    text = sign + line.decode()
    return text if text.endswith("\n") else f"{text}\n\\ No newline at end of file\n"


def _name(path: str) -> str:
    """The name as git quotes it."""
    if '"' not in path and "\\" not in path:
        return path
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'
