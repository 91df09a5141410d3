"""Blame by field: each field has the text that gave it its value, through renames, moves and layout."""

from __future__ import annotations

import random

import pytest

from spak.lang.diff import fields

BASE = """AGENT a LEVEL 1 {
  SYSTEM_MODEL m {
    AXIOM: "never delete"
    AXIOM: "keep tests"
  }
  START -> one
  TASK one {
    GOAL: "look"
    TOOLS: [read_file]
    step s: tool.read_file { path: "a.txt" }
    NEXT { success -> two, fail -> two }
  }
  TASK two { GOAL: "end" }
}
"""


def origins(*texts: str) -> dict[str, int]:
    return {one.path: one.origin for one in fields(texts)}


CASES = {
    "a goal": (("look", "look well"), {"tasks/one/GOAL"}),
    "an edge": (("fail -> two", "fail -> one"), {"tasks/one/NEXT/fail"}),
    "an argument of a step": (('"a.txt"', '"b.txt"'), {"tasks/one/steps/s/path"}),
    "the kind of a step": (("tool.read_file", "tool.list_files"), {"tasks/one/steps/s/kind"}),
    "a new first axiom": (('AXIOM: "never', 'AXIOM: "be brief" AXIOM: "never'), {"SYSTEM_MODEL/axiom/1"}),
    "an edited axiom": (('"keep tests"', '"keep all tests"'), {"SYSTEM_MODEL/axiom/2"}),
    "layout and a comment": (("  START", "  // begins\n\n  START"), set()),
    "a renamed step": (("step s:", "step other:"), set()),
    "the start": (("START -> one", "START -> two"), {"START"}),
    "a task that moved": (('  TASK two { GOAL: "end" }\n', ""), None),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_only_what_an_edit_gave_is_new(name: str) -> None:
    (old, new), expected = CASES[name]
    assert old in BASE
    text = BASE.replace(old, new)
    if expected is None:  # the task comes first instead
        text, expected = text.replace("  TASK one", f"{old}  TASK one"), set()
    found = origins(BASE, text, text + "\n// the end\n")
    assert {path for path, origin in found.items() if origin} == expected
    assert set(found.values()) <= {0, 1}


def test_a_renamed_task_keeps_the_origins_of_its_fields() -> None:
    renamed = BASE.replace("-> two", "-> last").replace("TASK two", "TASK last")
    both = renamed.replace("TASK one", "TASK first").replace("START -> one", "START -> first")
    found = origins(BASE, renamed, both.replace("step s:", "step read:"))
    assert {path for path, origin in found.items() if origin == 1} == {"tasks/last"}
    assert {path for path, origin in found.items() if origin == 2} == {"tasks/first"}
    assert found["tasks/first/steps/read/path"] == 0


def test_what_was_removed_and_comes_back_is_of_the_text_that_brought_it_back() -> None:
    without = BASE.replace('    GOAL: "look"\n', "")
    assert origins(BASE, without, BASE)["tasks/one/GOAL"] == 2
    assert "tasks/one/GOAL" not in origins(BASE, without)


def test_a_text_that_does_not_parse_counts_as_far_as_it_does() -> None:
    found = origins(BASE, BASE.replace('  TASK two { GOAL: "end" }\n', "  TASK two {{{\n"), BASE)
    assert found["tasks/one/GOAL"] == 0
    assert fields([]) == [] and fields([""]) == []


def test_random_histories_agree_with_the_last_change_of_each_value() -> None:
    slots = {"look": "tasks/one/GOAL", '"a.txt"': "tasks/one/steps/s/path", '"end"': "tasks/two/GOAL"}
    for seed in range(40):
        rng = random.Random(seed)
        values = [[rng.choice("abc") for _ in slots] for _ in range(rng.randint(1, 8))]
        texts = []
        for row in values:
            text = BASE
            for slot, value in zip(slots, row, strict=True):
                text = text.replace(slot, f'"{value}.t"' if slot[0] == '"' else value)
            texts.append(text)
        found = origins(*texts)
        for column, path in enumerate(slots.values()):
            given = [row[column] for row in values]
            changed = [n for n in range(1, len(given)) if given[n] != given[n - 1]]
            assert found[path] == max(changed, default=0), (seed, path)
