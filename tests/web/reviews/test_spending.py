"""Tokens, cost and time of a patch against its base, from the campaign, the replay, recorded runs, or not
known; and the front of the campaign that tried it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.urls import reverse

from campaign_kit import BASE, ledger
from jobs_kit import do
from run_rows_kit import begun
from spak.evolve.gate.counterfactual import Rehearsal, Replayed
from spakweb.face.reviews import front, page
from spakweb.store.reviews.models import Check, Patch
from spakweb.store.runs.models import Run
from spakweb.store.specs.models import SpecVersion
from spakweb.work.reviews import actions, campaigns, checks, spending
from spakweb.work.specs.actions import create_spec

ONE, OTHER = 'tool.list_files { path: "." }', 'tool.list_files { path: "tests" }'


@pytest.fixture
def patch(cast: Any) -> Patch:
    return actions.propose(cast["bob"], cast.spec, cast.spec.head.text.replace(ONE, OTHER), 1, "Elsewhere")


def tables(cast: Any, patch: Patch) -> list[dict[str, Any]]:
    patch = Patch.objects.get(pk=patch.pk)
    return page.context(cast["rita"], patch)["spending"]


def rows(table: dict[str, Any]) -> dict[str, tuple[str, str, str]]:
    return {row["title"]: (row["base"], row["patch"], row["difference"]) for row in table["rows"]}


def body(cast: Any, patch: Patch) -> str:
    where = reverse("spak-patch", args=[cast.team.slug, patch.spec.slug, patch.number])
    return cast.client("rita").get(where).content.decode()


def ran(cast: Any, version: SpecVersion, key: str, tokens: int, cost: int, ms: int) -> Run:
    run = begun(cast.team, version, key, state="succeeded")
    summary = {"tokens": {"used": tokens}, "cost": cost, "elapsed_ms": ms}
    Run.objects.filter(pk=run.pk).update(count=5, summary=summary)
    return run


def test_nothing_known_is_said(cast: Any, patch: Patch) -> None:
    assert tables(cast, patch) == []
    assert "Not known: no campaign tried it, and no run of version 1 has ended." in body(cast, patch)


def test_recorded_runs_tell_of_the_base_alone(cast: Any, patch: Patch) -> None:
    ran(cast, cast.spec.head, "a", 1_000, 0, 3_000)
    ran(cast, cast.spec.head, "b", 2_000, 0, 5_000)
    [table] = tables(cast, patch)
    assert table["title"] == "Recorded runs of version 1, 2 of them"
    unknown = "not known"
    assert rows(table) == {
        "Tokens": ("1,500", unknown, unknown),
        "Cost": (unknown, unknown, unknown),  # no answer has a price
        "Time": ("4.0 s", unknown, unknown),
    }
    assert "No run shows what the patch would use." in body(cast, patch)


def test_after_the_merge_runs_of_the_new_version_stand_beside(cast: Any, patch: Patch) -> None:
    ran(cast, cast.spec.head, "a", 1_000, 2_000_000_000, 3_000)
    actions.judge(cast["alice"], patch, 1, True)
    version = actions.merge(cast["bob"], patch, 1)
    assert len(tables(cast, patch)) == 1
    ran(cast, version, "b", 400, 1_000_000_000, 1_000)
    since = tables(cast, patch)[1]
    assert since["title"] == "Since the merge: 1 run of version 2" and "They are no pairs" in since["about"]
    assert rows(since)["Tokens"] == ("1,000", "400", "not known")
    assert rows(since)["Cost"] == ("$2.00", "$1.00", "not known")


def test_runs_that_the_replay_knows_to_their_end_are_paired(cast: Any, patch: Patch) -> None:
    def both(tokens: int, saved: int, ended: str = "same", problem: str = "") -> tuple[Rehearsal, Replayed]:
        was = Rehearsal("r", {}, (), "succeeded", 5, 2_000, tokens, 5_000_000_000)
        now = Replayed(
            "r",
            ended=ended,
            tokens_saved=saved,
            ms_saved=1_000,
            cost_saved_nanousd=-500_000_000,
            problem=problem,
        )  # type: ignore[arg-type]
        return was, now

    found = [both(100, 10), both(200, 50), both(999, 999, "unknown"), both(7, 7, problem="odd")]
    spent = spending.of_replay(found)
    assert (spent["tokens"]["cases"], spent["tokens"]["base"], spent["tokens"]["mean"]) == (2, 150, -30)
    result = {"runs": 4, "spent": spent}
    [table] = spending.shown(patch, patch.latest, result, {}, 0)
    assert table["title"] == "Recorded runs under the patch, 2 of 4"
    assert rows(table) == {
        "Tokens": ("150", "120", "−30 (−20 %), approximately −284 to +224"),
        "Cost": ("$5.00", "$5.50", "+$0.50 (+10 %)"),
        "Time": ("2.0 s", "1.0 s", "−1.0 s (−50 %)"),
    }


def test_the_check_keeps_what_the_replay_knows(cast: Any, patch: Patch) -> None:
    run = begun(cast.team, cast.spec.head, "odd", state="succeeded")
    Run.objects.filter(pk=run.pk).update(count=5)
    do(checks.CHECK, patch.latest.pk)
    result = Check.objects.get(revision=patch.latest, name="replay").result
    assert result["spent"]["tokens"] == {
        "cases": 0, "mean": None, "interval": None, "base": None, "candidate": None,
    }  # fmt: skip


@pytest.fixture
def tried(cast: Any, tmp_path: Path) -> Patch:
    """The patch of a campaign's candidate, whose pairs used 1,000 tokens each under the base."""
    spec = create_spec(cast["alice"], cast.team, "looped", BASE)
    return campaigns.bring(cast["bob"], spec, ledger(tmp_path))[0]


