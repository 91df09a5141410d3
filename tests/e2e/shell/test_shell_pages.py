"""Every page of the shell in a browser: axe finds nothing serious in light, dark and at 320 px; nothing is
wider than the window; no error on the console, no violation, no request to another host (the window's own
check). And what the shell's script adds: theme, palette, confirmations, keys.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Response, Route, expect

from page_addresses_kit import MADE, NOBODYS, PAGES, TEAM
from platform_kit import Server, Watched, manage

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


@pytest.fixture
def story(window: Callable[..., Watched]) -> str:
    """A spec with two versions; made once."""
    alice = window("alice")
    if alice.go(f"{TEAM}/specs/story/").status == 404:
        alice.forget("404")
        alice.go(f"{TEAM}/specs/new/")
        alice.page.fill("[name=name]", "story")
        alice.page.click("button:has-text('Create spec')")
        alice.page.wait_for_url("**/specs/story/edit/")
        alice.go(f"{TEAM}/specs/story/")
        text = alice.page.request.get(f"{alice.url}{TEAM}/specs/story/v/1/text/").text()
        bring(alice, text.replace("Hello.", "Good morning."), "Greet politely")
    return "story"


def bring(window: Watched, text: str, message: str) -> None:
    window.page.set_input_files(
        "[name=file]", {"name": "story.spak", "mimeType": "text/plain", "buffer": text.encode()}
    )
    window.page.fill("[name=message]", message)
    window.page.click("button:has-text('Import as a version')")
    window.page.wait_for_selector(".message:has-text('Saved as version')")


@pytest.fixture(scope="module")
def shown(data: Path, platform: Server) -> dict[str, str]:
    """Something to see on every page."""
    made = manage(data, "shell", "--no-imports", "-c", MADE)
    assert made.returncode == 0, made.stderr
    return dict(zip(("run", "join"), made.stdout.split(), strict=True))


@pytest.mark.parametrize("width", [1280, 320])
def test_nothing_serious_on_any_page(
    window: Callable[..., Watched], shown: dict[str, str], width: int
) -> None:
    """Colours do not change with the width: those of the dark are looked at once."""
    found: list[str] = []
    look = {"viewport": {"width": width, "height": 700}}
    alice, nobody = window("alice", **look), window(**look)
    for name, paths in [*PAGES.items(), ("", ("/", "/no/such/page/"))]:
        for path in paths:
            one = nobody if name in NOBODYS else alice
            path = path.format_map(shown)
            missing = "such/page" in path
            answer = one.go(path)
            assert answer.status == (404 if missing else 200), path
            if missing:
                one.forget("404")
            assert "/login/" in path or "/login/" not in one.page.url, path
            found += [f"{width} {path}: {item}" for item in one.flaws(dark=width > 320)]
    assert not found, "\n".join(found)


def test_a_copy_of_an_example_and_a_file_become_a_spec_and_a_version(window: Callable[..., Watched]) -> None:
    alice = window("alice")
    page = alice.page
    alice.go(f"{TEAM}/specs/gallery/")
    page.click("button:has-text('attention_tuner')")
    page.wait_for_url("**/specs/attention-tuner-2/")
    text = page.request.get(f"{page.url}v/1/text/").text()
    bring(alice, text.replace("patience: ", "patience: 1"), "More patience")
    with page.expect_download() as download:
        page.click("main a:has-text('Export')")
    assert Path(download.value.path()).read_text() == text.replace("patience: ", "patience: 1")


def test_a_page_opens_at_its_top(window: Callable[..., Watched]) -> None:
    """The chosen one of many tabs is brought into view sideways, not by moving the page."""
    alice = window("alice", viewport={"width": 320, "height": 240})
    alice.go(f"{TEAM}/specs/hello/health/")
    chosen = alice.page.locator(".tabs [aria-current]")
    assert alice.page.evaluate("scrollY") == 0
    assert chosen.bounding_box()["x"] + chosen.bounding_box()["width"] <= 320


def test_a_webhook_from_the_form_to_its_removal(window: Callable[..., Watched]) -> None:
    alice = window("alice")
    page = alice.page
    alice.go(f"{TEAM}/")
    page.click(".nav >> text=Automation")
    page.click("main .tabs >> text=Webhooks")
    assert alice.flaws(dark=True) == []
    page.fill("[name=url]", "https://story.example.org/hooks")
    page.click("button:has-text('Add webhook')")
    expect(page.get_by_role("textbox", name="Signing secret")).to_have_value(re.compile(r"^whsec_.{44}$"))
    page.click("button:has-text('Send a test')")
    expect(page.locator("tbody tr")).to_contain_text("Pending")  # no worker is here
    assert alice.flaws(dark=True) == []
    page.click("button:has-text('Remove')")
    page.click("dialog[open] button:has-text('Remove the webhook')")
    expect(page.locator("main h1")).to_have_text("Webhooks")
    expect(page.locator("main .rows a", has_text="story.example.org")).to_have_count(0)


def test_the_theme_stays(window: Callable[..., Watched]) -> None:
    alice = window("alice", color_scheme="light")
    alice.go("/")
    alice.page.click("button[name=theme][value=dark]")
    assert alice.page.locator("html").get_attribute("data-theme") == "dark"
    background = "getComputedStyle(document.documentElement).backgroundColor"
    dark = alice.page.evaluate(background)
    alice.page.reload()
    assert alice.page.evaluate(background) == dark == "rgb(15, 20, 27)"


def test_by_keyboard_to_a_spec(window: Callable[..., Watched]) -> None:
    alice = window("alice")
    alice.go("/")
    alice.page.keyboard.press("Control+k")
    alice.page.wait_for_selector("#palette li")
    alice.page.keyboard.type("cudaopt")
    alice.page.keyboard.press("Enter")
    alice.page.wait_for_url("**/specs/cuda-optimizer/")
    places = {"p": "reviews", "a": "schedules", "f": "fleet", "u": "suites", "r": "runs", "s": "specs"}
    for key, where in places.items():
        alice.page.keyboard.press("g")
        alice.page.keyboard.press(key)
        alice.page.wait_for_url(f"**/{where}/")
    alice.page.keyboard.press("/")
    alice.page.keyboard.type("build_feature")
    expect(alice.page.locator("#list tbody tr")).to_have_count(1)
    alice.page.wait_for_url("**q=build_feature**")
    alice.page.keyboard.press("Escape")
    alice.page.locator("h1").click()
    alice.page.keyboard.press("?")
    expect(alice.page.locator("#keys")).to_be_visible()


def test_the_palette_says_that_it_found_nothing(window: Callable[..., Watched]) -> None:
    alice = window("alice")
    alice.go("/")
    alice.page.keyboard.press("Control+k")
    alice.page.keyboard.type("no such thing")
    expect(alice.page.locator("#palette [data-nothing]")).to_have_text("Nothing found for no such thing.")
    assert alice.flaws() == []


def test_what_is_typed_before_the_palette_has_its_places_counts(window: Callable[..., Watched]) -> None:
    alice = window("alice", fresh=True)
    page, held = alice.page, list[Route]()
    alice.go("/")
    source = page.locator("#palette input").get_attribute("data-source")
    page.route(f"**{source}", lambda route: held.append(route))
    page.keyboard.press("Control+k")
    page.keyboard.type("cudaopt")
    while not held:
        page.wait_for_timeout(20)
    held[0].continue_()
    expect(page.locator("#palette li")).to_have_count(1)
    page.keyboard.press("Enter")
    page.wait_for_url("**/specs/cuda-optimizer/")


def test_a_palette_whose_places_did_not_come_asks_again(window: Callable[..., Watched]) -> None:
    """A page to sign in comes with status 200 too, and is no list of places."""
    alice = window("alice", fresh=True)
    page, answers = alice.page, ["<html>sign in</html>"]
    alice.go("/")
    source = page.locator("#palette input").get_attribute("data-source")
    page.route(f"**{source}", lambda it: it.fulfill(body=answers.pop()) if answers else it.continue_())
    for rows in (0, 1):
        with page.expect_response(lambda answer: answer.url.endswith(source)):
            page.keyboard.press("Control+k")
        page.keyboard.type("cudaopt")
        expect(page.locator("#palette li")).to_have_count(rows)
        page.locator("#palette").evaluate("dialog => dialog.close()")


def test_what_cannot_be_taken_back_is_asked(window: Callable[..., Watched], story: str) -> None:
    alice = window("alice")
    alice.go(f"{TEAM}/specs/story/")
    alice.page.click("button:has-text('Archive this spec')")
    assert "Its versions are kept" in alice.page.locator("dialog[open] p").inner_text()
    alice.page.click("dialog[open] button:has-text('Back')")
    assert alice.page.url.endswith("/specs/story/")
    alice.page.click("button:has-text('Archive this spec')")
    alice.page.click("dialog[open] button:has-text('Archive this spec')")
    alice.page.wait_for_selector(".message:has-text('archived')")
    alice.go(f"{TEAM}/specs/story/")
    alice.page.click("button:has-text('Restore from the archive')")
    alice.page.wait_for_selector(".message:has-text('back in the list')")


def test_two_people_save_one_base(window: Callable[..., Watched], story: str) -> None:
    """Without the editor's script: a form with a base that is old leads to the merge page."""
    bob = window("bob")
    bob.go(f"{TEAM}/specs/story/")
    head = int(bob.page.locator(".facts .mono").first.inner_text().removeprefix("v"))
    text = bob.page.request.get(f"{bob.url}{TEAM}/specs/story/v/1/text/").text()
    token = bob.page.locator("[name=csrfmiddlewaretoken]").first.get_attribute("value")
    send = """([text, token]) => {
          const form = Object.assign(document.createElement("form"), {method: "post", action: "save/"});
          for (const [name, value] of Object.entries({text, base_version: "1", csrfmiddlewaretoken: token}))
            form.append(Object.assign(document.createElement("textarea"), {name, value}));
          document.body.append(form); form.submit();
        }"""
    with bob.page.expect_navigation():
        bob.page.evaluate(send, [text.replace("Hello.", "Goodbye."), token])
    bob.page.wait_for_selector(
        "textarea[name=text]", state="attached"
    )  # the page's script may have hidden it
    bob.forget("409")
    assert not bob.axe()
    merged = bob.page.locator("textarea[name=text]").input_value()
    assert "Goodbye." in merged
    assert "Good morning." in merged
    assert bob.page.locator("button:has-text('Save as version')").inner_text().endswith(str(head + 1))


