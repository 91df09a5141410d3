"""The form of a task in the editor: everything a task has is changed without touching the text."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

SPEC = """\
AGENT Forms LEVEL 4 {
  CONFIG { MEMORY FIFO } // kept
  START -> work
  TASK work {
    // first a look
    step look: tool.run { cmd: "ls" }
    step write: tool.write_file { path: "a.txt", content: "a" } // then this
  }
}
"""


def form(page, name: str):
    return page.locator(f'#properties-pane [name="{name}"]')


def unfold(page, *names: str) -> None:
    for name in names:
        page.locator(f'#properties-pane [data-fold="{name}"] > summary').click()


def test_everything_of_a_task_is_edited_in_its_form(alice) -> None:
    alice.editor(SPEC)
    page = alice.page
    form(page, "add-step").click()
    page.get_by_label("Name", exact=True).fill("find")
    page.get_by_label("Kind", exact=True).select_option("tool.run")
    page.get_by_role("dialog").get_by_role("button", name="Add step").click()
    expect(form(page, "kind.find")).to_be_focused()
    form(page, "step.find.cmd").fill('grep "a" a.txt')
    form(page, "step.find.cmd").press("Enter")
    expect(form(page, "step.find.cmd")).to_have_value('grep "a" a.txt')
    alice.looked()
    assert 'step find: tool.run { cmd: "grep \\"a\\" a.txt" }' in alice.text

    unfold(page, "more.find")
    form(page, "step.find.on_fail").select_option("continue")
    alice.looked()
    assert "on_fail: continue" in alice.text
    form(page, "up-step.find").click()
    alice.looked()
    assert alice.text.index("step find") < alice.text.index("step write")
    form(page, "rename-step.find").click()
    page.get_by_label("New name").fill("seen")
    page.keyboard.press("Enter")
    expect(form(page, "rename-step.seen")).to_be_focused()

    unfold(page, "Tools and validation")
    form(page, "task.TOOLS").select_option("run")
    form(page, "task.VALIDATOR").select_option("PyTest")
    form(page, "task.VALIDATOR.paths").fill("tests/\nmore/")
    form(page, "task.VALIDATOR.paths").blur()
    alice.looked()
    assert 'VALIDATOR PyTest { paths: ["tests/", "more/"] }' in alice.text
    assert "TOOLS [run]" in alice.text
    unfold(page, "Conditions")
    form(page, "condition.success").fill("exit_code(seen) == 0")
    form(page, "condition.success").blur()
    unfold(page, "Budget of the task")
    form(page, "task.BUDGET.evaluations").fill("7")
    form(page, "task.BUDGET.evaluations").blur()
    unfold(page, "Agent: memory and budget")
    form(page, "agent.MEMORY").select_option("SUMMARIZE")
    form(page, "agent.BUDGET.steps").fill("40")
    form(page, "agent.BUDGET.steps").blur()
    alice.looked()
    for written in (
        "success: exit_code(seen) == 0",
        "BUDGET { evaluations: 7 }",
        "MEMORY SUMMARIZE",
        "BUDGET { steps: 40 }",
        "// kept",
        "// first a look",
        "// then this",
    ):
        assert written in alice.text, written
    form(page, "remove-step.seen").click()
    alice.looked()
    assert "step seen" not in alice.text
    while alice.text != SPEC:
        before = alice.text
        page.get_by_role("button", name="Undo", exact=True).first.click()
        page.wait_for_function(
            "(was) => document.querySelector('#text-pane .cm-content')"
            ".cmTile.view.state.doc.toString() !== was",
            arg=before,
        )
    alice.looked()
    unfold(page, "step.look")
    expect(form(page, "step.look.cmd")).to_have_value("ls")


def test_a_click_is_not_lost_where_the_form_is_drawn_anew_under_it(alice) -> None:
    """To press a fold ends a change of a field, whose answer redraws the form before the release."""
    alice.editor(SPEC)
    page = alice.page
    unfold(page, "Budget of the task")
    form(page, "task.BUDGET.evaluations").fill("7")
    agent = page.locator('#properties-pane [data-fold="Agent: memory and budget"] > summary')
    agent.hover()
    with page.expect_response("**/edit/ask/edit"):
        page.mouse.down()
    page.wait_for_timeout(100)  # it would be drawn by now
    page.mouse.up()
    expect(form(page, "agent.MEMORY")).to_be_visible()
    alice.looked()
    assert "BUDGET { evaluations: 7 }" in alice.text


def test_what_is_typed_while_the_form_is_drawn_anew_is_written(alice) -> None:
    """The browser tells no change of a control whose value was set, and what was typed stayed unwritten."""
    alice.editor(SPEC)
    page, asked = alice.page, []
    unfold(page, "Budget of the task", "Agent: memory and budget")
    page.route("**/edit/ask/edit", lambda route: route.continue_() if asked else asked.append(route))
    form(page, "task.BUDGET.evaluations").fill("7")
    form(page, "agent.BUDGET.steps").press_sequentially("4")
    while not asked:
        page.wait_for_timeout(50)
    form(page, "task.BUDGET.evaluations").evaluate("item => { item.old = true; }")
    asked[0].continue_()
    page.wait_for_function("() => !document.querySelector('[name=\"task.BUDGET.evaluations\"]').old")
    expect(form(page, "agent.BUDGET.steps")).to_be_focused()
    page.keyboard.type("0")
    page.keyboard.press("ArrowLeft")
    form(page, "agent.BUDGET.steps").blur()
    page.wait_for_function("() => !document.querySelector('#editor').hasAttribute('aria-busy')")
    expect(page.locator("#text-pane .cm-content")).to_contain_text("BUDGET { steps: 40 }")
    assert "BUDGET { evaluations: 7 }" in alice.text


def test_a_wrong_value_is_refused_beside_its_field(alice) -> None:
    alice.editor(SPEC)
    page = alice.page
    unfold(page, "Conditions")
    form(page, "condition.success").fill("and and")
    form(page, "condition.success").press("Escape")
    form(page, "condition.success").blur()
    expect(page.locator('[data-field="condition.success"] .problem')).to_contain_text("condition")
    assert alice.text == SPEC
    expect(form(page, "condition.success")).to_have_value("and and")


def test_a_condition_is_completed_by_the_keyboard(alice) -> None:
    alice.editor(SPEC)
    page = alice.page
    page.locator('#properties-pane [data-fold="Conditions"] > summary').focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    condition = form(page, "condition.success")
    expect(condition).to_be_focused()
    page.keyboard.type("file_c")
    option = page.get_by_role("option", name="file_contains")
    expect(option).to_be_visible()
    page.keyboard.press("Enter")
    expect(option).to_be_hidden()
    expect(condition).to_have_value('file_contains("path", "text")')
    page.keyboard.press("Enter")
    alice.looked()
    assert 'success: file_contains("path", "text")' in alice.text


def test_a_step_is_moved_by_the_keyboard(alice) -> None:
    alice.editor(SPEC)
    page = alice.page
    page.locator('#properties-pane [data-fold="step.write"] > summary').focus()
    page.keyboard.press("Alt+ArrowUp")
    alice.looked()
    assert alice.text.index("step write") < alice.text.index("step look")
    assert 'content: "a" } // then this' in alice.text


def test_axe_finds_nothing_serious_in_the_open_form(alice) -> None:
    alice.editor(SPEC)
    closed = alice.page.locator(".task-form details:not([open])")
    while closed.count():  # what is unfolded has folds of its own
        closed.first.evaluate("item => { item.open = true; }")
    assert alice.flaws(dark=True) == []


def test_what_is_folded_costs_no_layout(alice) -> None:
    """Each part with a select that was folded cost a layout of the whole page, at every key."""
    alice.editor(SPEC)
    form_of = alice.page.locator(".task-form")
    assert form_of.locator("details").count() > 5
    assert form_of.locator("details:not([open]) :is(select, textarea, input)").count() == 0
    unfold(alice.page, "step.look")
    expect(form(alice.page, "kind.look")).to_be_visible()
