"""Patches in the browser: who may not save proposes, others look, one merges what was reviewed."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from browser_runs_kit import ends
from campaign_kit import ledger

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

KEYS = "html[data-review=ready]"
"""A page of a patch that hears its keys: it can be read before its script has come."""
HOSTILE = '<img src=x onerror="alert(1)"> \u202e${7*7}{{7*7}}'
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
WRITES = """\
AGENT Writes LEVEL 4 {
  SYSTEM_MODEL M { HEURISTIC "One." }
  START -> write
  TASK write {
    GOAL "Write a.txt."
    step draft: tool.write_file { path: "a.txt", content: "good" }
    success: file_contains("a.txt", "good")
    NEXT { success -> show, fail -> mend }
  }
  TASK mend {
    TOOLS [write_file]
    step plan: llm.plan { role: "coder" }
    success: file_contains("a.txt", "good")
    RETRIES 3
    NEXT { success -> show, fail -> mend }
  }
  TASK show { step show: tool.read_file { path: "a.txt" } }
}
"""

MENDS = """\
AGENT Mends LEVEL 4 {
  START -> look
  TASK look {
    step one: tool.read_file { path: "b.txt", on_fail: "stop" }
    NEXT { success -> report, fail -> mend }
  }
  TASK mend {
    step again: tool.list_files { path: "." }
    NEXT { success -> report }
  }
  TASK report { step end: tool.list_files { path: "." } }
}
"""


def protect(person, path: str, approvals: int = 1) -> None:
    person.go(f"{path}patches/")
    person.page.get_by_label(re.compile("Required approvals")).fill(str(approvals))
    person.page.get_by_role("button", name="Save protection").click()
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


def save_revision(person, why: str = "") -> None:
    person.page.keyboard.press("Control+s")
    dialog = person.page.get_by_role("dialog")
    dialog.get_by_label(re.compile("What changed")).fill(why)
    dialog.get_by_role("button", name="Save revision").click()


def press_and_say_yes(person, key: str, word: str) -> None:
    """A letter that acts: a question first, and nothing before it is answered."""
    person.page.keyboard.press(key)
    dialog = person.page.get_by_role("dialog")
    expect(dialog).to_contain_text(f"{word} patch")
    dialog.get_by_role("button", name=word).click()


PROTECTS = """\
AGENT Fixes LEVEL 4 {
  START -> fix
  TASK fix {
    step ask: llm.query { prompt_template: "A patch." output_var: fix }
    step apply: tool.apply_patch { patch: "{{fix}}" protect: ["tests/"] }
    success: exit_code(apply) == 0
  }
}
"""


@pytest.mark.findings("B1", "B7")
def test_an_approval_asks_for_a_tick_and_is_taken_back(person) -> None:
    """What the patch loosens is first, its verdict last; letters ask, and can be switched off."""
    alice, bob = person("alice"), person("bob")
    path = bob.make(PROTECTS)
    bob.open(path)
    bob.replace(' protect: ["tests/"]', "")
    bob.page.get_by_role("button", name="Propose").click()
    bob.page.get_by_role("dialog").get_by_label("Title").fill("Only layout")
    bob.page.get_by_role("dialog").get_by_role("button", name="Propose").click()
    bob.page.wait_for_url("**/patches/*/")
    patch = str(bob.page.url).removeprefix(bob.url)

    alice.go(patch)
    alice.page.wait_for_selector(KEYS)
    first, last = alice.page.get_by_label("What the patch loosens"), alice.page.locator("#verdict")
    expect(first).to_contain_text("protect")
    assert first.bounding_box()["y"] < alice.page.get_by_label("Checks").bounding_box()["y"]
    assert alice.page.locator("#text").bounding_box()["y"] < last.bounding_box()["y"]
    expect(alice.page.get_by_label("Checks", exact=True)).to_contain_text("It has no errors.")
    assert alice.flaws(dark=True) == []
    alice.page.keyboard.press("a")  # without the tick the browser leads there
    tick = alice.page.get_by_label(re.compile("looked at what it loosens"))
    expect(tick).to_be_focused()
    expect(alice.page.get_by_role("dialog")).to_have_count(0)
    tick.check()
    alice.page.get_by_role("heading", name="Your verdict").click()
    alice.page.keyboard.press("a")
    alice.page.get_by_role("dialog").get_by_role("button", name="Back").click()
    expect(alice.page.get_by_label("Verdicts")).to_have_count(0)
    press_and_say_yes(alice, "a", "Approve")
    expect(alice.page.get_by_role("status").filter(has_text="You approved it")).to_be_visible()
    expect(alice.page.get_by_role("heading", name="Your verdict")).to_be_focused()
    expect(alice.page.get_by_text("It can be merged")).to_be_visible()
    assert alice.flaws(dark=True) == []
    alice.page.get_by_role("button", name="Take it back").click()
    expect(alice.page.get_by_role("status").filter(has_text="taken back")).to_be_visible()
    expect(alice.page.get_by_text("1 more approval")).to_be_visible()

    alice.go("/me/")
    alice.page.get_by_role("button", name="Turn them off").click()
    expect(alice.page.get_by_text("Shortcuts of single letters are off")).to_be_visible()
    assert alice.flaws(dark=True) == []
    alice.go(patch)
    alice.page.wait_for_selector(KEYS)
    alice.page.get_by_label(re.compile("looked at what it loosens")).check()
    alice.page.get_by_role("heading", name="Your verdict").click()
    for key in ("a", "?", "c"):
        alice.page.keyboard.press(key)
    expect(alice.page.get_by_role("dialog")).to_have_count(0)
    expect(alice.page.locator("#comment textarea").first).not_to_be_focused()
    alice.go("/me/")
    alice.page.get_by_role("button", name="Turn them on").click()


@pytest.mark.findings("B3")
def test_what_widens_is_confirmed_by_an_admin_and_proposed_by_others(person) -> None:
    alice, bob = person("alice"), person("bob")
    path = alice.make(SPEC)
    alice.go(f"{path}patches/")
    alice.page.get_by_label(re.compile("Only an admin saves directly")).select_option("shared")
    alice.page.get_by_role("button", name="Save protection").click()
    for who in (bob, alice):
        who.open(path)
        who.replace('tool.list_files { path: "src" }', 'tool.run { cmd: "true" }')
        who.page.get_by_role("button", name="Save version").click()
        who.page.get_by_role("dialog").get_by_label(re.compile("What changed")).fill("Run it")
        who.page.get_by_role("dialog").get_by_role("button", name="Save version").click()
        expect(who.page.get_by_role("heading", name=re.compile("This text widens what"))).to_be_visible()
        who.forget("409 (Conflict)")
        assert who.flaws(dark=True) == []
    expect(bob.page.get_by_role("button", name=re.compile("^Widen"))).to_have_count(0)
    bob.page.get_by_role("button", name="Propose as a patch").click()
    expect(bob.page.get_by_role("heading", name=re.compile("#1 Run it"))).to_be_visible()
    expect(bob.page.locator("#patch")).to_contain_text("Widens")
    alice.page.get_by_role("button", name=re.compile("^Widen")).click()
    expect(alice.page.get_by_text("Saved as version 2.")).to_be_visible()
    alice.go(f"{path}history/")
    expect(alice.page.get_by_text("widened by alice")).to_be_visible()


def test_who_may_not_save_proposes_and_another_approves(person) -> None:
    alice, bob = person("alice"), person("bob", color_scheme="dark")
    path = alice.make(SPEC)
    protect(alice, path)
    bob.open(path)
    expect(bob.page.get_by_role("button", name="Save version")).to_have_count(0)
    expect(bob.page.get_by_text("protected", exact=True)).to_be_visible()
    bob.replace('"Look."', '"Look around."')
    expect(bob.page.locator("#draft-state")).to_contain_text("Draft saved")
    patch = propose(bob, "Look around", "It sees more.")
    expect(bob.page.get_by_role("heading", name=re.compile("#1 Look around"))).to_be_visible()
    assert bob.flaws() == []
    bob.go(path)
    expect(bob.page.get_by_text("Your draft")).to_have_count(0)

    alice.go("/t/demo-team/")
    expect(alice.page.get_by_role("navigation", name="Main")).to_contain_text("waiting for you")
    alice.page.get_by_role("link", name=re.compile("Look around")).click()
    alice.page.get_by_role("list", name="Tasks that differ").get_by_role("button").click()
    expect(alice.page.locator("#both [data-found]")).to_have_attribute("data-task", "first")
    expect(alice.page.get_by_role("status").first).to_have_text("first is in the middle of the graph")
    alice.page.get_by_role("link", name="0 open comments").click()
    expect(alice.page.get_by_role("heading", name="Conversation")).to_be_in_viewport()
    assert alice.flaws(dark=True) == []
    alice.page.get_by_role("button", name="Approve").click()
    expect(alice.page.get_by_text("It can be merged")).to_be_visible()
    bob.go(patch)
    bob.page.get_by_role("button", name="Merge").click()
    expect(bob.page.get_by_text("byte for byte as it was reviewed")).to_be_visible()
    bob.open(path)
    assert bob.text == SPEC.replace("Look.", "Look around.")


def test_a_campaign_arrives_and_is_merged_run_and_reverted(person, tmp_path) -> None:
    """One edit is dropped, a comment answered, a second person approves by keyboard; names are hostile."""
    alice, bob = person("alice"), person("bob", color_scheme="dark")
    path = bob.make(WRITES)
    file = tmp_path / "trace.jsonl"
    file.write_bytes(ledger(tmp_path, HOSTILE, 0.95, WRITES, "set-goal write 'Write it twice.'"))
    bob.go(f"{path}patches/")
    bob.page.get_by_label(re.compile("trace.jsonl")).set_input_files(file)
    bob.page.get_by_role("button", name="Propose its candidates").click()
    bob.page.wait_for_url("**/patches/1/")
    patch = str(bob.page.url).removeprefix(bob.url)
    expect(bob.page.locator(".pill", has_text="Fit for review")).to_be_visible()
    expect(bob.page.get_by_role("img", name=re.compile("Evidence .* accepts"))).to_be_visible()

    alice.go(patch)
    expect(alice.page.get_by_role("heading", name=re.compile("#1 .*<img"))).to_be_visible()
    expect(alice.page.get_by_label("Checks", exact=True)).to_contain_text(
        "It has no errors."
    )  # without a reload
    alice.page.keyboard.press("c")
    alice.page.keyboard.type(f"Why twice? {HOSTILE}")
    alice.page.get_by_role("button", name="Comment", exact=True).click()
    assert alice.flaws(dark=True) == []

    bob.page.reload()
    bob.page.get_by_label("Answer to Alice").fill(f"The first look misses half. {HOSTILE}")
    bob.page.get_by_role("button", name="Answer", exact=True).click()
    bob.page.get_by_label("Why drop edit 2").fill("Not the goal")
    bob.page.get_by_role("button", name="Drop edit 2").click()
    expect(bob.page.get_by_text("Without edit 2: Not the goal")).to_be_visible()
    expect(bob.page.get_by_text("Of revision 1")).to_be_visible()  # the campaign tested another text
    assert bob.flaws() == []

    said = alice.page.get_by_text("Revision 2 came in while you were looking")
    expect(said).to_be_visible()  # live, on her open page
    said.get_by_role("link").click()
    alice.page.wait_for_selector(KEYS)
    expect(alice.page.get_by_text("The first look misses half.")).to_be_visible()
    alice.page.get_by_placeholder("Comment (optional)").fill(HOSTILE)
    alice.page.locator("h2").first.click()
    for key in ("j", "v"):
        alice.page.keyboard.press(key)
    expect(alice.page.get_by_text(re.compile("^1 of . viewed"))).to_be_visible()
    press_and_say_yes(alice, "a", "Approve")
    expect(alice.page.get_by_text("It can be merged")).to_be_visible()
    expect(bob.page.get_by_text("It can be merged")).to_be_visible()  # live, on his
    bob.page.locator("h2").first.click()
    press_and_say_yes(bob, "m", "Merge")
    expect(bob.page.get_by_text("byte for byte as it was reviewed")).to_be_visible()

    bob.go(f"{path}run/")
    expect(bob.page.get_by_label("Version")).to_have_value("2")
    bob.page.get_by_role("button", name="Start the run").click()
    ends(bob, "Succeeded")
    expect(bob.page.locator("h1 .version-link")).to_have_text("v2")
    bob.go(patch)
    expect(bob.page.get_by_text("Since the merge: 1 run of version 2")).to_be_visible()
    bob.page.get_by_role("button", name="Revert as a patch").click()
    bob.page.wait_for_url("**/patches/2/")
    expect(bob.page.get_by_role("heading", name=re.compile("#2 Revert patch 1"))).to_be_visible()
    bob.go(f"{path}blame/")
    expect(bob.page.get_by_text("verified")).to_be_visible()
    assert bob.flaws() == []


def test_a_review_by_the_keyboard_alone(person) -> None:
    """From Home to the merge in 60 keys at most, so that at a key a second it takes a minute; no mouse."""
    alice, bob = person("alice"), person("bob")
    path = bob.make(SPEC)
    bob.go(f"{path}patches/")
    bob.page.get_by_label("Title").fill("Look and say more")
    field = bob.page.get_by_label(re.compile("The spec as it should be"))
    field.fill("--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n")
    bob.page.get_by_role("button", name="Propose", exact=True).click()
    bob.page.get_by_role("link", name="Back to the form").click()
    expect(bob.page.get_by_label("Title")).to_have_value("Look and say more")  # nothing is lost
    expect(field).to_have_value(re.compile("^--- a"))
    bob.forget("400 (Bad Request)")
    text = SPEC.replace("Look.", "Look around.").replace("Say.", "Say it.")
    bob.page.get_by_label(re.compile("The spec as it should be")).fill(text)
    bob.page.get_by_role("button", name="Propose", exact=True).click()
    bob.page.wait_for_url("**/patches/1/")

    page, pressed = alice.page, 0

    def press(*keys: str) -> None:
        nonlocal pressed
        for key in keys:
            pressed += 1
            page.keyboard.press(key)

    def focused() -> str:
        return str(page.evaluate("document.activeElement.closest('a')?.innerText ?? ''"))

    alice.go("/t/demo-team/")
    press("g", "p")
    page.wait_for_url("**/reviews/")
    while "Look and say more" not in focused() and pressed < 60:
        press("Tab")
    press("Enter")
    page.wait_for_selector(KEYS)
    expect(page.get_by_text("0 of 2 viewed")).to_be_visible()
    expect(page.get_by_label("Checks", exact=True)).to_contain_text("It has no errors.")
    press("j", "v")
    expect(page.locator("[data-part]").nth(1).locator("summary")).to_be_focused()
    press("v")
    expect(page.locator("[data-part][open]")).to_have_count(0)
    press("a", "Tab", "Enter")  # Back is first
    page.wait_for_url("**/#verdict")
    page.wait_for_selector(KEYS)
    expect(page.get_by_text("It can be merged")).to_be_visible()
    press("m", "Tab", "Enter")
    expect(page.get_by_text("byte for byte as it was reviewed")).to_be_visible()
    assert pressed <= 60, pressed


def test_two_patches_conflict_and_the_choice_is_by_task(person) -> None:
    """The second patch's evidence is stale once the first is merged, and both changed one task."""
    alice, bob = person("alice"), person("bob")
    path = alice.make(SPEC)
    patches = []
    for who, words in ((alice, "Look here."), (bob, "Look there.")):
        who.open(path)
        who.replace('"Look."', f'"{words}"')
        who.page.get_by_role("button", name="Propose").click()
        dialog = who.page.get_by_role("dialog")
        dialog.get_by_label("Title").fill(words)
        dialog.get_by_role("button", name="Propose").click()
        who.page.wait_for_url("**/patches/*/")
        patches.append(str(who.page.url).removeprefix(who.url))
    expect(bob.page.get_by_label("Checks", exact=True)).to_contain_text("It has no errors.")
    alice.go(patches[1])
    alice.page.get_by_role("button", name="Approve").click()
    bob.page.get_by_role("button", name="Merge").and_(bob.page.locator(":enabled")).click()
    expect(bob.page.get_by_text("byte for byte as it was reviewed")).to_be_visible()

    alice.go(patches[0])
    expect(alice.page.get_by_label("Checks", exact=True)).to_contain_text("Stale")
    expect(alice.page.get_by_text("The spec is at version 2")).to_be_visible()
    assert alice.flaws(dark=True) == []
    alice.page.get_by_role("button", name="Bring up to date").click()
    expect(alice.page.get_by_role("heading", name=re.compile("1 conflict of patch"))).to_be_visible()
    assert alice.flaws(dark=True) == []
    own = alice.page.get_by_label("Your own text of first")
    own.fill(own.input_value().replace("Look here.", "Look everywhere."))
    expect(alice.page.get_by_label("A text of my own")).to_be_checked()
    alice.page.get_by_role("button", name="Make the new revision").click()
    expect(alice.page.get_by_text("Conflicts with version 2 resolved")).to_be_visible()
    expect(alice.page.locator(".changes ins").first).to_have_text("Look everywhere.")
    expect(alice.page.get_by_label("Checks", exact=True)).to_contain_text("It has no errors.")


