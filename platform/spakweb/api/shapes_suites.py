"""The documents of suites, experiments, findings and campaigns, as serializers."""

from __future__ import annotations

from typing import Any

from django.urls import reverse
from rest_framework import serializers

from spakweb.api.shapes import Builds
from spakweb.campaigns.models import Campaign
from spakweb.campaigns.queue import standing
from spakweb.suites import case_runs
from spakweb.suites.models import Case, Experiment, Suite
from spakweb.suites.report import Shown

MOST = 10**15
"""Of a number in a budget."""


class SuiteShape(serializers.Serializer):
    """A suite; `cases` counts them by split."""

    slug = serializers.CharField()
    name = serializers.CharField()
    cases = serializers.DictField(child=serializers.IntegerField())
    experiments = serializers.IntegerField()
    made_by = serializers.CharField()
    made_at = serializers.CharField()
    html_url = serializers.CharField()


class Suites(serializers.Serializer):
    """A page of suites, by slug."""

    suites = SuiteShape(many=True)
    next = serializers.CharField(allow_null=True)


class SuiteRequest(serializers.Serializer):
    """What a suite is called."""

    name = serializers.CharField(max_length=80)


class CaseRequest(serializers.Serializer):
    """A run that ended, kept as a case."""

    run = serializers.CharField(max_length=128)
    name = serializers.CharField(required=False, max_length=80, help_text="Else the run's key.")


class SealedCheck(serializers.Serializer):
    """A command that has to exit with 0."""

    command = serializers.CharField(max_length=2000, help_text="As a line of a shell; no shell runs it.")
    output = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=10_000,
        trim_whitespace=False,
        help_text="It has to print this, too.",
    )


class SealRequest(serializers.Serializer):
    """Sealed checks for a case that has none."""

    checks = SealedCheck(many=True)
    reason = serializers.CharField(
        required=False, allow_blank=True, max_length=500, help_text="Why they may pass before any run."
    )
    files = serializers.CharField(
        required=False, max_length=128, help_text="The hash of files that only the checks see."
    )


class CaseShape(serializers.Serializer):
    """A case: what a run of it begins with, and the end that counts as right."""

    name = serializers.CharField()
    hash = serializers.CharField()
    split = serializers.CharField()
    state = serializers.CharField()
    reason = serializers.CharField(allow_blank=True)
    inputs = serializers.DictField()
    origin = serializers.CharField(allow_blank=True, help_text="The run that it was kept from.")
    checked = serializers.BooleanField(help_text="Files, a validator or sealed checks decide as well.")
    golden = serializers.BooleanField(help_text="In a campaign no candidate may lose it.")


class Cases(serializers.Serializer):
    """A page of the cases of a suite, by name."""

    cases = CaseShape(many=True)
    next = serializers.CharField(allow_null=True)


class VersionOf(serializers.Serializer):
    """A version of a spec of the team: by its number, by a tag, or else the newest."""

    spec = serializers.CharField(max_length=60)
    version = serializers.IntegerField(required=False, min_value=1)
    tag = serializers.CharField(required=False, max_length=40)


class ExperimentRequest(serializers.Serializer):
    """Cases of a suite under versions; the first of two is the base that the other is compared with."""

    versions = VersionOf(many=True)
    times = serializers.IntegerField(required=False, min_value=1, help_text="Runs of each case; else 1.")
    splits = serializers.ListField(child=serializers.CharField(), required=False)
    backend = serializers.CharField(required=False, allow_blank=True, max_length=40)
    most_runs = serializers.IntegerField(required=False, min_value=0, max_value=MOST)
    most_tokens = serializers.IntegerField(required=False, min_value=0, max_value=MOST)
    most_nanousd = serializers.IntegerField(
        required=False, min_value=0, max_value=MOST, help_text="Billionths of a US dollar."
    )
    most_seconds = serializers.IntegerField(
        required=False,
        min_value=0,
        max_value=MOST,
        help_text="Of its runs together. 0: no limit.",
    )


