"""The editor with a slow server: what a person does before an answer comes is not lost and not done twice."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, Route, expect

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

SPEC = """\
AGENT Two LEVEL 2 {
  START -> first
  TASK first {
    GOAL "Look around."
    step look: tool.run { cmd: "ls" }
    NEXT { success -> second }
  }
  TASK second { step say: tool.run { cmd: "echo done" } }
}
"""


class Held:
    """Questions of a page that reach the server only when the test lets them."""

    def __init__(self, page: Page, words: str) -> None:
        self.page, self.routes = page, list[Route]()
        page.route(re.compile(f"/({words})$"), lambda route: self.routes.append(route))

    def wait(self) -> None:
        while not self.routes:
            self.page.wait_for_timeout(20)

    def go(self) -> None:
        """Lets through the one that came first, once it came."""
        self.wait()
        self.routes.pop(0).continue_()


@pytest.fixture
def alice(person):
    """In a window of her own, since its requests are held."""
    return person("alice", fresh=True)


def test_from_a_change_until_it_is_shown_the_editor_is_busy(alice) -> None:
    """By typing and by a form: nobody has to guess whether an answer is still to come."""
    alice.editor(SPEC)
    alice.looked()
    held = Held(alice.page, "edit/ask/(analyse|edit|panel)")
    busy = alice.page.locator("#editor[aria-busy=true]")
    alice.cursor("Look around")
    alice.page.keyboard.insert_text(" twice")
    assert busy.count() == 1, "before anything is asked"
    held.wait()
    assert busy.count() == 1
    held.go()
    expect(busy).to_have_count(0)
    expect(alice.node("first")).to_contain_text("twice")
    alice.page.locator('#outline-pane button[data-task="first"]').click()
    alice.page.get_by_label("Goal").fill("Look again.")
    alice.page.get_by_label("Goal").blur()
    assert busy.count() == 1
    held.go()
    expect(busy).to_have_count(0)
    assert "Look again." in alice.text


def test_a_dialog_that_is_submitted_twice_acts_once(alice) -> None:
    alice.editor(SPEC)
    page, held = alice.page, Held(alice.page, "edit/ask/edit")
    page.get_by_role("button", name="Task", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("third")
    add = dialog.get_by_role("button", name="Add task")
    add.click()
    held.wait()
    page.keyboard.press("Enter")
    add.click()
    held.go()
    expect(dialog).to_have_count(0)
    alice.looked()
    assert held.routes == []
    assert alice.text.count("TASK third") == 1


def test_a_dialog_that_is_left_while_it_waits_counts_what_it_did(alice) -> None:
    alice.editor(SPEC)
    page, held = alice.page, Held(alice.page, "save/")
    alice.cursor("Look around")
    page.keyboard.insert_text(" twice")
    page.get_by_role("button", name="Save version").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Save version").click()
    held.wait()
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_have_count(0)
    held.go()
    expect(page.locator("#version")).to_have_text("v2")
    expect(page.get_by_role("button", name="Save version")).to_be_disabled()


def test_a_layout_for_a_text_that_has_changed_since_is_not_applied(alice) -> None:
    alice.editor(SPEC.replace("GOAL", "   GOAL"))
    page, held = alice.page, Held(alice.page, "edit/ask/format")
    page.get_by_role("button", name="Format").click()
    held.wait()
    alice.cursor("Look around.")
    page.keyboard.insert_text(" And again, and again, and again.")
    typed = alice.text
    held.go()
    expect(page.locator("#editor-toasts")).to_contain_text("The text changed meanwhile. Try again.")
    assert alice.text == typed


def test_what_is_compiled_is_the_text_of_now(alice) -> None:
    alice.editor(SPEC)
    page, held = alice.page, Held(alice.page, "edit/ask/compiled")
    page.get_by_role("tab", name="Compiled").click()
    held.wait()
    page.get_by_role("tab", name="Edit").click()
    alice.cursor("AGENT Two")
    page.keyboard.insert_text("Fold")
    page.get_by_role("tab", name="Compiled").click()
    while len(held.routes) < 2:
        page.wait_for_timeout(20)
    early, late = held.routes
    pane = page.locator("#compiled-pane")
    late.continue_()
    expect(pane).to_contain_text('"TwoFold"')
    with page.expect_response(lambda answer: "compiled" in answer.url):
        early.continue_()
    page.wait_for_timeout(0)
    expect(pane).to_contain_text('"TwoFold"')


def test_a_draft_that_is_on_its_way_is_no_draft_of_what_was_proposed(alice) -> None:
    path = alice.editor(SPEC)
    page, held = alice.page, Held(alice.page, "edit/draft")
    alice.cursor("Look around.")
    page.keyboard.insert_text(" First.")
    held.wait()
    page.keyboard.insert_text(" Then.")
    page.get_by_role("button", name="Propose").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Title").fill("Look twice")
    dialog.get_by_role("button", name="Propose").click()
    page.wait_for_timeout(300)
    held.go()
    page.wait_for_url("**/patches/1/")
    alice.go(path)
    expect(page.get_by_text("Your draft")).to_have_count(0)


def test_no_draft_is_sent_while_a_version_is_saved(alice) -> None:
    """It would be a draft of the version before, and the answer of the save would not know of it."""
    alice.editor(SPEC)
    page, saves, drafts = alice.page, Held(alice.page, "save/?"), Held(alice.page, "edit/draft")
    alice.cursor("Look around.")
    page.keyboard.insert_text(" First.")
    page.get_by_role("button", name="Save version").click()
    page.get_by_role("dialog").get_by_role("button", name="Save version").click()
    saves.wait()
    page.evaluate("dispatchEvent(new Event('online'))")
    page.evaluate(
        """() => { const { view } = document.querySelector('#text-pane .cm-content').cmTile;
        view.dispatch({ changes: { from: view.state.doc.length, insert: '// more' } }); }"""
    )
    page.wait_for_timeout(2500)  # a draft is sent 1.5 s after a change
    assert not drafts.routes
    saves.go()
    drafts.go()
    alice.looked()
    assert alice.text.endswith("// more")
