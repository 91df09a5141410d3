"""Runs in a browser, from the form to the end, with a worker: what people do, see and hear of them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import expect

from browser_runs_kit import ASKING, HELLO, TEAM, Begin, Person, ends
from platform_kit import PASSWORD, Up, manage
from process_kit import start
from programs_kit import block, shell, surroundings

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
TIDY = '''\
AGENT Tidy LEVEL 2 {
  CONFIG { APPROVALS ask }
  POLICY """forbidden(A) :- tool(A, /run), !approved(A)."""
  START -> tidy
  TASK tidy {
    step make: tool.write_file { path: "build-2019/a.txt" content: "old" }
    step old: tool.run { cmd: ["rm", "-r", "build-2019"] }
    success: exit_code(old) == 0
  }
}
'''
SLOW = '''\
task Slow {
  step script: tool.write_file { path: "slow.py" content: """
import os, time
def until(name):
    while not os.path.exists(name):
        time.sleep(0.05)
print("10%", end="\\r")
print("<b>first</b>", *range(400), sep="\\n", flush=True)
until("two")
print("second", flush=True)
until("go")
print("last")
""" }
  step build: tool.run { cmd: "python slow.py" timeout_s: 600 }
  success: exit_code(build) == 0
}
'''
EDITOR = """
from spakweb.ground.teams.models import Membership
Membership.objects.filter(user__username="bob").update(role="editor")
"""
BAD = "<img src=x onerror=alert(1)><script>alert(2)</script>"


def _words(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def test_the_width_of_the_graph_is_remembered(person: Person, begin: Begin) -> None:
    alice = person()
    path = begin(alice, HELLO)
    ends(alice, "Succeeded")
    border = alice.page.get_by_role("separator", name="Width of the graph")
    graph = alice.page.locator(".graph-side")
    before = graph.bounding_box()["width"]
    border.focus()
    for _ in range(3):
        alice.page.keyboard.press("ArrowLeft")
    expect(border).to_have_attribute("aria-valuenow", "35")
    narrow = graph.bounding_box()["width"]
    assert narrow < before
    alice.go(path)
    expect(border).to_have_attribute("aria-valuenow", "35")
    assert abs(graph.bounding_box()["width"] - narrow) < 2
    border.dblclick()
    expect(border).to_have_attribute("aria-valuenow", "44")


def test_from_the_form_to_the_end(person: Person, begin: Begin) -> None:
    alice = person()
    path = begin(alice, HELLO)
    page = alice.page
    ends(alice, "Succeeded")
    expect(page.locator('#run-graph [data-task="Hello"]')).to_have_attribute("data-state", "done")
    expect(page.locator("#run-outcome")).to_have_text("Succeeded in Hello.")
    expect(page.locator("#said")).to_contain_text("Succeeded")
    page.click("button:has-text('Replay and verify')")
    expect(page.locator("#checked")).to_contain_text("chain whole, replay equal")
    page.click(".detail-side .tabs >> text=Records")
    page.locator("#records li.commit:has-text('permit') a").first.click()
    expect(page.locator("#record .who")).to_have_text("Commit by the kernel")
    expect(page.locator("#record .proof")).to_contain_text("permitted(/action)")
    page.reload()
    expect(page.locator("#record .proof")).to_contain_text("permitted(/action)")
    with page.expect_download() as download:
        page.click("summary[aria-label^='More']")
        page.click("text=Records as JSONL")
    lines = Path(download.value.path()).read_bytes().splitlines()
    assert len(lines) > 5 and b'"footer"' in lines[-1]
    alice.go(f"{TEAM}/runs/")
    assert path in (page.locator(".runs-table th a").first.get_attribute("href") or "")


def test_a_question_is_answered_while_another_looks_on(person: Person, begin: Begin) -> None:
    alice, bob = person(), person("bob")
    path = begin(alice, ASKING, "stepwise")
    ends(alice, "Waiting")
    ask = alice.page.locator("#run-ask")
    expect(ask.locator("pre.prompt")).to_contain_text("Say <b>a word</b>.")
    alice.page.reload()  # in the middle: the same is shown
    expect(ask.locator("pre.prompt")).to_contain_text("Say <b>a word</b>.")
    bob.go(path)
    ends(bob, "Waiting")
    bob.page.fill("#run-ask textarea", "half a word")
    for what in ("pagehide", "pageshow"):  # bob looks elsewhere, and goes back
        bob.page.evaluate(f"dispatchEvent(new PageTransitionEvent('{what}', {{ persisted: true }}))")
    ask.locator("textarea").fill(BAD)
    ask.locator("button:has-text('Answer')").click()
    ends(alice, "Succeeded")
    ends(bob, "Succeeded")  # without touching anything
    kept = bob.page.locator("#run-ask textarea")  # no question is left, and no word is lost
    expect(kept).to_have_value("half a word")
    assert not kept.is_editable()
    for window in (alice, bob):
        for tab in ("timeline", "records", "metrics", "workspace", "registers"):
            window.go(f"{path}?tab={tab}")
            assert window.page.locator("main img, main script:not([type='application/json'])").count() == 0
    alice.go(f"{path}?tab=workspace")
    expect(alice.page.locator(".patch")).to_contain_text(BAD)
    alice.go(f"{path}?tab=records&q=onerror")
    alice.page.locator("#records a").last.click()
    expect(alice.page.locator("#record .record-said")).to_contain_text("<img src=x onerror")


def test_typed_words_survive_what_happens(person: Person, begin: Begin) -> None:
    """Bob labels the run while alice types."""
    alice, bob = person(), person("bob")
    path = begin(alice, ASKING, "stepwise")
    ends(alice, "Waiting")
    alice.page.fill("#run-ask textarea", "half a sen")
    bob.go(path)
    bob.page.click("summary[aria-label^='More']")
    bob.page.fill("[name=labels]", "seen")
    bob.page.click("button:has-text('Save labels')")
    expect(bob.page.locator("#run-head .tag")).to_have_text("seen")
    alice.page.wait_for_timeout(1500)
    assert alice.page.input_value("#run-ask textarea") == "half a sen"
    bob.page.click("#run-head button:has-text('Cancel')")
    bob.page.click("dialog[open] button:has-text('Cancel the run')")
    ends(bob, "Cancelled")
    ends(alice, "Cancelled")


def test_a_fork_beside_its_parent(person: Person, begin: Begin) -> None:
    alice = person()
    begin(alice, HELLO)
    ends(alice, "Succeeded")
    page = alice.page
    page.click(".detail-side .tabs >> text=Records")
    page.locator("#records li:has-text('route') a").last.click()
    page.click("#record a:has-text('Fork from here')")
    expect(page.locator("#taken")).to_contain_text("Reused from the parent")
    expect(page.locator(".fork-steps")).to_contain_text("Hello/greet")
    page.click("button:has-text('Fork at record')")
    ends(alice, "Succeeded")
    expect(page.locator("#run-head")).to_contain_text("forked from")
    page.click("summary[aria-label^='More']")
    page.click("text=Compare with its parent")
    expect(page.locator("#first-diff")).to_have_text("No record differs")


def test_what_is_in_hand_stays_in_hand_while_the_page_lives(person: Person, begin: Begin) -> None:
    """The header and the timeline are drawn anew while it runs: what has the focus and what is open stay."""
    alice, bob = person(), person("bob")
    more = '  step more: llm.query { prompt: "And {{word}}?" output_var: more }\n'
    path = begin(alice, ASKING.replace("  step keep", f"{more}  step keep"), "stepwise")
    ends(alice, "Waiting")
    bob.go(path)
    page = alice.page
    page.click("#pane summary:has-text('Steps as a table')")
    page.locator("#run-head button:has-text('Cancel')").focus()
    bob.page.fill("#run-ask textarea", "word")
    bob.page.click("#run-ask button:has-text('Answer')")
    expect(page.locator("#run-outcome")).to_contain_text("Step more of Talk")
    expect(page.locator("#run-head button:has-text('Cancel')")).to_be_focused()
    expect(page.locator("#pane details[open] tbody tr").nth(1)).to_be_visible()


def test_older_records_come_as_one_scrolls(person: Person, begin: Begin) -> None:
    steps = "".join(f'step s{n}: tool.write_file {{ path: "f{n}.txt" content: "x" }}\n' for n in range(40))
    alice = person()
    begin(alice, f"task Many {{\n{steps}}}")
    page = alice.page
    expect(page.locator("#run-head .pill").first).to_have_text(re.compile("Succeeded|Completed"))
    page.click(".detail-side .tabs >> text=Records")
    rows = page.locator("#records > li")
    expect(rows).to_have_count(100)
    page.evaluate("document.querySelector('#records > li:last-child').scrollIntoView()")
    expect(page.locator("#records > li[data-seq='0']")).to_be_attached()
    assert rows.count() == len({*rows.evaluate_all("all => all.map((one) => one.dataset.seq)")})
    expect(page.locator("#pane a[rel=next]")).to_have_count(0)


def test_the_editor_has_the_last_input_and_output_beside_a_task(person: Person, begin: Begin) -> None:
    alice = person()
    begin(alice, 'task Echo { step say: tool.run { cmd: "echo spoken here" } success: exit_code(say) == 0 }')
    page = alice.page
    expect(page.locator("#run-head .pill").first).to_have_text("Succeeded")
    version = page.locator("#run-head .version-link").get_attribute("href") or ""
    alice.go(f"{version.partition('v/')[0]}edit/")
    last = page.locator('#properties-pane [data-fold="Last run"]')
    last.locator("summary").click()
    expect(last.locator("li").first).to_contain_text("echo spoken here")
    expect(last.locator("pre").first).to_have_text("spoken here\n")
    assert alice.flaws(dark=True) == []
    last.locator("a").click()
    expect(page.locator("#records")).to_contain_text("Echo")


def test_by_keyboard(person: Person, begin: Begin) -> None:
    alice = person()
    begin(alice, HELLO)
    ends(alice, "Succeeded")
    page = alice.page
    page.locator("summary:has-text('Tasks as a table')").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#run-tasks")).to_be_visible()
    table, tabs = (page.locator(name).bounding_box() for name in (".twin[open]", ".detail-side"))
    assert table["x"] + table["width"] <= tabs["x"]
    page.locator('#run-graph [data-task="Hello"]').focus()
    page.keyboard.press("Enter")
    expect(page.locator("#records li").first).to_be_visible()
    assert "task=Hello" in page.url
    page.locator("#records a").first.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#record-title")).to_be_focused()
    page.keyboard.press("g")
    page.keyboard.press("r")
    page.wait_for_url(f"**{TEAM}/runs/")


def test_somebody_with_the_role_approves(data: Path, person: Person, begin: Begin) -> None:
    """Bob, an editor here, may not; of alice's two windows the first counts, and all go on by themselves."""
    made = manage(data, "shell", "--no-imports", "-c", EDITOR)
    assert made.returncode == 0, made.stderr
    alice, bob, second = person(), person("bob"), person()
    path = begin(alice, TIDY)
    ends(alice, "Waiting")
    bob.go(path)
    second.go(path)
    for window in (alice, bob, second):
        expect(window.page.locator("#run-ask")).to_contain_text("run rm -r build-2019")
    expect(alice.page.locator("#run-people")).to_contain_text("Bob is looking too")
    expect(bob.page.locator("#run-people")).to_contain_text("Alice is looking too")
    expect(bob.page.locator("#run-ask button")).to_have_count(0)
    expect(bob.page.locator("#run-ask")).to_contain_text("A reviewer or an admin of the team can approve it")
    alice.page.click("#run-ask button:has-text('Approve')")
    for window in (alice, bob, second):
        ends(window, "Succeeded")
        expect(window.page.locator("#run-ask button")).to_have_count(0)
    alice.go(f"{path}?tab=records&kind=approval")
    alice.page.locator("#records a").first.click()
    expect(alice.page.locator("#record .record-said")).to_contain_text("approved by alice")
    bob.page.click("button:has-text('Replay and verify')")
    expect(bob.page.locator("#checked")).to_contain_text("chain whole, replay equal")


