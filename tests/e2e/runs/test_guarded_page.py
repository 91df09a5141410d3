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
    model = Model(["sed -i 's/\\[1:\\]//' cart.py", CALL, CALL])
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
        page.get_by_role("rowheader").get_by_role("link", name=Path(sys.executable).name).click()
        page.get_by_role("heading", name="Waiting for an approval").wait_for()
        page.get_by_text("cart.py: changed").wait_for()
        assert alice.flaws(dark=True) == []
        shots(page, "live")
        page.get_by_role("button", name="Approve run").focus()
        page.keyboard.press("Enter")
        page.get_by_text("its guard takes it up").wait_for()
        page.get_by_role("heading", name="Waiting for an approval").wait_for(state="detached")
    finally:
        go.set()
        thread.join()
    assert done[0].code == 0, done[0].err
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
