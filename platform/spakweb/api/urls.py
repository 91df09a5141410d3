"""Addresses of the API, below /api/v1/; programs ask all of them with a token."""

from __future__ import annotations

from typing import Any

from django.urls import path

from spakweb.access import by_token
from spakweb.api import schema  # noqa: F401  it makes tokens known to the schema
from spakweb.api import views_campaigns as campaigns
from spakweb.api import views_folders as folders
from spakweb.api import views_incoming as incoming
from spakweb.api import views_oidc as oidc
from spakweb.api import views_problems as problems
from spakweb.api import views_reviews as reviews
from spakweb.api import views_run_acts as acts
from spakweb.api import views_run_files as files
from spakweb.api import views_runs as runs
from spakweb.api import views_schedules as schedules
from spakweb.api import views_sources as sources
from spakweb.api import views_specs as specs
from spakweb.api import views_streams as streams
from spakweb.api import views_suites as suites
from spakweb.api import views_team as team
from spakweb.api import views_triggers as triggers
from spakweb.api import views_versions as versions

SPEC = "teams/<slug:team>/specs/<slug:spec>/"
PATCH = f"{SPEC}patches/<int:number>/"
SUITE = "teams/<slug:team>/suites/<slug:suite>/"
EXPERIMENT = f"{SUITE}experiments/<int:number>/"
CAMPAIGN = "teams/<slug:team>/campaigns/<int:number>/"
SOURCE = "teams/<slug:team>/sources/<slug:source>/"
TRIGGER = "teams/<slug:team>/triggers/<int:trigger>/"
RUN = "teams/<slug:team>/runs/<str:run>/"
PROBLEM = "teams/<slug:team>/problems/<int:problem>/"
SCHEDULE = "teams/<slug:team>/schedules/<int:schedule>/"


def one(view: Any) -> Any:
    """A view that a token may ask, and write with."""
    return by_token(getattr(view, "as_view", lambda: view)(), writes=True)