def test_a_campaign_shows_its_pairs_and_its_front(cast: Any, tried: Patch) -> None:
    [table] = tables(cast, tried)
    assert table["title"] == "Pairs of the campaign, 2 cases"
    base, after, difference = rows(table)["Tokens"]
    assert (base, after) == ("1,000", "825")
    assert difference == "−175 (−18 %), approximately −493 to +143"
    assert rows(table)["Cost"] == ("not known",) * 3
    text = body(cast, tried)
    assert 'aria-label="1 candidate against the base; on the front: 1"' in text and "1 (this patch)" in text
    actions.revise(cast["bob"], tried, 1, tried.latest.text + "// more\n")
    ran(cast, tried.spec.head, "a", 10, 0, 10)
    first, second = tables(cast, tried)
    assert "They ran revision 1, another text than the newest." in first["about"]
    assert second["title"].startswith("Recorded runs of version 1")


def test_evidence_of_before_says_nothing_of_tokens(cast: Any, tried: Patch) -> None:
    row = Check.objects.get(revision=tried.latest, name="campaign")
    row.result = {
        name: value for name, value in row.result.items() if name not in ("spent", "front", "campaign")
    }
    row.save()
    assert tables(cast, tried) == []
    assert 'class="front"' not in body(cast, tried) and "Fit for review" in body(cast, tried)


def point(number: int, gain: float, tokens: float | None, best: bool = False) -> dict[str, Any]:
    more = {"tokens": tokens, "cost_nanousd": 0, "ms": 0}
    told = {"number": number, "verdict": "fit", "pairs": 3, "gain": gain, "passed": [0.5, 0.5 + gain]}
    return {**told, "more": more, "by": "tokens", "front": best}


def test_the_drawing_marks_the_front_and_ones_own() -> None:
    points = [point(0, 0, 0, True), point(1, 0.5, -10, True), point(2, -0.1, 40), point(3, 0.2, None)]
    svg = front.drawing(points, 2)
    assert (svg.count('class="best"'), svg.count('class="other"'), svg.count('class="mine"')) == (1, 1, 1)
    assert ">1</text>" in svg and ">3</text>" not in svg, "of 3 it is not known what it uses"
    places = [float(number) for number in re.findall(r'c[xy]="([-\d.]+)"', svg)]
    assert places and all(0 <= number <= 560 for number in places)
    told = {
        row["number"]: (row["gain"], row["more"][0], row["mine"], row["front"])
        for row in front.rows(points, 2)
    }
    assert told == {
        1: ("+50.0", "−10", False, True),
        2: ("−10.0", "+40", True, False),
        3: ("+20.0", "not known", False, False),
    }
    assert front.drawing([], 0) == front.drawing(points[:1], 0) == "" and front.rows([], 0) == []
    assert "<svg" in front.drawing([point(0, 0, 0, True), point(1, 0, 0, True)], 0), "all in one place"
