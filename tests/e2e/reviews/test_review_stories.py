"""Patches in the browser: who may not save proposes, others look, one merges what was reviewed."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

SPEC = """\
AGENT Two LEVEL 2 {
  START -> first
  TASK first {
    GOAL "Look."
    step look: tool.list_files { path: "." }
    NEXT { success -> second }
  }

  TASK second {
    GOAL "Say."
    step say: tool.list_files { path: "src" }
  }
}
"""


def replace(person, old: str, new: str) -> None:
    person.cursor(old)
    for _ in old:
        person.page.keyboard.press("Backspace")
    person.page.keyboard.insert_text(new)


def protect(person, path: str, approvals: int = 1) -> None:
    person.go(f"{path}patches/")
    person.page.get_by_label(re.compile("Approvals that a change needs")).fill(str(approvals))
    person.page.get_by_role("button", name="Set").click()
    expect(person.page.get_by_text("Protected: a change needs")).to_be_visible()


def propose(person, title: str, why: str = "") -> str:
    """The path of the patch that the editor's text becomes, by Ctrl+S of a protected spec."""
    person.page.keyboard.press("Control+s")
    dialog = person.page.get_by_role("dialog")
    dialog.get_by_label("Title").fill(title)
    dialog.get_by_label(re.compile("Why")).fill(why)
    dialog.get_by_role("button", name="Propose").click()
    person.page.wait_for_url("**/patches/*/")
    return str(person.page.url).removeprefix(person.url)


def test_who_may_not_save_proposes_and_another_approves(person) -> None:
    alice, bob = person("alice"), person("bob", color_scheme="dark")
    path = alice.make(SPEC)
    protect(alice, path)
    bob.open(path)
    expect(bob.page.get_by_role("button", name="Save version")).to_have_count(0)
    expect(bob.page.get_by_text("protected", exact=True)).to_be_visible()
    replace(bob, '"Look."', '"Look around."')
    expect(bob.page.locator("#draft-state")).to_contain_text("Draft saved")
    patch = propose(bob, "Look around", "It sees more.")
    expect(bob.page.get_by_role("heading", name=re.compile("#1 Look around"))).to_be_visible()
    assert bob.flaws() == []
    bob.go(path)
    expect(bob.page.get_by_text("Your draft")).to_have_count(0)

    alice.go("/t/demo-team/")
    expect(alice.page.get_by_role("navigation", name="Main")).to_contain_text("waiting for you")
    alice.page.get_by_role("link", name=re.compile("Look around")).click()
    assert alice.flaws(dark=True) == []
    alice.page.get_by_role("button", name="Approve").click()
    expect(alice.page.get_by_text("It can be merged")).to_be_visible()
    bob.go(patch)
    bob.page.get_by_role("button", name="Merge").click()
    expect(bob.page.get_by_text("byte for byte as it was reviewed")).to_be_visible()
    bob.open(path)
    assert bob.text == SPEC.replace("Look.", "Look around.")
