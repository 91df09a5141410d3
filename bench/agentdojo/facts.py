"""What a policy may know of one tool call: facts from the user's prompt, the call, and the results before it.

Takes the prompt (trusted: the user wrote it), the call's tool and arguments, and a History of the calls that
were executed so far with what they returned. Gives facts for `spak.datalog`. It knows no task, suite or
attacker; it decides nothing.

A value is *typed* when its normal form stands in the prompt as whole words; a date is typed when the prompt
names that day in words or digits; a date with a time when the prompt names both. A value is *worded* when
every word of it is in the prompt, and *composed* when every word is in the prompt or in a short field of an
earlier result. It *came* /whole from an earlier result when it equals one of its fields, and /within when it
stands inside a longer text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from spak.datalog import Fact, Name

CALL = Name("/call")
SHORT = 80
"""A field of at most so many characters, on one line, is a name or an id; a longer one is text."""

WORD = re.compile(r"[^\W_]+")
URL = re.compile(r"(?:https?://|www\.)[^\s<>\"')\]]+", re.IGNORECASE)
ADDRESS = re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]*\w")
DAY = re.compile(r"(\d{4})-(\d{2})-(\d{2})(?:[ T](\d{2}):(\d{2}))?")
MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)


def normal(value: object) -> str:
    """One form for text that means the same: compatibility characters, case, spaces, quotes at the ends."""
    text = unicodedata.normalize("NFKC", str(value)).casefold()
    return " ".join(text.split()).strip(" \"'.,;:!?()[]")


def words(text: str) -> frozenset[str]:
    return frozenset(WORD.findall(normal(text)))


def holds(text: str, part: str) -> bool:
    """`part` stands in `text` with no letter or digit touching it; both in normal form."""
    at = text.find(part)
    while part and at >= 0:
        after = at + len(part)
        if not (at and text[at - 1].isalnum()) and not (after < len(text) and text[after].isalnum()):
            return True
        at = text.find(part, at + 1)
    return False


@dataclass(frozen=True)
class Prompt:
    text: str

    @property
    def plain(self) -> str:
        return normal(self.text)

    def typed(self, value: object) -> bool:
        plain = normal(value)
        found = DAY.fullmatch(plain)
        if not found:
            return _number(plain, self.plain) if _is_number(plain) else holds(self.plain, plain)
        year, month, day, hour, minute = found.groups()
        if not self._day(int(year), int(month), int(day)):
            return False
        return hour is None or self._time(int(hour), int(minute))

    def _day(self, year: int, month: int, day: int) -> bool:
        try:
            date(year, month, day)
        except ValueError:
            return False
        number, name = rf"0?{day}(?:st|nd|rd|th)?", f"(?:{MONTHS[month - 1]}|{MONTHS[month - 1][:3]})"
        forms = (
            rf"\b{year}-{month:02}-{day:02}\b",
            rf"\b{name}\.? (?:the )?{number}\b",
            rf"\b{number} (?:of )?{name}\b",
        )
        return any(re.search(form, self.plain) for form in forms)

    def _time(self, hour: int, minute: int) -> bool:
        half = "am" if hour < 12 else "pm"
        short = rf"\b0?{(hour - 1) % 12 + 1}{'' if minute == 0 else f':{minute:02}'} ?{half}\b"
        return bool(re.search(rf"\b0?{hour}:{minute:02}\b|{short}", self.plain))


def _is_number(text: str) -> bool:
    return bool(re.fullmatch(r"-?\d+(?:\.\d+)?", text))


def _number(text: str, prompt: str) -> bool:
    return any(float(each) == float(text) for each in re.findall(r"-?\d+(?:\.\d+)?", prompt))


@dataclass
class Past:
    tool: str
    chosen: bool
    """Every argument was the user's own, in words."""
    leaves: list[tuple[str, str]]
    """Field and normal form of every scalar in the result."""

    @property
    def single(self) -> list[str]:
        """The fields of which the result has one value."""
        values: dict[str, set[str]] = {}
        for name, value in self.leaves:
            values.setdefault(name, set()).add(value)
        return [name for name, found in values.items() if len(found) == 1]


@dataclass
class History:
    prompt: Prompt
    calls: list[Past] = field(default_factory=list)
    short: set[str] = field(default_factory=set)

    def add(self, tool: str, args: Mapping[str, Any], result: object) -> None:
        own = words(self.prompt.text)
        chosen = all(self.prompt.typed(value) or words(value) <= own for _, value in flat(args))
        leaves = [(name, normal(value)) for name, value in leaves_of(result)]
        self.calls.append(Past(tool, chosen, leaves))
        for _, value in leaves:
            if len(value) <= SHORT:
                self.short |= words(value)


def flat(args: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    """Argument name and text of every scalar; lists share their name, mappings add theirs."""
    for name, value in args.items():
        items = value if isinstance(value, list | tuple) else [value]
        for item in items:
            if isinstance(item, Mapping):
                yield from flat(item, f"{above}{name}.")
            elif item is not None and str(item) != "":
                yield f"{above}{name}", str(item)


def leaves_of(result: object, name: str = "result") -> Iterator[tuple[str, str]]:
    if hasattr(result, "model_dump"):
        result = result.model_dump(mode="json")
    if isinstance(result, Mapping):
        for key, value in result.items():
            yield "key", str(key)
            yield from leaves_of(value, str(key))
    elif isinstance(result, list | tuple | set):
        for item in result:
            yield from leaves_of(item, name)
    elif result is not None:
        text = str(result)
        yield name, text
        if "\n" in text:  # a plain list of names, one on each line
            yield from (("line", line) for line in text.splitlines() if line.strip())


def facts(history: History, tool: str, args: Mapping[str, Any]) -> list[Fact]:
    """Everything the policy may know of this call."""
    prompt = history.prompt
    own = words(prompt.text)
    found: list[Fact] = [("tool", (CALL, Name(f"/{tool}")))]
    found += [("asked", (word,)) for word in sorted(own)]
    for at, past in enumerate(history.calls):
        found.append(("earlier", (at, Name(f"/{past.tool}"))))
        if past.chosen:
            found.append(("chosen", (at,)))
        found += [("only", (at, name)) for name in past.single]
    for path, value in flat(args):
        arg = Name(f"/{path}")
        plain = normal(value)
        found.append(("argument", (CALL, arg, plain)))
        if prompt.typed(value):
            found.append(("typed", (CALL, arg, plain)))
        if words(value) <= own:
            found.append(("worded", (CALL, arg, plain)))
        if words(value) <= own | history.short:
            found.append(("composed", (CALL, arg, plain)))
        for piece in sorted({*URL.findall(value), *ADDRESS.findall(value)}):
            if not prompt.typed(piece) and not prompt.typed(re.sub(r"^https?://", "", piece)):
                found.append(("carries", (CALL, arg, normal(piece))))
        for at, past in enumerate(history.calls):
            for name, leaf in past.leaves:
                if leaf == plain and len(leaf) <= SHORT:
                    found.append(("came", (CALL, arg, plain, at, name, Name("/whole"))))
                elif len(plain) <= SHORT and holds(leaf, plain):
                    found.append(("came", (CALL, arg, plain, at, name, Name("/within"))))
    return list(dict.fromkeys(found))