def test_who_is_late_is_told(person: Person, begin: Begin) -> None:
    alice, bob = person(), person("bob", fresh=True)
    bob.page.route_web_socket(re.compile("/events"), lambda socket: None)  # his page hears nothing
    path = begin(alice, ASKING, "stepwise")
    ends(alice, "Waiting")
    bob.go(path)
    bob.page.fill("#run-ask textarea", "late")
    alice.page.fill("#run-ask textarea", "first")
    alice.page.click("#run-ask button:has-text('Answer')")
    ends(alice, "Succeeded")
    bob.page.click("#run-ask button:has-text('Answer')")
    expect(bob.page.locator(".message.error")).to_contain_text("The run has ended")
    assert bob.page.url.endswith(path)
    bob.forget("409")


def test_the_log_grows(person: Person, begin: Begin) -> None:
    alice, bob = person(), person("bob")
    path = begin(alice, ASKING, "stepwise")
    ends(alice, "Waiting")
    bob.go(path)
    bob.page.click(".detail-side .tabs >> text=Log")
    expect(bob.page.locator("#pane")).to_contain_text("No output yet")
    alice.page.fill("#run-ask textarea", BAD)
    alice.page.click("#run-ask button:has-text('Answer')")
    expect(bob.page.locator("#log li").first).to_contain_text("<img src=x onerror")
    ends(bob, "Succeeded")
    expect(bob.page.locator("#log")).to_contain_text("write_file word.txt")
    seqs = [int(text) for text in bob.page.locator("#log li p > a").all_inner_texts()]
    assert seqs == sorted(set(seqs)) and "tab=log" in bob.page.url


