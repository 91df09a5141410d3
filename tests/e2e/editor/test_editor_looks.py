"""The editor for everyone: axe finds nothing serious in light, in dark and on a narrow screen; texts that are
too much, or no text at all, are refused kindly."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from spak.lang import parse
from spak.lang.graph import graph_of, lay_out, to_svg

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

BROKEN = """\
AGENT Two LEVEL 2 {
  START -> first
  TASK first {
    GOAL "Look around."
    step look: tool.run { cmd: "ls" }
    NEXT { success -> second, fail -> nowhere }
  }
  TASK second { step say: tool.run { cmd: "echo done" } }
}
"""


@pytest.mark.parametrize("width", [1360, 320])
def test_axe_finds_nothing_serious(person, width: int) -> None:
    alice = person("alice", viewport={"width": width, "height": 800})
    alice.editor(BROKEN)
    page = alice.page
    assert alice.flaws(dark=True) == []
    for tab in ["Compiled"] if width > 860 else ["Graph", "Outline", "Compiled"]:
        one = page.get_by_role("tab", name=tab)
        one.click()
        expect(one).to_have_attribute("aria-selected", "true")
        if tab == "Compiled":
            expect(page.locator("#compiled-pane")).to_contain_text("It does not compile yet")
        assert alice.flaws(dark=True) == [], tab
    if width > 860:
        page.get_by_role("tab", name="Edit").click()
        page.locator('#outline-pane button[data-task="first"]').click()
        page.locator("[name=connect]").click()
        page.get_by_role("dialog").wait_for()
        assert alice.flaws(dark=True) == []


def test_typing_over_a_selection_applies_no_inline_style(alice) -> None:
    """Chromium would put them in a span with the style of what was selected: an error on the console."""
    alice.editor(BROKEN)
    alice.page.locator(".cm-content").focus()
    alice.page.keyboard.press("Control+a")
    alice.page.keyboard.type("task A {")  # with its closing bracket, as everywhere
    assert alice.text == "task A {}"
    for _ in "task A {":  # one step, or more where the keys come slowly
        if alice.text != BROKEN:
            alice.page.keyboard.press("Control+z")
    assert alice.text == BROKEN
    alice.page.keyboard.press("Control+a")
    alice.page.keyboard.type("(")  # brackets around what is selected
    assert alice.text == f"({BROKEN})"


def paste(person, text: str) -> None:
    person.page.evaluate(
        """(text) => { const data = new DataTransfer(); data.setData('text/plain', text);
        const place = document.querySelector('#text-pane .cm-content'); place.focus();
        const how = { clipboardData: data, bubbles: true, cancelable: true };
        place.dispatchEvent(new ClipboardEvent('paste', how)); }""",
        text,
    )


def test_ten_megabytes_are_refused_and_nothing_changes(alice) -> None:
    alice.editor(BROKEN)
    paste(alice, "x" * 10_000_000)
    expect(alice.page.locator("#editor-toasts")).to_contain_text("That would make the spec 9.5 MB")
    assert alice.text == BROKEN


@pytest.mark.parametrize(
    "text",
    [
        "// a line\n" * 25_000,
        "\n" * 100_000,
        "{" * 50_000,
        "[" * 20_000 + "]" * 20_000,
        "a\r\nb\rc\nd\r\n",
        "\x01\x02\x7f\ufffd\u202e\u0000",
        '"""' + "x" * 100_000,
        "TASK a {\n" * 5_000,
    ],
    ids=["lines", "empty-lines", "braces", "brackets", "mixed-newlines", "binary", "open-text", "open-tasks"],
)
def test_odd_texts_are_looked_at_and_the_page_stays_usable(alice, text: str) -> None:
    alice.editor('TASK a { step s: tool.run { cmd: "ls" } }\n')
    alice.page.locator(".cm-content").focus()
    alice.page.keyboard.press("Control+a")
    paste(alice, text)
    alice.looked()
    expect(alice.page.locator("#problems-list li").first).to_be_visible()
    alice.page.keyboard.press("Control+z")
    alice.looked()
    expect(alice.node("a")).to_be_visible()
    expect(alice.page.locator("#problems-summary")).to_have_text("No problems")


def test_names_that_are_no_names_are_refused_in_words(alice) -> None:
    alice.editor(BROKEN)
    page = alice.page
    for name in ("first", "two words", "<img src=x onerror=alert(1)>", "x" * 5000, "}"):
        page.get_by_role("button", name="Task", exact=True).click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Name").fill(name)
        dialog.get_by_role("button", name="Add task").click()
        expect(dialog.locator(".problem")).not_to_be_empty()
        dialog.get_by_role("button", name="Cancel").click()
    assert alice.text == BROKEN
    expect(page.locator("#editor img")).to_have_count(0)


def test_an_edit_of_a_text_that_does_not_parse_says_so(alice) -> None:
    alice.editor(BROKEN)
    alice.cursor("TASK second {")
    alice.page.keyboard.press("Backspace")
    alice.looked()
    expect(alice.page.locator("#problems-summary")).to_have_text(re.compile("error"))
    alice.page.locator('#outline-pane button[data-task="first"]').click()
    alice.page.get_by_role("button", name="Start here").or_(
        alice.page.locator("[name=remove-0]")
    ).first.click()
    expect(alice.page.locator("#editor-toasts")).to_contain_text(
        "only a text that parses can be edited", ignore_case=True
    )


PATCHED = """async (sources) => {
  const { Drawing } = await import('/static/js/editor/drawing.js');
  const kept = new Drawing();
  return sources.map((source) => {
    const changed = kept.show(source);
    const fresh = new Drawing();
    fresh.show(source);
    return { same: kept.svg?.innerHTML === fresh.svg?.innerHTML, made: changed?.fresh.length ?? null };
  });
}"""


def test_a_picture_that_is_changed_is_the_picture_that_would_be_drawn(person) -> None:
    named = BROKEN.replace("nowhere", "first")
    texts = [
        BROKEN,
        BROKEN.replace("  START", "\n  START"),
        named,
        named.replace("second", "third"),
        named.replace("Look", 'x=\\"1\\" d=\\"2\\"'),
        f'{named[: named.rindex("}")]}  TASK last {{ step a: tool.run {{ cmd: "ls" }} }}\n}}\n',
        "AGENT None LEVEL 1 { }\n",
        BROKEN,
    ]
    sources = [to_svg(lay_out(graph_of(parse(text).spec)), style=False, interactive=True) for text in texts]
    sources += ["", "no drawing"]
    alice = person("alice")
    alice.editor(BROKEN)
    found = alice.page.evaluate(PATCHED, sources)
    assert all(item["same"] for item in found[: len(texts)]), found
    made = [item["made"] for item in found]
    assert made[0] > made[1] and made[2] <= 3 and made[-2:] == [None, None], made
