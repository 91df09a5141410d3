"""A session that really runs on a developer's machine and reports to a platform: `spak guard --server`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cli_calls import Done, warm
from guard_kit import Model
from spakweb.store.ledger.export import checked
from spakweb.store.runs.models import Run, RunRecord
from spakweb.work.teams import tokens
from web.guarded.conftest import LAW, TURNS

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


def test_no_session_begins_where_the_law_of_the_team_is_not_known(
    shop: Path, platform: dict[str, str]
) -> None:
    with Model([]).serving() as model:
        refused = guard(shop, model, {**platform, "SPAK_TOKEN": "spak_" + "a" * 49})
        elsewhere = guard(shop, model, platform, "--team", "next-door")
    assert refused.code == elsewhere.code == 2 and not (shop / ".spak").exists()
    assert "web.token" in refused.err and "web.404" in elsewhere.err
