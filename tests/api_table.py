"""Every method of every address of the API: who may ask, with which scope, and how it is asked.

`test_api_rights` makes its tests of these rows, and fails when an address or a method has none. `parts` names
what stands in the address, `body` is what is sent as JSON, `answers` are the statuses for who is let in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jobs_kit import failed_job
from run_rows_kit import begun, with_file
from spak.evolve.experiments import Plan
from spakweb.ground.teams.models import Role
from spakweb.store.suites.models import Case, Experiment, Suite
from spakweb.work.campaigns.actions import begin as begin_campaign
from spakweb.work.folders import actions as folders
from spakweb.work.incoming import actions as incoming
from spakweb.work.reviews.actions import propose
from spakweb.work.reviews.talk import comment
from spakweb.work.schedules import actions as schedules
from spakweb.work.sources import actions as sources
from spakweb.work.specs import problem_files
from spakweb.work.specs.actions import create_spec, set_tag
from spakweb.work.triggers import actions as triggers

VIEWER, EDITOR, REVIEWER, ADMIN = Role
TEXT = 'task A { step b: tool.run { cmd: "true" } }'


@dataclass(frozen=True)
class Row:
    """A method of an address. `scope` is what a token needs besides `look`; empty: nothing."""

    name: str
    method: str
    least: Role
    scope: str = ""
    parts: tuple[str, ...] = ("team",)
    body: Any = None
    answers: tuple[int, ...] = (200,)
    listed: bool = False
    """A list of a team: a token for some specs is shown what is of these."""
    kind: str = "application/json"
    teams: bool = False
    """It needs what is the whole team's, such as a suite, besides what is in its address."""
    also: str = ""
    """Another scope that it needs besides."""

    @property
    def of_team(self) -> bool:
        """Whether it is about what is of no spec."""
        of_spec = {"spec", "run", "campaign", "schedule", "trigger"}
        return self.teams or not of_spec & {*self.parts}

    def __str__(self) -> str:
        return f"{self.method} {self.name.removeprefix('spak-api-')}"


COMMENT, SEEN = ("team", "spec", "number", "comment"), {"revision": 1}
SPEC, RUN, SOURCE = ("team", "spec"), ("team", "run"), ("team", "source")
PROBLEM = ("team", "problem")
SUITE, CAMPAIGN = ("team", "suite"), ("team", "campaign")
EXPERIMENT = (*SUITE, "number")
CASE, SEALED = (*SUITE, "case"), {"checks": [{"command": "false"}]}
TRIGGER = ("team", "trigger")
NUMBERED = (*SPEC, "number")
TAG = (*SPEC, "tag")
SCHEDULE = ("team", "schedule")
PATCH = {"text": TEXT, "base_version": 1, "title": "Less"}
NIGHTLY = {"name": "early", "cron": "0 3 * * *"}
ADDED = {"name": "b", "url": "https://git.example/b.git", "refs": ["main"]}


def reads(name: str, parts: tuple[str, ...] = ("team",), **more: Any) -> Row:
    return Row(f"spak-api-{name}", "get", VIEWER, "", parts, **more)


def asks(name: str, parts: tuple[str, ...], body: Any = None, **more: Any) -> Row:
    """A POST that changes nothing."""
    return Row(f"spak-api-{name}", "post", VIEWER, "", parts, body, **more)


def writes(name: str, least: Role, scope: str, parts: tuple[str, ...], body: Any = None, **more: Any) -> Row:
    return Row(f"spak-api-{name}", "post", least, scope, parts, body, **more)


