"""The form of a task: what it shows of every example, and that each field changes the text and back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spak import data
from spak.lang import parse
from spak.lang.edit import apply, from_json
from spakweb.face.editor.panel import analysed, panel
from spakweb.face.editor.services import answer
from spakweb.ground.errors import Refused

SPEC = """\
AGENT Forms LEVEL 4 {
  CONFIG { MEMORY FIFO, BUDGET { steps: 9 } } // kept
  START -> work
  TASK work {
    GOAL "Do it."
    TOOLS [nvcc, write_file]
    VALIDATOR PyTest { paths: ["tests/"] } // the judge
    SPACE { tile: [8, 16] }
    step look: tool.run { cmd: "ls", on_fail: continue }
    // asked
    step ask: llm.query { prompt: "Why?" output_var: why }
    step write: tool.write_file { file: "a.txt", content: why }
    success: exit_code(look) == 0
      and file_exists("a.txt")
  }
}
"""
EXAMPLES = sorted(data.path("specs/examples").glob("*.spak"))


def fields(found: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for section in found["sections"]:
        yield from section["fields"]
    yield from found["agent"]
    for step in (*found["steps"], *found["checks"]):
        yield from step["fields"]


def by_name(text: str = SPEC, task: str = "work") -> dict[str, dict[str, Any]]:
    return {field["name"]: field for field in fields(panel(text, task))}


def test_what_the_text_says_is_what_the_form_holds() -> None:
    found = by_name()
    shown = {name: (field["widget"], field["value"]) for name, field in found.items() if field["present"]}
    assert shown == {
        "task.TOOLS": ("names", ["nvcc", "write_file"]),
        "task.VALIDATOR": ("choice", "PyTest"),
        "task.VALIDATOR.paths": ("lines", "tests/"),
        "task.SPACE.tile": ("source", "[8, 16]"),
        "condition.success": ("condition", 'exit_code(look) == 0\n      and file_exists("a.txt")'),
        "agent.MEMORY": ("choice", "FIFO"),
        "agent.BUDGET.steps": ("number", "9"),
        "step.look.cmd": ("text", "ls"),
        "step.look.on_fail": ("choice", "continue"),
        "step.ask.prompt": ("text", "Why?"),
        "step.ask.output_var": ("text", "why"),
        "step.write.file": ("text", "a.txt"),
        "step.write.content": ("source", "why"),
    }


def test_every_field_says_what_it_means() -> None:
    for field in by_name().values():
        assert field["about"], field["name"]


def test_choices_are_those_of_the_catalog_and_the_schemas() -> None:
    found = by_name()
    names = {item["value"] for item in found["task.VALIDATOR"]["choices"]}
    assert {"PyTest", "CpuProfiler", "Judge"} <= names
    assert [item["value"] for item in found["step.look.writable"]["choices"]] == ["true", "false"]
    assert [item["value"] for item in found["agent.MEMORY"]["choices"]] == [
        "FIFO",
        "SUMMARIZE",
        "FLUSH_ON_TRANSITION",
        "PRUNE_ON_CONFIRM",
    ]
    assert {"tool.run", "llm.query"} <= {item["value"] for item in panel(SPEC, "work")["kinds"]}


VALUES = {"number": 3, "text": "word", "lines": ["a", "b"], "source": {"$source": "[1, 2]"}, "names": ["run"]}


def operations(field: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What the page would send: another value, and none."""
    match field["widget"]:
        case "condition":
            yield {**field["set"], "condition": 'file_exists("b")'}
        case "choice":
            other = next(item["value"] for item in field["choices"] if item["value"] != field["value"])
            yield {**field["set"], "value": other == "true" if field.get("bool") else other}
        case widget:
            yield {**field["set"], "value": VALUES[widget]}
    if field["present"]:
        yield field["clear"]


@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_each_field_is_an_edit_with_an_exact_inverse(newline: str) -> None:
    """Set, or set anew, and cleared: one change of the text that keeps the rest, and the way back."""
    text = SPEC.replace("\n", newline)
    tried = 0
    for field in by_name(text).values():
        for op in operations(field):
            done = apply(text, from_json(op))
            assert parse(done.text).ok, (op, done.text)
            assert done.text != text, op
            assert "// kept" in done.text
            assert apply(done.text, done.inverse).text == text, op
            tried += 1
    assert tried > 60


