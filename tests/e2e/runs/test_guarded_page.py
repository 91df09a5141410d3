"""The page of a guarded session in a browser: live while the agent works, an approval, a draft of a spec."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from cli_calls import Done, warm
from guard_kit import AGENT, Model
from platform_kit import Server, Watched, manage
from process_kit import WAIT_S

pytestmark = [pytest.mark.e2e, pytest.mark.sandbox]

MADE = """
from spakweb.ground.teams.models import User
from spakweb.work.teams import tokens
alice = User.objects.get(username="alice")
team = alice.memberships.first().team
team.rules = "forbidden(A) :- tool(A, /run), !approved(A).\\n"
team.save(update_fields=["rules"])
print(team.slug, tokens.make(alice, "guard", 7, team, ["start"])[1])
"""
CALL = """python3 mcp_client.py run '{"cmd": ["touch", "made"]}'"""
ELSEWHERE = """form => {
    const body = new FormData(form);
    body.set("text", "to even");
    return fetch(form.action, {method: "POST", body});
}"""
ASKS = "; ".join(
    f"""python3 mcp_client.py ask_person '{{"question": "{text}"}}'"""
    for text in ("Round half up, or to even?", "May I rename total?")
)


def test_a_session_is_watched_approved_and_made_a_spec(
    platform: Server, window: Callable[..., Watched], tmp_path: Path
) -> None:
    team, secret = manage(platform.data, "shell", "--no-imports", "-c", MADE).stdout.split()[-2:]
    shop = tmp_path / "shop"
    shop.mkdir()
    (shop / "cart.py").write_text("def total(prices):\n    return sum(prices[1:])\n")
    for file in (AGENT, Path(__file__).parents[2] / "mcp_client.py"):
        shutil.copy(file, shop / ("agent.py" if file == AGENT else file.name))
    reached, go, done = threading.Event(), threading.Event(), list[Done]()
    model = Model(["sed -i 's/\\[1:\\]//' cart.py", f"{CALL}; {ASKS}", f"{CALL}; {ASKS}"])
    model.before[2] = lambda: (reached.set(), go.wait(WAIT_S))
    line = ("guard", "--server", platform.url, "--team", team, "--wait", "0", "--")

    def work() -> None:
        with model.serving():
            env = {**model.env, "SPAK_TOKEN": secret, "NO_PROXY": "*"}
            done.append(warm(shop, (*line, sys.executable, "agent.py", "mend the cart"), env=env))

    thread = threading.Thread(target=work)
    thread.start()
    assert reached.wait(WAIT_S)
    try:
        alice = window("alice")
        page = alice.page
        alice.go(f"/t/{team}/runs/?guarded=1")
        name = Path(sys.executable).name
        page.get_by_role("rowheader").get_by_role("link", name=name).click()
        page.get_by_role("heading", name="Waiting for an approval").wait_for()
        page.get_by_text("cart.py: changed").wait_for()
        assert alice.flaws(dark=True) == []
        shots(page, "live")
        page.get_by_role("button", name="Approve run").focus()
        page.keyboard.press("Enter")
        page.get_by_text("its guard takes it up").wait_for()
        page.get_by_role("heading", name="Waiting for an approval").wait_for(state="detached")
        asks = page.get_by_role("region", name=f"{name} asks")
        expect(asks.first).to_contain_text("Round half up")
        asks.last.get_by_label("Your answer").focus()
        page.keyboard.type("yes, to total_of")
        shots(page, "asks")
        asks.first.locator("form").evaluate(ELSEWHERE)
        expect(asks).to_have_count(1)
        field = asks.get_by_label("Your answer")
        expect(field).to_have_value("yes, to total_of")  # what is typed for one question stays with it
        expect(field).to_be_focused()
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.get_by_text("Its guard hands the answer on.").wait_for()
        expect(asks).to_have_count(0)
    finally:
        go.set()
        thread.join()
    assert done[0].code == 0, done[0].err
    assert "done: to even" in model.said(3) and "done: yes, to total_of" in model.said(3)
    page.get_by_text("has ended.").wait_for()
    page.get_by_text("spak apply").wait_for()
    page.set_viewport_size({"width": 360, "height": 760})
    assert alice.flaws() == []
    shots(page, "ended")
    page.set_viewport_size({"width": 1280, "height": 860})
    page.get_by_role("button", name="Make it a spec").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/edit/")
    page.get_by_text("A draft from a guarded session").first.wait_for()
    shots(page, "spec")


def shots(page: Any, name: str) -> None:
    """A picture for who looks at the pages: `SPAK_SHOTS` names the folder."""
    if folder := os.environ.get("SPAK_SHOTS"):
        page.screenshot(path=f"{folder}/guarded-{name}.png", full_page=True)
