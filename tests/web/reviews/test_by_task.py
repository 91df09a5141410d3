"""Two changes of a text by task: what only one changed, what both changed, and what one took away."""

from __future__ import annotations

from spakweb.work.reviews.by_task import merge

HEAD = "AGENT Two LEVEL 1 {\n  START -> a\n"
A = '  TASK a {\n    step one: tool.list_files { path: "." }\n    NEXT { success -> b }\n  }\n'
B = '  TASK b {\n    step two: tool.list_files { path: "." }\n  }\n'
C = '  TASK c {\n    step three: tool.list_files { path: "." }\n  }\n'
BASE = f"{HEAD}{A}{B}}}\n"


def at(text: str, path: str) -> str:
    return text.replace('"."', f'"{path}"')


def test_neighbours_that_each_side_changed_fit_together() -> None:
    """By lines they touch, and would be a conflict."""
    found = merge(BASE, f"{HEAD}{at(A, 'x')}{B}}}\n", f"{HEAD}{A}{at(B, 'y')}}}\n")
    assert found.clean and found.decided({}) == f"{HEAD}{at(A, 'x')}{at(B, 'y')}}}\n"


def test_a_task_that_both_changed_is_a_conflict_of_that_task_alone() -> None:
    mine, theirs = f"{HEAD}{A}{at(B, 'x')}}}\n", f"{HEAD.replace('1', '2')}{A}{at(B, 'y')}}}\n"
    found = merge(BASE, mine, theirs)
    assert [(one.part, one.mine, one.theirs) for one in found.conflicts] == [("b", at(B, "x"), at(B, "y"))]
    for text in (at(B, "x"), at(B, "y"), at(B, "z").rstrip("\n")):
        ended = text if text.endswith("\n") else f"{text}\n"
        assert found.decided({"b": text}) == f"{HEAD.replace('1', '2')}{A}{ended}}}\n"


def test_lines_of_one_task_that_do_not_touch_are_merged() -> None:
    mine = BASE.replace("TASK a {", 'TASK a {\n    GOAL "Look."')
    theirs = BASE.replace("success -> b", "success -> b, fail -> b")
    found = merge(BASE, mine, theirs)
    assert found.clean and "GOAL" in found.decided({}) and "fail -> b" in found.decided({})


def test_both_added_a_task() -> None:
    found = merge(BASE, f"{HEAD}{A}{B}{C}}}\n", f"{HEAD}{A}{B}{C.replace('c', 'd', 1)}}}\n")
    text = found.decided({})
    assert found.clean and text.count("TASK") == 4 and text.endswith("}\n}\n")


def test_one_removed_what_the_other_changed() -> None:
    mine, theirs = f"{HEAD}{A}}}\n", f"{HEAD}{A}{at(B, 'y')}}}\n"
    for one, two in ((mine, theirs), (theirs, mine)):
        found = merge(BASE, one, two)
        assert [item.part for item in found.conflicts] == ["b"]
        assert found.decided({"b": ""}) == mine
        assert found.decided({"b": at(B, "y")}) == theirs


def test_what_stands_outside_of_tasks_and_texts_that_do_not_parse() -> None:
    found = merge(BASE, BASE.replace("LEVEL 1", "LEVEL 2"), BASE.replace("LEVEL 1", "LEVEL 3"))
    assert [one.part for one in found.conflicts] == [""] and found.decided({"": "all"}) == "all"
    assert merge("a\nb\n", "a\nB\n", "a\nb\n").decided({}) == "a\nB\n"
    assert not merge("TASK {", "TASK {{", "TASK {[").clean


def test_the_same_change_on_both_sides_is_none() -> None:
    mine = f"{HEAD}{A}{at(B, 'x')}}}\n"
    assert merge(BASE, mine, mine).decided({}) == mine