ROWS = (
    reads("teams", ()),
    reads("places", ()),
    # specs
    reads("specs", listed=True),
    writes("specs", EDITOR, "edit", ("team",), {"name": "another", "text": TEXT}, answers=(201,)),
    reads("spec", SPEC),
    asks("check", SPEC, {"text": TEXT}),
    asks("format", SPEC, {"text": TEXT}),
    reads("diff", SPEC),
    reads("versions", SPEC),
    writes("versions", EDITOR, "edit", SPEC, {"text": TEXT}, answers=(428,)),
    reads("version", NUMBERED),
    writes("restore", EDITOR, "edit", NUMBERED),
    reads("tags", SPEC),
    writes("tags", REVIEWER, "edit", SPEC, {"name": "gold", "version": 1}),
    writes("tag-remove", REVIEWER, "edit", TAG, answers=(204,)),
    # patches
    reads("patches", SPEC),
    writes("patches", EDITOR, "review", SPEC, PATCH, answers=(201,)),
    reads("patch", NUMBERED),
    reads("patch-revisions", NUMBERED),
    writes("patch-revisions", EDITOR, "review", NUMBERED, {"text": TEXT, **SEEN}, answers=(201,)),
    reads("patch-revision", (*NUMBERED, "revision")),
    writes("patch-drop-edit", EDITOR, "review", NUMBERED, {"edit": 1, **SEEN}, answers=(409,)),
    writes("patch-keep-edit", EDITOR, "review", NUMBERED, {"edit": 1, **SEEN}, answers=(201,)),
    writes("patch-fork", EDITOR, "review", NUMBERED, {"title": "Mine"}, answers=(201,)),
    writes("patch-update", EDITOR, "review", NUMBERED, SEEN, answers=(200, 201)),
    writes("patch-check", EDITOR, "review", NUMBERED, SEEN, answers=(202,)),
    reads("patch-verdicts", NUMBERED),
    reads("patch-comments", NUMBERED),
    writes("patch-comments", EDITOR, "review", NUMBERED, {"text": "Why?"}, answers=(201,)),
    writes("comment-resolve", EDITOR, "review", COMMENT, {"resolved": True}),
    writes("comment-apply", EDITOR, "review", COMMENT, SEEN, answers=(409,)),
    writes("patch-merge", EDITOR, "review", NUMBERED, SEEN, answers=(409,)),
    writes("patch-queue", EDITOR, "review", NUMBERED, SEEN, answers=(409,)),
    writes("patch-unqueue", EDITOR, "review", NUMBERED),
    writes("patch-close", EDITOR, "review", NUMBERED, SEEN),
    writes("patch-revert", EDITOR, "review", NUMBERED, answers=(409,)),
    reads("queue", SPEC),
    # suites, experiments, campaigns
    reads("suites"),
    writes("suites", EDITOR, "start", ("team",), {"name": "weekly"}, answers=(201,)),
    writes("suite-bring", EDITOR, "start", ("team",), answers=(400,), kind="application/zip"),
    reads("suite", SUITE),
    writes("suite-rename", EDITOR, "start", SUITE, {"name": "Each night"}),
    writes("suite-remove", EDITOR, "start", SUITE, answers=(409,)),
    reads("cases", SUITE),
    writes("cases", EDITOR, "start", SUITE, {"run": "live-run"}, answers=(409,)),
    writes("case-golden", EDITOR, "start", CASE, {"golden": True}),
    writes("case-seal", EDITOR, "start", CASE, SEALED, answers=(201,)),
    reads("experiments", SUITE),
    writes("experiments", EDITOR, "start", SUITE, {"versions": [{"spec": "small"}]}, answers=(400,)),
    reads("experiment", EXPERIMENT),
    writes("experiment-stop", EDITOR, "start", EXPERIMENT, answers=(202,)),
    writes("experiment-resume", EDITOR, "start", EXPERIMENT, answers=(202,)),
    reads("experiment-report", EXPERIMENT),
    reads("experiment-page", EXPERIMENT),
    reads("experiment-junit", EXPERIMENT),
    reads("findings", SPEC),
    writes("campaign-begin", EDITOR, "start", SPEC, {"suite": "nightly"}, answers=(201,), teams=True),
    reads("campaigns", listed=True),
    reads("campaign", CAMPAIGN),
    writes("campaign-pause", EDITOR, "start", CAMPAIGN, answers=(202,)),
    writes("campaign-resume", EDITOR, "start", CAMPAIGN, answers=(202,)),
    writes("campaign-stop", EDITOR, "start", CAMPAIGN, answers=(202,)),
    reads("campaign-ledger", CAMPAIGN),
    # schedules
    reads("schedules", listed=True),
    writes("schedule-add", EDITOR, "admin", SPEC, NIGHTLY, answers=(201,), also="start"),
    reads("schedule", SCHEDULE),
    writes("schedule-change", EDITOR, "admin", SCHEDULE, {"cron": "5 4 * * *"}, also="start"),
    writes("schedule-on", EDITOR, "admin", SCHEDULE, also="start"),
    writes("schedule-off", EDITOR, "admin", SCHEDULE),
    writes("schedule-run", EDITOR, "admin", SCHEDULE, answers=(201,), also="start"),
    writes("schedule-remove", EDITOR, "admin", SCHEDULE, answers=(204,)),
    # the team
    reads("runners"),
    Row("spak-api-audit", "get", ADMIN, "admin"),
    Row("spak-api-work", "get", ADMIN, "admin"),
    writes("work-retry", ADMIN, "admin", ("team", "job"), answers=(202,)),
    # sources
    reads("sources"),
    writes("sources", ADMIN, "admin", ("team",), ADDED, answers=(201,)),
    reads("source", SOURCE),
    writes("source-remove", ADMIN, "admin", SOURCE, answers=(204,)),
    writes("source-credentials", ADMIN, "admin", SOURCE, {}),
    reads("folder", SOURCE),
    writes("folder", ADMIN, "admin", SOURCE, {"branch": "main"}, also="edit"),
    writes("folder-sync", EDITOR, "edit", SOURCE, answers=(202,)),
    writes("folder-include", EDITOR, "edit", SOURCE, {"spec": "small"}, answers=(201,)),
    writes("folder-remove", ADMIN, "admin", SOURCE, answers=(204,)),
    writes("hook", ADMIN, "admin", SOURCE, answers=(409,)),
    writes("hook-rotate", ADMIN, "admin", SOURCE),
    writes("hook-remove", ADMIN, "admin", SOURCE, answers=(204,)),
    Row("spak-api-hook-deliveries", "get", ADMIN, "admin", SOURCE),
    # problems
    reads("problems"),
    writes("problems", EDITOR, "edit", ("team",), {"name": "problems/b.py", "text": "x = 1"}, answers=(201,)),
    reads("problem", PROBLEM),
    writes("problem-check", EDITOR, "edit", PROBLEM, answers=(202,)),
    writes("problem-remove", EDITOR, "edit", PROBLEM, answers=(204,)),
    # triggers
    reads("triggers", listed=True),
    writes("trigger-add", EDITOR, "admin", SPEC, {"name": "b"}, answers=(201,), also="start"),
    writes("trigger-on", EDITOR, "admin", TRIGGER, also="start"),
    writes("trigger-off", EDITOR, "admin", TRIGGER),
    reads("trigger", TRIGGER),
    writes("trigger-remove", EDITOR, "admin", TRIGGER, answers=(204,)),
    writes("trigger-rotate", EDITOR, "admin", TRIGGER),
    Row("spak-api-trigger-deliveries", "get", EDITOR, "admin", TRIGGER),
    # runs
    writes("bring", EDITOR, "start", SPEC, answers=(400,), kind="application/zip"),
    writes("kept-files", EDITOR, "start", SPEC, {"files": "none"}, answers=(204,)),
    writes("start", EDITOR, "start", SPEC, {}, answers=(201,)),
    reads("runs", listed=True),
    writes("import", EDITOR, "start", ("team",), answers=(400,), kind="application/x-ndjson"),
    reads("law"),
    writes("guarded", EDITOR, "start", ("team",), kind="application/x-ndjson", answers=(409,)),
    reads("run", RUN),
    reads("records", RUN),
    reads("live", RUN),
    reads("team-events"),
    reads("events", RUN),
    reads("files", RUN),
    reads("files-zip", RUN),
    reads("file", (*RUN, "file")),
    reads("report", RUN),
    reads("report-page", RUN),
    reads("log", RUN),
    reads("export", RUN),
    reads("pack", RUN, answers=(409,)),
    reads("proof", RUN, answers=(409,)),
    reads("checkpoint", answers=(409,)),
    reads("changes", RUN),
    reads("junit", RUN),
    reads("branches", RUN),
    writes("branches", EDITOR, "start", RUN, {"name": "spak/other"}, answers=(201, 409)),
    writes("answer", EDITOR, "answer", RUN, {"of": "x", "text": "word"}, answers=(409,)),
    writes("call", EDITOR, "answer", RUN, {"of": "x"}, answers=(409,)),
    writes("pause", EDITOR, "start", RUN, answers=(202,)),
    writes("resume", EDITOR, "start", RUN, answers=(202,)),
    writes("extend", EDITOR, "start", RUN, {"budget": "steps", "by": 5}, answers=(202,)),
    writes("cancel", EDITOR, "start", RUN, answers=(202,)),
    writes("fork", EDITOR, "start", RUN, {"at": 1}, answers=(201,)),
    writes("labels", EDITOR, "start", RUN, {"labels": ["a"]}),
    asks("replay", RUN, {}, answers=(200, 202)),
)