class GoldenRequest(serializers.Serializer):
    """Whether a case is golden."""

    golden = serializers.BooleanField()


class ExperimentShape(serializers.Serializer):
    """An experiment: `state` is running, paused, stopped or ended. A paused one waits until what `why` names
    is back, and goes on by itself."""

    suite = serializers.CharField()
    number = serializers.IntegerField()
    state = serializers.CharField()
    why = serializers.CharField(allow_blank=True)
    versions = serializers.ListField(child=serializers.CharField())
    runs = serializers.IntegerField()
    open = serializers.IntegerField(help_text="Runs whose result is not known yet.")
    sealed = serializers.IntegerField(help_text="Sealed cases that it looks at.")
    made_by = serializers.CharField()
    made_at = serializers.CharField()
    url = serializers.CharField()
    html_url = serializers.CharField()


class ExperimentRow(serializers.Serializer):
    """An experiment in a list."""

    number = serializers.IntegerField()
    versions = serializers.ListField(child=serializers.CharField())
    sealed = serializers.IntegerField()
    stopped = serializers.BooleanField()
    made_by = serializers.CharField()
    made_at = serializers.CharField()
    url = serializers.CharField()


class Experiments(serializers.Serializer):
    """A page of experiments, the newest first."""

    experiments = ExperimentRow(many=True)
    next = serializers.CharField(allow_null=True)


class ExperimentReport(serializers.Serializer):
    """The document of `spak eval --json`: `ok` when every run passed or the candidate is not worse."""

    experiment = serializers.CharField()
    head = serializers.CharField(allow_blank=True)
    suite = serializers.DictField()
    stopped = serializers.CharField(allow_blank=True)
    ok = serializers.BooleanField()
    cells = serializers.ListField(child=serializers.DictField())
    specs = serializers.ListField(child=serializers.DictField())
    comparison = serializers.DictField(allow_null=True, help_text="Null: there are not two versions.")
    comparisons = serializers.ListField(child=serializers.DictField(), help_text="Of each candidate.")


class FindingsShape(serializers.Serializer):
    """What the newest ended runs of a version show; `findings` as `spak analyze --json` has them."""

    version = serializers.IntegerField(allow_null=True, help_text="Null: no run has ended.")
    runs = serializers.ListField(child=serializers.CharField())
    left_out = serializers.IntegerField(help_text="Ended runs that could not be read.")
    findings = serializers.ListField(child=serializers.DictField())
    transitions = serializers.ListField(child=serializers.DictField())


class CampaignRequest(serializers.Serializer):
    """A campaign over a version of the spec, judged by a suite; 0 tokens or money is no limit."""

    suite = serializers.CharField(max_length=60)
    version = serializers.IntegerField(required=False, min_value=1, help_text="Else the newest.")
    proposer = serializers.CharField(required=False, max_length=12, help_text="rules, model or evolution.")
    candidates = serializers.IntegerField(required=False)
    pairs = serializers.IntegerField(required=False)
    runs = serializers.IntegerField(required=False, help_text="Its budget of runs.")
    tokens = serializers.IntegerField(required=False)
    cost_nanousd = serializers.IntegerField(required=False)
    margin = serializers.IntegerField(required=False, help_text="Points of the pass rate.")
    evolve_runs = serializers.IntegerField(required=False)
    asks = serializers.CharField(required=False, max_length=40, help_text="The backend that proposes.")
    backend = serializers.CharField(required=False, allow_blank=True, max_length=40)