def test_flips_by_task_of_a_recorded_run(person) -> None:
    """A run mended what the patch no longer counts as a failure: two tasks flip, with a link to the run."""
    alice, bob = person("alice", color_scheme="dark"), person("bob")
    path = bob.make(MENDS)
    bob.go(f"{path}run/")
    bob.page.get_by_role("button", name="Start the run").click()
    ends(bob, "Completed, unchecked")
    run = str(bob.page.url).removeprefix(bob.url)
    bob.open(path)
    bob.replace('"stop"', '"continue"')
    bob.page.get_by_role("button", name="Propose").click()
    bob.page.get_by_role("dialog").get_by_label("Title").fill("Go on without the file")
    bob.page.get_by_role("dialog").get_by_role("button", name="Propose").click()
    bob.page.wait_for_url("**/patches/*/")
    expect(bob.page.get_by_label("Checks", exact=True)).to_contain_text("coverage 100 %")
    expect(bob.page.get_by_text("No flip of report.")).to_be_visible()  # without a reload
    alice.go(str(bob.page.url).removeprefix(bob.url))
    for who, name in ((bob, "light"), (alice, "dark")):
        who.page.reload()
        table = who.page.get_by_role("table", name=re.compile("Flips by task"))
        expect(table.get_by_role("row", name=re.compile("^look"))).to_contain_text(
            "fail to mend → success to report"
        )
        expect(table.get_by_role("row", name=re.compile("^mend"))).to_contain_text("never entered")
        expect(who.page.get_by_text("No flip of report.")).to_be_visible()
        table.scroll_into_view_if_needed()
        assert who.flaws(dark=name == "dark") == []
    table.get_by_role("link").first.click()
    alice.page.wait_for_url(f"**{run}")


