"""How far a search has come, for people who watch: what its job says, as a tool's output would be shown.

Takes the output of repair_guest.py while it comes, and the `ports.Heard` of the call; gives it short lines,
each state written over the one before: tests that ran, edits that were tried and pass, patches that pass the
hidden tests. It is the output of a running tool: bounded, in no record, and it decides nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from spak.ports import Heard, MeasureCall

MOST_HELD = 1 << 20
"""Bytes that are held back for the rest of a line; a longer one is left out."""
SUSPECTS = 3


class Progress:
    """Hears a job, and says what its messages mean. `of` is the number of edits that are tried at most."""

    def __init__(self, heard: Heard, nonce: bytes, of: int) -> None:
        self._heard, self._mark, self._of = heard, nonce + b" ", of
        self._held = b""
        self._tests = self._failed = self._passing = self._looks = self._good = 0

    def hear(self, number: int, chunk: bytes) -> None:
        """`ports.Heard` of the job."""
        if number != 1:
            return
        *lines, self._held = (self._held + chunk).split(b"\n")
        for line in lines:
            if line.startswith(self._mark):
                self._read(line[len(self._mark) :])
        if len(self._held) > MOST_HELD:
            self._held = b""

    def _read(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except ValueError:
            return
        if isinstance(message, dict) and (text := self._said(message)):
            self._heard(1, f"\r{text}".encode())

    def _said(self, message: Mapping[str, Any]) -> str:
        if "test" in message:
            self._tests += 1
            self._failed += "pass" not in message.get("runs", ())
            return f"tests run: {self._tests}, failing: {self._failed}"
        if type(tried := message.get("tried")) is int:
            self._passing += message.get("bad") is None
            again = ", with more time" if "again" in message else ""
            return f"edit {tried + 1} of {self._of}{again}, passing: {self._passing}"
        if "hidden" in message:
            self._looks += 1
            self._good += message.get("bad") is None
            return f"hidden tests pass with {self._good} of {self._looks} patches"
        return ""


def tell(call: MeasureCall, text: str) -> None:
    """Say a line of a search's own."""
    if call.heard is not None:
        call.heard(1, f"\n{text}\n".encode())


def suspected(suspects: Mapping[str, Mapping[int, int]]) -> str:
    """The most suspected lines in a line."""
    top = sorted((-score, path, line) for path, found in suspects.items() for line, score in found.items())
    return "suspected: " + ", ".join(f"{path}:{line}" for _, path, line in top[:SUSPECTS])
