"""Pages of campaigns: the form on a spec's page, a campaign while it runs and after, its ledger."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.urls import reverse

import platform_campaigns as kit
from spak.evolve.campaigns import Campaign as Recorded
from spak.evolve.campaigns import verify
from spakweb.face.reviews import template_tags as reviews
from spakweb.store.campaigns.models import Campaign
from spakweb.store.specs.facts import catalog
from spakweb.store.specs.models import Spec
from spakweb.store.suites.models import Case, Suite
from spakweb.work.campaigns import ledger
from spakweb.work.specs.actions import save_version
from spakweb.work.teams import tokens
from token_kit import program

World = tuple[Spec, Suite]
FORM = {
    "version": "1", "suite": "nightly", "proposer": "rules", "candidates": "2", "pairs": "20",
    "budget_runs": "60", "margin": "50", "evolve_runs": "100",
}  # fmt: skip


def page_of(client: Any, team: Any, number: int = 1, **headers: str) -> str:
    answer = client.get(reverse("spak-campaign", args=[team.slug, number]), headers=headers)
    assert answer.status_code == 200
    return answer.content.decode()


@pytest.mark.findings("B6")
def test_a_campaign_from_the_form_to_its_patch(cast: Any, world: World, tmp_path: Path) -> None:
    bob, slug = cast.client("bob"), cast.team.slug
    form = bob.get(reverse("spak-spec-campaigns", args=[slug, "writes"])).content.decode()
    assert "Nightly (1 gate case)" in form
    answer = bob.post(reverse("spak-campaign-begin", args=[slug, "writes"]), FORM)
    assert answer["Location"] == reverse("spak-campaign", args=[slug, 1])
    made = Campaign.objects.get()
    assert "The proposer is at work." in page_of(bob, cast.team)
    kit.advance(made.pk)
    going = page_of(bob, cast.team, **{"HX-Request": "true"})
    assert "Runs under way" in going and "case first, round 1, the base" in going
    assert "<html" not in going
    kit.finish(made)
    done = page_of(bob, cast.team)
    recorded = ledger.read(Campaign.objects.get())
    runs = recorded.tested[0].pairs[0].runs
    for words in (
        "Its proposer has no more to propose.", "margin 50 points", "Remove step: task Reads, step two",
        'class="curve"', "Passes against what they use", 'class="front"',
        "it takes something out and has to be no worse by 1/2",
        reverse("spak-patch", args=[slug, "writes", 1]),
        *(reverse("spak-run", args=[slug, run]) for run in runs),
    ):  # fmt: skip
        assert words in done, words
    assert "data-live-campaign" not in done
    stages = [reviews.stage_looks(one) for one in recorded.tested[0].stages.values()]
    assert ("cancelled", "Nothing to judge") in stages, "its suite has no golden case"
    assert 'class="pill cancelled">Nothing to judge</span><span class="rows-main">Golden cases' in done
    patch = bob.get(reverse("spak-patch", args=[slug, "writes", 1])).content.decode()
    for words in (
        reverse("spak-campaign", args=[slug, 1]),
        "Pairs of the campaign, 1 case",
        "1 (this patch)",
    ):
        assert words in patch, words
    listed = cast.client("vera").get(reverse("spak-campaign-list", args=[slug])).content.decode()
    assert 'href="/t/kernel-tuners/campaigns/1/"' in listed
    file = b"".join(bob.get(reverse("spak-campaign-ledger", args=[slug, 1])))
    (tmp_path / "c").mkdir()
    (tmp_path / "c/trace.jsonl").write_bytes(file)
    read = Recorded.read(tmp_path, "c")
    assert (read.head, verify(read, catalog())) == (recorded.head, [])


def test_the_buttons_are_for_those_who_may(cast: Any, world: World) -> None:
    made = kit.begun(cast["bob"], *world)
    assert "Pause" not in page_of(cast.client("vera"), cast.team)
    bob, where = cast.client("bob"), reverse("spak-campaign-control", args=[cast.team.slug, 1])
    assert ">Pause" in page_of(bob, cast.team).replace("</svg>", ">")
    assert bob.post(where, {"do": "pause"}).status_code == 302
    assert 'value="resume"' in page_of(bob, cast.team)
    assert bob.post(where, {"do": "delete"}).status_code == 404
    bob.post(where, {"do": "stop"})
    stopped = page_of(bob, cast.team)
    assert "Nothing was proposed." in stopped and "/control/" not in stopped
    made.refresh_from_db()
    assert made.state == "stopped"


def test_a_form_that_names_nothing_is_refused(cast: Any, world: World) -> None:
    bob, where = cast.client("bob"), reverse("spak-campaign-begin", args=[cast.team.slug, "writes"])
    for change in (
        {"suite": "none"},
        {"version": "9"},
        {"pairs": "many"},
        {"candidates": ""},
        {"margin": "-1"},
    ):
        answer = bob.post(where, {**FORM, **change})
        assert answer.status_code == 400, change
        assert "web.campaign_plan" in answer.content.decode()
    assert not Campaign.objects.exists()


def text_of(client: Any, name: str, *args: Any) -> str:
    text: str = client.get(reverse(name, args=args)).content.decode()
    return text


@pytest.mark.findings("B24")
def test_a_newcomer_is_told_what_is_missing_and_mends_it(cast: Any, world: World) -> None:
    """Without a golden case fewer steps cannot win; one is marked by a click, and the next campaign has a
    patch."""
    bob, slug = cast.client("bob"), cast.team.slug
    assert "a file that is read again" in text_of(bob, "spak-spec-campaigns", slug, "writes")
    first = kit.begun(cast["bob"], *world, margin=0, pairs=3)
    kit.finish(first)
    page = page_of(bob, cast.team)
    assert "Not shown to be better" in page and "not_shown" not in page
    assert "No gate case was golden, so a change that only saves steps cannot win" in page
    assert '<span class="pill cancelled">Nothing to judge</span><span class="rows-main">Golden cases' in page
    suite = reverse("spak-suite", args=[slug, "nightly"])
    assert f'<a href="{suite}">Nightly</a></span>' in page

    mark = reverse("spak-case-golden", args=[slug, "nightly"])
    assert cast.client("vera").post(mark, {"case": "first", "golden": "1"}).status_code == 403
    assert bob.post(mark, {"case": "none", "golden": "1"}).status_code == 404
    assert "Mark as golden" in bob.get(suite).content.decode()
    assert bob.post(mark, {"case": "first", "golden": "1"})["Location"] == suite
    assert '<span class="tag">golden</span>' in bob.get(suite).content.decode()

    world[1].refresh_from_db()
    second = kit.begun(cast["bob"], *world, margin=0, pairs=3)
    kit.finish(second)
    page = page_of(bob, cast.team, 2)
    assert "Fit for review" in page and "No gate case was golden" not in page
    assert reverse("spak-patch", args=[slug, "writes", 1]) in page
    patch = text_of(bob, "spak-patch", slug, "writes", 1)
    assert "Recorded runs" in patch and "counterfactual</" not in patch

    bob.post(mark, {"case": "first", "golden": "0"})
    assert not Case.objects.get(name="first").is_golden
    assert ledger.read(second).plan.golden == ("first",), "it keeps to what held when it began"


@pytest.mark.findings("B24")
def test_a_campaign_without_recorded_runs_says_so(cast: Any, world: World) -> None:
    spec, suite = world
    save_version(cast["alice"], spec, kit.TWICE.replace("good", "fine"), 1, "new")
    spec.refresh_from_db()
    kit.finish(kit.begun(cast["bob"], spec, suite))
    page = page_of(cast.client("vera"), cast.team)
    assert "Nothing was proposed. Rules read recorded runs" in page
    assert f"No run of {spec.head} was recorded that rules could read. Run it first." in page


@pytest.mark.findings("E10")
@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"proposer": "model"}, "A model that proposes needs a backend: `asks` names it."),
        ({"proposer": "model", "backend": "ollama"}, "`asks` names it"),
        ({"proposer": "model", "asks": "nothing"}, "There is no backend 'nothing': `asks` names it."),
        ({"runs": 1}, "`runs` sets it"),
        ({"cost_nanousd": -1}, "`cost_nanousd` sets it"),
    ],
)
def test_a_refusal_names_the_field(cast: Any, world: World, more: dict[str, Any], words: str) -> None:
    bob = program(tokens.make(cast["bob"], "ci", 7, cast.team, ["start"])[1])
    address = f"/api/v1/teams/{cast.team.slug}/specs/writes/campaigns/"
    answer = bob.post(address, {"suite": "nightly", **more}, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (400, "web.campaign_plan")
    assert words in f"{answer.json()['detail']} {answer.json()['hint']}"
