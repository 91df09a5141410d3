"""Nothing is lost and nothing is overwritten: two people, a server that is away, a session that ended."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest
from playwright.sync_api import TimeoutError as PlaywrightTimeout
from playwright.sync_api import expect

from platform_kit import manage

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

SPEC = """\
AGENT Two LEVEL 2 {
  START -> first
  TASK first {
    GOAL "Look."
    step look: tool.run { cmd: "ls" }
    NEXT { success -> second }
  }

  TASK second {
    GOAL "Say."
    step say: tool.run { cmd: "echo done" }
  }
}
"""
AWAY = [r"net::ERR_", r"WebSocket connection", r"status of 50\d"]
"""What a browser says of a server that is not there."""
SIGNED_OUT = [r"status of 40[13]", r"WebSocket connection"]
STALE = [r"status of 409"]


def save(person, message: str = "") -> None:
    person.page.keyboard.press("Control+s")
    dialog = person.page.get_by_role("dialog")
    dialog.get_by_label(re.compile("What changed")).fill(message)
    dialog.get_by_role("button", name="Save version").click()


def test_two_people_save_the_same_base_and_both_changes_stay(person) -> None:
    alice, bob = person("alice"), person("bob")
    bob.expected += STALE
    path = alice.editor(SPEC)
    bob.open(path)
    expect(alice.page.locator("#presence")).to_contain_text("Bob is here too")
    alice.replace('"Look."', '"Look around."')
    bob.replace('"Say."', '"Say it."')
    save(alice, "Look around")
    expect(alice.page.locator("#version")).to_have_text("v2")
    expect(bob.page.locator("[data-banner=newer]")).to_contain_text("Alice saved version 2")
    save(bob, "Say it")
    dialog = bob.page.get_by_role("dialog")
    expect(dialog).to_contain_text("Someone else saved first")
    expect(dialog).to_contain_text("can be combined without a conflict")
    dialog.get_by_role("button", name="Merge").click()
    merged = bob.page.locator("textarea[name=text]")
    expect(merged).to_have_value(re.compile(r'"Look around\."[^}]*\}[\s\S]*"Say it\."'))
    expect(bob.page.get_by_text("No conflicts left")).to_be_visible()
    bob.page.get_by_role("button", name="Save as version 3").click()
    bob.page.wait_for_url(f"**{path}")
    bob.page.goto(f"{bob.url}{path}compare/?old=1&new=3")
    expect(bob.page.locator(".cm-mergeView .cm-changedLine")).to_have_count(4)
    expect(bob.page.locator("main")).to_contain_text("Look around.")
    bob.page.get_by_text("As a table").click()
    expect(bob.page.locator("table.diff tr.changed")).to_have_count(2)


def test_a_conflict_is_shown_and_never_the_last_write_wins(person) -> None:
    alice, bob = person("alice"), person("bob")
    bob.expected += STALE
    path = alice.editor(SPEC)
    bob.open(path)
    alice.replace('"Say."', '"Say yes."')
    bob.replace('"Say."', '"Say no."')
    save(alice)
    expect(alice.page.locator("#version")).to_have_text("v2")
    save(bob)
    dialog = bob.page.get_by_role("dialog")
    expect(dialog).to_contain_text("1 place changed on both sides")
    dialog.get_by_role("button", name="Keep editing").click()
    assert '"Say no."' in bob.text
    bob.page.reload()
    bob.page.wait_for_selector("#editor[data-ready=true]")
    assert '"Say no."' in bob.text  # his draft
    save(bob)
    bob.page.get_by_role("dialog").get_by_role("button", name="Merge").click()
    expect(bob.page.locator("textarea[name=text]")).to_have_value(re.compile(r"Say no[\s\S]*Say yes"))
    button = bob.page.get_by_role("button", name="Save as version 3")
    expect(button).to_be_disabled()
    bob.page.get_by_role("button", name="Keep both").click()
    expect(bob.page.locator(".conflicts li")).to_have_count(0)
    bob.page.get_by_role("button", name="Undo").or_(bob.page.locator(".cm-merge-b .cm-content")).first.focus()
    bob.page.keyboard.press("Control+z")
    bob.page.get_by_role("button", name="Keep yours").click()
    expect(bob.page.locator("textarea[name=text]")).to_have_value(SPEC.replace("Say.", "Say no."))
    button.click()
    bob.page.wait_for_url(f"**{path}")
    alice.page.reload()
    alice.page.wait_for_selector("#editor[data-ready=true]")
    assert '"Say no."' in alice.text
    expect(alice.page.locator("#version")).to_have_text("v3")


def test_saving_unchanged_text_makes_no_version(alice) -> None:
    alice.editor(SPEC)
    expect(alice.page.get_by_role("button", name="Save version")).to_be_disabled()
    alice.page.locator(".cm-content").focus()
    alice.page.keyboard.press("Control+s")
    alice.page.get_by_text("Nothing has changed since version 1").wait_for()


def test_run_with_unsaved_changes_saves_them_first(alice) -> None:
    path = alice.editor(SPEC)
    run = alice.page.locator(".acts a:has-text('Run')")
    alice.replace('"Say."', '"Say it and run."')
    run.click()
    dialog = alice.page.get_by_role("dialog")
    expect(dialog).to_contain_text("Save version 2 and run it")
    dialog.get_by_role("button", name="Cancel").click()
    assert alice.page.url.endswith(f"{path}edit/")
    alice.page.get_by_text(re.compile("Draft saved")).wait_for()
    alice.go(f"{path}run/")  # by another way: the form says what it leaves out
    notice = alice.page.locator("main .message", has_text="unsaved changes")
    expect(notice).to_contain_text("runs version 1")
    assert alice.flaws(dark=True) == []
    notice.get_by_role("link", name="Open the editor").click()
    alice.page.wait_for_selector("#editor[data-ready=true]")
    run.click()
    dialog.get_by_role("button", name="Save and run").click()
    alice.page.wait_for_url(f"**{path}run/")
    expect(alice.page.locator("select[name=version]")).to_have_value("2")
    expect(notice).to_have_count(0)


def test_a_draft_survives_a_closed_tab(alice) -> None:
    path = alice.editor(SPEC)
    alice.replace('"Say."', '"Say it twice."')
    alice.page.get_by_text(re.compile("Draft saved")).wait_for()
    alice.page.close()
    alice.page = alice.context.new_page()
    alice.watch(alice.page)
    alice.open(path)
    assert '"Say it twice."' in alice.text
    expect(alice.page.locator("[data-banner=draft]")).to_contain_text("Your draft of")
    alice.page.get_by_role("button", name="Discard draft").click()
    expect(alice.page.locator("[data-banner=draft]")).to_have_count(0)
    assert alice.text == SPEC


def test_the_server_goes_away_while_typing(alice, platform) -> None:
    alice.expected += AWAY
    path = alice.editor(SPEC)
    platform.stop()
    try:
        alice.replace('"Say."', '"Said while it was away."')
        banner = alice.page.locator("[data-banner=away]")
        expect(banner).to_contain_text("your text is stored in this browser")
        alice.page.wait_for_function(
            "() => Object.entries(localStorage).some(([key, text]) => "
            "key.startsWith('spak-draft') && text.includes('Said while it was away'))"
        )
    finally:
        platform.start()
    expect(banner).to_have_count(0)
    expect(alice.page.locator("#draft-state")).to_contain_text("Draft saved")
    expect(alice.page.locator("#problems-summary")).to_contain_text("No problems")
    alice.page.goto(alice.page.url.replace("/edit/", "/history/"))
    alice.open(path)
    assert "Said while it was away" in alice.text


def test_the_tab_is_closed_while_the_server_is_away(alice, platform) -> None:
    alice.expected += AWAY
    path = alice.editor(SPEC)
    platform.stop()
    try:
        alice.replace('"Say."', '"Kept by the browser."')
        alice.page.locator("[data-banner=away]").wait_for()
        alice.page.close()
    finally:
        platform.start()
    alice.page = alice.context.new_page()
    alice.watch(alice.page)
    alice.open(path)
    assert "Kept by the browser." in alice.text
    expect(alice.page.locator("[data-banner=draft]")).to_contain_text(
        "Restored unsaved text from this browser"
    )


def test_the_session_ends_while_typing(alice) -> None:
    alice.expected += SIGNED_OUT
    alice.editor(SPEC)
    alice.context.clear_cookies(name="sessionid")
    alice.replace('"Say."', '"Said after the end."')
    banner = alice.page.locator("[data-banner=away]")
    expect(banner).to_contain_text("You are signed out. Your text is stored in this browser")
    with alice.context.expect_page() as opened:
        banner.get_by_role("link", name="Sign in").click()
    other = opened.value
    other.fill("[name=login]", "alice")
    other.fill("[name=password]", "spak-demo")
    other.press("[name=password]", "Enter")
    other.wait_for_url("**/edit/")
    other.close()
    alice.page.bring_to_front()
    with suppress(PlaywrightTimeout):  # the page may find out by itself first
        banner.get_by_role("button", name="I am signed in again").click(timeout=2000)
    expect(banner).to_have_count(0)
    expect(alice.page.locator("#draft-state")).to_contain_text("Draft saved")
    save(alice, "After signing in again")
    expect(alice.page.locator("#version")).to_have_text("v2")
    assert "Said after the end." in alice.text


def test_a_viewer_reads_and_does_not_write(person, platform) -> None:
    alice = person("alice")
    path = alice.editor(SPEC)
    made = manage(platform.data, "shell", "--no-imports", "-c", VIEWER)
    assert made.returncode == 0, made.stderr
    carol = person("carol")
    carol.open(path)
    expect(carol.page.get_by_text("read only")).to_be_visible()
    carol.cursor('"Say."')
    carol.page.keyboard.type("x")
    assert carol.text == SPEC
    expect(carol.page.get_by_role("button", name="Save version")).to_have_count(0)
    expect(carol.page.locator("#properties-pane").get_by_role("heading", name="second")).to_be_visible()
    carol.page.locator('.task-form [data-fold^="step."] > summary').first.click()
    expect(carol.page.locator('.task-form [name^="kind."]').first).to_be_disabled()
    expect(carol.page.locator(".task-form .button")).to_have_count(0)


VIEWER = """
from spakweb.ground.teams.models import Membership, Team, User
if not User.objects.filter(username="carol").exists():
    carol = User.objects.create_user("carol", "carol@spak.example", "spak-demo", first_name="Carol")
    Membership.objects.create(team=Team.objects.get(slug="demo-team"), user=carol, role="viewer")
"""