urlpatterns = [
    path("oidc/", oidc.Exchange.as_view(), name="spak-oidc-exchange"),
    path("hooks/<str:key>/", incoming.Receive.as_view(), name="spak-hook-receive"),
    path("teams/", one(specs.TeamList), name="spak-api-teams"),
    path("teams/<slug:team>/sources/", one(sources.SourceList), name="spak-api-sources"),
    path(SOURCE, one(sources.SourceDetail), name="spak-api-source"),
    path(f"{SOURCE}remove/", one(sources.SourceRemove), name="spak-api-source-remove"),
    path(f"{SOURCE}credentials/", one(sources.SourceCredentials), name="spak-api-source-credentials"),
    path(f"{SOURCE}folder/", one(folders.SourceFolder), name="spak-api-folder"),
    path(f"{SOURCE}folder/sync/", one(folders.FolderSync), name="spak-api-folder-sync"),
    path(f"{SOURCE}folder/include/", one(folders.FolderInclude), name="spak-api-folder-include"),
    path(f"{SOURCE}folder/remove/", one(folders.FolderRemove), name="spak-api-folder-remove"),
    path(f"{SOURCE}hook/", one(folders.SourceHook), name="spak-api-hook"),
    path(f"{SOURCE}hook/rotate/", one(folders.SourceHookRotate), name="spak-api-hook-rotate"),
    path(f"{SOURCE}hook/remove/", one(folders.SourceHookRemove), name="spak-api-hook-remove"),
    path(f"{SOURCE}hook/deliveries/", one(folders.SourceHookDeliveries), name="spak-api-hook-deliveries"),
    path("teams/<slug:team>/problems/", one(problems.ProblemList), name="spak-api-problems"),
    path(PROBLEM, one(problems.ProblemDetail), name="spak-api-problem"),
    path(f"{PROBLEM}check/", one(problems.ProblemCheck), name="spak-api-problem-check"),
    path(f"{PROBLEM}remove/", one(problems.ProblemRemove), name="spak-api-problem-remove"),
    path("teams/<slug:team>/triggers/", one(triggers.TriggerList), name="spak-api-triggers"),
    path(f"{SPEC}triggers/", one(triggers.TriggerAdd), name="spak-api-trigger-add"),
    path(f"{TRIGGER}on/", one(triggers.TriggerOn), name="spak-api-trigger-on"),
    path(f"{TRIGGER}off/", one(triggers.TriggerOff), name="spak-api-trigger-off"),
    path(TRIGGER, one(triggers.TriggerDetail), name="spak-api-trigger"),
    path(f"{TRIGGER}remove/", one(triggers.TriggerRemove), name="spak-api-trigger-remove"),
    path(f"{TRIGGER}rotate/", one(triggers.TriggerRotate), name="spak-api-trigger-rotate"),
    path(f"{TRIGGER}deliveries/", one(triggers.TriggerDeliveries), name="spak-api-trigger-deliveries"),
    path("teams/<slug:team>/specs/", one(specs.SpecList), name="spak-api-specs"),
    path(SPEC, one(specs.SpecDetail), name="spak-api-spec"),
    path(f"{SPEC}check/", one(specs.SpecCheck), name="spak-api-check"),
    path(f"{SPEC}format/", one(versions.SpecFormat), name="spak-api-format"),
    path(f"{SPEC}diff/", one(versions.SpecCompare), name="spak-api-diff"),
    path(f"{SPEC}tags/", one(versions.TagList), name="spak-api-tags"),
    path(f"{SPEC}tags/<str:name>/remove/", one(versions.TagRemove), name="spak-api-tag-remove"),
    path(f"{SPEC}versions/", one(versions.VersionList), name="spak-api-versions"),
    path(f"{SPEC}versions/<int:number>/", one(specs.VersionDetail), name="spak-api-version"),
    path(f"{SPEC}versions/<int:number>/restore/", one(versions.VersionRestore), name="spak-api-restore"),
    path(f"{SPEC}patches/", one(reviews.PatchList), name="spak-api-patches"),
    path(PATCH, one(reviews.PatchDetail), name="spak-api-patch"),
    path(f"{PATCH}revisions/", one(reviews.RevisionList), name="spak-api-patch-revisions"),
    path(f"{PATCH}revisions/<int:revision>/", one(reviews.RevisionDetail), name="spak-api-patch-revision"),
    path(f"{PATCH}drop-edit/", one(reviews.PatchDropEdit), name="spak-api-patch-drop-edit"),
    path(f"{PATCH}keep-edit/", one(reviews.PatchKeepEdit), name="spak-api-patch-keep-edit"),
    path(f"{PATCH}fork/", one(reviews.PatchFork), name="spak-api-patch-fork"),
    path(f"{PATCH}update/", one(reviews.PatchUpdate), name="spak-api-patch-update"),
    path(f"{PATCH}check/", one(reviews.PatchChecks), name="spak-api-patch-check"),
    path(f"{PATCH}verdicts/", one(reviews.VerdictList), name="spak-api-patch-verdicts"),
    path(f"{PATCH}comments/", one(reviews.CommentList), name="spak-api-patch-comments"),
    path(
        f"{PATCH}comments/<int:comment>/resolve/",
        one(reviews.CommentResolve),
        name="spak-api-comment-resolve",
    ),
    path(f"{PATCH}comments/<int:comment>/apply/", one(reviews.CommentTake), name="spak-api-comment-apply"),
    path(f"{PATCH}merge/", one(reviews.PatchMerge), name="spak-api-patch-merge"),
    path(f"{PATCH}queue/", one(reviews.PatchQueue), name="spak-api-patch-queue"),
    path(f"{PATCH}unqueue/", one(reviews.PatchUnqueue), name="spak-api-patch-unqueue"),
    path(f"{PATCH}close/", one(reviews.PatchClose), name="spak-api-patch-close"),
    path(f"{PATCH}revert/", one(reviews.PatchRevert), name="spak-api-patch-revert"),
    path(f"{SPEC}queue/", one(reviews.Queue), name="spak-api-queue"),
    path(f"{SPEC}files/", one(runs.RunBring), name="spak-api-bring"),
    path(f"{SPEC}kept-files/", one(runs.KeptFiles), name="spak-api-kept-files"),
    path(f"{SPEC}runs/", one(runs.RunStart), name="spak-api-start"),
    path("teams/<slug:team>/runs/", one(runs.RunList), name="spak-api-runs"),
    path("teams/<slug:team>/runs/import/", one(runs.RunImport), name="spak-api-import"),
    path(RUN, one(runs.waiting(runs.RunDetail)), name="spak-api-run"),
    path(f"{RUN}records/", one(runs.waiting(runs.RunRecords)), name="spak-api-records"),
    path("teams/<slug:team>/events/", one(streams.team_events), name="spak-api-team-events"),
    path(f"{RUN}events/", one(streams.run_events), name="spak-api-events"),
    path(f"{RUN}files/", one(files.RunFiles), name="spak-api-files"),
    path(f"{RUN}files.zip", one(files.RunZip), name="spak-api-files-zip"),
    path(f"{RUN}files/<path:name>", one(files.RunFile), name="spak-api-file"),
    path(f"{RUN}report.json", one(files.RunReport), name="spak-api-report"),
    path(f"{RUN}report.html", one(files.RunReportPage), name="spak-api-report-page"),
    path(f"{RUN}log.txt", one(files.RunLog), name="spak-api-log"),
    path(f"{RUN}export.jsonl", one(files.RunExport), name="spak-api-export"),
    path(f"{RUN}changes.patch", one(files.RunPatch), name="spak-api-changes"),
    path(f"{RUN}junit.xml", one(files.RunJUnit), name="spak-api-junit"),
    path("teams/<slug:team>/suites/", one(suites.SuiteList), name="spak-api-suites"),
    path("teams/<slug:team>/suites/bring/", one(suites.SuiteBring), name="spak-api-suite-bring"),
    path(SUITE, one(suites.SuiteDetail), name="spak-api-suite"),
    path(f"{SUITE}rename/", one(suites.SuiteRename), name="spak-api-suite-rename"),
    path(f"{SUITE}remove/", one(suites.SuiteRemove), name="spak-api-suite-remove"),
    path(f"{SUITE}cases/", one(suites.CaseList), name="spak-api-cases"),
    path(f"{SUITE}cases/<str:case>/golden/", one(suites.CaseGolden), name="spak-api-case-golden"),
    path(f"{SUITE}cases/<str:case>/seal/", one(suites.CaseSeal), name="spak-api-case-seal"),
    path(f"{SUITE}experiments/", one(suites.ExperimentList), name="spak-api-experiments"),
    path(EXPERIMENT, one(suites.ExperimentDetail), name="spak-api-experiment"),
    path(f"{EXPERIMENT}stop/", one(suites.ExperimentStop), name="spak-api-experiment-stop"),
    path(f"{EXPERIMENT}resume/", one(suites.ExperimentResume), name="spak-api-experiment-resume"),
    path(f"{EXPERIMENT}report.json", one(suites.ExperimentReport), name="spak-api-experiment-report"),
    path(f"{EXPERIMENT}report.html", one(suites.ExperimentPage), name="spak-api-experiment-page"),
    path(f"{EXPERIMENT}junit.xml", one(suites.ExperimentJUnit), name="spak-api-experiment-junit"),
    path(f"{SPEC}findings/", one(campaigns.SpecFindings), name="spak-api-findings"),
    path(f"{SPEC}campaigns/", one(campaigns.CampaignBegin), name="spak-api-campaign-begin"),
    path("teams/<slug:team>/campaigns/", one(campaigns.CampaignList), name="spak-api-campaigns"),
    path(CAMPAIGN, one(campaigns.CampaignDetail), name="spak-api-campaign"),
    path(f"{CAMPAIGN}pause/", one(campaigns.CampaignPause), name="spak-api-campaign-pause"),
    path(f"{CAMPAIGN}resume/", one(campaigns.CampaignResume), name="spak-api-campaign-resume"),
    path(f"{CAMPAIGN}stop/", one(campaigns.CampaignStop), name="spak-api-campaign-stop"),
    path(f"{CAMPAIGN}ledger.jsonl", one(campaigns.CampaignLedger), name="spak-api-campaign-ledger"),
    path("teams/<slug:team>/schedules/", one(schedules.ScheduleList), name="spak-api-schedules"),
    path(f"{SPEC}schedules/", one(schedules.ScheduleAdd), name="spak-api-schedule-add"),
    path(SCHEDULE, one(schedules.ScheduleDetail), name="spak-api-schedule"),
    path(f"{SCHEDULE}change/", one(schedules.ScheduleChange), name="spak-api-schedule-change"),
    path(f"{SCHEDULE}on/", one(schedules.ScheduleOn), name="spak-api-schedule-on"),
    path(f"{SCHEDULE}off/", one(schedules.ScheduleOff), name="spak-api-schedule-off"),
    path(f"{SCHEDULE}run/", one(schedules.ScheduleRun), name="spak-api-schedule-run"),
    path(f"{SCHEDULE}remove/", one(schedules.ScheduleRemove), name="spak-api-schedule-remove"),
    path("teams/<slug:team>/runners/", one(team.RunnerList), name="spak-api-runners"),
    path("teams/<slug:team>/audit/", one(team.AuditList), name="spak-api-audit"),
    path(f"{RUN}fork/", one(acts.RunFork), name="spak-api-fork"),
    path(f"{RUN}replay/", one(acts.RunReplay), name="spak-api-replay"),
    path(f"{RUN}labels/", one(acts.RunLabels), name="spak-api-labels"),
    path(f"{RUN}branches/", one(sources.RunBranches), name="spak-api-branches"),
    path(f"{RUN}call/", one(acts.RunCall), name="spak-api-call"),
    path(f"{RUN}answer/", one(runs.RunAnswer), name="spak-api-answer"),
    path(f"{RUN}pause/", one(runs.RunPause), name="spak-api-pause"),
    path(f"{RUN}resume/", one(runs.RunResume), name="spak-api-resume"),
    path(f"{RUN}cancel/", one(runs.RunCancel), name="spak-api-cancel"),
]
