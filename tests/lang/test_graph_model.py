"""From a spec to its graph: what a node knows, targets that are not there, specs that did not parse whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from spak.lang import parse
from spak.lang.graph import Edge, Graph, Node, graph_difference, graph_of
from spak.lang.imports import resolve

EXAMPLES = Path(__file__).resolve().parents[2] / "specs/examples"


def graph(text: str) -> Graph:
    return graph_of(parse(text).spec)


def nodes(made: Graph) -> dict[str, Node]:
    return {node.name: node for node in made.nodes}


def edges(made: Graph) -> list[tuple[str, str, str]]:
    return [(edge.source, edge.trigger, edge.target) for edge in made.edges]


def test_the_main_example() -> None:
    made = graph_of(parse((EXAMPLES / "attention_tuner.spak").read_text()).spec)
    assert made.name == "Attention_Tuner"
    baseline, tune, finalize = made.nodes
    assert (baseline.name, baseline.kind, baseline.start, baseline.terminal) == (
        "baseline",
        "steps",
        True,
        False,
    )
    assert (tune.kind, tune.steps, tune.tools) == ("plan", 2, ("instantiate", "write_file", "cc"))
    assert (tune.validator, tune.proposer) == ("CpuProfiler", "tuner")
    assert (finalize.kind, finalize.terminal, finalize.start) == ("steps", True, False)
    assert baseline.goal.startswith("Compile the naive kernel")
    assert edges(made) == [
        ("baseline", "success", "tune"),
        ("tune", "metric_improved", "tune"),
        ("tune", "success", "tune"),
        ("tune", "fail", "tune"),
        ("tune", "plateau", "finalize"),
    ]
    lines = (EXAMPLES / "attention_tuner.spak").read_text().splitlines()
    assert all(f"TASK {node.name} " in lines[node.line - 1] for node in made.nodes)
    assert all(f"{edge.trigger} -> {edge.target}" in lines[edge.line - 1] for edge in made.edges)


def test_a_task_alone_is_start_and_end() -> None:
    made = graph("task T { step a: tool.run { cmd: x } step b: tool.run { cmd: y } }")
    assert made.nodes == (Node("T", "steps", True, True, steps=2, tools=("run",), line=1),)
    assert made.name == "T"


def test_targets_that_are_not_there_are_missing_nodes() -> None:
    made = graph("AGENT A LEVEL 1 {\n START -> gone\n TASK a { NEXT { success -> lost\n fail -> gone } }\n}")
    assert nodes(made)["gone"] == Node("gone", "missing", start=True, line=2)
    assert nodes(made)["lost"] == Node("lost", "missing", line=3)
    assert [node.name for node in made.nodes] == ["a", "gone", "lost"]
    assert not nodes(made)["lost"].terminal


def test_tools_of_steps_and_checks_count_where_TOOLS_is_not_given() -> None:
    made = graph(
        "task T { step a: tool.run {} step b: tool.cc {} step c: tool.run {}"
        " evaluation { check m: tool.cc {} } }"
    )
    assert made.nodes[0].tools == ("run", "cc")
    assert (made.nodes[0].steps, made.nodes[0].checks) == (3, 1)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("TOOLS [cc]", "plan"),
        ("step p: llm.plan { }", "plan"),
        ("TOOLS [cc] step a: tool.cc { }", "steps"),
        ("step q: llm.query { }", "steps"),
        ('GOAL "x"', "steps"),
    ],
)
def test_kinds(body: str, kind: str) -> None:
    assert graph(f"task T {{ {body} }}").nodes[0].kind == kind


def test_settings_in_any_case_and_none_is_nobody() -> None:
    made = graph("AGENT A LEVEL 1 { START -> a TASK a { Validator none tools [cc, cc] } }")
    assert made.nodes[0].validator == ""
    assert made.nodes[0].tools == ("cc",)


def test_of_two_tasks_with_one_name_the_first_counts() -> None:
    made = graph(
        "AGENT A LEVEL 1 { START -> a TASK a { NEXT { x -> b } } TASK b {} TASK a { NEXT { y -> c } } }"
    )
    assert edges(made) == [("a", "x", "b")]
    assert [node.name for node in made.nodes] == ["a", "b"]


def test_an_agent_without_START_has_no_start() -> None:
    assert graph("AGENT A LEVEL 1 { TASK a { } }").start is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "AGENT",
        "AGENT A LEVEL 1 { START -> ",
        "\0",
        "TASK",
        "AGENT A LEVEL 1 { TASK a { NEXT { x -> } } }",
    ],
)
def test_what_is_hardly_a_spec_gives_a_graph(text: str) -> None:
    assert graph(text).edges == ()


def test_a_broken_spec_is_drawn_as_far_as_it_parsed() -> None:
    text = (EXAMPLES / "attention_tuner.spak").read_text()
    for cut in range(0, len(text), 97):
        made = graph(text[:cut])
        names = {node.name for node in made.nodes}
        assert all({edge.source, edge.target} <= names for edge in made.edges)
    assert edges(graph("AGENT A LEVEL 1 { START -> a TASK a { NEXT { x -> b, ??? } } TASK b { } }")) == [
        ("a", "x", "b")
    ]


def test_nodes_of_imported_files_say_where_they_stand() -> None:
    task = "TASK a { TOOLS [run] NEXT { success -> b } }"
    main = f'AGENT A LEVEL 1 {{\n IMPORT "more.spak"\n START -> a\n {task}\n}}\n'
    files = {"more.spak": b"\n\nTASK b { TOOLS [run] NEXT { success -> c } }\nTASK c { TOOLS [run] }\n"}
    made = graph_of(resolve(parse(main, "main.spak"), files.get).parsed.spec)
    found = nodes(made)
    assert (found["a"].file, found["a"].line) == ("", 4)
    assert (found["b"].file, found["b"].line) == ("more.spak", 3)
    assert (found["c"].file, found["c"].line) == ("more.spak", 4)
    assert made.edges[1] == Edge("b", "c", "success", 3)


# ---- differences ---------------------------------------------------------------------------------------

OLD = """AGENT A LEVEL 2 {
  START -> a
  TASK a { TOOLS [cc] NEXT { success -> b, fail -> a } }
  TASK b { TOOLS [run] NEXT { success -> c } }
  TASK c { TOOLS [run] }
}"""


def difference(new: str, renames: dict[str, str] | None = None) -> Graph:
    return graph_difference(parse(OLD).spec, parse(new).spec, renames)


def changes(made: Graph) -> dict[str, str]:
    return {node.name: node.change for node in made.nodes}


def edge_changes(made: Graph) -> dict[tuple[str, str, str], str]:
    return {(edge.source, edge.trigger, edge.target): edge.change for edge in made.edges}


def test_layout_and_comments_are_no_difference() -> None:
    made = difference(OLD.replace("TASK b", "// a comment\n\n   task   b"))
    assert set(changes(made).values()) == {"same"}
    assert set(edge_changes(made).values()) == {"same"}


def test_added_removed_changed_and_retargeted() -> None:
    new = (
        OLD.replace("success -> c } }", "success -> d } }")
        .replace("TASK c {", "TASK d {")
        .replace("[cc]", "[cc, run]")
    )
    made = difference(new)
    assert changes(made) == {"a": "changed", "b": "same", "d": "added", "c": "removed"}
    assert edge_changes(made) == {
        ("a", "success", "b"): "same",
        ("a", "fail", "a"): "same",
        ("b", "success", "d"): "added",
        ("b", "success", "c"): "removed",
    }


def test_a_rename_is_a_change_and_its_edges_stay_the_same() -> None:
    made = difference(OLD.replace(" b", " build"), {"b": "build"})
    assert changes(made) == {"a": "same", "build": "changed", "c": "same"}
    assert nodes(made)["build"].was == "b"
    assert set(edge_changes(made).values()) == {"same"}


def test_without_a_rename_the_names_decide() -> None:
    made = difference(OLD.replace(" b", " build"))
    assert changes(made) == {"a": "same", "build": "added", "c": "same", "b": "removed"}


@pytest.mark.parametrize("renames", [{"b": "nowhere"}, {"b": "c"}, {"x": "a"}, {"a": "a"}])
def test_renames_that_do_not_fit_are_left_out(renames: dict[str, str]) -> None:
    assert set(changes(difference(OLD, renames)).values()) == {"same"}


def test_START_moved() -> None:
    made = difference(OLD.replace("START -> a", "START -> b"))
    assert changes(made) == {"a": "changed", "b": "changed", "c": "same"}
    assert made.start == nodes(made)["b"]


def test_a_task_at_another_place_is_moved_and_one_that_changed_besides_is_changed() -> None:
    last, first = "  TASK c { TOOLS [run] }\n", "  START -> a\n"
    at_front = OLD.replace(last, "").replace(first, first + last)
    assert changes(difference(at_front)) == {"c": "moved", "a": "same", "b": "same"}
    assert changes(difference(at_front.replace("c { TOOLS [run]", "c { TOOLS [cc]")))["c"] == "changed"
    new = at_front.replace("  TASK c", "  TASK n { TOOLS [cc] }\n  TASK c").replace(" b", " d")
    assert changes(difference(new, {"b": "d"})) == {"n": "added", "c": "moved", "a": "same", "d": "changed"}


def test_a_task_that_went_and_is_still_named_is_missing_and_removed() -> None:
    new = OLD.replace("  TASK c { TOOLS [run] }\n", "")
    made = difference(new)
    assert (nodes(made)["c"].kind, nodes(made)["c"].change) == ("missing", "removed")
    back = graph_difference(parse(new).spec, parse(OLD).spec)
    assert (nodes(back)["c"].kind, nodes(back)["c"].change) == ("plan", "added")


def test_against_nothing() -> None:
    assert set(changes(graph_difference(parse("").spec, parse(OLD).spec)).values()) == {"added"}
    gone = graph_difference(parse(OLD).spec, parse("").spec)
    assert set(changes(gone).values()) == {"removed"}
    assert gone.start is None
    assert gone.name == "A"
