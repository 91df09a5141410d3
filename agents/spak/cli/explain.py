"""`spak explain CODE`: what an error code means and what to do, from the pages that ship: codes of the
platform too, which a command that asks one shows."""

from __future__ import annotations

import re

import click

from spak.cli import common
from spak.errors import UsageError

PAGES = ("docs/errors.md", "docs/platform.md", "docs/runs.md")
"""Pages with entries `- `CODE`: text`; the first one that has a code explains it."""
_ENTRY = re.compile(r"- `([a-z]+\.[\w.]+)`((?:, `[a-z]+\.[\w.]+`)*)(?: \(\d+\))?: (.*)")


@click.command()
@click.argument("code")
@common.json_option
def command(code: str, as_json: bool) -> int:
    """Say what the error CODE means and what to do; the beginning of a code lists those that have it."""
    found = _entries(code)
    if as_json:
        common.emit(
            {"codes": [{"code": name, "section": section, "text": text} for name, section, text in found]}
        )
        return 0
    if len(found) == 1:
        ((name, section, text),) = found
        common.out(f"{name} ({section})\n\n{text}")
        return 0
    for name, _, text in found:
        common.out(f"{name:<28} {text.partition('. ')[0].rstrip('.')}.")
    return 0


def _entries(code: str) -> list[tuple[str, str, str]]:
    """The code with its section and paragraph, or else every code below that beginning.

    Raises: UsageError `usage.arguments` when no code has it.
    """
    from spak import data

    entries: list[tuple[str, str, str]] = []
    for page in PAGES:
        section = ""
        for line in _joined(data.path(page).read_text(encoding="utf-8")):
            if line.startswith("#"):
                section = line.lstrip("# ")
            elif entry := _ENTRY.match(line):
                text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", entry[3])
                names = [entry[1], *re.findall(r"`([^`]+)`", entry[2])]
                entries += [(name, section, text) for name in names]
    whole = [item for item in entries if item[0] == code or _stands_for(item[0], code)]
    found = whole[:1] or [item for item in entries if item[0].startswith(f"{code.rstrip('.')}.")]
    if not found:
        families = ", ".join(sorted({name.partition(".")[0] for name, _, _ in entries}))
        raise UsageError(
            "usage.arguments", f"no error has the code {code!r}", f"a code begins with one of: {families}"
        )
    return found


def _joined(text: str) -> list[str]:
    """The lines, with those that go on below a point of a list put behind it."""
    return re.sub(r"(?m)^(- .*)((?:\n  \S.*)+)", lambda found: " ".join(found[0].split()), text).splitlines()


def _stands_for(name: str, code: str) -> bool:
    """Whether a code is one of those that a documented one with NAME at its end stands for."""
    return name.endswith("NAME") and code.startswith(name.removesuffix("NAME"))
