"""A session that really runs on a developer's machine and reports to a platform: `spak guard --server`."""

from __future__ import annotations

import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.urls import reverse

from cli_calls import Done, warm
from guard_kit import Model
from mcp_kit import pin
from process_kit import WAIT_S, until
from spak.records import decode
from spakweb.face.runs.guarded import session
from spakweb.store.ledger.export import checked
from spakweb.store.runs.models import Command, Run, RunRecord
from spakweb.work.teams import tokens
from web.guarded.conftest import LAW, MEND, TURNS

pytestmark = [pytest.mark.sandbox, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def platform(live_server: Any, cast: Any, ground: None) -> Iterator[dict[str, str]]:
    """The environment of bob, who signed in to a platform that is served here."""
    yield {
        "SPAK_TOKEN": tokens.make(cast["bob"], "guard", 7, cast.team, ["start"])[1],
        "SERVER": live_server.url,
        "NO_PROXY": "*",
    }


def guard(shop: Path, model: Model, env: dict[str, str], *more: str) -> Done:
    line = ("guard", "--server", env["SERVER"], *more, "--", sys.executable, "agent.py", "mend the cart")
    return warm(shop, line, env={**env, **model.env})


def test_a_session_is_on_the_platform_when_it_ends_under_the_law_of_the_team(
    cast: Any, shop: Path, platform: dict[str, str]
) -> None:
    cast.team.rules = LAW
    cast.team.save(update_fields=["rules"])
    with Model(TURNS).serving() as model:
        done = guard(shop, model, platform)
    assert done.code == 0, done.err
    assert "live at http" in done.err and "not all of it" not in done.err
    run = Run.objects.get()
    assert (run.agent, run.made_by, run.state) == (Path(sys.executable).name, cast["bob"], "succeeded")
    assert run.summary["denied"] == 0 and run.summary["tokens"]["used"] == 440
    (folder,) = (shop / ".spak/runs").iterdir()
    trace = (folder / "trace.jsonl").read_bytes()
    rows = RunRecord.objects.filter(run=run).order_by("seq")
    assert b"".join(bytes(row.line) for row in rows) == trace
    assert b"team/rules.mg:1 forbids it" in trace, "the law of the team was the session's"
    found = checked(run)
    assert (found["ok"], found["equal"], found["as_shown"]) == (True, True, True), found
    assert not found["snapshot"]


def test_what_a_platform_missed_is_sent_by_a_command_and_twice_is_the_same(
    cast: Any, recorded: Path, platform: dict[str, str]
) -> None:
    line = ("guard", "report", "latest", "--server", platform["SERVER"], "--json")
    for _ in range(2):
        done = warm(recorded.parents[2], line, env=platform)
        assert done.code == 0, done.err
        run = Run.objects.get()
        assert done.json["html_url"].endswith(f"/t/{cast.team.slug}/runs/{run.key}/")
    assert (run.count, run.state) == (len((recorded / "trace.jsonl").read_bytes().splitlines()), "succeeded")


def test_a_call_of_an_mcp_server_is_judged_by_the_law_of_the_team(
    cast: Any, shop: Path, platform: dict[str, str]
) -> None:
    cast.team.rules = 'mcp_may("small", "say").\n'
    cast.team.save(update_fields=["rules"])
    pin(shop, "small")
    shutil.copy(Path(__file__).parents[2] / "mcp_client.py", shop)
    (shop / "own.mg").write_text('mcp_may("small", "count").\n')
    calls = [f"python3 mcp_client.py small__{name} '{{}}'" for name in ("say", "count")]
    with Model(calls).serving() as model:
        done = guard(shop, model, platform, "--mcp", "small")
        wider = guard(shop, model, platform, "--mcp", "small", "--policy", "own.mg")
    assert done.code == 0, done.err
    assert "say 1: " in model.said(1)
    assert "policy.approval_later" in model.said(2), "a reviewer of the team may sign"
    assert wider.code != 0 and "policy.closed" in wider.err, "a member permits no more than the team"
    run = Run.objects.get()
    (shop / "server.py").unlink()
    found = checked(run)
    assert (found["ok"], found["equal"]) == (True, True), found


def test_no_session_begins_where_the_law_of_the_team_is_not_known(
    shop: Path, platform: dict[str, str]
) -> None:
    with Model([]).serving() as model:
        refused = guard(shop, model, {**platform, "SPAK_TOKEN": "spak_" + "a" * 49})
        elsewhere = guard(shop, model, platform, "--team", "next-door")
    assert refused.code == elsewhere.code == 2 and not (shop / ".spak").exists()
    assert "web.token" in refused.err and "web.404" in elsewhere.err


class Held:
    """A model that stops before an answer until the test lets it go on, and the session beside it."""

    def __init__(self, shop: Path, env: dict[str, str], texts: list[str], at: int, *more: str) -> None:
        self.model, self.reached, self.go = Model(texts), threading.Event(), threading.Event()
        self.model.before[at] = self._hold
        self.done: list[Done] = []

        def work() -> None:
            with self.model.serving() as model:
                self.done.append(guard(shop, model, env, *more))

        self._thread = threading.Thread(target=work)
        self._thread.start()
        assert self.reached.wait(WAIT_S)

    def _hold(self) -> None:
        self.reached.set()
        self.go.wait(WAIT_S)

    def end(self) -> Done:
        self.go.set()
        self._thread.join()
        return self.done[0]


def on_the_platform(told: Callable[[Run], bool]) -> Run:
    """The session, once that is so."""
    until(lambda: any(map(told, Run.objects.all())))
    return Run.objects.select_related("team").get()


def test_what_waits_is_approved_in_the_browser_and_counts_once(
    cast: Any, shop: Path, platform: dict[str, str]
) -> None:
    cast.team.rules = "forbidden(A) :- tool(A, /run), !approved(A).\n"
    cast.team.save(update_fields=["rules"])
    shutil.copy(Path(__file__).parents[2] / "mcp_client.py", shop)
    call = """python3 mcp_client.py run '{"cmd": ["touch", "made"]}'"""
    held = Held(shop, platform, [call, call, "ls made", call], 1, "--wait", "0")
    try:
        run = on_the_platform(lambda run: run.state == "waiting")
        decide = reverse("spak-run-decide", args=[cast.team.slug, run.key])
        page = reverse("spak-run", args=[cast.team.slug, run.key])
        form = {"of": run.summary["waiting"]["id"], "decision": "approve"}
        assert cast.client("bob").post(decide, form).status_code == 403
        shown = cast.client("rita").get(page).content.decode()
        assert "Waiting for an approval" in shown and "touch made" in shown
        assert cast.client("rita").post(decide, form).status_code == 302
        until(lambda: Command.objects.exclude(done_at=None).exists())
    finally:
        done = held.end()
    assert done.code == 0, done.err
    assert [one.outcome for one in Command.objects.all()] == [""]
    said = held.model.said
    assert "waits" in said(1) or "later" in said(1), said(1)
    assert "exit 0" in said(3) and "made" in said(3), "the same call was done once it was approved"
    run.refresh_from_db()
    assert run.state == "succeeded" and checked(run)["equal"]
    approvals = [decode(bytes(row.line)) for row in run.records.filter(kind="approval")]
    assert [one.body["decision"] for one in approvals] == ["later", "approve", "later"]
    shown = cast.client("vera").get(page).content.decode()
    assert "put off until somebody approves" in shown and "by rita" in shown


def test_questions_are_answered_in_the_browser_and_the_agent_finds_it(
    cast: Any, shop: Path, platform: dict[str, str]
) -> None:
    shutil.copy(Path(__file__).parents[2] / "mcp_client.py", shop)
    which, how = (
        f"""python3 mcp_client.py ask_person '{{"question": "{text}"}}'"""
        for text in ("Which <b>one</b>?", "How " + "x" * 3000)
    )
    held = Held(shop, platform, [f"{which}; {how}; {which}", which, how], 1, "--wait", "0")
    try:
        run = on_the_platform(lambda run: len(run.summary.get("also", ())) == 1)
        first, second = run.summary["waiting"], *run.summary["also"]
        assert run.state == "waiting" and (first["kind"], first["id"][:3]) == ("question", "q1-")
        answer = reverse("spak-run-answer", args=[cast.team.slug, run.key])
        page = reverse("spak-run", args=[cast.team.slug, run.key])
        shown = cast.client("rita").get(page).content.decode()
        assert "Which &lt;b&gt;one&lt;/b&gt;?" in shown and "x" * 3000 in shown
        assert "waits for an answer." in shown and shown.count("Your answer") == 2
        assert "An editor of the team can answer it" in cast.client("vera").get(page).content.decode()
        form = {"of": second["id"], "text": "like that"}
        assert cast.client("vera").post(answer, form).status_code == 403
        rita = cast.client("rita")
        long = rita.post(answer, {"of": first["id"], "text": "y" * 4001})
        assert (long.status_code, "longer than 4,000 characters" in long.content.decode()) == (400, True)
        assert long.content.decode().count("y" * 4001) == 1, "what was typed is in its field"
        assert rita.post(answer, {"of": first["id"], "text": " "}).status_code == 400
        assert rita.post(answer, {"of": first["id"], "call": "1"}).status_code == 409
        decide = reverse("spak-run-decide", args=[cast.team.slug, run.key])
        assert rita.post(decide, {"of": first["id"], "decision": "approve"}).status_code == 409
        assert rita.post(answer, {"of": "q1-9", "text": "x"}).status_code == 409
        assert rita.post(answer, form).status_code == 302
        assert cast.client("bob").post(answer, {**form, "text": "other"}).status_code == 409, (
            "the first counts"
        )
        assert cast.client("bob").post(answer, {"of": first["id"], "text": "the 2nd"}).status_code == 302
        until(lambda: Command.objects.exclude(done_at=None).count() == 2)
        run.refresh_from_db()
        assert (run.state, run.summary["waiting"], run.summary["also"]) == ("running", None, [])
    finally:
        done = held.end()
    assert done.code == 0, done.err
    assert [one.outcome for one in Command.objects.all()] == ["", ""]
    assert "done: the 2nd" in held.model.said(2) and "done: like that" in held.model.said(3)
    run.refresh_from_db()
    assert run.summary["questions"] == [] and checked(run)["equal"]


def test_a_question_that_was_answered_where_the_agent_runs_waits_no_more(
    cast: Any, shop: Path, platform: dict[str, str]
) -> None:
    shutil.copy(Path(__file__).parents[2] / "mcp_client.py", shop)
    ask = """python3 mcp_client.py ask_person '{"question": "Which?"}'"""
    held = Held(shop, platform, [ask, ask], 1, "--wait", "0")
    try:
        run = on_the_platform(lambda run: run.state == "waiting")
        here = warm(
            shop, ("guard", "answer", "latest", "q1", "waiting (q1): the person has not answered yet")
        )
        assert here.code == 0, here.err
        answer = reverse("spak-run-answer", args=[cast.team.slug, run.key])
        late = cast.client("bob").post(answer, {"of": run.summary["waiting"]["id"], "text": "late"})
        assert late.status_code == 302
        until(lambda: Command.objects.exclude(done_at=None).exists())
        run.refresh_from_db()
        assert (run.state, run.summary["waiting"]) == ("running", None)
    finally:
        done = held.end()
    assert done.code == 0, done.err
    assert Command.objects.get().outcome.startswith("guard.no_question")
    assert "done: waiting (q1)" in held.model.said(2)
    run.refresh_from_db()
    assert run.summary["questions"] == [], "an answer that reads like a wait is one"


def turns_of(run: Run) -> list[session.Action]:
    """The transactions that can be taken back."""
    return [one for one in session.pane(run, None)["actions"] if one.turn is not None]


def test_changes_are_taken_back_from_the_page(cast: Any, shop: Path, platform: dict[str, str]) -> None:
    before = (shop / "cart.py").read_bytes()
    gone = "while [ -e more ]; do sleep 0.1; done"
    held = Held(shop, platform, [MEND, "echo more > more", gone], 2)
    try:
        run = on_the_platform(lambda run: len(turns_of(run)) == 2)
        turns = turns_of(run)
        assert [one.title for one in turns] == ["cart.py", "more"]
        assert [part.title for one in turns for part in one.files] == ["cart.py: changed", "more: new file"]
        where = reverse("spak-run-take-back", args=[cast.team.slug, run.key])
        assert cast.client("vera").post(where, {"seq": turns[0].turn}).status_code == 403
        assert cast.client("bob").post(where, {"seq": 1}).status_code == 409
        assert cast.client("bob").post(where, {"seq": turns[0].turn}).status_code == 302
    finally:
        done = held.end()
    assert done.code == 0, done.err
    assert [one.outcome for one in Command.objects.all()] == [""]
    (folder,) = (shop / ".spak/runs").iterdir()
    assert (folder / "workspace/cart.py").read_bytes() == before and not (folder / "workspace/more").exists()
