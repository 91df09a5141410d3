"""Patches from a campaign of the outer loop: `propose(...)` proposes the candidates that its gate let
through, each with its verdicts as evidence; `bring(user, spec, ledger)` does so with one of the command line.

The ledger is the `trace.jsonl` of `spak outer campaign`. Its chain is checked and every verdict is derived
again before anything is proposed; a candidate that is already a patch here is skipped. A campaign approves
nothing: whoever brings it is the author, and others review.
"""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.safestring import SafeString, mark_safe

from spak.errors import UserError
from spak.evolve.campaigns import Campaign, points, spending, verify
from spak.evolve.campaigns.campaign import Tested
from spak.evolve.gate import Candidate
from spak.files.scratch import Scratch
from spak.lang import parse
from spak.ledger.scan import TRACE
from spakweb.ground import access
from spakweb.ground.errors import Refused
from spakweb.ground.text import digest
from spakweb.store.reviews.models import Check, Patch
from spakweb.store.specs.facts import catalog
from spakweb.store.specs.models import Spec, SpecVersion
from spakweb.store.specs.team_files import TeamFiles
from spakweb.work.reviews import actions
from spakweb.work.reviews.rules import law_hash

BYTES = 4_000_000
"""Of a campaign's ledger."""
PROPOSED = ("fit", "privileged")
"""Verdicts that become patches: what the gate found fit, and what only a person may decide."""
WORDS = {1: "won", 0: "equal", -1: "lost"}
VERDICTS = {
    "fit": "Fit for review",
    "privileged": "A person decides",
    "rejected": "Rejected",
    "not_shown": "Not shown to be better",
}
STAGES = {
    "form": "The text is whole",
    "privileges": "It may do no more",
    "counterfactual": "Recorded runs",
    "golden": "Golden cases",
    "fresh": "Fresh pairs of runs",
}
MARKS = {
    "pass": ("succeeded", "Passed"),
    "fail": ("failed", "Failed"),
    "open": ("waiting", "Not decided"),
    "privileged": ("waiting", "A person decides"),
}
NAME = "campaign"
FINDINGS = 20
"""Runs of a candidate's findings, and records of each, that are kept."""


def bring(user: Any, spec: Spec, ledger: bytes) -> list[Patch]:
    """The patches that were made. Raises: Refused `web.campaign`, `web.campaign_base`, as for a patch."""
    access.require(user, "spec.propose", spec)
    campaign = _read(ledger)
    base = spec.versions.filter(content_hash=digest(campaign.plan.base)).first()
    if base is None:
        raise Refused(
            "web.campaign_base", f"The campaign began with a text that no version of {spec.name} has.",
            "Bring it to the spec that it was run for.", 409,
        )  # fmt: skip
    return propose(user, spec, base, campaign, f"{campaign.plan.suite} {campaign.head[:10]}")


def propose(
    user: Any, spec: Spec, base: SpecVersion, campaign: Campaign, name: str, number: int = 0
) -> list[Patch]:
    """Patches to a version from a campaign that is known to hold, each once; `name` is the campaign's, and
    `number` that of one of the team's own.

    A candidate that changes what the version imports makes no patch. Raises: as for a patch.
    """
    made = []
    with transaction.atomic():
        for tested in campaign.tested:
            whole = f"{name} candidate {tested.number}"
            if tested.verdict not in PROPOSED or spec.patches.filter(campaign=whole).exists():
                continue
            candidate = tested.candidate
            text = _of_version(candidate, base, campaign.plan.base)
            if not text:
                continue
            title = candidate.rationale or f"Candidate {tested.number} of {candidate.proposer}"
            why = f"{candidate.rationale}\n\n{tested.verdict}: {tested.why}".strip()
            patch = actions.propose(user, spec, text, base.number, title, why, campaign=whole)
            state = Check.State.PASSED if tested.verdict == "fit" else Check.State.LOOK
            Check.objects.create(
                revision=patch.latest, name=NAME, state=state, words=f"{tested.verdict}: {tested.why}"[:300],
                result=evidence(campaign, tested) | _kept(campaign, tested, number),
                law=law_hash(spec), ended_at=timezone.now(),
            )  # fmt: skip
            made.append(patch)
    return made


def _of_version(candidate: Candidate, base: SpecVersion, judged: str) -> str:
    """The version's text with the edits; empty where that is not what was judged, with imports put in."""
    text = candidate.text(judged)
    if base.text == judged:
        return text
    try:
        own = candidate.text(base.text)
    except UserError:
        return ""
    same = parse(TeamFiles.of(base.spec).whole(own).parsed.text).spec.hash == parse(text).spec.hash
    return own if same else ""


