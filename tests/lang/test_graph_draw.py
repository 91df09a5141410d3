"""What is written out: SVG that holds in a page whatever the names are, and the texts for other programs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spak.lang import parse
from spak.lang.graph import (
    STYLE,
    Edge,
    Graph,
    Layout,
    Node,
    State,
    describe,
    graph_difference,
    graph_of,
    lay_out,
    node_id,
    to_dot,
    to_json,
    to_mermaid,
    to_svg,
)

ROOT = Path(__file__).resolve().parents[2]
TUNER = (ROOT / "specs/examples/attention_tuner.spak").read_text()
SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = '<script>alert("1")</script>&amp;]]>'


def layout(text: str, states: Mapping[str, State] | None = None) -> Layout:
    return lay_out(graph_of(parse(text).spec), states)


def tree(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def texts(root: ElementTree.Element, tag: str = "text") -> list[str]:
    return ["".join(found.itertext()) for found in root.iter(SVG + tag)]


def with_class(root: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    return [found for found in root.iter() if name in found.get("class", "").split()]


# ---- SVG -----------------------------------------------------------------------------------------------


def test_the_picture_of_the_readme_is_what_is_drawn_now() -> None:
    """Draw it anew: spak graph specs/examples/attention_tuner.spak -o docs/img/attention_tuner.svg"""
    assert (ROOT / "docs/img/attention_tuner.svg").read_text() == to_svg(layout(TUNER))


def test_a_node_says_what_it_is_by_shape_glyph_and_word() -> None:
    root = tree(to_svg(layout(TUNER)))
    baseline, tune, finalize = with_class(root, "node")
    assert baseline.get("class") == "node steps start"
    assert texts(baseline) == ["baseline", "START", "1 step · 1 tool", "CpuProfiler"]
    assert texts(tune) == ["tune", "2 steps · plan · 3 tools", "CpuProfiler"]
    assert texts(finalize)[:2] == ["finalize", "END"]
    assert [len(with_class(node, "inner")) for node in (baseline, tune, finalize)] == [0, 0, 1]
    outlines = [with_class(node, "box")[0].tag for node in (baseline, tune, finalize)]
    assert outlines == [f"{SVG}rect", f"{SVG}path", f"{SVG}rect"]
    assert tune.get("data-task") == "tune"
    assert "TASK tune" in TUNER.splitlines()[int(tune.get("data-line", "0")) - 1]
    assert "Find a kernel" in texts(tune, "title")[0]


def test_parallel_edges_are_one_line_with_a_list_of_labels() -> None:
    root = tree(to_svg(layout(TUNER)))
    loop = with_class(root, "loop")
    assert len(loop) == 1
    assert loop[0].get("data-triggers") == "metric_improved success fail"
    assert [texts(label) for label in with_class(root, "label")][1] == ["metric_improved", "success", "fail"]


def test_it_is_told_in_words() -> None:
    root = tree(to_svg(layout(TUNER)))
    assert root.get("role") == "img"
    assert root.get("aria-labelledby") == "g-title g-desc"
    told = texts(root, "desc")[0]
    assert told.startswith("3 tasks, starting at baseline. Ends: finalize. baseline goes to tune on success.")
    assert "tune goes to finalize on plateau." in told


def test_the_telling_of_a_large_graph_is_short() -> None:
    nodes = tuple(Node(f"t{number}") for number in range(500))
    edges = tuple(Edge(f"t{number}", "t0", "x") for number in range(500))
    assert len(describe(lay_out(Graph("G", nodes, edges)))) < 3000


def test_a_missing_task_is_dashed_and_says_so() -> None:
    root = tree(to_svg(layout("AGENT A LEVEL 1 { START -> a TASK a { NEXT { success -> b } } }")))
    missing = with_class(root, "missing")[0]
    assert texts(missing) == ["b", "missing: no such task"]
    assert len(with_class(root, "to-missing")) == 1
    assert ".missing>.box{fill:none;stroke:var(--g-bad);stroke-dasharray" in STYLE


@pytest.mark.parametrize("state", list(State))
def test_a_state_is_a_glyph_and_a_word(state: State) -> None:
    svg = to_svg(layout(TUNER, {"tune": state}), prefix="p")
    root = tree(svg)
    baseline, tune, _ = with_class(root, "node")
    assert tune.get("data-state") == state
    assert baseline.get("data-state") is None
    assert texts(tune)[-1] == state
    assert f'href="#p-s-{state}"' in svg
    assert f'id="p-s-{state}"' in svg


def test_states_move_nothing() -> None:
    def places(states: Mapping[str, State]) -> list[tuple[int, int, int, int]]:
        return [(node.x, node.y, node.width, node.height) for node in layout(TUNER, states).nodes]

    assert (
        places({}) == places({"tune": State.RUNNING}) == places(dict.fromkeys(["baseline"], State.CANCELLED))
    )


def test_interactive_nodes_can_be_focused_and_have_a_name() -> None:
    root = tree(to_svg(layout(TUNER), interactive=True))
    assert root.get("role") == "group"
    for node in with_class(root, "node"):
        assert (node.get("role"), node.get("tabindex")) == ("button", "0")
        assert (
            node.get("aria-label") is None
        )  # the title names it: a label would have to hold all that is written
        assert node[0].text.startswith(node.get("data-task", "?"))


def test_several_in_one_page_keep_their_ids_apart() -> None:
    found = [
        {element.get("id") for element in tree(to_svg(layout(TUNER, {}), prefix)).iter() if element.get("id")}
        for prefix in ("old", "new")
    ]
    assert found[0]
    assert not found[0] & found[1]


def test_without_its_style_a_page_brings_it() -> None:
    assert "<style>" not in to_svg(layout(TUNER), style=False)
    assert " style=" not in to_svg(layout(TUNER, {}), style=False)


def test_nothing_comes_from_outside() -> None:
    svg = to_svg(layout(TUNER, {"tune": State.RUNNING}))
    assert re.findall(r'(?:href|src)="(?!#)|url\(|@import|<script|<image|<foreignObject', svg) == []
    assert re.findall(r"https?://[^\"]+", svg) == ["http://www.w3.org/2000/svg"]


def test_a_goal_is_text() -> None:
    graph = Graph("x", (Node("a", goal=HOSTILE, tools=(HOSTILE,)),), ())
    root = tree(to_svg(lay_out(graph), interactive=True))
    assert not list(root.iter(SVG + "script"))
    assert HOSTILE in "".join(root.itertext())


def test_ids_are_of_names_and_no_two_are_the_same() -> None:
    assert node_id("optimize_loop") == "g-n-optimize_loop"
    names = ["a.b", "a-b", "a_b", "a.2e.b", "ä", "a b", 'a"b', "日本", "", "A", "a"]
    found = [node_id(name) for name in names]
    assert len(set(found)) == len(names)
    assert all(re.fullmatch(r"g-n-[A-Za-z0-9_.]*", one) for one in found)


NAMES = st.one_of(
    st.text(max_size=12), st.sampled_from([HOSTILE, "x" * 300, "\u202eabc", "a\u0335" * 20, "日本"])
)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    names = draw(st.lists(NAMES, max_size=7, unique=True))
    if not names:
        return Graph(draw(NAMES), (), ())
    changes = st.sampled_from(["same", "added", "removed", "changed"] if draw(st.booleans()) else [""])
    kinds = st.sampled_from(["steps", "plan", "missing"])
    nodes = [
        Node(name, draw(kinds), not index, draw(st.booleans()), validator=draw(NAMES), change=draw(changes))
        for index, name in enumerate(names)
    ]
    pairs = draw(
        st.lists(st.tuples(st.sampled_from(names), NAMES, st.sampled_from(names)), max_size=16, unique=True)
    )
    edges = [Edge(source, target, trigger, 1, draw(changes)) for source, trigger, target in pairs]
    return Graph(draw(NAMES), tuple(nodes), tuple(edges))


@settings(max_examples=120, deadline=None)
@given(graphs(), st.booleans())
def test_any_names_give_good_documents(graph: Graph, live: bool) -> None:
    states = {node.name: State.RUNNING for node in graph.nodes[::2]} if live else None
    made = lay_out(graph, states)
    svg = to_svg(made, interactive=live)
    assert svg == to_svg(lay_out(graph, states), interactive=live)
    root = tree(svg)
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    assert {element.tag for element in root.iter()} <= {
        SVG + tag
        for tag in ("svg", "title", "desc", "style", "defs", "symbol", "rect", "g", "path", "text", "use")
    }
    assert len(with_class(root, "node")) == len(graph.nodes)
    for node in made.nodes:
        assert node.x >= 0 and node.x + node.width <= made.width
        assert node.y >= 0 and node.y + node.height <= made.height
        assert node.width % 2 == 0
    for route in made.routes:
        assert route.x >= 0 and route.x + route.width <= made.width
        assert route.y >= 0 and route.y + route.height <= made.height
    assert len(to_json(made)["edges"]) == len(graph.edges)
    assert to_dot(graph).count(" -> ") >= len({(edge.source, edge.target) for edge in graph.edges})
    assert to_mermaid(graph).startswith("flowchart TD\n")


def test_lines_end_at_the_borders_of_their_nodes() -> None:
    made = layout(TUNER)
    at = {node.node.name: node for node in made.nodes}
    for route in made.routes:
        for name, (x, y) in ((route.source, route.points[0]), (route.target, route.points[-1])):
            node = at[name]
            on_side = y in (node.y, node.y + node.height) and node.x < x < node.x + node.width
            on_right = x == node.x + node.width and node.y < y < node.y + node.height
            assert on_right if route.loop else on_side


@pytest.mark.parametrize("scheme", [0, 1])
def test_colours_can_be_told_from_their_ground(scheme: int) -> None:
    """Text 4.5 to 1, lines 3 to 1, in light and dark."""
    block = re.findall(r"\.spak-graph\{(--g-bg.*?)\}", STYLE)[scheme]
    colour = dict(re.findall(r"--g-([a-z-]+):(?:var\(--\w+,)?(#[0-9a-f]+)", block))
    for ground in ("bg", "surface"):
        for name in ("text", "muted", "accent", "good", "bad", "warn", "calm", "violet"):
            assert contrast(colour[name], colour[ground]) >= 4.5, (name, ground)
        for name in ("line", "edge", "faint"):
            assert contrast(colour[name], colour[ground]) >= 3, (name, ground)
    assert contrast(colour["on"], colour["accent"]) >= 4.5
    for word in ("good", "bad", "warn", "violet"):
        assert contrast(colour[word], colour[f"{word}-bg"]) >= 4.5, word
        assert contrast(colour["muted"], colour[f"{word}-bg"]) >= 4.5, word


def contrast(one: str, other: str) -> float:
    lights = sorted(light(colour) for colour in (one, other))
    return (lights[1] + 0.05) / (lights[0] + 0.05)


def light(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(digit * 2 for digit in colour[1:])
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


# ---- differences ---------------------------------------------------------------------------------------


def test_a_difference_is_told_by_sign_word_and_class() -> None:
    new = TUNER.replace("plateau -> finalize", "plateau -> review").replace(
        "  TASK finalize {", '  TASK review { GOAL "Look." NEXT { success -> finalize } }\n  TASK finalize {'
    )
    made = lay_out(graph_difference(parse(TUNER).spec, parse(new).spec))
    root = tree(to_svg(made))
    review = with_class(root, "d-added")[-1]
    assert texts(review)[:2] == ["review", "+ ADDED"]
    labels = [text for label in with_class(root, "label") for text in texts(label)]
    assert labels.count("− plateau") == 1
    assert labels.count("+ plateau") == labels.count("+ success") == 1
    assert texts(with_class(root, "legend")[0]) == [
        "+ added",
        "− removed",
        "~ changed",
        "^ moved",
        "= unchanged",
    ]
    assert "Added: review." in texts(root, "desc")[0]
    gone = [edge for edge in to_json(made)["edges"] if edge["change"] == "removed"]
    assert [(edge["from"], edge["trigger"], edge["to"]) for edge in gone] == [("tune", "plateau", "finalize")]
    assert "plateau -> finalize" in TUNER.splitlines()[gone[0]["line"] - 1]
    assert "+ review" in to_mermaid(made.graph)
    assert "− plateau" in to_dot(made.graph)


# ---- texts ---------------------------------------------------------------------------------------------


def test_json_has_what_the_editor_needs() -> None:
    found = to_json(layout(TUNER))
    assert [node["id"] for node in found["nodes"]] == ["baseline", "tune", "finalize"]
    assert {
        "kind",
        "start",
        "terminal",
        "x",
        "y",
        "width",
        "height",
        "line",
        "steps",
        "tools",
        "validator",
    } <= set(found["nodes"][0])
    assert [(edge["from"], edge["trigger"], edge["to"]) for edge in found["edges"]][-1] == (
        "tune",
        "plateau",
        "finalize",
    )
    assert [route["triggers"] for route in found["routes"]] == [
        ["success"],
        ["metric_improved", "success", "fail"],
        ["plateau"],
    ]
    assert found["start"] == "baseline"


def test_mermaid() -> None:
    routes = "success -> b, fail -> c, timeout -> c"
    text = f"AGENT A LEVEL 1 {{ START -> a TASK a {{ TOOLS [cc] NEXT {{ {routes} }} }} TASK b {{}} }}"
    lines = to_mermaid(graph_of(parse(text).spec)).splitlines()
    assert lines[:6] == [
        "flowchart TD",
        '  n0{{"a #40;START#41;"}}',
        '  n1(["b #40;END#41;"])',
        '  n2["c #40;missing#41;"]',
        '  n0 -- "success" --> n1',
        '  n0 -- "fail<br/>timeout" --> n2',
    ]
    assert "  class n0 start" in lines
    assert to_mermaid(Graph("", (), ())) == "flowchart TD\n"


def test_mermaid_escapes_what_it_would_read() -> None:
    made = to_mermaid(Graph("", (Node('a"]; click n0 "x'),), ()))
    assert made.splitlines()[1] == '  n0["a#34;#93;#59; click n0 #34;x"]'


def test_dot() -> None:
    made = to_dot(
        Graph(
            'A "quoted" \\ name', (Node('a"b', start=True), Node("c", "missing")), (Edge('a"b', "c", "x\\"),)
        )
    )
    lines = made.splitlines()
    assert lines[0] == 'digraph "A \\"quoted\\" \\\\ name" {'
    assert lines[3] == '  n0 [label="a\\"b (START)", penwidth=2]'
    assert lines[4] == '  n1 [label="c (missing)", style=dashed]'
    assert lines[5] == '  n0 -> n1 [label="x\\\\"]'
    assert lines[6] == "}"
