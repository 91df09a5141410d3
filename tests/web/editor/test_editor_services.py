"""What the editor asks of a text: one answer with everything, small changes, offsets as a browser counts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spak import data
from spak.errors import EditRefused, SpecError
from spakweb.face.editor import services
from spakweb.face.editor.attempt import attempt
from spakweb.face.editor.compiled import compiled
from spakweb.face.editor.services import answer, see
from spakweb.face.editor.units import Units
from spakweb.ground.errors import Refused

TWO = """\
AGENT Two LEVEL 2 {
  START -> first
  TASK first {
    GOAL "Look, 𝛼𝛽 é." // 𝛾
    step look: tool.run { cmd: "ls" }
    NEXT { success -> second, fail -> nowhere }
  }
  TASK second { step say: tool.run { cmd: "echo done" } }
}
"""
WELL = TWO.replace(", fail -> nowhere", "")


def changed(text: str, changes: list[dict[str, Any]]) -> str:
    """The text after changes, as a browser makes them: in UTF-16 units."""
    units = text.encode("utf-16-le")
    for item in sorted(changes, key=lambda item: -item["from"]):
        units = units[: 2 * item["from"]] + item["insert"].encode("utf-16-le") + units[2 * item["to"] :]
    return units.decode("utf-16-le")


def cut(text: str, item: dict[str, Any]) -> str:
    return text.encode("utf-16-le")[2 * item["from"] : 2 * item["to"]].decode("utf-16-le")


@given(st.text(alphabet="a\né𝛼\U0001f600", max_size=40))
def test_units_are_those_of_utf_16_and_come_back(text: str) -> None:
    units = Units(text)
    for offset in range(len(text) + 1):
        unit = units.to_browser(offset)
        assert unit == len(text[:offset].encode("utf-16-le")) // 2
        assert units.from_browser(unit) == offset
    assert units.from_browser(-5) == 0
    assert units.from_browser(10**9) == len(text)


def test_one_answer_has_findings_outline_folds_and_graph() -> None:
    found = answer("analyse", {"text": TWO})
    (error,) = [item for item in found["diagnostics"] if item["severity"] == "error"]
    assert cut(TWO, error) == "nowhere"
    assert (error["line"], error["code"]) == (6, "lang.unknown_task")
    assert [fix["title"] for fix in error["fixes"]] == ["Create task nowhere"]
    assert not found["ok"] and found["parsed"]
    (agent,) = found["outline"]
    assert [item["name"] for item in agent["children"] if item["kind"] == "task"] == ["first", "second"]
    task = agent["children"][0]
    assert cut(TWO, task).startswith("TASK first {") and cut(TWO, task).endswith("}")
    assert any(cut(TWO, fold).startswith("{\n    GOAL") for fold in found["folds"])
    assert [node["id"] for node in found["graph"]["nodes"]] == ["first", "second", "nowhere"]
    assert 'data-task="nowhere"' in found["svg"] and "<style" not in found["svg"]


def test_a_fix_mends_what_it_says() -> None:
    (fix,) = [fix for item in services.analyse(TWO)["diagnostics"] for fix in item["fixes"]]
    after = changed(TWO, fix["changes"])
    assert "TASK nowhere {" in after
    assert services.analyse(after)["ok"]


@pytest.mark.parametrize(
    ("op", "there"),
    [
        (
            {"op": "add_edge", "task": "second", "trigger": "fail", "target": "first"},
            "NEXT { fail -> first }",
        ),
        ({"op": "rename_task", "name": "second", "new": "last"}, "success -> last"),
        ({"op": "set", "task": "first", "key": "GOAL", "value": 'a "b" 𝛿'}, 'GOAL "a \\"b\\" 𝛿"'),
        ({"op": "add_task", "name": "third", "goal": "<b>"}, 'GOAL "<b>"'),
        ({"op": "set_start", "task": "second"}, "START -> second"),
    ],
)
def test_an_operation_is_a_small_change_and_keeps_the_rest(op: dict[str, Any], there: str) -> None:
    made = answer("edit", {"text": WELL, "ops": [op]})
    after = changed(WELL, made["changes"])
    assert there in after and "// 𝛾" in after
    assert sum(item["to"] - item["from"] for item in made["changes"]) < 40
    assert made["analysis"] == services.analyse(after)
    assert made["said"]


def test_operations_are_all_or_none() -> None:
    edge = {"op": "add_edge", "task": "third", "trigger": "fail", "target": "first"}
    made = answer("edit", {"text": WELL, "ops": [{"op": "add_task", "name": "third"}, edge]})
    assert "fail -> first" in changed(WELL, made["changes"])
    with pytest.raises(EditRefused):
        answer("edit", {"text": WELL, "ops": [edge]})


def test_a_text_that_does_not_parse_is_not_edited() -> None:
    with pytest.raises(SpecError):
        answer("edit", {"text": "TASK a {", "ops": [{"op": "add_task", "name": "b"}]})


def test_completion_hover_definition_references_and_rename() -> None:
    at = len(WELL[: WELL.index("second }")].encode("utf-16-le")) // 2
    labels = [item["label"] for item in answer("complete", {"text": WELL, "at": at})["items"]]
    assert {"first", "second"} <= set(labels)
    said = answer("hover", {"text": WELL, "at": at})
    assert "second" in said["text"] and said["docs"] == "/docs/language/#edges"
    (place,) = answer("definition", {"text": WELL, "at": at})["places"]
    assert cut(WELL, place) == "second" and place["from"] > at
    assert len(answer("references", {"text": WELL, "at": at})["places"]) == 2
    assert answer("rename", {"text": WELL, "at": at})["name"] == "second"
    renamed = answer("rename", {"text": WELL, "at": at, "new": "last"})
    assert changed(WELL, renamed["changes"]) == WELL.replace("second", "last")
    for bad in ("first", "two words", ""):
        with pytest.raises(EditRefused):
            answer("rename", {"text": WELL, "at": at, "new": bad})
    with pytest.raises(EditRefused):
        answer("rename", {"text": WELL, "at": 1})


def test_format_changes_lines_and_no_more() -> None:
    crooked = WELL.replace("  TASK first {", "      TASK   first   {")
    changes = answer("format", {"text": crooked})["changes"]
    after = changed(crooked, changes)
    assert after == changed(WELL, answer("format", {"text": WELL})["changes"])
    assert answer("format", {"text": after})["changes"] == []
    with pytest.raises(SpecError):
        answer("format", {"text": "TASK {"})


@pytest.mark.parametrize(
    "text",
    ["", "\x00", "\ud800", "{" * 60_000, '"""', "a\r\nb\r", "\n" * 200_000, "task 𝛼 {", "//" * 100_000],
)
def test_any_text_has_an_answer(text: str) -> None:
    found = answer("analyse", {"text": text})
    assert set(found) >= {"diagnostics", "outline", "folds", "svg"}
    for item in found["diagnostics"]:
        assert 0 <= item["from"] <= item["to"]
    answer("complete", {"text": text, "at": len(text) // 2})
    answer("hover", {"text": text, "at": 0})


@pytest.mark.parametrize(
    ("what", "body"),
    [
        ("analyse", {}),
        ("analyse", {"text": 3}),
        ("complete", {"text": "a"}),
        ("complete", {"text": "a", "at": "0"}),
        ("complete", {"text": "a", "at": True}),
        ("rename", {"text": WELL, "at": WELL.index("first"), "new": 3}),
        ("nothing", {"text": "a"}),
    ],
)
def test_requests_that_are_none_are_refused(what: str, body: dict[str, Any]) -> None:
    with pytest.raises(Refused) as refused:
        answer(what, body)
    assert refused.value.code == "web.request"


def test_too_much_text_is_refused_with_its_size() -> None:
    with pytest.raises(Refused) as refused:
        answer("analyse", {"text": "é" * 200_000})
    assert refused.value.code == "web.text_size" and refused.value.status == 413
    assert "0.4 MB" in refused.value.message


def test_more_tasks_than_can_be_drawn_are_listed_and_not_drawn() -> None:
    text = "".join(f"task t{n} {{}}\n" for n in range(services.MAX_TASKS + 1))
    found = services.analyse(text)
    assert found["graph"] is None and "2,001 tasks" in found["note"]
    assert len(found["outline"]) == services.MAX_TASKS + 1


def test_triggers_are_those_of_the_kernel_and_of_all_validators() -> None:
    assert {"success", "fail", "timeout", "metric_improved", "plateau"} <= set(services.triggers())


# ---- compiled, and a walk by hand


def examples() -> list[str]:
    return sorted(file.stem for file in data.path("specs/examples").glob("*.spak"))


@pytest.mark.parametrize("name", examples())
def test_every_example_shows_what_the_kernel_makes_of_it(name: str) -> None:
    text = data.path(f"specs/examples/{name}.spak").read_text()
    found = compiled({"text": text})
    assert found["program"]["tasks"] and found["facts"] and found["capabilities"]
    assert "permitted" in found["policy"]["text"]
    for prompt in found["prompts"]:
        assert all(item["text"] for item in prompt["items"])


def test_the_prompt_is_the_kernels_and_unknown_variables_stay() -> None:
    text = """
    task T {
      step see: tool.run { cmd: "ls" }
      step ask: llm.query { prompt: "What of {{last_tool_output}}? {{nothing}}" }
    }
    """.replace(" {{nothing}}", "")
    (prompt,) = compiled({"text": text})["prompts"]
    assert prompt["items"][-1]["text"] == "What of {{last_tool_output}}?"


def test_what_does_not_compile_says_where() -> None:
    with pytest.raises(SpecError, match="Line 6"):
        compiled({"text": TWO})


def test_a_walk_by_hand_goes_where_the_answers_lead() -> None:
    first = attempt({"text": WELL, "answers": []})
    assert first["status"] == "running" and first["effect"]["act"] == "tool"
    second = attempt({"text": WELL, "answers": [{"outcome": "well", "value": "a.txt"}]})
    assert "task second" in second["effect"]["title"]
    done = attempt({"text": WELL, "answers": [{"outcome": "well", "value": ""}] * 2})
    assert done["status"] == "succeeded" and done["effect"] is None
    failed = attempt({"text": WELL, "answers": [{"outcome": "failed", "value": ""}]})
    assert failed["status"] != "succeeded"
    with pytest.raises(Refused):
        attempt({"text": WELL, "answers": [{"outcome": "well", "value": ""}] * 3})


@pytest.mark.parametrize("answers", [None, [3], [{"outcome": "well"}], [{"value": 3}], [{}] * 1000])
def test_answers_that_are_none_are_refused(answers: Any) -> None:
    with pytest.raises(Refused):
        attempt({"text": WELL, "answers": answers})


def test_texts_stay_parsed_as_long_as_there_is_room() -> None:
    first = see(WELL)
    assert see(WELL) is first
    for number in range(4):
        see(f"// {number}\n" * 25_000)
    assert see(WELL) is not first
