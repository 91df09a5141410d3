"""`spak graph`: every format, to standard output and into a file, with specs that are whole or are not."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from cli_calls import EXAMPLES, HELLO, Cli

TUNER = str(EXAMPLES / "attention_tuner.spak")
MISSING = "AGENT A LEVEL 1 {\n  START -> a\n  TASK a { TOOLS [run] NEXT { success -> b } }\n}\n"
TWO = """AGENT A LEVEL 2 {
  START -> measure
  TASK measure { GOAL "Weigh it." TOOLS [run, list_files] NEXT { success -> tell } }
  TASK tell { GOAL "Say so." TOOLS [write_file] }
}
"""


def test_svg_is_what_a_person_gets(cli: Cli) -> None:
    done = cli("graph", TUNER)
    assert done.code == 0
    assert ElementTree.fromstring(done.out).get("class") == "spak-graph narrow"
    assert done.err == "3 tasks, 5 edges\n"


def test_json_is_what_a_program_gets(cli: Cli) -> None:
    done = cli("graph", TUNER, "--json")
    assert done.code == 0
    found = done.json
    assert (found["ok"], found["diagnostics"], found["name"]) == (True, [], "Attention_Tuner")
    assert {(edge["from"], edge["to"], edge["trigger"]) for edge in found["edges"]} >= {
        ("baseline", "tune", "success"),
        ("tune", "finalize", "plateau"),
    }
    assert {node["id"]: node["kind"] for node in found["nodes"]} == {
        "baseline": "steps",
        "tune": "plan",
        "finalize": "steps",
    }
    assert cli("graph", TUNER, "--format", "json").json == found


@pytest.mark.parametrize(
    ("form", "begins"),
    [("mermaid", "flowchart TD\n"), ("dot", 'digraph "Attention_Tuner" {'), ("svg", "<svg ")],
)
def test_formats(cli: Cli, tmp_path: Path, form: str, begins: str) -> None:
    out = cli("graph", TUNER, "--format", form).out
    assert out.startswith(begins)
    done = cli("graph", TUNER, "--format", form, "-o", "picture")
    assert done.out == ""
    assert done.err.startswith("picture: 3 tasks")
    assert (tmp_path / "picture").read_text() == out


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("a.svg", "<svg"),
        ("a.SVG", "<svg"),
        ("a.mmd", "flowchart"),
        ("a.gv", "digraph"),
        ("a.json", "{"),
        ("a", "<svg"),
    ],
)
def test_the_ending_of_the_file_names_the_format(cli: Cli, tmp_path: Path, name: str, begins: str) -> None:
    assert cli("graph", HELLO, "-o", name).code == 0
    assert (tmp_path / name).read_text().startswith(begins)


def test_a_picture_and_the_document_in_one_call(cli: Cli, tmp_path: Path) -> None:
    done = cli("graph", TUNER, "-o", "a.svg", "--json")
    assert done.json["output"] == "a.svg"
    assert len(done.json["nodes"]) == 3
    assert (tmp_path / "a.svg").read_text().startswith("<svg")


def test_json_and_another_format_need_a_file(cli: Cli) -> None:
    done = cli("graph", TUNER, "--format", "dot", "--json")
    assert (done.code, done.error) == (2, "usage.arguments")


def test_standard_input(cli: Cli) -> None:
    assert len(cli("graph", "-", "--json", stdin=MISSING.encode()).json["nodes"]) == 2
    assert cli("graph", "-", "--compare", "-", "--json", stdin=b"").error == "usage.arguments"


def test_what_is_missing_is_named(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "a.spak").write_text(MISSING)
    done = cli("graph", "a.spak", "--format", "dot")
    assert done.code == 0
    assert "missing: b;" in done.err
    assert '"b (missing)", style=dashed' in done.out


def test_a_spec_that_does_not_parse_is_drawn_as_far_as_it_does(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "bad.spak").write_text(MISSING.replace("TOOLS [run]", "TOOLS [run ???"))
    done = cli("graph", "bad.spak")
    assert done.code == 3
    assert ElementTree.fromstring(done.out) is not None
    assert "bad.spak:3:" in done.err
    found = cli("graph", "bad.spak", "--json")
    assert found.code == 3
    assert found.json["ok"] is False
    assert found.json["diagnostics"][0]["line"] == 3
    assert "a" in [node["id"] for node in found.json["nodes"]]


@pytest.mark.parametrize("data", [b"", b"\x00\xff\xfe", b"just prose", b"{" * 5000, b"A" * 300_000])
def test_what_is_no_spec_is_an_empty_graph(cli: Cli, tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x.spak").write_bytes(data)
    done = cli("graph", "x.spak", "--json")
    assert done.code == (0 if data in (b"", b"just prose") else 3)
    assert "no task" in done.err
    assert done.json["nodes"] == []
    assert cli("graph", "x.spak").out.startswith("<svg")


def test_what_changed(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "old.spak").write_text(MISSING)
    (tmp_path / "new.spak").write_text(MISSING.replace("success -> b", "fail -> a"))
    done = cli("graph", "new.spak", "--compare", "old.spak", "--json")
    assert done.code == 0
    assert done.json["compare"] == "old.spak"
    assert {node["id"]: node["change"] for node in done.json["nodes"]} == {"a": "same", "b": "removed"}
    assert [edge["change"] for edge in done.json["edges"]] == ["added", "removed"]
    assert done.err == "1 task, 2 edges, 1 added, 2 removed\n"
    assert "− REMOVED" in cli("graph", "new.spak", "--compare", "old.spak").out
    same = cli("graph", "new.spak", "--compare", "new.spak", "--format", "mermaid")
    assert "no change" in same.err


def test_a_renamed_task_is_one_task_that_changed(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "old.spak").write_text(TWO)
    (tmp_path / "new.spak").write_text(TWO.replace("measure", "weigh"))
    done = cli("graph", "new.spak", "--compare", "old.spak", "--json")
    nodes = {node["id"]: (node["change"], node.get("was", "")) for node in done.json["nodes"]}
    assert nodes == {"weigh": ("changed", "measure"), "tell": ("same", "")}
    assert {edge["change"] for edge in done.json["edges"]} == {"same"}


def test_an_old_spec_that_does_not_parse_is_told_by_its_name(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "old.spak").write_text("AGENT {")
    (tmp_path / "new.spak").write_text(MISSING)
    done = cli("graph", "new.spak", "--compare", "old.spak", "--json")
    assert done.code == 3
    assert {item["file"] for item in done.json["diagnostics"]} == {"old.spak"}
    assert "old.spak:1:" in done.err


def test_imports_are_drawn_too(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "main.spak").write_text(MISSING.replace("{\n", '{\n  IMPORT "more.spak"\n', 1))
    (tmp_path / "more.spak").write_text("TASK b { TOOLS [run] }\n")
    done = cli("graph", "main.spak", "--json")
    assert done.code == 0
    assert [(node["id"], node["kind"], node.get("file")) for node in done.json["nodes"]] == [
        ("a", "plan", None),
        ("b", "plan", "more.spak"),
    ]


def test_a_spec_is_not_drawn_over(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "a.spak").write_text(MISSING)
    (tmp_path / "link").symlink_to("a.spak")
    done = cli("graph", "a.spak", "-o", "link", "--json")
    assert (done.code, done.error) == (2, "usage.arguments")
    assert (tmp_path / "a.spak").read_text() == MISSING


@pytest.mark.parametrize(
    "args", [("nowhere.spak",), (HELLO, "-o", "no/folder/a.svg"), (HELLO, "--compare", "gone")]
)
def test_files_that_are_not_there(cli: Cli, args: tuple[str, ...]) -> None:
    done = cli("graph", *args, "--json")
    assert (done.code, done.error) == (2, "usage.file")


def test_the_same_spec_gives_the_same_bytes(cli: Cli) -> None:
    assert cli("graph", TUNER).out == cli("graph", TUNER).out
    assert json.dumps(cli("graph", TUNER, "--json").json) == json.dumps(cli("graph", TUNER, "--json").json)
