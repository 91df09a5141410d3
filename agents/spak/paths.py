"""Paths as text: what can be said about a path inside a workspace before anything is opened.

Takes the text of a relative path; gives its components or a typed refusal. It opens nothing and decides
nothing about links: a component may be a link to anywhere, so whoever opens the path walks it below the
workspace's descriptor (`spak.files.beneath`) and believes only what the kernel resolves.

`components` keeps `..` where it stands, because after a link it means something else than the text says;
`normalise` gives the one spelling of a path that names things in records, patches and policies, and refuses
what would climb above the root.
"""

from __future__ import annotations

from spak.errors import UsageError

MAX_BYTES = 4095
"""PATH_MAX of Linux, without its NUL."""
MAX_COMPONENT = 255
OURS = ".spak"
"""Where runs are kept, at the top of a folder that a run works in itself: no part of a workspace."""
SETTINGS = "spak.toml"
GUEST_ROOT = "/ws"
"""Where a launcher shows the workspace; tools inside print such paths, and models repeat them."""


def components(text: str) -> tuple[str, ...]:
    """The components as written, without `.` and empty ones; empty for the root itself.

    Raises: UsageError `path.empty`, `path.control`, `path.too_long`, `path.absolute`, `path.parent` (a path
    that begins with `..`).
    """
    if not text:
        raise UsageError("path.empty", "an empty path", "name a file below the workspace")
    if any(ord(sign) < 32 or ord(sign) == 127 for sign in text):
        raise UsageError("path.control", f"a control character in the path {_short(text)}")
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise UsageError("path.control", f"a path that is not valid text: {_short(text)}") from error
    if size > MAX_BYTES:
        raise UsageError("path.too_long", f"a path of more than {MAX_BYTES} bytes")
    if text.startswith("/"):
        if text != GUEST_ROOT and not text.startswith(GUEST_ROOT + "/"):
            raise UsageError(
                "path.absolute", f"an absolute path: {_short(text)}", "paths are relative to the workspace"
            )
        text = text[len(GUEST_ROOT) :]
    parts = tuple(part for part in text.split("/") if part not in ("", "."))
    if any(len(part.encode()) > MAX_COMPONENT for part in parts):
        raise UsageError("path.too_long", f"a file name of more than {MAX_COMPONENT} bytes")
    if parts[:1] == ("..",):
        raise _escape(text)
    return parts


def normalise(text: str) -> tuple[str, ...]:
    """The components with every `..` taken away together with what it leaves.

    Raises: UsageError as `components`; `path.parent` also for a path that climbs above the root anywhere on
    its way.
    """
    kept: list[str] = []
    for part in components(text):
        if part != "..":
            kept.append(part)
        elif kept:
            kept.pop()
        else:
            raise _escape(text)
    return tuple(kept)


def join(parts: tuple[str, ...]) -> str:
    """The spelling of the components; `.` for the root."""
    return "/".join(parts) or "."


def _escape(text: str) -> UsageError:
    return UsageError(
        "path.parent", f"the path leaves the workspace: {_short(text)}", "name a file below the workspace"
    )


def _short(text: str) -> str:
    shown = text if len(text) <= 80 else text[:77] + "..."
    return ascii(shown)


CODE = "code.sqlite"
"""The file of the model of a folder's code (`spak.world`): in ours of a folder, beside the copy of a run."""