def test_two_patches_go_through_the_queue_one_on_top_of_the_other(person) -> None:
    """Bob sees his place and, without a reload, that a worker brought his patch up to date and merged it."""
    alice, bob = person("alice"), person("bob", color_scheme="dark")
    path = alice.make(SPEC)
    protect(alice, path)
    for words in ("Merge through the queue", "Keep approvals"):
        alice.page.get_by_label(re.compile(words)).check()
    alice.page.get_by_role("button", name="Save protection").click()
    expect(alice.page.get_by_text("No patch waits to be merged.")).to_be_visible()
    assert alice.flaws(dark=True) == []
    alice.go("/t/demo-team/members/")
    alice.page.get_by_role("link", name="Rules of review").click()
    expect(alice.page.get_by_role("heading", name="Specs with rules of their own")).to_be_visible()
    assert alice.flaws(dark=True) == []
    patches = []
    for old, new in (('"Look."', '"Look around."'), ('"Say."', '"Say it."')):
        bob.open(path)
        bob.replace(old, new)
        patches.append(propose(bob, new.strip('"')))
        alice.go(patches[-1])
        alice.page.get_by_role("button", name="Approve").click()
    for patch in patches:
        bob.go(patch)
        bob.page.get_by_role("button", name="Queue to merge").click()
    assert bob.flaws() == []
    expect(bob.page.get_by_text("byte for byte as it was reviewed")).to_be_visible(timeout=60_000)
    bob.page.reload()
    expect(bob.page.get_by_text("Brought up to version 2")).to_be_visible()
    bob.open(path)
    assert bob.text == SPEC.replace("Look.", "Look around.").replace("Say.", "Say it.")