def test_hostile_words_stay_words(window: Callable[..., Watched]) -> None:
    alice = window("alice")
    name = '"><img src=x onerror=alert(1)>{{7*7}}'
    alice.go(f"{TEAM}/specs/new/")
    alice.page.fill("[name=name]", name)
    alice.page.click("summary:has-text('Paste a spec')")
    alice.page.fill(
        "[name=text]",
        f"task A {{ step b: tool.run {{ cmd: '{name}' }} }}</textarea><script>alert(1)</script>",
    )
    alice.page.click("button:has-text('Create spec')")
    alice.page.wait_for_selector(f"h1:has-text({name!r})" if "'" not in name else "h1")
    for path in ("", "history/", "v/1/", "compare/"):
        alice.go(
            alice.page.url.split("/specs/")[0].removeprefix(alice.url)
            + "/specs/img-srcx-onerroralert177/"
            + path
        )
        assert alice.page.locator("main img").count() == 0
    alice.go(f"{TEAM}/")
    assert alice.page.locator(".tile-link:has-text('onerror')").inner_text() == name


def test_an_invitation_makes_a_member(window: Callable[..., Watched]) -> None:
    alice, nobody = window("alice"), window()
    alice.go(f"{TEAM}/members/")
    alice.page.select_option("form[action$='/invite/'] [name=role]", "viewer")
    alice.page.click("button:has-text('Create link')")
    link = alice.page.locator("[aria-label='Invitation link']").input_value()
    nobody.page.goto(link)
    nobody.page.click("text=Create an account")
    nobody.page.fill("[name=username]", "vera")
    nobody.page.fill("[name=password1]", "a long secret of vera")
    nobody.page.fill("[name=password2]", "a long secret of vera")
    nobody.page.click("main button[type=submit]")
    nobody.page.wait_for_url("**/join/**")
    nobody.page.click("button:has-text('Join as vera')")
    nobody.page.wait_for_selector("text=Welcome to Demo team")
    nobody.go(f"{TEAM}/specs/hello/")
    assert nobody.page.locator("text=Import as a version").count() == 0
    assert nobody.page.goto(link).status == 410
    nobody.forget("410")


