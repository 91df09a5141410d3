"""The documents of suites, experiments, findings and campaigns, as serializers."""

from __future__ import annotations

from typing import Any

from django.db.models import Count
from rest_framework import serializers

from spak.evolve.suites.book import SPLITS
from spakweb.face.api.documents import Address, Document, Moment, With, listing
from spakweb.store.campaigns.models import Campaign
from spakweb.store.suites.models import Experiment
from spakweb.work.campaigns.queue import standing
from spakweb.work.suites import case_runs, report

MOST = 10**15
"""Of a number in a budget."""


class SuiteShape(Document):
    """A suite; `cases` counts them by split."""

    slug = serializers.CharField()
    name = serializers.CharField()
    cases = serializers.DictField(child=serializers.IntegerField())
    experiments = serializers.IntegerField()
    made_by = serializers.CharField()
    made_at = Moment()
    html_url = Address("spak-suite", "team.slug", "slug")

    def get_cases(self, suite: Any) -> dict[str, int]:
        """Their number in each split: that of the row of a list, or else asked for."""
        if hasattr(suite, "tried"):
            return {split: getattr(suite, split) for split in SPLITS}
        found = suite.current.values_list("split").annotate(many=Count("pk")).order_by()
        return {**dict.fromkeys(SPLITS, 0), **dict(found)}

    def get_experiments(self, suite: Any) -> int:
        """Their number: that of the row of a list, or else asked for."""
        return suite.tried if hasattr(suite, "tried") else suite.experiments.count()


Suites = listing("Suites", SuiteShape, "A page of suites, by slug.", pages=True)


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


class CaseShape(Document):
    """A case: what a run of it begins with, and the end that counts as right."""

    name = serializers.CharField()
    hash = serializers.CharField(source="content_hash")
    split = serializers.CharField()
    state = serializers.CharField()
    reason = serializers.CharField(allow_blank=True)
    inputs = serializers.DictField()
    origin = serializers.CharField(allow_blank=True, help_text="The run that it was kept from.")
    checked = serializers.BooleanField(help_text="Files, a validator or sealed checks decide as well.")
    golden = serializers.BooleanField(source="is_golden", help_text="In a campaign no candidate may lose it.")


Cases = listing("Cases", CaseShape, "A page of the cases of a suite, by name.", pages=True)


class VersionOf(serializers.Serializer):
    """A version of a spec of the team: by its number, by a tag, or else the newest."""

    not_both = (("version", "tag"),)

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


class ExperimentRow(Document):
    """An experiment in a list."""

    number = serializers.IntegerField()
    versions = serializers.ListField(child=serializers.CharField())
    sealed = serializers.IntegerField()
    stopped = serializers.BooleanField()
    made_by = serializers.CharField()
    made_at = Moment()
    url = Address("spak-api-experiment", "suite.team.slug", "suite.slug", "number")

    def get_versions(self, experiment: Experiment) -> list[str]:
        """Their names, the base first."""
        return list(dict(experiment.plan["specs"]))

    def get_stopped(self, experiment: Experiment) -> bool:
        """Whether somebody stopped it."""
        return experiment.stopped_at is not None


class ExperimentShape(ExperimentRow):
    """An experiment: `state` is running, paused, stopped or ended. A paused one waits until what `why` names
    is back, and goes on by itself."""

    stopped = None
    suite = serializers.CharField(source="suite.slug")
    state = serializers.CharField()
    why = serializers.CharField(allow_blank=True)
    runs = serializers.IntegerField()
    open = serializers.IntegerField(help_text="Runs whose result is not known yet.")
    sealed = serializers.IntegerField(help_text="Sealed cases that it looks at.")
    html_url = Address("spak-experiment", "suite.team.slug", "suite.slug", "number")

    def to_representation(self, row: Experiment) -> dict[str, Any]:
        """The document of an experiment, with what its cells show now."""
        shown = report.of(row)
        why = case_runs.held_up(row.cells) if shown.open and not row.stopped_at else ""
        state = "paused" if why else "running" if shown.open else "ended"
        state = "stopped" if row.stopped_at else state
        more = {"state": state, "why": why, "runs": len(shown.runs), "open": shown.open}
        return super().to_representation(With(row, **more))


Experiments = listing("Experiments", ExperimentRow, "A page of experiments, the newest first.", pages=True)


class ExperimentReport(Document):
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


class FindingsShape(Document):
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


class CampaignShape(Document):
    """A campaign: `state` is running, paused, stopped or ended, and `why` says why. One that waits until a
    model is back is paused, and goes on by itself."""

    number = serializers.IntegerField()
    spec = serializers.CharField(source="spec.slug")
    version = serializers.IntegerField(source="version.number")
    suite = serializers.CharField(source="suite.slug")
    proposer = serializers.CharField()
    state = serializers.CharField()
    why = serializers.CharField(allow_blank=True)
    counts = serializers.DictField(help_text="Candidates tried, and their verdicts.")
    runs = serializers.IntegerField(help_text="Runs that its pairs took.")
    records = serializers.IntegerField(source="count")
    head = serializers.CharField(allow_blank=True)
    made_by = serializers.CharField()
    made_at = Moment()
    ended_at = Moment(allow_null=True)
    url = Address("spak-api-campaign", "team.slug", "number")
    html_url = Address("spak-campaign", "team.slug", "number")

    def to_representation(self, row: Campaign) -> dict[str, Any]:
        """The document of a campaign, with the state that it has for a reader."""
        state, why = standing(row)
        return super().to_representation(With(row, state=state, why=why))

    def get_counts(self, row: Campaign) -> dict[str, int]:
        """Of its newest figures."""
        return dict(row.shown.get("counts", {"tried": 0}))

    def get_runs(self, row: Campaign) -> int:
        """Of its newest figures."""
        return int(row.shown.get("runs", 0))


Campaigns = listing("Campaigns", CampaignShape, "A page of campaigns, the newest first.", pages=True)