def test_a_patch_is_reopened_in_the_editor_by_two_at_once(person) -> None:
    """Both save a revision of the same patch: the second takes in what the first changed."""
    alice, bob = person("alice"), person("bob", color_scheme="dark")
    path = bob.make(SPEC)
    protect(alice, path)
    bob.open(path)
    bob.replace('"Look."', '"Look around."')
    patch = propose(bob, "Look around")
    for who in (alice, bob):
        who.go(patch)
        who.page.keyboard.press("i")
        who.page.wait_for_selector("#editor[data-ready=true]")
    alice.replace('"Say."', '"Say it."')
    bob.replace('"Look around."', '"Look everywhere."')
    expect(bob.page.locator("#draft-state")).to_contain_text("Draft saved")
    save_revision(alice, "Say more")
    alice.page.wait_for_url("**/patches/1/")
    expect(alice.page.get_by_text("Alice made revision 2. Say more")).to_be_visible()

    bob.page.reload()
    bob.page.wait_for_selector("#editor[data-ready=true]")
    expect(bob.page.get_by_text("Alice made revision 2 in between.")).to_be_visible()
    bob.page.locator("#text-pane .cm-content").focus()
    bob.expected.append("409")
    save_revision(bob)
    expect(bob.page.get_by_text("Both changes fit together.")).to_be_visible()
    assert bob.flaws() == []
    bob.page.get_by_role("button", name="Take both").click()
    save_revision(bob)
    bob.page.wait_for_url("**/patches/1/")
    expect(bob.page.get_by_text("revision 3 on version 1")).to_be_visible()
    bob.open(path)
    assert bob.text == SPEC
    bob.go(f"{patch}edit/")
    bob.page.wait_for_selector("#editor[data-ready=true]")
    assert bob.text == SPEC.replace("Look.", "Look everywhere.").replace("Say.", "Say it.")
