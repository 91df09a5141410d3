"""The page of a patch in the browser while others write, a key is pressed twice, and much is folded."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Route, expect

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


def proposed(person, path: str, text: str) -> str:
    """The path of a patch with this text, sent as a program of the page would."""
    asked = person.context.request
    token = re.findall(r'csrfmiddlewaretoken" value="(\w+)', asked.get(f"{person.url}{path}patches/").text())[
        0
    ]
    form = {"csrfmiddlewaretoken": token, "text": text, "base_version": "1", "title": "Many lines"}
    headers = {"Referer": f"{person.url}{path}patches/"}
    answer = asked.post(f"{person.url}{path}patches/propose/", form=form, headers=headers, max_redirects=0)
    assert answer.status == 302, answer.text()
    return str(answer.headers["location"])


def test_what_others_say_comes_in_while_somebody_types(person) -> None:
    """Comments, answers and resolved threads without a reload; what is typed, and the focus, stay."""
    alice, bob = person("alice"), person("bob", color_scheme="dark")
    path = proposed(bob, bob.make(SPEC), SPEC.replace("Look.", "Look around."))
    bob.go(path)
    bob.page.locator("#comment [name=text]").fill("Is this enough?")
    bob.page.get_by_role("button", name="Comment", exact=True).click()
    answer = bob.page.get_by_label("Answer to bob")
    answer.click()
    bob.page.keyboard.type("I mean")
    own = bob.page.locator("#comment [name=text]")
    alice.go(path)
    alice.page.get_by_label("Answer to bob").fill("Yes.")
    alice.page.get_by_role("button", name="Answer", exact=True).click()
    expect(bob.page.locator("#threads .answer")).to_have_text(re.compile("Alice.*Yes."))
    expect(answer).to_be_focused()
    bob.page.keyboard.type(" the second task")
    expect(answer).to_have_value("I mean the second task")
    own.click()
    bob.page.keyboard.type("Half a ")
    alice.page.locator("#comment [name=text]").fill("Another thing.")
    alice.page.get_by_role("button", name="Comment", exact=True).click()
    alice.page.get_by_role("button", name="Resolve").first.click()
    expect(bob.page.locator("#threads .thread")).to_have_count(2)
    expect(bob.page.locator("#threads .thread").first).to_contain_text("Resolved")
    expect(bob.page.locator("#open-threads")).to_have_text("1 open comment")
    bob.page.keyboard.type("sentence")
    expect(own).to_have_value("Half a sentence")
    expect(answer).to_have_value("I mean the second task")
    assert bob.flaws(dark=True) == []


def test_a_part_is_viewed_once_however_often_the_key_is_pressed(person) -> None:
    alice, bob = person("alice", fresh=True), person("bob")
    changed = SPEC.replace("Look.", "Look around.").replace("Say.", "Say it.")
    alice.go(proposed(bob, bob.make(SPEC), changed))
    page, held = alice.page, list[Route]()
    page.route("**/viewed/", lambda route: held.append(route))
    with page.expect_request("**/viewed/"):
        for key in ("j", "v", "v"):
            page.keyboard.press(key)
    page.evaluate("() => new Promise(requestAnimationFrame)")  # what the last key began has begun
    assert len(held) == 1
    held[0].continue_()
    expect(page.get_by_text("1 of 2 viewed")).to_be_visible()
    expect(page.locator("[data-part][open]")).to_have_count(1)
    assert len(held) == 1


def test_what_is_folded_is_loaded_by_the_keyboard(person) -> None:
    bob = person("bob")
    lines = [f"// line {number}" for number in range(500)]
    base = SPEC + "\n".join(lines) + "\n"
    changed = "\n".join(line if n % 2 else f"{line} more" for n, line in enumerate(lines)) + "\n"
    bob.go(proposed(bob, bob.make(base), SPEC + changed))
    edits = bob.page.locator(".hunk")
    expect(edits).to_have_count(150)
    link = bob.page.locator("[data-more] a")
    expect(link).to_have_text(re.compile("Show the next of 100 edits"))
    link.focus()
    bob.page.keyboard.press("Enter")
    expect(edits).to_have_count(250)
    expect(edits.nth(150)).to_be_focused()
    expect(link).to_have_count(0)
    expect(bob.page.locator("#said")).to_have_text("More is shown")
    assert bob.flaws() == []
