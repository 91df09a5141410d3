"""The one list of what is secret, as data: which.toml."""

from __future__ import annotations

from pathlib import Path

from spak.word_lists import WordLists

LISTS = WordLists(Path(__file__).resolve().parent / "which.toml")