@pytest.mark.parametrize(
    ("op", "there"),
    [
        ({"op": "add_step", "task": "work", "name": "last", "kind": "tool.run"}, "step last:"),
        ({"op": "add_step", "task": "work", "name": "first", "kind": "llm.query", "after": ""}, "first: llm"),
        ({"op": "add_step", "task": "work", "name": "n", "kind": "tool.run", "evaluation": True}, "check n:"),
        ({"op": "move_step", "task": "work", "step": "write", "after": "look"}, "step write:"),
        ({"op": "remove_step", "task": "work", "step": "ask"}, ""),
        ({"op": "rename_step", "task": "work", "step": "look", "new": "see"}, "exit_code(see)"),
        ({"op": "set_kind", "task": "work", "step": "look", "kind": "tool.recall"}, "look: tool.recall"),
        ({"op": "set", "task": "work", "key": "SPACE.x", "value": {"$source": "range(1, 8)"}}, "x: range"),
    ],
    ids=lambda value: value["op"] + value.get("name", "") if isinstance(value, dict) else "",
)  # fmt: skip
def test_each_act_of_the_form_has_an_exact_inverse(op: dict[str, Any], there: str) -> None:
    done = apply(SPEC, from_json(op))
    assert parse(done.text).ok
    assert there in done.text
    assert "// asked" in done.text or op["op"] == "remove_step"
    assert apply(done.text, done.inverse).text == SPEC
    (change, *_) = answer("edit", {"text": SPEC, "ops": [op]})["changes"]
    assert set(change) == {"from", "to", "insert"}
    assert answer("edit", {"text": SPEC, "ops": [op]})["said"] != "done"


def test_completion_is_asked_at_the_place_of_a_field() -> None:
    """As the page asks: the text with what was typed in its place."""
    found = by_name()
    for name, typed, wanted in [
        ("condition.success", "exit_c", "exit_code"),
        ("condition.invariant", "file_e", "file_exists"),
        ("step.write.content", "wh", "why"),
    ]:
        place = found[name]["place"]
        head = SPEC[: place["from"]] + place["before"]
        made = head + typed + place["after"] + SPEC[place["to"] :]
        items = answer("complete", {"text": made, "at": len(head) + len(typed)})["items"]
        assert wanted in {item["label"] for item in items}, name


def test_an_analysis_brings_the_form_of_the_task_that_is_shown() -> None:
    assert analysed({"text": SPEC, "task": "work"})["panel"] == panel(SPEC, "work")
    assert analysed({"text": SPEC, "task": ""})["panel"]["task"] == "work"
    assert analysed({"text": SPEC}) == answer("analyse", {"text": SPEC})


@pytest.mark.parametrize("task", ["nowhere", None, 3, ""])
def test_no_such_task_has_no_form(task: object) -> None:
    assert panel(SPEC, task)["task"] is None


def test_a_text_that_does_not_parse_has_no_form() -> None:
    assert panel(SPEC + "TASK {", "work")["task"] is None
    with pytest.raises(Refused):
        panel(None, "work")


def test_offsets_are_those_of_a_browser() -> None:
    text = SPEC.replace("// kept", "// \N{MATHEMATICAL BOLD SMALL A} kept")
    place = by_name(text)["condition.success"]["place"]
    cut = text.encode("utf-16-le")[2 * place["from"] : 2 * place["to"]].decode("utf-16-le")
    assert cut.startswith("exit_code(look)")


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_every_task_of_every_example_has_a_form(file: Path) -> None:
    text = file.read_text()
    for node in parse(text).spec.tasks():
        found = panel(text, node.name)
        assert found["task"] == node.name
        assert len({field["name"] for field in fields(found)}) == len(list(fields(found)))
        for field in fields(found):
            if field["present"]:
                done = apply(text, from_json(field["clear"]))
                assert apply(done.text, done.inverse).text == text, field["name"]
