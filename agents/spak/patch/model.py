"""What both ways of writing a patch become, and the rules for the paths and hashes in it."""

from __future__ import annotations

import re
import unicodedata
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from typing import Literal, NoReturn

MAX_BYTES = 1 << 20
"""Of a patch."""
MAX_FILE_BYTES = 8 << 20
"""Of a file before or after."""
MAX_LINE_BYTES = 64 << 10
"""Of a line that a patch shows or makes."""
MAX_TOTAL_BYTES = 64 << 20
MAX_FILES = 256
MAX_HUNKS = 1024
"""Of one file."""

FILE_MODES = {"100644": 0o644, "100755": 0o755}
_INVISIBLE = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")
_HEX = re.compile(r"[0-9a-fA-F]{64}\Z")
_BASE64URL = re.compile(r"[A-Za-z0-9_-]{43}\Z")


@dataclass(frozen=True, slots=True)
class PatchRefused:
    """Why nothing of a patch was applied. `line` counts from 1 in the patch; 0 where no line is to blame."""

    code: str
    message: str
    hint: str = ""
    line: int = 0
    path: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of one path."""

    path: str
    before: str | None
    """Digest of the content before; None when there was no such file."""
    after: bytes | None
    """None when the file goes away."""
    mode: int | None = None
    """0o644 or 0o755 where the patch names one; None keeps it."""
    source: str = ""
    """The path that it was renamed or copied from, whose mode it keeps."""
    anchored: bool = False
    """Whether the patch itself names hashes of what it changes."""


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines with their line ends. `at` counts from 0 in the old file; None means: where it occurs, once."""

    before: tuple[bytes, ...]
    after: tuple[bytes, ...]
    at: int | None
    new_at: int | None = None
    line: int = 0


@dataclass(frozen=True, slots=True)
class FilePatch:
    """What a patch does to one file; hashes are of its content before and after, where it names them."""

    path: str
    kind: Literal["modify", "create", "delete", "rename", "copy", "replace"]
    source: str = ""
    mode: int | None = None
    hunks: tuple[Hunk, ...] = ()
    content: bytes | None = None
    before_hash: str = ""
    after_hash: str = ""
    line: int = 0
    hashed: bool = False
    """Each of its hunks, or its whole content, came with a hash."""
    part: int = 0
    """Which mail or commit of a series it is in: each is made for what the ones before leave."""


class Refusal(Exception):
    """Carries a PatchRefused out of the reading; never leaves this package."""

    def __init__(self, refused: PatchRefused) -> None:
        super().__init__(refused.message)
        self.refused = refused


def refuse(code: str, message: str, hint: str = "", line: int = 0, path: str = "") -> NoReturn:
    """Raises: Refusal with `patch.` and the code."""
    raise Refusal(PatchRefused("patch." + code, message, hint, line, path))


def checked_path(text: str, line: int) -> str:
    """The path when it is canonical, below the workspace and not git's own; else a refusal."""
    hint = "name files relative to the workspace, as in a/src/x.py"
    if text.startswith("/"):
        refuse("path", f"an absolute path: {text[:80]!a}", hint, line)
    try:
        parts = [part.encode() for part in text.split("/")]
    except UnicodeEncodeError:
        refuse("path", f"a path that is not valid text: {text[:80]!a}", hint, line)
    odd = any(ord(sign) < 32 or sign in "\x7f\\" for sign in text)
    if odd or not all(0 < len(part) <= 255 and part not in (b".", b"..") for part in parts):
        refuse("path", f"not a plain path below the workspace: {text[:80]!a}", hint, line)
    if len(text.encode()) > 4095:
        refuse("path", "a path of more than 4095 bytes", hint, line)
    for part in text.split("/"):
        if _is_git(part):
            refuse("path", f"git's own files are not patched: {text[:80]!a}", "", line)
    return text


def _is_git(part: str) -> bool:
    """True for `.git` and what some file system takes for it."""
    plain = _INVISIBLE.sub("", unicodedata.normalize("NFKC", part)).casefold().rstrip(". ")
    return plain.split(":")[0] in (".git", "git~1")


def checked_mode(text: str, line: int) -> int:
    """The mode of a plain file. Raises: Refusal `patch.mode`."""
    mode = FILE_MODES.get(text)
    if mode is None:
        refuse("mode", f"mode {text[:12]!a} is not a plain file", "only 100644 and 100755", line)
    return mode


def checked_hash(text: object, line: int) -> str:
    """A SHA-256 in base64url (43 characters) or hexadecimal (64), as base64url."""
    if isinstance(text, str):
        bare = text.removeprefix("sha256:")
        if _BASE64URL.match(bare):
            return bare
        if _HEX.match(bare):
            return urlsafe_b64encode(bytes.fromhex(bare)).decode().rstrip("=")
    refuse("hash", "not a content hash", "SHA-256 of the bytes, hexadecimal or base64url", line)


def lines_of(data: bytes) -> list[bytes]:
    """The lines with their line ends; only a line feed ends a line."""
    lines = data.split(b"\n")
    last = lines.pop()
    return [line + b"\n" for line in lines] + ([last] if last else [])
