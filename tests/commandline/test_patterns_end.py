"""Patterns of names end soon, whatever a file is called: a name in a workspace must not hold up a run.

A pattern that tries each way to cut a name takes longer than anybody waits at this length: the names here are
made of each pattern's own words, which is where it would try most.
"""

from __future__ import annotations

import re

import pytest

from spak.commandline import lists

MOST = 255
"""Characters of a file's name."""
LINES = sorted(
    {line for text in lists.sections()["places"].values() for line in str(text).splitlines() if line}
)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("text", [line for line in LINES if re.search(r"[*+]", line)])
def test_a_name_of_its_own_words(text: str) -> None:
    pattern = re.compile(text, re.IGNORECASE)
    words = sorted(set(re.findall(r"[A-Za-z]{2,}", re.sub(r"\\[A-Za-z]", "", text)))) or ["a"]
    for unit in (word + sign for word in words for sign in "-_."):
        for end in ("", "!"):
            pattern.fullmatch((unit * MOST)[: MOST - 1] + end)
