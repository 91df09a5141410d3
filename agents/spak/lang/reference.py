"""The generated parts of docs/language.md: `python -m spak.lang.reference` writes them anew.

Takes the tables of the language (settings, triggers, keywords, functions, limits); gives a block of Markdown
for each, which stands in the page between `<!-- made: NAME -->` and `<!-- end -->`. A test compares, so that
the page cannot say what the code does not do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from spak import data
from spak.lang import limits, settings, values
from spak.lang.checks.steps import ATOMS, READERS
from spak.lang.parser.generate import KEYWORDS

PLACES = {
    "agent": "In AGENT, or at the top of a file of bare tasks",
    "config": "In CONFIG",
    "budget": "In CONFIG { BUDGET { } }",
    "task": "In TASK",
    "rule": "In RULE",
    "task budget": "In a TASK's BUDGET",
    "poll": "In `poll: { }` of a tool step",
}
_BLOCK = re.compile(r"(<!-- made: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def blocks() -> dict[str, str]:
    """The text of every block by its name."""
    return {
        "version": f"This page is about version {settings.GRAMMAR_VERSION} of the grammar.\n",
        "keywords": "Keywords: " + ", ".join(f"`{word.lower()}`" for word in KEYWORDS) + ".\n",
        "settings": "\n".join(_settings()),
        "triggers": _table(
            ("trigger", "given when"), ((f"`{name}`", about) for name, about in settings.TRIGGERS.items())
        ),
        "functions": _table(("function", "arguments", "gives"), _functions()),
        "types": "Types: " + ", ".join(f"`{name}`" for name in values.INPUT_TYPES) + ".\n",
        "limits": _table(("limit", "at most"), _limits()),
    }


def filled(page: str) -> str:
    """The page with every block written anew. Raises: KeyError for a block that nothing makes."""
    made = blocks()
    return _BLOCK.sub(lambda match: match[1] + made[match[2]] + match[3], page)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _settings() -> Iterator[str]:
    for place, title in PLACES.items():
        yield f"**{title}**\n"
        yield "| key | what | default | example | since |\n|---|---|---|---|---|"
        for item in settings.TABLE:
            if item.where == place:
                usual = "" if item.default in ("", None, ()) else str(item.default)
                shown = f"`{usual}`" if usual and " " not in usual else usual
                yield f"| `{item.key}` | {item.about} | {shown} | `{item.example}` | {item.since} |"
        yield ""


def _functions() -> Iterator[tuple[str, str, str]]:
    for name, count in ATOMS.items():
        yield f"`{name}`", "path, text" if count == 2 else "path", "true or false"
    for name in READERS:
        yield f"`{name}`", "a step" if name == "exit_code" else "a name", "a number to compare"


def _limits() -> Iterator[tuple[str, str]]:
    yield "a file, and a spec with its imports", f"{limits.MAX_BYTES // 1024} KB"
    yield "tasks", f"{limits.MAX_TASKS:,}"
    yield "brackets inside one another", str(limits.MAX_DEPTH)
    yield "`not` in a row", str(limits.MAX_NOTS)
    yield "imported files", str(limits.MAX_IMPORTED_FILES)
    yield "imports inside one another", str(limits.MAX_IMPORT_DEPTH)


if __name__ == "__main__":
    page = data.path("docs/language.md")
    page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")
