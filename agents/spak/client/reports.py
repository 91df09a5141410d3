"""What a guarded session sends to a platform while it goes on: its records in order, and what pages show.

Takes the folder of the run, which somebody else writes; sends from where the platform's copy of it ends.
`Reports` does that in a thread of its own, so that nobody waits for a platform that is slow or away, and
hands what people asked on the page to who started it. A blob, a folder's list or a file's content is sent
once; contents only of changed files, and none that holds a value of a secret. It judges nothing.
"""

from __future__ import annotations

import json
import threading
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

from spak.client.platform import Platform
from spak.errors import RunError, UnavailableError, UserError
from spak.ledger.blobs import FileBlobs
from spak.ledger.chain import named_blobs
from spak.ledger.scan import TRACE
from spak.records import decode
from spak.secrets import which
from spak.workspace.parted import differing

PACE_S, BEAT_S, ASKED_S = 0.5, 5.0, 2.0
"""The least time between two reports; how often a session is reported that does nothing, and one that waits
for somebody."""
MOST_LINES, MOST_BYTES = 500, 8 << 20
"""Records of one report, and bytes after which it is full."""
MOST_BLOB = 4 << 20
"""Larger bodies are not sent: the page shows their beginning, which the record has."""
MOST_SHOWN = 64 << 10
"""Larger files are not sent: no page shows them."""
MOST_PATHS = 200
"""Changed files of one transaction that are sent."""

Asked = Mapping[str, Any]
Read = Callable[[str], bytes]


@dataclass(slots=True)
class Sent:
    """How far the reports of a run are: the records that the platform has, where the next one begins, the
    root of the workspace then, and the names of what was sent besides."""

    records: int = 0
    place: int = 0
    root: str = ""
    names: set[str] = field(default_factory=set)


class Report:
    """The next report of a run, read from its folder. `read` gives objects of its workspace; `holds` says
    whether a text has a value of a secret."""

    def __init__(self, folder: Path, sent: Sent, read: Read, holds: Callable[[str], bool]) -> None:
        self._folder, self._read, self._holds = folder, read, holds
        self._blobs = FileBlobs(folder / "blobs", writable=False)
        self.after = Sent(sent.records, sent.place, sent.root, sent.names)
        self._lines: list[bytes] = []
        self._besides: dict[str, bytes] = {}
        self._size = 0

    def fill(self) -> bool:
        """Take what is new; whether there is more than fits."""
        with (self._folder / TRACE).open("rb") as file:
            file.seek(self.after.place)
            for line in file:
                if not line.endswith(b"\n"):
                    return False
                if len(self._lines) >= MOST_LINES or self._size >= MOST_BYTES:
                    return True
                self._take(line)
        return False

    def skip(self, records: int) -> None:
        """Pass over the records that the platform has. Raises: RunError `guard.report` where there are fewer
        of them here."""
        with (self._folder / TRACE).open("rb") as file:
            for line in file:
                if self.after.records >= records:
                    return
                self._pass(line)
        if self.after.records < records:
            message = f"the platform has {records} records of the session, and here are fewer"
            raise RunError("guard.report", message, "the folder of the run is not the one that was reported")

    def body(self, done: Mapping[int, str]) -> bytes:
        """The lines of the report: blobs before the records that name them."""
        blobs = (
            b'{"blob":"%s","data":"%s"}\n' % (name.encode(), b64encode(data))
            for name, data in self._besides.items()
        )
        over = (
            json.dumps({"done": number, "outcome": outcome}).encode() + b"\n"
            for number, outcome in done.items()
        )
        return b"".join((*blobs, *self._lines, *over))

    def sent(self) -> Sent:
        """How far the reports are, once the platform has this one."""
        self.after.names |= self._besides.keys()
        return self.after

    def _take(self, line: bytes) -> None:
        for name in named_blobs(line):
            self._besides_blob(name)
        before = self.after.root
        self._pass(line)
        if before and before != self.after.root:
            self._changes(before, self.after.root)
        self._lines.append(line)
        self._size += len(line)

    def _pass(self, line: bytes) -> None:
        body = decode(line).body
        root = body.get("r3") or (body.get("rules") or {}).get("r3")
        self.after.root = root if isinstance(root, str) else self.after.root
        self.after.records += 1
        self.after.place += len(line)

    def _besides_blob(self, name: str) -> None:
        try:
            data = b"" if self._knows(name) else self._blobs.get(name)
        except UserError:
            return  # the record has its beginning
        if 0 < len(data) <= MOST_BLOB:
            self._put(name, data)

    def _changes(self, before: str, now: str) -> None:
        """The lists and contents that a page needs to show what changed."""

        def read(name: str) -> bytes:
            data = self._read(name)
            self._put(name, data)
            return data

        try:
            for number, (path, old, new) in enumerate(differing(read, before, now)):
                if number >= MOST_PATHS:
                    return
                for one in (old, new):
                    if one is not None and one.kind != "l" and one.size <= MOST_SHOWN:
                        self._content(path, one.digest)
        except UserError:
            return  # the page says that the contents are not there

    def _content(self, path: str, name: str) -> None:
        if self._knows(name) or which.secret(path):
            return
        data = self._read(name)
        text = data.decode("utf-8", "replace")
        if not (which.finds(path, data) or self._holds(text)):
            self._put(name, data)

    def _put(self, name: str, data: bytes) -> None:
        if not self._knows(name):
            self._besides[name] = data
            self._size += len(data)

    def _knows(self, name: str) -> bool:
        return name in self.after.names or name in self._besides


