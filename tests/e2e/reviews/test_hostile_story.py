"""A campaign's patch with a hostile name in every field, from its arrival to the merge of its revert."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import expect

from campaign_kit import ledger
from editor_kit import Person
from platform_kit import ROOT, environment

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

MARKUP = '<img src=x onerror="window.pwned=1">'
HOSTILE = f"""{MARKUP}"'><script>window.pwned=1</script> {{{{7*7}}}}{{%x%}}${{7*7}} javascript:alert(1)"""
HIDDEN = "\u202eלום\u200b"
LONG = "x" * 3_000
TITLE = f"{HOSTILE} {HIDDEN}\n{'y' * 300}"
SPEC = f"""\
AGENT Two LEVEL 4 {{
  // {HOSTILE} {HIDDEN} {LONG}
  SYSTEM_MODEL M {{ HEURISTIC "One." }}
  START -> first
  TASK first {{
    GOAL "Look."
    step look: tool.list_files {{ path: "<img src=x onerror=alert(1)>" }}
    NEXT {{ success -> second, fail -> mend }}
  }}

  TASK mend {{
    TOOLS [list_files]
    step plan: llm.plan {{ role: "coder' onload='alert(1)" }}
    success: file_exists("<b>a</b>.txt")
    NEXT {{ success -> second, fail -> second }}
  }}

  TASK second {{ step say: tool.read_file {{ path: "{{{{7*7}}}}' onload='alert(1)" }} }}
}}
"""
EDIT = "set-goal first '<script>window.pwned=1</script> javascript:alert(1) {{7*7}}'"
NAMES = """
from spakweb.work.reviews.protection import protect_team
from spakweb.work.teams import named_roles
from spakweb.ground.teams.models import Team, User
words = WORDS
team, alice = Team.objects.get(slug="demo-team"), User.objects.get(username="alice")
Team.objects.filter(pk=team.pk).update(name=words[:80])
User.objects.filter(username__in=["alice", "bob"]).update(first_name=words[:150])
role = named_roles.keep(alice, team, words, [team.memberships.get(user=alice).pk])
protect_team(alice, team, 1, roles={"any": role.name})
"""
LOOK = """() => {
    const copy = document.documentElement.cloneNode(true);
    copy.querySelectorAll("textarea").forEach((one) => one.remove());
    const links = [...document.querySelectorAll("[href], [action], [src]")];
    return {
        ran: window.pwned ?? 0,
        made: document.querySelectorAll("img[src='x'], [onerror], [onload]").length,
        hidden: (copy.outerHTML.match(/[\\u202a-\\u202e\\u2066-\\u2069\\u200b]/g) ?? []).length,
        links: links.filter((one) => /^\\s*javascript:/i.test(
            one.getAttribute("href") ?? one.getAttribute("action") ?? one.getAttribute("src"))).length,
    };
}"""


