"""The scripted model of both arms: it knows how to clean a table, and makes the faults that it is to make.

It goes by what it is shown: the sheets that the instructions name, tables whose text is in the prompt,
results of writes, an error. Without the table of a sheet it reads it; with the table it writes the result.
Its faults are drawn from the seed by sheet, action and try, so that both arms meet the same ones at the same
places, whatever else is different:

    INVALID   the call is cut off, which is no JSON
    FIELDS    an argument has a name that the tool does not know
    REPEATS   a call that went well is made again: once, twice, or until something else is shown
    BELIEVES  after a write that broke off it takes the file for written

Out of the last kind of repetition leads an error in its prompt, which it notices with NOTICES, and a new
conversation. How well it mends a call (a new draw) does not depend on how an error is worded: a script cannot
show that.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from bench.spreadsheets.sheets import Sheet, cleaned
from bench.spreadsheets.tools import BROKE_OFF

INVALID, FIELDS, REPEATS, BREAKS, BELIEVES, NOTICES = 0.03, 0.05, 0.02, 0.03, 0.1, 0.5
TIMES = ((1, 0.70), (2, 0.15), (10**6, 0.15))
"""How often a repeated call is made again, with the share of each."""
WRITTEN = re.compile(r"^(out/\S+\.csv): \d+ bytes", re.MULTILINE)
DONE = "All files are written."


class Shown(NamedTuple):
    """A piece of a prompt; `error` says that it tells of something that went wrong with the last call."""

    text: str
    error: bool = False


@dataclass
class Model:
    """One model in one pipeline. `forget` begins a conversation: what it remembers is in its prompt."""

    seed: int
    sheets: Sequence[Sheet]
    tries: Counter[tuple[str, str]] = field(default_factory=Counter)
    good_first: Counter[bool] = field(default_factory=Counter)
    """Whether the first call for each sheet and action fitted its schema."""
    bad: int = 0
    retries: int = 0
    """Calls that did not fit, and further ones until one did."""
    longest: int = 0
    """The most repetitions of one call that nothing interrupted."""
    _stuck: tuple[str, int] = ("", 0)
    _believed: set[str] = field(default_factory=set)
    _last: str = ""
    _row: int = 0
    _mending: bool = False

    def forget(self) -> None:
        """A new conversation."""
        self._stuck, self._believed, self._last, self._row = ("", 0), set(), "", 0

    def breaks(self, path: str) -> bool:
        """Whether this write of a path breaks off."""
        return self.draw("breaks", path) < BREAKS

    def draw(self, kind: str, place: str) -> float:
        """The next random number of a kind at a place, the same in every arm."""
        self.tries[kind, place] += 1
        return random.Random(f"{self.seed} {kind} {place} {self.tries[kind, place]}").random()

    def say(self, shown: Sequence[Shown], idle: bool = False) -> str:
        """The next call as JSON, or DONE. With `idle` it is asked for a call in any case."""
        error = next((piece.text for piece in reversed(shown) if piece.error), "")
        call = self._repeated(error) or self._next(shown, error, idle)
        self._row = self._row + 1 if call == self._last and not error else 0
        self.longest = max(self.longest, self._row)
        self._last = call
        return call

    def _repeated(self, error: str) -> str:
        call, left = self._stuck
        if not left or (error and self.draw("notice", call[:80]) < NOTICES):
            self._stuck = ("", 0)
            return ""
        self._stuck = (call, left - 1)
        return call

    def _next(self, shown: Sequence[Shown], error: str, idle: bool) -> str:
        texts = [piece.text for piece in shown]
        written = {path for text in texts for path in WRITTEN.findall(text)}
        asked = [sheet for sheet in self.sheets if any(sheet.instruction in text for text in texts)]
        if error and BROKE_OFF in error:
            self._believed |= {s.target for s in asked[:1] if self.draw("believes", s.target) < BELIEVES}
        elif error and "file_exists" in error:
            self._believed.clear()
        left = [sheet for sheet in asked if sheet.target not in written | self._believed]
        if not left:
            return self._call(asked[-1], "read", {}) if idle else DONE
        tables = {text.partition("\n")[0]: text.partition("\n")[2] for text in texts if text[:6] == "table "}
        table = tables.get(f"table {left[0].source}")
        if table is None:
            return self._call(left[0], "read", tables)
        return self._call(left[0], "write", {left[0].target: cleaned(left[0], table)})

    def _call(self, sheet: Sheet, action: str, results: dict[str, str]) -> str:
        args: dict[str, Any] = {"path": sheet.source, "encoding": sheet.encoding}
        if action == "write":
            args = {"path": sheet.target, "content": results[sheet.target]}
        tool = "read_table" if action == "read" else "write_file"
        place = f"{sheet.name} {action}"
        fault = self.draw("fault", place)
        if self.tries["fault", place] == 1:
            self.good_first[fault >= INVALID + FIELDS] += 1
        self.retries += self._mending
        self._mending = fault < INVALID + FIELDS
        self.bad += self._mending
        if INVALID <= fault < INVALID + FIELDS:
            args["cells" if action == "write" else "charset"] = args.popitem()[1]
        call = json.dumps({"tool": tool, "args": args}, ensure_ascii=False)
        if fault < INVALID:
            return call[: len(call) * 2 // 3]
        if fault >= INVALID + FIELDS and self.draw("repeats", place) < REPEATS:
            self._stuck = (call, self._times(place))
        return call

    def _times(self, place: str) -> int:
        drawn = self.draw("times", place)
        for times, share in TIMES:
            if drawn < share:
                return times
            drawn -= share
        return TIMES[-1][0]
