"""Proposers of campaigns on the platform: a model that answers by a script, evolution; and golden cases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.urls import reverse

import platform_campaigns as kit
from llm_stub import MODEL, Stub
from spak.evolve.campaigns import verify
from spakweb.ground.errors import Refused
from spakweb.store.campaigns.models import State
from spakweb.store.specs.facts import catalog
from spakweb.store.specs.models import Spec
from spakweb.store.suites.models import Suite
from spakweb.work.campaigns import ledger
from spakweb.work.specs.actions import save_version

World = tuple[Spec, Suite]


def answer(*edits: dict[str, Any], grammar: str = "") -> str:
    told = {"grammar_patch": grammar, "dsl_patch": list(edits), "rationale": "It reads twice."}
    return f"say {json.dumps(told)}"


FEWER = {"op": "remove_step", "task": "Reads", "step": "two"}
STARVED = {"op": "set", "key": "CONFIG.BUDGET", "value": {"steps": 1}}


@pytest.fixture
def fresh(cast: Any, world: World) -> Spec:
    """The spec with a version that nobody has run, so that no recorded run speaks against a candidate."""
    spec, _ = world
    text = kit.TWICE.replace("START", "CONFIG { BUDGET { steps: 50 } }\n  START")
    save_version(cast["alice"], spec, text, 1, "a limit")
    spec.refresh_from_db()
    return spec


def test_a_model_proposes_and_a_golden_case_holds(
    cast: Any, fresh: Spec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = kit.brought(cast["bob"], cast.team, monkeypatch, gate="gate")
    monkeypatch.chdir(tmp_path)
    with Stub() as stub:
        stub.script = ["say Sure! Take the second step out.", answer(STARVED), answer(FEWER)]
        (tmp_path / "spak.toml").write_text(
            f'[llm]\nmode = "openai_compatible"\nmodel = "{MODEL}"\nbase_url = "{stub.url}"\n'
        )
        made = kit.begun(
            cast["bob"], fresh, suite, proposer="model", asks="openai_compatible", pairs=2, margin=0
        )
        assert kit.finish(made) == "candidates"
        asked = stub.bodies()
        assert len(asked) == 3
    assert "prose around it" in json.dumps(asked[1]) or "not one JSON object" in json.dumps(asked[1])
    told = ledger.read(made)
    assert told.plan.golden == ("gate",)
    first, second = told.tested
    assert [item.candidate.proposer for item in told.tested] == ["model", "model"]
    assert (first.verdict, first.why) == ("rejected", "golden: lost: gate")
    assert [pair.outcome for pair in first.pairs] == [-1]
    assert second.stages["golden"]["verdict"] == "pass"
    assert second.verdict == "fit", "a recorded run shows that a step is saved, and the golden case holds"
    assert verify(told, catalog()) == []


def test_a_grammar_patch_is_shown_and_reported_to_the_model_as_refused(
    cast: Any, fresh: Spec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = kit.brought(cast["bob"], cast.team, monkeypatch, gate="gate")
    monkeypatch.chdir(tmp_path)
    with Stub() as stub:
        stub.script = [answer(FEWER, grammar='next: NEXT "->" NAME'), answer(STARVED)]
        (tmp_path / "spak.toml").write_text(
            f'[llm]\nmode = "openai_compatible"\nmodel = "{MODEL}"\nbase_url = "{stub.url}"\n'
        )
        made = kit.begun(
            cast["bob"], fresh, suite, proposer="model", asks="openai_compatible", pairs=2, margin=0
        )
        kit.finish(made)
        assert "outer.grammar" in json.dumps(stub.bodies()[1])
    first = ledger.read(made).tested[0]
    assert (first.verdict, list(first.stages)) == ("rejected", ["form"])
    address = reverse("spak-campaign", args=[cast.team.slug, made.number])
    page = cast.client("bob").get(address).content.decode()
    assert "Grammar patch, not applied" in page
    assert "next: NEXT &quot;-&gt;&quot; NAME" in page


def test_an_answer_that_breaks_the_contract_three_times_pauses_it(
    cast: Any, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with Stub() as stub:
        stub.script = ["say no"]
        (tmp_path / "spak.toml").write_text(
            f'[llm]\nmode = "openai_compatible"\nmodel = "{MODEL}"\nbase_url = "{stub.url}"\n'
        )
        made = kit.begun(cast["bob"], *world, proposer="model", asks="openai_compatible")
        assert kit.advance(made.pk) == "paused"
        assert len(stub.bodies()) == 3
    made.refresh_from_db()
    assert made.why.startswith("outer.contract")
    assert ledger.read(made).tested == []


def test_evolution_runs_training_cases_within_its_budget(
    cast: Any, fresh: Spec, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = kit.brought(cast["bob"], cast.team, monkeypatch, gate="gate", train="train")
    made = kit.begun(
        cast["bob"], fresh, suite, proposer="evolution", evolve_runs=8, candidates=1, pairs=1, margin=0
    )
    assert kit.finish(made) in ("candidates", "proposals")
    assert made.state == State.ENDED
    scored = made.asked.filter(number=0).select_related("case")
    assert {one.case.name for one in scored} == {"train"}
    assert 3 <= scored.count() <= 8
    told = ledger.read(made)
    assert [item.candidate.proposer for item in told.tested] == ["evolution"]
    assert "step two" not in told.tested[0].candidate.text(told.plan.base)
    assert {one.case.name for one in made.asked.filter(number=1).select_related("case")} == {"gate"}


def test_a_case_whose_checks_were_not_tried_begins_no_campaign(
    cast: Any, fresh: Spec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kit, "at_once", lambda kind: [])
    suite = kit.brought(cast["bob"], cast.team, monkeypatch, gate="gate")
    with pytest.raises(Refused) as caught:
        kit.begun(cast["bob"], fresh, suite)
    assert caught.value.code == "web.case_checks"