def test_a_hostile_name_in_every_field(person, data: Path, tmp_path: Path) -> None:
    words = [sys.executable, str(ROOT / "manage.py"), "shell", "--no-imports", "-c"]
    made = subprocess.run(
        [*words, NAMES.replace("WORDS", ascii(TITLE))],
        cwd=ROOT, env=environment(data, 8000), capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    alice, bob = person("alice"), person("bob", color_scheme="dark")
    dialogs: list[str] = []
    for one in (alice, bob):
        one.page.on("dialog", lambda found: (dialogs.append(found.message), found.dismiss()))

    def look(who: Person, path: str = "", shown: str = MARKUP) -> str:
        """The page, which shows that as text and is in order; its words."""
        if path:
            who.go(path)
        found = who.page.evaluate(LOOK)
        assert found == {"ran": 0, "made": 0, "hidden": 0, "links": 0}, (who.page.url, found)
        assert who.flaws() == [], who.page.url
        said = str(who.page.locator("body").inner_text())
        assert shown in said, who.page.url
        return said

    spec = send(bob, "/t/demo-team/specs/new/", name=f"spec {TITLE}", text=SPEC)[0].removesuffix("edit/")
    assert send(alice, f"{spec}v/1/tag/", name=HOSTILE)[1] == 400
    text = SPEC.replace('"Look."', f'"{HOSTILE.replace(chr(34), chr(39))}\\u{{202e}}"')
    mine = {"title": TITLE, "rationale": f"{TITLE}\n{LONG}", "text": text, "base_version": "1"}
    assert send(bob, f"{spec}patches/propose/", **mine)[0] == f"{spec}patches/1/"

    file = tmp_path / f"{MARKUP.replace('/', '')}.jsonl"
    file.write_bytes(ledger(tmp_path, TITLE, 0.95, SPEC, EDIT, odd=f"{HOSTILE}{HIDDEN}"))
    bob.go(f"{spec}patches/")
    bob.page.get_by_label(re.compile("trace.jsonl")).set_input_files(file)
    bob.page.get_by_role("button", name="Propose its candidates").click()
    bob.page.wait_for_url("**/patches/2/")
    patch = f"{spec}patches/2/"
    line = str(SPEC.split("\n").index('    GOAL "Look."') + 1)
    about = {"do": "comment", "revision": "1", "text": f"{TITLE} {LONG}"}
    send(alice, f"{patch}do/", **about, line=line, suggestion=f"// {HOSTILE} {HIDDEN}")
    send(alice, f"{patch}do/", **about, path=TITLE)
    assert send(alice, f"{patch}do/", **{**about, "text": "a\0b"})[1] == 400
    look(alice, "/t/demo-team/reviews/")
    said = look(alice, patch)
    assert "⟨U+202E⟩" in said and "⟨U+200B⟩" in said and "{{7*7}}" in said
    alice.page.get_by_placeholder("Answer").first.fill(f"{TITLE} {LONG}")
    alice.page.get_by_role("button", name="Answer", exact=True).first.click()
    look(alice, f"{patch}?view=unified&line={line}&part={MARKUP}")
    look(alice, f"{spec}patches/1/")
    assert alice.go(f"{patch}graph/").headers["content-type"].startswith("image/svg+xml")
    look(alice, f"{spec}patches/")
    look(alice, "/t/demo-team/reviews/rules/")
    alice.go(patch)
    alice.page.get_by_placeholder("Comment (optional)").fill(TITLE)
    for tick in alice.page.get_by_label(re.compile("looked at what it loosens")).all():
        tick.check()
    alice.page.get_by_role("button", name="Approve").click()
    merge(alice)
    look(alice, f"{spec}patches/1/conflicts/")
    alice.page.locator("input[value=mine]").check()
    alice.page.get_by_role("button", name="Make the new revision").click()
    expect(alice.page.get_by_text("Conflicts with version 2 resolved").first).to_be_visible()
    look(alice, f"{spec}patches/1/?since=1")
    bob.go(patch)
    bob.page.get_by_role("button", name="Revert as a patch").click()
    bob.page.wait_for_url("**/patches/3/")
    look(bob)
    alice.go(f"{spec}patches/3/")
    for tick in alice.page.get_by_label(re.compile("looked at what it loosens")).all():
        tick.check()
    alice.page.get_by_role("button", name="Approve").click()
    merge(alice)
    look(alice, f"{spec}blame/")
    alice.go(f"{spec}compare/?old=1&new=2")
    alice.page.wait_for_selector("#side-by-side[data-ready=true]")
    look(alice)
    look(alice, f"{spec}history/")
    alice.go(f"{spec}edit/")
    alice.page.wait_for_selector("#editor[data-ready=true]")
    assert alice.text == SPEC, "the revert of a merge is the text before"
    look(alice, "/t/demo-team/audit/")
    assert dialogs == []


def merge(who: Person) -> None:
    expect(who.page.get_by_text("It can be merged")).to_be_visible()
    who.page.get_by_role("button", name="Merge", exact=True).click()
    expect(who.page.get_by_text("byte for byte as it was reviewed")).to_be_visible()


def send(who: Person, address: str, **form: str) -> tuple[str, int]:
    """Where a form that is sent there leads to, and the status: what a script may send without a browser."""
    asked, where = who.context.request, who.url + address
    page = asked.get(f"{who.url}/t/demo-team/specs/new/").text()
    token = re.findall(r'csrfmiddlewaretoken" value="(\w+)', page)[0]
    sent = {"csrfmiddlewaretoken": token, **form}
    answer = asked.post(where, form=sent, headers={"Referer": where}, max_redirects=0)
    return str(answer.headers.get("location", "")), answer.status
