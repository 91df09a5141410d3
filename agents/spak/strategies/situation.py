"""What a choice between strategies rests on: a typed request and facts of its folder, as rows of the law.

`facts` gives the rows of select.mg; `situations` every combination that can be, with numbers around each one
that the law compares the count of files with, so that the law can be tried before it is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from spak.datalog.values import Fact, Name

ID = "request"
KINDS = ("test_file", "source_file", "models", "schema", "other_file", "folder", "missing", "none")
"""What a target can be: files by what they hold, a folder, a path that does not exist, nothing named."""
FILES = ("test_file", "source_file", "models", "schema", "other_file")
UNKNOWN = "unknown"
"""The verb of a request whose first word is no verb."""
CERTAIN = 1000


@dataclass(frozen=True, slots=True)
class File:
    """A row of file_topology."""

    path: str
    digest: str
    language: str
    modified: int
    is_test: bool


@dataclass(frozen=True, slots=True)
class Situation:
    """A request in a folder."""

    verb: str
    category: str
    target: str
    """A path from the folder; empty where none was named."""
    kind: str
    count: int
    """Files of the folder, what is hidden or made by programs left out."""
    files: tuple[File, ...] = ()
    """The target where it is a file of a language, and a file of tests where there is one."""

    def facts(self) -> list[Fact]:
        """The rows that the law chooses by."""
        rows: list[Fact] = [
            ("user_intent", (ID, Name(f"/{self.category}"), Name(f"/{self.verb}"), self.target, "")),
            ("intent_voter", (ID, Name("/typed"), CERTAIN)),
            ("target_kind", (self.target, Name(f"/{self.kind}"))),
            ("file_count", (self.count,)),
        ]
        for one in self.files:
            test = Name("/true" if one.is_test else "/false")
            language = Name(f"/{one.language or 'none'}")
            rows.append(("file_topology", (one.path, one.digest, language, one.modified, test)))
        return rows


def situations(verbs: Iterable[tuple[str, str]], numbers: Iterable[int]) -> Iterator[Situation]:
    """Every combination of verbs (with their category), kinds of targets, counts, and tests or none.

    One file at least is there where the target is one, and where there is a test.
    """
    counts = sorted({0, 1, *(near for number in numbers for near in (number - 1, number, number + 1))})
    test, source = File("test_a.py", "", "python", 0, True), File("a.py", "", "python", 0, False)
    for verb, category in (*verbs, (UNKNOWN, UNKNOWN)):
        for kind in KINDS:
            for count in counts:
                if count < (kind in FILES) or count < 0:
                    continue
                made = Situation(verb, category, "" if kind == "none" else "a.py", kind, count)
                if kind == "test_file":
                    yield replace(made, target=test.path, files=(test,))
                    continue
                own = (source,) if kind in ("source_file", "models") else ()
                yield replace(made, files=own)
                if count > (kind in FILES):
                    yield replace(made, files=(*own, test))
