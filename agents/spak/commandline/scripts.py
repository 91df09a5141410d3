"""Little languages on a command line: whether a text of sed, awk, perl, jq, SQL or JavaScript only computes.

What such a text may hold is data (`[scripts]` in lists.toml). `why` takes the language and the text, and
gives None when it can do no more than read what the command was given and print, or a short reason why it
may do more (run a command, open another file, loop without end) or is not understood. What is not understood
is never called harmless.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from spak.commandline import lists

Rules = tuple[tuple[re.Pattern[str], str], ...]

_NO_VALUE = (
    r"(?:\A|\n|[^\w)\]\"\s+-]|(?<!\+)\+|(?<!-)-"
    r"|\b(?:print|printf|return|else|do|in|case|getline|delete|exit)\b)(?:[ \t]|\\\n)*"
)
"""After these awks take `/` for the beginning of a pattern, else as a division."""
_AWK = re.compile(
    r'(?P<text>"(?:\\[\s\S]|[^"\\\n])*")|(?P<note>#[^\n]*)|(?P<join>\\\n)'
    rf"|(?P<before>{_NO_VALUE})/(?:\\.|\[\^?\]?(?:\\[^\]/\n]|[^\]/\\\n])*\]|[^/\\\n\[])+/"
)
"""What of an awk program is no code: texts, notes, the end of a line that goes on, and patterns."""
_STANDS_FOR = {"text": '""', "note": "", "join": " "}
_AWK_GOES_ON = re.compile(r"(,|&&|\|\||[?:])\s*\n\s*")
_AWK_EITHER = re.compile(rf"((\+\+|--|\blength)[ \t]*|\b(if|while|for)\b[\s\S]*\)[ \t]*|{_NO_VALUE})/")
"""Where `/` is read in more than one way, and a pattern that does not end."""


def why(language: str, text: str) -> str | None:
    """Why a text of a language does more than compute; None when it does not."""
    found = lists.sections()["scripts"][language]
    bare = _awk_bare(text) if language == "awk" else text
    fits = "only" not in found or any(rule.fullmatch(text) for rule, _ in _rules(language, "only"))
    if bare is None or not fits:
        return str(found["unknown"])
    held = _held(_rules(language, "anywhere"), text) or _held(_rules(language, "never"), bare)
    return held or (
        _scanned(_rules(language, "tokens"), text, found["unknown"]) if "tokens" in found else None
    )


@cache
def _rules(language: str, key: str) -> Rules:
    found = lists.sections()["scripts"][language]
    parts: Mapping[str, str] = found.get("parts", {})
    rules = []
    for pattern, reason in found.get(key, ()):
        for name, part in parts.items():
            pattern = pattern.replace(f"{{{name}}}", part)
        rules.append((re.compile(pattern), reason))
    return tuple(rules)


def _held(rules: Rules, text: str) -> str | None:
    return next((reason for pattern, reason in rules if pattern.search(text)), None)


def _scanned(rules: Rules, text: str, unknown: str) -> str | None:
    """Why the text is not made of tokens that are permitted."""
    at = 0
    while at < len(text):
        fits = ((found.end(), reason) for rule, reason in rules if (found := rule.match(text, at)))
        at, reason = next(fits, (at, unknown))
        if reason:
            return reason
    return None


def _awk_bare(text: str) -> str | None:
    """The program without its strings, patterns and comments, with a statement that goes on in one line; None
    where it can be cut in two ways."""
    bare = _AWK.sub(lambda found: _STANDS_FOR.get(found.lastgroup or "", f'{found["before"]}""'), text)
    if '"' in bare.replace('""', "") or _AWK_EITHER.search(bare):
        return None
    bare = re.sub(lists.sections()["scripts"]["awk"]["harmless"], "1", bare)
    return _AWK_GOES_ON.sub(r"\1 ", bare)