class CampaignShape(serializers.Serializer):
    """A campaign: `state` is running, paused, stopped or ended, and `why` says why. One that waits until a
    model is back is paused, and goes on by itself."""

    number = serializers.IntegerField()
    spec = serializers.CharField()
    version = serializers.IntegerField()
    suite = serializers.CharField()
    proposer = serializers.CharField()
    state = serializers.CharField()
    why = serializers.CharField(allow_blank=True)
    counts = serializers.DictField(help_text="Candidates tried, and their verdicts.")
    runs = serializers.IntegerField(help_text="Runs that its pairs took.")
    records = serializers.IntegerField()
    head = serializers.CharField(allow_blank=True)
    made_by = serializers.CharField()
    made_at = serializers.CharField()
    ended_at = serializers.CharField(allow_null=True)
    url = serializers.CharField()
    html_url = serializers.CharField()


class Campaigns(serializers.Serializer):
    """A page of campaigns, the newest first."""

    campaigns = CampaignShape(many=True)
    next = serializers.CharField(allow_null=True)


def suite_of(request: Builds, suite: Suite, counts: dict[str, int], experiments: int) -> dict[str, Any]:
    """A suite as SuiteShape."""
    page = reverse("spak-suite", args=[suite.team.slug, suite.slug])
    return {
        "slug": suite.slug,
        "name": suite.name,
        "cases": counts,
        "experiments": experiments,
        "made_by": str(suite.made_by),
        "made_at": suite.made_at.isoformat(),
        "html_url": request.build_absolute_uri(page),
    }


def case_of(case: Case) -> dict[str, Any]:
    """A case as CaseShape."""
    names = ("name", "split", "state", "reason", "inputs", "origin", "checked")
    found = {name: getattr(case, name) for name in names}
    return {**found, "golden": case.is_golden, "hash": case.content_hash}


def _about(request: Builds, experiment: Experiment) -> dict[str, Any]:
    here = [experiment.suite.team.slug, experiment.suite.slug, experiment.number]
    return {
        "number": experiment.number,
        "versions": list(dict(experiment.plan["specs"])),
        "sealed": experiment.sealed,
        "made_by": str(experiment.made_by),
        "made_at": experiment.made_at.isoformat(),
        "url": request.build_absolute_uri(reverse("spak-api-experiment", args=here)),
    }


def experiment_row(request: Builds, experiment: Experiment) -> dict[str, Any]:
    """An experiment as ExperimentRow."""
    return {**_about(request, experiment), "stopped": experiment.stopped_at is not None}


def experiment_of(request: Builds, experiment: Experiment, shown: Shown) -> dict[str, Any]:
    """An experiment as ExperimentShape."""
    here = [experiment.suite.team.slug, experiment.suite.slug, experiment.number]
    why = case_runs.held_up(experiment.cells) if shown.open and not experiment.stopped_at else ""
    state = "paused" if why else "running" if shown.open else "ended"
    return {
        **_about(request, experiment),
        "suite": experiment.suite.slug,
        "state": "stopped" if experiment.stopped_at else state,
        "why": why,
        "runs": len(shown.runs),
        "open": shown.open,
        "html_url": request.build_absolute_uri(reverse("spak-experiment", args=here)),
    }


def campaign_of(request: Builds, campaign: Campaign) -> dict[str, Any]:
    """A campaign as CampaignShape."""
    here = [campaign.team.slug, campaign.number]
    return {
        **{name: getattr(campaign, name) for name in ("number", "proposer", "head")},
        **dict(zip(("state", "why"), standing(campaign), strict=True)),
        "spec": campaign.spec.slug,
        "version": campaign.version.number,
        "suite": campaign.suite.slug,
        "counts": campaign.shown.get("counts", {"tried": 0}),
        "runs": campaign.shown.get("runs", 0),
        "records": campaign.count,
        "made_by": str(campaign.made_by),
        "made_at": campaign.made_at.isoformat(),
        "ended_at": campaign.ended_at.isoformat() if campaign.ended_at else None,
        "url": request.build_absolute_uri(reverse("spak-api-campaign", args=here)),
        "html_url": request.build_absolute_uri(reverse("spak-campaign", args=here)),
    }