def test_what_a_tool_puts_out_while_it_runs(person: Person, begin: Begin, data: Path, platform: Up) -> None:
    alice, bob = person(), person("bob", fresh=True)
    bob.page.route_web_socket(re.compile("/events"), lambda socket: socket.close(code=1011))
    path = begin(alice, SLOW)
    place = data / "runs" / path.strip("/").rpartition("/")[2] / "workspace"
    pages = [alice.page, bob.page]
    alice.page.click(".detail-side .tabs >> text=Log")
    bob.go(f"{path}?tab=log")
    for page in pages:
        running = page.locator("#log-running")
        expect(running).to_contain_text("still running")
        expect(running).to_contain_text("<b>first</b>")
        expect(running).not_to_contain_text("10%")
        assert page.locator("#log-running pre").evaluate("box => box.scrollTop > 0"), "its end is in sight"
    alice.page.locator("#log-running pre").evaluate("box => { box.scrollTop = 0; }")
    (place / "two").touch()
    for page in pages:
        expect(page.locator("#log-running")).to_contain_text("second")
    tops = [page.locator("#log-running pre").evaluate("box => box.scrollTop") for page in pages]
    assert tops[0] == 0 < tops[1], "followed, but by who scrolled up"
    (place / "go").touch()
    for page in pages:
        expect(page.locator("#log")).to_contain_text("last")
        expect(page.locator("#log-running")).to_have_count(0)
        assert page.locator("#log").inner_text().count("first") == 1
    ends(alice, "Succeeded")


