"""A team with a spec that does something useless, runs of it, and a suite whose one case judges."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

from jobs_kit import at_once, do
from spak import canon
from spak.evolve.suites.book import draw
from spakweb.store.campaigns.models import Campaign
from spakweb.store.jobs.models import Job
from spakweb.store.runs.models import ENDED
from spakweb.store.specs.models import Spec
from spakweb.store.suites.models import Suite
from spakweb.work.campaigns import actions, queue
from spakweb.work.runs.actions import start
from spakweb.work.specs.actions import create_spec
from spakweb.work.suites import actions as suites
from spakweb.work.suites import bringing
from spakweb.work.worker import execute

TWICE = """AGENT Writes {
  START -> Reads
  TASK Reads {
    step one: tool.list_files { path: "." }
    step two: tool.list_files { path: "." }
    NEXT { success -> Write, timeout -> Write }
  }
  TASK Write {
    step one: tool.write_file { path: "a.txt" content: "good" }
    success: file_contains("a.txt", "good")
  }
}
"""
ASKS = TWICE.replace(
    'content: "good" }',
    'content: "good" }\n    step three: llm.query { prompt: "Say a word." output_var: word }',
)
"""The same, and it asks its model."""
BUDGET = {"candidates": 2, "pairs": 20, "budget_runs": 60, "margin": 50}
"""All pairs come out equal, so that ten show that nothing is lost by 50 points."""
SLICE_S = 600.0
"""A run ends in its first slice, however slow this machine is."""


def split_of(suite: Suite, split: str, state: str = "succeeded") -> None:
    """Seed the suite so that a run without inputs and files becomes a case of this split."""
    digest = canon.content_hash([{}, "", state, ""])
    suite.seed = next(seed for seed in range(1, 1_000) if draw(seed, digest) == split)
    suite.save(update_fields=["seed"])


def ground(user: Any, team: Any, split: str = "gate") -> tuple[Spec, Suite]:
    spec = create_spec(user, team, "Writes", TWICE)
    for _ in range(2):  # a proposer may not read the one that becomes a case
        run = start(user, spec)
        execute.advance(run.key, SLICE_S)
        run.refresh_from_db()
        assert run.state == "succeeded", run.reason
    suite = suites.make(user, team, "Nightly")
    split_of(suite, split)
    suites.keep(user, run, suite, "first")
    return spec, suite


def brought(user: Any, team: Any, monkeypatch: Any, **cases: str) -> Suite:
    """A suite that was brought, with a case for each name, drawn into the split that is given; all golden."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        for number, name in enumerate(cases):
            case = {"case": 1, "seed": number, "tags": ["golden"]}
            archive.writestr(f"brought/{name}/case.json", json.dumps(case))
    drawn = iter(split for _, split in sorted(cases.items()))
    monkeypatch.setattr(bringing, "draw", lambda seed, digest: next(drawn))
    made = bringing.bring(user, team, "Brought", held, len(held.getvalue()))
    at_once("suites.vet")
    return made


def begun(user: Any, spec: Spec, suite: Suite, **more: Any) -> Campaign:
    return actions.begin(user, spec.head, suite, **{**BUDGET, **more})


def run_all(campaign: Campaign) -> int:
    """What workers do with the runs that it asked for; gives how many there were."""
    open_ones = campaign.asked.exclude(run__state__in=ENDED).select_related("run")
    for one in open_ones:
        execute.advance(one.run.key, SLICE_S)
    at_once("suites.judge")
    return len(open_ones)


def advance(pk: int) -> str:
    """What a worker does with a campaign that is to go on; gives why it stopped, or what went wrong."""
    queue.want(Campaign.objects.get(pk=pk))
    do(queue.STEP, pk)
    row = Job.objects.filter(kind=queue.STEP, key=str(pk)).first()
    return "gone" if row is None else row.error or row.result["why"]


def finish(campaign: Campaign, turns: int = 60) -> str:
    """Its steps and its runs in turn; why it came to its end."""
    for _ in range(turns):
        why = advance(campaign.pk)
        if why != "waiting":
            break
        run_all(campaign)
    campaign.refresh_from_db()
    return why