def world_of(cast: Any) -> dict[str, Any]:
    """Makes one of each thing in alice's team; gives what stands for the parts of addresses."""
    set_tag(cast["alice"], cast.spec.head, "gold")
    suite = Suite.objects.create(team=cast.team, slug="nightly", name="nightly", seed=1, made_by=cast["bob"])
    plan = Plan("nightly", "h", {"c": "h"}, {"small v1": "h"}, {"small v1": "small v1"})
    Experiment.objects.create(suite=suite, number=1, plan=plan.to_json(), made_by=cast["bob"])
    case = {"suite": suite, "name": "c", "content_hash": "h", "split": "gate", "state": "succeeded"}
    Case.objects.create(**case, made_by=cast["bob"])
    begin_campaign(cast["bob"], cast.spec.head, suite)
    patch = propose(cast["bob"], cast.spec, "task A { }", 1, "Less")
    create_spec(cast["alice"], cast.team, "another", cast.spec.head.text)
    live = begun(cast.team, cast.spec.head, "live-run")
    source = sources.add(cast["alice"], cast.team, "app", "https://git.example/app.git", ["main"])
    receiver, _ = incoming.open_for(cast["alice"], source)
    folders.set_up(cast["alice"], source, "main", "", "commit")
    trigger, _ = triggers.add(cast["bob"], cast.spec, "deploy")
    return {
        "suite": "nightly", "case": "c", "campaign": 1, "source": source.name, "key": receiver.key,
        "trigger": trigger.pk, "problem": problem_files.save(cast["bob"], cast.team, "a.py", "x = 1").pk,
        "team": cast.team.slug, "spec": "small", "number": 1, "tag": "gold", "run": live.key,
        "file": with_file(live, b"kept"), "revision": 1, "comment": comment(cast["bob"], patch, "Why?").pk,
        "job": failed_job(cast.team).pk,
        "schedule": schedules.add(cast["bob"], cast.spec, "nightly", "0 3 * * *").pk,
    }  # fmt: skip
