"""What a person does in the editor: mend, draw, undo, work by keys alone, read what others wrote."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

AS_FIRST_WRITTEN = """\
AGENT Cuda_Optimizer LEVEL 5 {
  CONFIG { MEMORY FLUSH_ON_TRANSITION, SANDBOX RESTRICTED }
  START -> baseline_profile
  TASK baseline_profile {
    GOAL "Compile and measure naive implementation."
    TOOLS [nvcc, nsight]
    VALIDATOR CudaProfiler { source: "kernel.cu" }
    NEXT { success -> optimize_loop }
  }
  // The loop.
  TASK optimize_loop {
    GOAL "Refactor kernel for online-softmax."
    TOOLS [read_ast, write_cuda]
    VALIDATOR CudaProfiler { source: "kernel.cu" }
    NEXT {
      metric_improved -> optimize_loop,
      plateau -> finalize,
      fail -> optimize_loop // Triggers Heuristic automatically
    }
  }
}
"""
TWO = """\
AGENT Two LEVEL 2 {
  START -> first
  TASK first {
    step look: tool.run { cmd: "ls" } // what is there
    NEXT { success -> second }
  }
  TASK second {
    step say: tool.run { cmd: "echo done" }
  }
}
"""


def test_see_the_missing_task_mend_it_and_save(alice) -> None:
    alice.editor(AS_FIRST_WRITTEN)
    page = alice.page
    expect(page.locator("#problems-summary")).to_contain_text("1 error")
    expect(page.locator("#problems-list .error")).to_contain_text("finalize")
    expect(page.locator(".cm-lintRange-error")).to_have_text("finalize")
    expect(alice.node("finalize")).to_have_class(re.compile("missing"))
    page.locator("#problems-list .fix", has_text="Create task finalize").click()
    alice.looked()
    assert "TASK finalize {" in alice.text
    assert "fail -> optimize_loop // Triggers Heuristic automatically" in alice.text
    expect(page.locator("#problems-list .error")).to_have_count(0)
    expect(alice.node("finalize")).not_to_have_class(re.compile("missing"))
    page.get_by_role("button", name="Save version").click()
    page.get_by_label(re.compile("What changed")).fill("Say what finalize is")
    page.get_by_role("dialog").get_by_role("button", name="Save version").click()
    expect(page.locator("#version")).to_have_text("v2")
    page.goto(page.url.replace("/edit/", "/history/"))
    expect(page.locator("main")).to_contain_text("Say what finalize is")


def test_a_fix_leaves_the_focus_on_the_next_problem_or_in_the_text(alice) -> None:
    alice.editor(TWO.replace("-> second", "-> third, fail -> fourth"))
    page = alice.page
    fixes = page.locator("#problems-list .fix")
    expect(fixes.first).to_have_text("Create task third")
    fixes.first.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#problems-list li").first).to_contain_text("fourth")
    expect(page.locator("#problems-list button:focus")).to_have_count(1)
    fixes.first.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#problems-list .error")).to_have_count(0)
    expect(page.locator("body")).not_to_be_focused()


def test_ghost_node_creates_its_task(alice) -> None:
    alice.editor(AS_FIRST_WRITTEN)
    alice.page.locator("#graph-pane .create").click()
    expect(alice.node("finalize")).not_to_have_class(re.compile("missing"))
    assert "TASK finalize {" in alice.text


def drag(page, start, end) -> None:
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move((start[0] + end[0]) / 2, (start[1] + end[1]) / 2, steps=4)
    page.mouse.move(*end, steps=4)
    page.mouse.up()


def middle(locator) -> tuple[float, float]:
    box = locator.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_drag_an_edge_and_undo_it(alice) -> None:
    alice.editor(TWO)
    page = alice.page
    before = alice.text
    alice.node("second").hover()
    drag(page, middle(page.locator("#graph-pane .port circle")), middle(alice.node("first")))
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("heading")).to_have_text("second → first")
    dialog.get_by_label("When it ends with").fill("fail")
    dialog.get_by_role("button", name="Add edge").click()
    expect(page.locator('g.edge[data-from="second"][data-to="first"]')).to_have_count(1)
    assert re.search(r"TASK second \{[^}]*\}\s*NEXT \{ fail -> first \}", alice.text)
    assert "// what is there" in alice.text
    page.get_by_role("button", name="Undo").first.click()
    assert alice.text == before
    expect(page.locator('g.edge[data-from="second"]')).to_have_count(0)
    page.get_by_role("button", name="Redo").click()
    expect(page.locator('g.edge[data-from="second"][data-to="first"]')).to_have_count(1)


def test_dropped_on_nothing_an_edge_makes_a_task(alice) -> None:
    alice.editor(TWO)
    page = alice.page
    alice.node("second").hover()
    start = middle(page.locator("#graph-pane .port circle"))
    pane = page.locator("#graph-pane").bounding_box()
    drag(page, start, (pane["x"] + 40, pane["y"] + pane["height"] - 30))
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Go on to a new task named").fill("third")
    dialog.get_by_role("button", name="Add task and edge").click()
    expect(alice.node("third")).to_be_visible()
    expect(page.locator('g.edge[data-from="second"][data-to="third"]')).to_have_count(1)


def test_one_undo_stack_for_typing_and_drawing(alice) -> None:
    alice.editor(TWO)
    page = alice.page
    alice.cursor("// what is there")
    page.keyboard.insert_text(" now")  # keys that come slowly are steps of their own
    alice.looked()
    page.locator('#outline-pane button[data-task="second"]').click()
    page.get_by_role("button", name="Rename", exact=True).click()
    page.get_by_label("New name").fill("finish")
    page.get_by_role("dialog").get_by_role("button", name="Rename").click()
    expect(alice.node("finish")).to_be_visible()
    assert "success -> finish" in alice.text
    page.locator("#text-pane .cm-content").focus()
    page.keyboard.press("Control+z")
    assert "success -> second" in alice.text and "there now" in alice.text
    page.keyboard.press("Control+z")
    assert alice.text == TWO


def test_node_line_and_outline_find_each_other(alice) -> None:
    alice.editor(TWO)
    page = alice.page
    alice.node("second").click()
    expect(page.locator('#outline-pane button[aria-current="true"]')).to_have_attribute("data-task", "second")
    expect(page.locator("#properties-pane h3")).to_have_text("second")
    expect(page.locator(".cm-activeLineGutter").first).to_have_text("7")
    alice.cursor("what is there")
    expect(alice.node("first")).to_have_attribute("aria-current", "true")
    page.locator('#outline-pane button[data-task="second"]').click()
    expect(alice.node("second")).to_have_attribute("aria-current", "true")


def test_properties_change_the_text(alice) -> None:
    alice.editor(TWO)
    page = alice.page
    page.locator('#outline-pane button[data-task="first"]').click()
    page.get_by_label("Goal").fill('Look "around".')
    page.get_by_label("Goal").blur()
    expect(alice.node("first")).to_contain_text("around")
    assert 'GOAL "Look \\"around\\"."' in alice.text
    page.get_by_label("Trigger of edge 1").select_option("timeout")
    alice.looked()
    assert "timeout -> second" in alice.text
    page.get_by_label("Remove edge timeout").click()
    expect(page.locator("g.edge")).to_have_count(0)
    assert "NEXT" not in alice.text
    page.locator('#outline-pane button[data-task="second"]').click()
    page.get_by_role("button", name="Start here").click()
    expect(alice.node("second")).to_have_class(re.compile("start"))
    assert "START -> second" in alice.text
    page.locator('#outline-pane button[data-task="first"]').click()
    page.locator("#properties-pane").get_by_role("button", name="Delete").click()
    page.get_by_role("button", name="Delete task").click()
    expect(alice.node("first")).to_have_count(0)
    assert "TASK first" not in alice.text


def test_everything_by_keyboard(alice) -> None:
    alice.editor(TWO)
    page = alice.page
    keys = page.keyboard
    page.locator("#graph-pane").focus()
    keys.press("Tab")
    expect(alice.node("first")).to_be_focused()
    keys.press("ArrowDown")
    expect(alice.node("second")).to_be_focused()
    keys.press("c")
    expect(page.get_by_label("When it ends with")).to_be_focused()
    keys.press("Control+a")
    keys.type("fail")
    keys.press("Tab")
    keys.type("first")
    keys.press("Tab")
    keys.press("Tab")
    keys.press("Enter")
    expect(page.locator('g.edge[data-from="second"][data-to="first"]')).to_have_count(1)
    expect(alice.node("second")).to_be_focused()
    keys.press("n")
    keys.type("third")
    keys.press("Enter")
    expect(alice.node("third")).to_be_focused()
    keys.press("F2")
    keys.press("Control+a")
    keys.type("last")
    keys.press("Enter")
    expect(alice.node("last")).to_be_focused()
    keys.press("Delete")
    expect(page.get_by_role("heading", name="Delete last?")).to_be_visible()
    keys.press("Tab")
    keys.press("Enter")
    expect(alice.node("last")).to_have_count(0)
    alice.node("first").focus()
    keys.press("Enter")
    expect(page.locator(".cm-content")).to_be_focused()
    keys.press("Control+s")
    keys.type("By keys alone")
    keys.press("Enter")
    expect(page.locator("#version")).to_have_text("v2")
    page.locator("[role=separator][data-pane=text]").focus()
    wide = page.locator("#text-pane").bounding_box()["width"]
    keys.press("ArrowLeft")
    assert page.locator("#text-pane").bounding_box()["width"] < wide


def test_completion_hover_definition_rename_format_fold_search(alice) -> None:
    alice.editor(TWO)
    page = alice.page
    keys = page.keyboard
    alice.cursor("success -> ")
    keys.press("Control+Space")
    expect(page.locator(".cm-tooltip-autocomplete")).to_contain_text("second")
    keys.press("Escape")
    alice.cursor("tool.run", after=False)
    box = page.locator(".cm-line", has_text="look:").locator("span", has_text="tool.run").bounding_box()
    page.mouse.move(box["x"] + 8, box["y"] + 8)
    expect(page.locator(".hover")).to_contain_text("run")
    page.mouse.move(5, 5)
    alice.cursor("success -> sec")
    keys.press("F12")
    expect(page.locator(".cm-activeLineGutter").first).to_have_text("7")
    keys.press("F2")
    page.get_by_label("New name").fill("finish")
    keys.press("Enter")
    expect(alice.node("finish")).to_be_visible()
    assert alice.text.count("finish") == 2
    alice.cursor("TASK finish {")
    keys.type("\n\n\n\n   ")
    keys.press("Escape")
    alice.looked()
    keys.press("Shift+Alt+F")
    page.get_by_text("Formatted; the meaning").wait_for()
    assert "\n\n\n" not in alice.text
    alice.looked()
    alice.cursor("TASK finish {", after=False)
    keys.press("Control+Shift+BracketLeft")
    expect(page.locator(".cm-foldPlaceholder")).to_have_count(1)
    keys.press("Control+Shift+BracketRight")
    keys.press("Control+f")
    expect(page.locator(".cm-search")).to_be_visible()
    keys.type("echo")
    expect(page.locator(".cm-searchMatch")).to_have_count(1)


HOSTILE = """\
AGENT <img LEVEL 2 {
  START -> a
  TASK a {
    GOAL "<img src=x onerror=alert(1)><script>alert(2)</script>"
    step s: tool.run { cmd: "ls" }
    NEXT { success -> b, fail -> "javascript:alert(3)" }
  }
  TASK b { GOAL "</text></svg><script>alert(4)</script> {{constructor}} ${x}" step s: tool.run { cmd: "ls" } }
}
// </script><script>alert(5)</script>
"""


def test_hostile_text_stays_text(person) -> None:
    alice = person("alice", fresh=True)
    alice.page.on("dialog", lambda dialog: alice.troubles.append(f"a script ran: {dialog.message}"))
    alice.editor(HOSTILE)
    page = alice.page
    expect(page.locator("#problems-list li").first).to_be_visible()
    page.locator('#outline-pane button[data-task="a"]').click()
    expect(page.get_by_label("Goal")).to_have_value(re.compile("<img src=x"))
    for place in (
        "#editor script:not([type])",
        "#graph-pane script",
        "#editor img",
        "#graph-pane foreignObject",
    ):
        expect(page.locator(place)).to_have_count(0)
    page.get_by_role("tab", name="Compiled").click()
    expect(page.locator("#compiled-pane")).not_to_be_empty()


def test_compiled_and_a_step_by_hand(alice) -> None:
    alice.editor(TWO)
    page = alice.page
    page.get_by_role("tab", name="Compiled").click()
    pane = page.locator("#compiled-pane")
    expect(pane).to_contain_text("Starts at")
    page.get_by_text("Program (JSON)").click()
    expect(pane.locator("pre", has_text='"start": "first"')).to_be_visible()
    page.get_by_role("button", name="Begin").click()
    expect(pane.locator(".effect h4")).to_contain_text("It would run run (task first, step look)")
    page.get_by_role("button", name="Go on").click()
    expect(pane.locator(".effect h4")).to_contain_text("task second, step say")
    page.get_by_role("button", name="Go on").click()
    expect(page.locator("#try-step")).to_contain_text("The run would end: succeeded")


def test_pan_zoom_and_fit(alice) -> None:
    alice.editor(TWO)
    page = alice.page
    box = page.locator("#graph-pane").bounding_box()
    value = page.locator("#zoom-value")
    before = value.inner_text()
    page.mouse.move(box["x"] + 30, box["y"] + 30)
    page.mouse.wheel(0, -300)
    expect(value).not_to_have_text(before)
    at = alice.node("first").bounding_box()
    drag(page, (box["x"] + 20, box["y"] + 20), (box["x"] + 70, box["y"] + 60))
    moved = alice.node("first").bounding_box()
    assert moved["x"] - at["x"] == pytest.approx(50, abs=3)
    assert moved["y"] - at["y"] == pytest.approx(40, abs=3)
    page.get_by_role("button", name="Fit").click()
    expect(value).to_have_text(before)


@pytest.mark.parametrize(
    ("word", "section"),
    [("TOOLS", "tools/"), ("CONFIG", "language/#config"), ("nvcc", "tools/#nvcc"),
     ("CudaProfiler", "validators/#cudaprofiler"), ("metric_improved", "language/#edges")],
    ids=["setting", "config", "tool", "validator", "trigger"],
)  # fmt: skip
def test_f1_opens_the_section_about_the_word_at_the_cursor(alice, word: str, section: str) -> None:
    alice.editor(AS_FIRST_WRITTEN)
    page = alice.page
    alice.cursor(word)
    with page.context.expect_page() as opened:
        page.keyboard.press("F1")
    tab = opened.value
    tab.wait_for_url(f"**/docs/{section}")
    anchor = section.partition("#")[2]
    expect(tab.locator(f"[id='{anchor}']" if anchor else "h1").first).to_be_in_viewport()
    tab.close()


def test_the_hover_of_a_word_links_to_the_same_section(alice) -> None:
    alice.editor(AS_FIRST_WRITTEN)
    page = alice.page
    line = page.locator(".cm-line", has_text="VALIDATOR CudaProfiler").first
    line.get_by_text("CudaProfiler").hover()
    link = page.locator(".cm-tooltip .hover a", has_text="Documentation")
    expect(link).to_have_attribute("href", "/docs/validators/#cudaprofiler")
    with page.context.expect_page() as opened:
        link.click()
    opened.value.wait_for_url("**/docs/validators/#cudaprofiler")
    expect(opened.value.locator("[id='cudaprofiler']")).to_be_in_viewport()
    opened.value.close()


def test_f1_where_nothing_is_explained_opens_the_documentation(alice) -> None:
    alice.editor("\n\n// nothing\n" + TWO)
    page = alice.page
    page.locator(".cm-line").first.click()
    with page.context.expect_page() as opened:
        page.keyboard.press("F1")
    opened.value.wait_for_url("**/docs/**")
    expect(opened.value.locator("h1")).to_be_visible()
    opened.value.close()