class Reports:
    """The thread of a session that reports it. Use it as a context; `told` hears a line for the person, `ask`
    does what somebody asked on the page and gives why not, or nothing."""

    def __init__(
        self, platform: Platform, team: str, folder: Path, *, read: Read, holds: Callable[[str], bool],
        told: Callable[[str], None], ask: Callable[[Asked], str], waits: Callable[[], bool],
    ) -> None:  # fmt: skip
        self.platform, self.team, self.folder = platform, team, folder
        self._read, self._holds, self._told, self._ask, self._waits = read, holds, told, ask, waits
        self._sent: Sent | None = None
        self._done: dict[int, str] = {}
        self._answered: dict[int, str] = {}
        """What became of what was asked, also of what the platform has heard."""
        self._begun: set[int] = set()
        self._news, self._closing = threading.Event(), threading.Event()
        self.page, self.away = "", ""
        self._thread = threading.Thread(target=self._work, name="guard-reports", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def news(self, *_: object) -> None:
        """There are new records; it returns at once."""
        self._news.set()

    def finish(self, wait_s: float) -> bool:
        """Send what is left, for so many seconds at most; whether the platform has all."""
        self._closing.set()
        self._news.set()
        self._thread.join(wait_s)
        return not self._thread.is_alive() and not self.away

    def send(self) -> None:
        """Send all that is there, one report after the other. Raises: UserError."""
        more = True
        while more:
            more = self._one()

    def _work(self) -> None:
        while True:
            last = self._closing.is_set()
            self._news.clear()
            try:
                self.send()
                self._say("")
            except UserError as error:
                self._say(f"{error.code}: {error.message}")
                if not isinstance(error, UnavailableError):
                    return  # what is refused now is refused again
            if last:
                return
            self._closing.wait(PACE_S)
            self._news.wait(ASKED_S if self._waits() else BEAT_S)

    def _say(self, away: str) -> None:
        if away and not self.away:
            self._told(f"the platform does not hear of this session ({away}); the agent goes on")
        if self.away and not away:
            self._told("the platform hears of this session again")
        self.away = away

    def _one(self) -> bool:
        """One report; whether there is more to send. Raises: UserError."""
        if self._sent is None:
            known = self.platform.report(self.team, self.folder.name, BytesIO())
            first = Report(self.folder, Sent(), self._read, self._holds)
            first.skip(int(known["records"]))
            self._sent = first.after
        report = Report(self.folder, self._sent, self._read, self._holds)
        more, done = report.fill(), dict(self._done)
        heard = self.platform.report(self.team, self.folder.name, BytesIO(report.body(done)))
        self._sent = report.sent()
        for number in done:
            self._done.pop(number, None)
        if heard["html_url"] and not self.page:
            self.page = str(heard["html_url"])
            self._told(f"live at {self.page}")
        self._obey(heard["asked"])
        return more

    def _obey(self, asked: Iterable[Asked]) -> None:
        """Begin what was asked and was not begun yet; to take changes back waits for the model's answer."""
        for one in asked:
            number = int(one["id"])
            if number in self._answered:
                self._done[number] = self._answered[number]
            elif number not in self._begun:
                self._begun.add(number)
                threading.Thread(target=self._answer, args=(number, one), daemon=True).start()

    def _answer(self, number: int, one: Asked) -> None:
        try:
            outcome = self._ask(one)
        except UserError as error:
            outcome = f"{error.code}: {error.message}"
        except (LookupError, TypeError, ValueError):  # not what a platform of this version asks
            outcome = "guard.request: the session knows no such request"
        self._answered[number] = self._done[number] = outcome
        self._news.set()


def of_law(found: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, str], list[Mapping[str, Any]]]:
    """The operator's texts, the team's and the approvers of a platform's answer. Raises: UnavailableError
    `client.reply`."""
    from spak.client.connection import unusable

    operator, team, keys = (found.get(name) for name in ("operator", "team", "approvers"))
    if not (isinstance(operator, dict) and isinstance(team, dict) and isinstance(keys, list)):
        raise unusable("no law of a team")
    return dict(operator), dict(team), list(keys)
