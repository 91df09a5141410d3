"""The token bench's own arithmetic, on runs small enough to count by hand, and on its synthetic set."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module", autouse=True)
def root_on_path() -> Iterator[None]:
    sys.path.insert(0, str(ROOT))
    yield
    sys.path.remove(str(ROOT))


def tau(tmp_path: Path) -> Any:
    """Two turns after a system message; the second needs an id that the first result showed."""
    from bench.tokens import trajectories

    def called(name: str, args: object) -> dict[str, Any]:
        return {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"function": {"name": name, "arguments": json.dumps(args)}}],
        }

    traj = [
        {"role": "system", "content": "You help."},
        {"role": "user", "content": "I am mia_li_3668."},
        called("get_user", {"user_id": "mia_li_3668"}),
        {"role": "tool", "content": json.dumps({"card": "card_7447", "note": "x " * 400})},
        called("pay", {"card": "card_7447", "amount": 12}),
        {"role": "tool", "content": "done"},
        {"role": "assistant", "content": "It is paid."},
    ]
    (tmp_path / "desk").mkdir(exist_ok=True)
    (tmp_path / "desk" / "runs.json").write_text(json.dumps([{"task_id": 1, "trial": 0, "traj": traj}]))
    return trajectories.read(tmp_path)["desk"]


def test_literals_are_those_that_a_result_or_a_person_showed(tmp_path: Path) -> None:
    from bench.tokens.arms import ARMS, figures

    (found,) = figures(tau(tmp_path), ARMS["full history"])
    assert (found.needed, found.shown, found.behind, found.recalls) == (2, 2, 0, 0)
    (dropped,) = figures(tau(tmp_path), ARMS["system message and goal alone"])
    assert (dropped.needed, dropped.shown, dropped.behind) == (2, 1, 0)


def test_a_cached_token_is_one_of_the_common_beginning(tmp_path: Path) -> None:
    from bench.tokens.arms import ARMS, figures
    from spak import tokens

    (run,) = tau(tmp_path)
    sizes = [tokens.of_text(item.text) + tokens.FRAME for item in run.messages]
    (found,) = figures([run], ARMS["full history"])
    assert found.tokens == sum(sizes[:2]) + sum(sizes[:4]) + sum(sizes[:6])
    assert found.fresh == sum(sizes[:6])
    assert found.cost(1.0) == found.tokens
    assert found.peak == sum(sizes[:6])


def test_what_is_behind_a_reference_is_charged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bench.tokens.arms import ARMS, figures
    from spak.kernel import memory

    (before,) = figures(tau(tmp_path), ARMS["FIFO"])
    monkeypatch.setattr(memory, "UNSEEN", 10)  # every text is a reference from the start
    monkeypatch.setattr(memory, "GIST", 0)
    (after,) = figures(tau(tmp_path), ARMS["FIFO"])
    assert (before.behind, before.recalls) == (0, 0)
    assert (after.shown, after.behind, after.recalls) == (1, 1, 1)


def test_our_policies_lose_no_literal_of_the_synthetic_set() -> None:
    from bench.tokens import measure, synthetic
    from bench.tokens.arms import ARMS, figures

    for runs in synthetic.runs(count=2).values():
        for policy in ("FIFO", "SUMMARIZE", "FLUSH_ON_TRANSITION", "PRUNE_ON_CONFIRM"):
            found = measure.total(figures(runs, ARMS[policy]))
            assert found.needed > 10
            assert found.shown + found.behind == found.needed


def test_the_synthetic_set_is_the_same_every_time() -> None:
    from bench.tokens import synthetic

    assert synthetic.runs(count=1) == synthetic.runs(count=1)
    assert synthetic.runs(seed=1, count=1) != synthetic.runs(seed=2, count=1)


def test_an_interval_holds_the_figure() -> None:
    from bench.tokens import measure, synthetic
    from bench.tokens.arms import ARMS, figures

    runs = synthetic.runs(count=4)["synthetic desk"]
    base, ours = figures(runs, ARMS["full history"]), figures(runs, ARMS["FLUSH_ON_TRANSITION"])
    low, high = measure.interval(base, ours)
    assert low <= measure.saved(base, ours) <= high
