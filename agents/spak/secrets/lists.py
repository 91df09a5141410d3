"""The one list of what is secret, as data: confidential.toml, which no folder called `secrets` may keep."""

from __future__ import annotations

from pathlib import Path

from spak.word_lists import WordLists

LISTS = WordLists(Path(__file__).resolve().parents[1] / "confidential.toml")