@pytest.mark.slow
@pytest.mark.faults
def test_what_a_killed_worker_showed_is_gone(person: Person, begin: Begin, data: Path, platform: Up) -> None:
    alice = person()
    path = begin(alice, SLOW)
    place = data / "runs" / path.strip("/").rpartition("/")[2] / "workspace"
    alice.page.click(".detail-side .tabs >> text=Log")
    running = alice.page.locator("#log-running")
    expect(running).to_contain_text("<b>first</b>")
    (place / "two").touch()
    expect(running).to_contain_text("second")
    worker = next(pid for pid in platform.children() if b"worker.process" in _words(pid))
    os.kill(worker, signal.SIGKILL)
    expect(running).not_to_contain_text("second")
    expect(running).to_contain_text("<b>first</b>")  # the next worker does it again
    (place / "two").touch()
    (place / "go").touch()
    ends(alice, "Succeeded")
    expect(running).to_have_count(0)


def test_a_page_says_that_its_person_is_signed_out(person: Person, begin: Begin) -> None:
    alice = person("")
    alice.sign_in("alice")  # a session of her own, since it ends
    alice.expected.append(r"status of 401")  # what the page asked for just then
    begin(alice, ASKING, "stepwise")
    ends(alice, "Waiting")
    runs, other = alice.context.new_page(), alice.context.new_page()
    runs.goto(f"{alice.url}{TEAM}/runs/")
    other.goto(f"{alice.url}/account/logout/")
    other.click("main button[type=submit]")
    expect(alice.page.locator("#run-line")).to_contain_text("You are signed out")
    alice.page.click("#run-line a")
    for page in (alice.page, runs):
        expect(page.locator("[name=login]")).to_be_visible()


def test_an_answer_outlives_a_reload_and_a_session_that_ends(person: Person, begin: Begin) -> None:
    alice = person("")
    alice.sign_in("alice")
    alice.expected += [r"status of 40\d"]  # what the page asked for when its session had ended
    path, page = begin(alice, ASKING, "stepwise"), alice.page
    ends(alice, "Waiting")
    field, note = page.locator("#run-ask textarea[name=text]"), page.locator("#run-ask .message")
    field.fill("a long answer")
    page.reload()
    expect(field).to_have_value("a long answer")
    expect(note).to_contain_text("not submitted yet")
    alice.context.clear_cookies()
    page.click("#run-ask button:has-text('Answer')")
    alice.sign_in("alice")
    alice.go(path)
    expect(field).to_have_value("a long answer")
    assert alice.flaws() == []
    page.click("#run-ask button:has-text('Discard it')")
    expect(field).to_have_value("")
    field.fill("a word")
    page.click("#run-ask button:has-text('Answer')")
    ends(alice, "Succeeded")
    kept = "Object.keys(localStorage).filter((name) => name.startsWith('spak-answer'))"
    alice.go(path)
    expect(page.locator("html[data-live]")).to_be_visible()
    assert page.evaluate(kept) == []


