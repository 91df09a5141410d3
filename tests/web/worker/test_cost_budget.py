"""A budget in money on the platform: the worker ends a run before it is passed, as the command line does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from llm_stub import MODEL, Stub
from runs_kit import tables
from spakweb.ground.teams.models import User
from spakweb.store.runs.models import Run, State
from spakweb.work.runs.actions import start
from spakweb.work.specs.actions import create_spec
from spakweb.work.teams.actions import create_team
from spakweb.work.worker import execute, queue

pytestmark = pytest.mark.django_db(transaction=True)

ASKING = """\
AGENT Payer LEVEL 5 {
  CONFIG { MODE full_auto BUDGET { cost: COST } }
  START -> talk
  TASK talk {
    step hear: llm.query { prompt: "Say a word." output_var: word }
    step again: llm.query { prompt: "Say another." output_var: other }
  }
}
"""
ONE = 127_200
"""Nano-dollars of an answer of the stub: 7 tokens in, 4 from the cache, 7 out."""


@pytest.fixture
def user(
    transactional_db: None, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[User]:
    monkeypatch.setattr(queue, "send", lambda key, queue="default": None)
    settings.MEDIA_ROOT, settings.DATA_DIR = tmp_path / "media", tmp_path / "data"
    monkeypatch.chdir(tmp_path)
    price = f'["{MODEL}"]\ninput = 3000000\noutput = 15000000\ncached = 300000\n'
    (tmp_path / "prices.toml").write_text(price, encoding="utf-8")
    with tables():
        yield User.objects.create_user("alice", "alice@spak.example", "a long secret")


@pytest.mark.parametrize(
    ("cost", "state", "answers"),
    [(4_000, State.SUCCEEDED, 2), (1_600, State.REFUSED, 1), (10, State.REFUSED, 0)],
)
def test_a_run_ends_before_its_money_does(
    user: User, tmp_path: Path, cost: int, state: State, answers: int
) -> None:
    with Stub() as stub:
        stub.script = ["say word"]
        settings = (
            f'mode = "openai_compatible"\nmodel = "{MODEL}"\nbase_url = "{stub.url}"\nmax_tokens = 100\n'
        )
        (tmp_path / "spak.toml").write_text(f'[llm]\n{settings}prices = "prices.toml"\n', encoding="utf-8")
        team = create_team(user, "Payers")
        run = start(user, create_spec(user, team, "payer", ASKING.replace("COST", str(cost))))
        assert execute.advance(run.key) is False
        assert len(stub.bodies()) == answers
    seen = Run.objects.get()
    assert seen.state == state, (seen.reason, seen.summary)
    assert seen.reason.startswith("budget.cost" if state == State.REFUSED else "")
    assert seen.summary.get("metrics", {}).get("cost_nanousd", 0) == answers * ONE
