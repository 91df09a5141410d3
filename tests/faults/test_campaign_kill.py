"""A campaign killed at any of its records goes on where its ledger ends; what a killed `suite add` left is
removed by the next."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from bench.planted import work
from fault_points import FaultPoints
from spak import config
from spak.errors import SuiteError
from spak.evolve.campaigns import Campaign, Judging, Pair, Plan, advance, verify
from spak.evolve.campaigns.campaign import Writer
from spak.evolve.gate import Candidate
from spak.evolve.suites import Case, Suite
from spak.lang.edit import read

pytestmark = pytest.mark.faults
CATALOG = config.catalog()
PLAN = Plan("a.spak", work(6, 'SYSTEM_MODEL M { HEURISTIC "One." }'), "s", "h", ("g",), ("c", "d"), pairs=3)


def proposed(campaign: Campaign) -> list[Candidate]:
    return [Candidate(read([line]), "test") for line in ("add-heuristic 'Two.'", "set-retries write 90")]


def pair(case: str, k: int, text: str) -> Pair:
    return Pair(case, k, Random(f"{case}/{k}").choice((1, 0)), ("b", "c"))


def killed(act: Callable[[], object]) -> bool:
    """Whether a child that did this was killed, and did not come to its end."""
    child = os.fork()
    if child == 0:
        try:
            act()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def dying(monkeypatch: pytest.MonkeyPatch, at: int, *, after: bool) -> None:
    """Kill this process before or after its record of that number."""
    put, seen = Writer.put, [0]

    def counted(self: Writer, kind: str, body: object) -> None:
        seen[0] += 1
        if seen[0] == at and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        put(self, kind, body)  # type: ignore[arg-type]
        if seen[0] == at:
            os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(Writer, "put", counted)


@pytest.mark.parametrize("after", [False, True])
def test_a_campaign_that_is_killed_at_any_record_ends_as_an_unbroken_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: bool, fault_points: FaultPoints
) -> None:
    judging = Judging(CATALOG, (), pair)
    whole = Campaign.create(tmp_path, "whole", PLAN)
    advance(whole, tmp_path, proposed, judging)
    assert [item.verdict for item in whole.tested] == ["not_shown", "privileged"]
    at, more = 0, True
    while more:
        at += 1
        name = f"killed{at}"
        begun = Campaign.create(tmp_path, name, PLAN)
        with monkeypatch.context() as patched:
            dying(patched, at, after=after)
            more = killed(lambda begun=begun: advance(begun, tmp_path, proposed, judging))  # type: ignore[misc]
        found = Campaign.read(tmp_path, name)
        if not more:
            break
        assert sum(len(item.stages) + len(item.pairs) for item in found.tested) < at + after
        advance(found, tmp_path, proposed, judging)
        again = Campaign.read(tmp_path, name)
        assert [(item.verdict, item.pairs, item.stages) for item in again.tested] == [
            (item.verdict, item.pairs, item.stages) for item in whole.tested
        ]
        assert verify(again, CATALOG) == []
        fault_points["killed"] += 1
    assert at > 15, "candidates, stages, pairs, verdicts and the stop were each cut off"


def test_a_last_record_that_was_half_written_is_dropped(tmp_path: Path) -> None:
    found = Campaign.create(tmp_path, "c", PLAN)
    advance(found, tmp_path, proposed, Judging(CATALOG, (), pair))
    path = tmp_path / "c/trace.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-3]) + lines[-3][:20])
    again = Campaign.read(tmp_path, "c")
    advance(again, tmp_path, proposed, Judging(CATALOG, (), pair))
    assert [item.verdict for item in Campaign.read(tmp_path, "c").tested] == ["not_shown", "privileged"]


@pytest.mark.parametrize("when", ["fill", "listed"])
def test_a_suite_in_which_adding_was_killed_takes_the_case_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    folder = tmp_path / "suite"
    first = Suite.open(folder, new=True).add(Case("first", folder), lambda place: None, None)

    def fill(place: Path) -> None:
        (place / "workspace").mkdir()
        (place / "workspace/a.txt").write_text("x")
        if when == "fill":
            os.kill(os.getpid(), signal.SIGKILL)

    def dies(self: object, cases: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    with monkeypatch.context() as patched:
        if when == "listed":
            patched.setattr(type(first.book), "enter", dies)
        assert killed(lambda: first.add(Case("second", folder, seed=2), fill, None))
    left = [path.name for path in folder.iterdir() if path.name.startswith(".new-")]
    assert len(left) == (1 if when == "fill" else 0)
    opened = Suite.open(folder)
    if when == "fill":
        assert opened.problems() == []
        added = opened.add(Case("second", folder, seed=2), lambda place: None, None)
    else:
        with pytest.raises(SuiteError) as caught:
            opened.sound()
        assert caught.value.code == "suite.unlisted"
        added = opened.enter().add(Case("third", folder, seed=3), lambda place: None, None)
    assert added.problems() == []
    assert not [path for path in folder.iterdir() if path.name.startswith(".new-")]