def _read(ledger: bytes) -> Campaign:
    if len(ledger) > BYTES:
        raise Refused("web.campaign", "The ledger is larger than 4 MB.", "Bring its trace.jsonl.", 413)
    try:
        with Scratch("campaign") as folder:
            place = folder / NAME / TRACE
            place.parent.mkdir()
            place.write_bytes(ledger)
            campaign = Campaign.read(folder, NAME)
        wrong = verify(campaign, catalog())
    except (UserError, UnicodeError) as error:
        raise _no_campaign(str(getattr(error, "message", "it is not UTF-8"))) from error
    if wrong:
        raise _no_campaign(wrong[0])
    return campaign


def _no_campaign(why: str) -> Refused:
    hint = "Bring the trace.jsonl of a campaign."
    return Refused("web.campaign", f"The file is not a ledger of a campaign: {why}.", hint)


def evidence(campaign: Campaign, tested: Tested) -> dict[str, Any]:
    """Stages, golden and fresh pairs, and the evidence after each fresh one, as JSON."""
    golden = len(campaign.plan.golden)
    after, pairs = campaign.evidence(tested), []
    for place, pair in enumerate(tested.pairs):
        betting = after[max(place - golden + 1, 0)]
        about = {"case": pair.case, "k": pair.k, "word": WORDS[pair.outcome], "golden": place < golden}
        pairs.append({**about, "evidence": round(float(betting.e), 3)})
    return {
        "name": campaign.plan.suite,
        "number": tested.number,
        "verdict": tested.verdict,
        "why": tested.why,
        "proposer": tested.candidate.proposer,
        "records": {
            run: list(numbers)[:FINDINGS]
            for run, numbers in list(tested.candidate.records.items())[:FINDINGS]
        },
        "stages": [
            {"stage": one["stage"], "verdict": one["verdict"], "why": one["why"]}
            for one in tested.stages.values()
        ],
        "pairs": pairs,
        "needed": round(float(1 / campaign.alpha(tested)), 1),
        "head": campaign.head,
    }


def _kept(campaign: Campaign, tested: Tested, number: int) -> dict[str, Any]:
    """What its patch shows besides: tokens, cost and time of its pairs, the front as it was then."""
    spent = spending(tested)
    return {"spent": spent, "front": points(campaign), "campaign": number}


def matrix(found: dict[str, Any]) -> dict[str, Any]:
    """The pairs of a candidate by case and round: `rounds`, and `rows` of a case with the outcome in each, ""
    where it was not tried."""
    pairs = found.get("pairs", ())
    rounds = sorted({one["k"] for one in pairs})
    cases: dict[str, dict[int, str]] = {}
    for one in pairs:
        cases.setdefault(f"{one['case']} (golden)" if one["golden"] else one["case"], {})[one["k"]] = one[
            "word"
        ]
    rows = [
        {
            "case": case,
            "cells": [words.get(k, "") for k in rounds],
            "won": sum(word == "won" for word in words.values()),
            "lost": sum(word == "lost" for word in words.values()),
        }
        for case, words in cases.items()
    ]
    return {"rounds": rounds, "rows": rows}


def curve(found: dict[str, Any]) -> SafeString:
    """The evidence after each fresh pair, on a logarithmic scale, with the line that accepts."""
    from math import log

    values = [1.0, *(one["evidence"] for one in found.get("pairs", ()) if not one["golden"])]
    if len(values) < 2:
        return SafeString("")
    levels = [log(max(float(value), 1e-6)) for value in values]
    goal = log(max(float(found["needed"]), 1e-6))
    low, high = min(0.0, *levels), max(goal, *levels) * 1.05
    width, height = 560.0, 140.0

    def point(place: int, level: float) -> str:
        across = 4 + (width - 8) * place / (len(levels) - 1)
        return f"{across:.1f},{height - 4 - (height - 8) * (level - low) / (high - low):.1f}"

    line = " ".join(point(place, level) for place, level in enumerate(levels))
    goal_line = f"{point(0, goal)} {point(len(levels) - 1, goal)}"
    words = f"Evidence {values[-1]:g} after {len(values) - 1} pairs; {float(found['needed']):g} accepts"
    return mark_safe(  # numbers alone
        f'<svg class="curve" viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{words}">'
        f'<polyline class="goal" points="{goal_line}"/><polyline points="{line}"/></svg>'
    )
