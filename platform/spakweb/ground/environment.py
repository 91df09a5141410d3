"""The environment, read by typed functions: `flag`, `number`, `text` and what is made of texts.

Each takes the name of a variable and gives its value or the default; a variable that is set and empty counts
as not set. `text` also reads the file that NAME_FILE names, for secrets. What cannot be used is refused by
BadSetting, which says the name, what was expected and what mends it; a secret's value is never repeated.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

if TYPE_CHECKING:
    from spak.ledger.settings import Checkpoints

YES = frozenset({"1", "true", "yes", "on"})
NO = frozenset({"0", "false", "no", "off"})


class BadSetting(ImproperlyConfigured):
    """A variable of the environment that cannot be used as it is."""

    def __init__(self, name: str, problem: str, expected: str, mend: str) -> None:
        super().__init__(f"{name} {problem}\n  expected: {expected}\n  fix: {mend}")


def flag(name: str, default: bool) -> bool:
    """True or false, written 1/0, true/false, yes/no, on/off."""
    value = os.environ.get(name, "").strip().lower()
    if not value:
        return default
    if value not in YES | NO:
        raise BadSetting(
            name, f"is {value!r}", "true or false", f"set {name}=true or {name}=false, or unset it"
        )
    return value in YES


def number(name: str, default: int, least: int, most: int) -> int:
    """A whole number within bounds."""
    value = os.environ.get(name, "").strip()
    if not value:
        return default
    expected = f"a whole number from {least} to {most}"
    if not (value.isascii() and value.isdigit() and least <= int(value[:20]) <= most):
        raise BadSetting(name, f"is {value[:40]!r}", expected, f"set {name}={default}, or unset it")
    return int(value)


def text(name: str, default: str = "") -> str:
    """A text, or what stands in the file that NAME_FILE names."""
    value, file = os.environ.get(name, "").strip(), os.environ.get(f"{name}_FILE", "").strip()
    if value and file:
        raise BadSetting(
            name, f"and {name}_FILE are both set", "one of the two", f"unset {name} or {name}_FILE"
        )
    if not file:
        return value or default
    try:
        found = Path(file).read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "not text"
        raise BadSetting(
            f"{name}_FILE", f"names {file!r}: {why}", "a readable text file", f"fix {name}_FILE"
        ) from error
    if not found:
        raise BadSetting(
            f"{name}_FILE", f"names {file!r}, which is empty", "a file with the value", "fill it"
        )
    return found


def words(name: str, default: str = "") -> list[str]:
    """The parts of a text that commas part."""
    return [part.strip() for part in text(name, default).split(",") if part.strip()]


def packages(name: str) -> list[str]:
    """Installed packages of the operator, which are loaded once to see that they can be used (spak.own)."""
    found = words(name)
    if found:
        from spak.config import Settings
        from spak.errors import UserError
        from spak.own import own

        try:
            own(Settings(packages=tuple(found)))
        except UserError as error:
            raise BadSetting(name, f"cannot be used: {error.message}", "packages", error.hint) from error
    return found


def reach(name: str) -> list[str]:
    """Kinds of addresses; only public ones unless it says more."""
    from spak.policy.urls import REACHES

    found = words(name, "public")
    if unknown := sorted(set(found) - set(REACHES)):
        some = f"some of {', '.join(REACHES)}"
        raise BadSetting(name, f"has {unknown[0]!r}", some, "fix it, or unset it")
    return found


def folders(name: str) -> list[str]:
    """Whole paths of folders, which need not be there on every host."""
    found = words(name)
    for path in found:
        if not path.startswith("/") or ".." in Path(path).parts or len(Path(path).parts) < 2:
            raise BadSetting(name, f"has {path!r}", "whole paths of folders", "write /srv/git, or unset it")
    return found


def checkpoints(log: str, to: str, witness: str) -> Checkpoints:
    """The logs of the teams' runs: their name, places and witnesses; without a name there are none."""
    from spak.errors import UsageError
    from spak.ledger import settings as log_settings

    given = [part.split() for part in words(witness)]
    try:
        if any(len(part) != 2 for part in given):
            raise UsageError("usage.config", "each witness is an address, a space and its key", "")
        witnesses = [{"url": url, "key": key} for url, key in given]
        found = {"log": text(log), "to": words(to), "witnesses": witnesses}
        return log_settings.read(found)
    except UsageError as error:
        raise BadSetting(log, error.message, error.hint, f"fix {log}, {to} or {witness}") from error


def operators_law(name: str) -> dict[str, str]:
    """The texts of the files that a list names, by their names; together they are a law that loads."""
    from spak.data import law as shipped_law

    found: dict[str, str] = {}
    for part in words(name):
        path = shipped_law(part) or Path(part)
        if path.name in found:
            raise BadSetting(name, f"has two files {path.name!r}", "a name of its own for each", "rename one")
        try:
            found[path.name] = path.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or "not text"
            raise BadSetting(name, f"names {part!r}: {why}", "readable text files", f"fix {name}") from error
    if found:
        from spak.errors import UserError
        from spak.runner.laws import operators

        try:
            operators(found)
        except UserError as error:
            mend = "spak policy check --as operator FILE shows each finding"
            raise BadSetting(name, f"does not load: {error.message}", "an operator's law", mend) from error
    return found


def origin(url: str) -> str:
    """Scheme, host and port of an address."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