def test_a_program_comes_in_with_a_token(person: Person, begin: Begin, tmp_path: Path) -> None:
    """It is made on the account page; the reader and the lines of docs/runs.md work as they stand there."""
    alice = person()
    path = begin(alice, ASKING, "stepwise")
    ends(alice, "Waiting")
    key, page = path.strip("/").rpartition("/")[2], alice.page
    page.set_viewport_size({"width": 320, "height": 700})
    alice.go("/me/")
    page.click("text=Create a token")
    page.fill("[name=password]", PASSWORD)
    page.press("[name=password]", "Enter")
    page.fill("[name=name]", "nightly")
    found = alice.flaws(dark=True)
    page.click("button:has-text('Create token')")
    secret = page.input_value("[aria-label=Token]")
    line = page.input_value("[aria-label='Shell command']")
    found += alice.flaws(dark=True)
    page.click("text=Done")
    expect(page.locator("main")).to_contain_text("never used")
    found += alice.flaws(dark=True)
    assert not found, "\n".join(found)
    page.set_viewport_size({"width": 1280, "height": 860})

    given = {"SPAK": alice.url, "SPAK_TOKEN": secret, "KEY": key}
    command = [sys.executable, "-c", block("python"), path.split("/")[2], key]
    with start(command, env=surroundings(**given), stdout=subprocess.PIPE, text=True) as reading:
        assert reading.stdout is not None
        read = [reading.stdout.readline()]
        alice.go(path)
        page.fill("#run-ask textarea", "A word.")
        page.click("#run-ask button:has-text('Answer')")
        ends(alice, "Succeeded")
        read += reading.stdout
    assert reading.returncode == 0
    assert [json.loads(record)["seq"] for record in read] == list(range(len(read)))

    lines = block("sh").replace("http://127.0.0.1:8000", alice.url)
    done = shell(f"{line}\n{lines}", tmp_path, **given)
    assert done.returncode == 0, done.stderr
    assert f'"key":"{key}"' in done.stdout.replace(" ", "") and "id: 5\nevent: record" in done.stdout
    assert "equal: every commit follows from the proposals" in done.stderr
    assert "A word." in done.stdout and "<title>" in (tmp_path / "report.html").read_text()
    assert done.stdout.count("id: 4\n") == 1 and done.stdout.count("event: end\n") == 2
    alice.go("/me/")
    expect(page.locator("main")).to_contain_text("last used")
    page.click("button:has-text('Revoke')")
    page.click("dialog button:has-text('Revoke')")
    expect(page.locator(".message")).to_contain_text("nightly no longer works")
    assert '"code": "web.token"' in shell(f"{line} || curl -s {line[9:]}", tmp_path, **given).stdout


@pytest.mark.parametrize("width", [1280, 320])
def test_nothing_serious_on_pages_of_runs(person: Person, begin: Begin, width: int) -> None:
    alice = person("alice", viewport={"width": width, "height": 700})
    waits = begin(alice, ASKING, "stepwise")
    ends(alice, "Waiting")
    asks = begin(alice, TIDY)
    ends(alice, "Waiting")
    done = begin(alice, HELLO)
    ends(alice, "Succeeded")
    paths = [
        f"{done}?tab={tab}"
        for tab in ("timeline", "records&seq=2", "log", "metrics", "workspace", "registers")
    ]
    paths += [
        waits,
        asks,
        f"{done}fork/?at=3",
        f"{done}r/2/",
        f"{TEAM}/",
        f"{TEAM}/runs/",
        f"{TEAM}/runs/?state=failed",
    ]
    keys = [path.rstrip("/").split("/")[-1] for path in (waits, done)]
    paths += [f"{TEAM}/runs/compare/?one={keys[0]}&two={keys[1]}", f"{TEAM}/specs/hello/run/"]
    found: list[str] = []
    for path in paths:
        assert alice.go(path).status == 200, path
        found += [f"{width} {path}: {item}" for item in alice.flaws(dark=True)]
    assert not found, "\n".join(found)
