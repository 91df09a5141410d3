"""The specs that ship with SPAK."""

from __future__ import annotations

from spak import data


def examples() -> dict[str, str]:
    """The shipped example specs: file name without its ending to text."""
    files = sorted(data.path("specs/examples").glob("*.spak"))
    return {file.stem: file.read_text() for file in files}
