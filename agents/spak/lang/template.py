r"""Templates: the `{{variables}}` of a text, found without filling them in.

Takes the value of a string; gives its parts. A variable is a dotted word in double braces; braces round
anything else are text, so that C and JSON may stand in a prompt; `\{{` is two braces.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_HOLE = re.compile(r"\\\{\{|\{\{[ \t]*([A-Za-z_][\w-]*(?:\.[\w-]+)*)[ \t]*\}\}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Hole:
    """A variable and where it stands in the text's value."""

    path: str
    start: int = 0
    end: int = 0


Part = str | Hole


def split(text: str) -> tuple[Part, ...]:
    """The parts in order, no empty text among them."""
    if "{{" not in text:
        return (text,) if text else ()
    parts: list[Part] = []
    done, literal = 0, ""
    for match in _HOLE.finditer(text):
        literal += text[done : match.start()]
        done = match.end()
        if match[1] is None:
            literal += "{{"
            continue
        if literal:
            parts.append(literal)
        literal = ""
        parts.append(Hole(match[1], match.start(), match.end()))
    literal += text[done:]
    if literal:
        parts.append(literal)
    return tuple(parts)


def holes(text: str) -> list[Hole]:
    """The variables of a text."""
    return [part for part in split(text) if isinstance(part, Hole)] if "{{" in text else []
