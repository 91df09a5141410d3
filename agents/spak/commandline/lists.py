"""Names and patterns that code of this package looks words up in, as data: lists.toml."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from spak.door.classes import LISTS as DOOR
from spak.secrets.lists import LISTS as SECRETS
from spak.word_lists import WordLists

_LISTS = WordLists(Path(__file__).resolve().parent / "lists.toml")
FILE = _LISTS.file
ordered, names, pattern = _LISTS.ordered, _LISTS.names, _LISTS.pattern


def text() -> str:
    """All words that a judgement depends on, those of files of secrets and of imported modules too."""
    return _LISTS.text + SECRETS.text + DOOR.text


def sections() -> dict[str, dict[str, Any]]:
    """All sections by name."""
    return _LISTS.sections