def test_a_page_is_light(window: Callable[..., Watched]) -> None:
    """Everything that a spec's page fetches, in bytes as they come."""
    sizes: list[int] = []
    alice = window("alice", fresh=True)
    alice.page.on("response", lambda answer: sizes.append(len(answer.body())))
    alice.go(f"{TEAM}/specs/attention-tuner/")
    alice.page.wait_for_load_state("networkidle")
    assert sum(sizes) < 200_000
    assert len(sizes) <= 10


@pytest.mark.findings("b12")
def test_back_shows_the_page(window: Callable[..., Watched], story: str) -> None:
    """A part of a page that a script asked for by the page's own address is not shown in its place."""
    alice = window("alice")
    page = alice.page

    def by_script(answer: Response) -> bool:
        return answer.request.headers.get("hx-request") == "true"

    alice.go(f"{TEAM}/specs/")
    with page.expect_response(by_script):
        page.fill("input[name=q]", story)
    alice.go(f"{TEAM}/schedules/")
    page.go_back()
    expect(page.locator("main h1")).to_have_text("Specs")
    alice.go(f"{TEAM}/audit/")
    page.evaluate("fetch(location.href, {headers: {'HX-Request': 'true'}}).then(answer => answer.text())")
    alice.go(f"{TEAM}/schedules/")
    page.go_back()
    expect(page.locator("main h1")).to_be_visible()
