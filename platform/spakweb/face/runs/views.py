"""Pages that show runs: the list, a run with its tabs, a record, the form that starts one, two compared.

What changes something is in views_act.py. Foreign runs are 404.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from spak.config import RANKS
from spak.errors import UserError
from spak.lang import parse
from spak.lang.check import examine
from spak.records import decode
from spak.runner.searches import SEARCHES
from spakweb.face.runs import (
    backends,
    checks,
    history,
    log,
    metrics,
    record_parts,
    run_parts,
    start_files,
    timeline,
    workspace,
)
from spakweb.face.runs.dashboards import usual_time
from spakweb.face.runs.filters import RecordFilter, RunFilter, clean
from spakweb.face.runs.guarded import session
from spakweb.face.runs.list_rows import filled
from spakweb.face.specs.views import find_spec, named_version
from spakweb.face.streams.summaries import standing
from spakweb.ground import access, clock
from spakweb.ground.errors import Refused
from spakweb.ground.teams.models import Team
from spakweb.ground.text import as_number
from spakweb.store.ledger.store import DatabaseLedgers
from spakweb.store.runs import words
from spakweb.store.runs.models import Run, RunRecord
from spakweb.store.runs.spec_text import spec_text
from spakweb.store.specs.facts import catalog
from spakweb.store.specs.models import Spec
from spakweb.store.specs.team_files import TeamFiles
from spakweb.work.runs import answering, deleted, files, fork_points, modes
from spakweb.work.runs.deleted import gone
from spakweb.work.sources import branches, mending
from spakweb.work.specs.actions import unsaved_draft

PAGE = 50
SANDBOX_WORDS = {
    "docker": "a hardened container of the Docker engine",
    "gvisor": "a container under gVisor, which keeps system calls from the host's kernel",
}


def find_run(request: HttpRequest, team: str, run: str, action: str = "run.view") -> Run:
    """The run with what its pages need, in the state that is true now: a dead run runs nowhere.

    Raises: Refused `web.run_deleted` (410).
    """
    found = find_any(request, team, run, action)
    if found.deleted_at is not None:
        raise gone(found)
    return honest(found)


def find_any(request: HttpRequest, team: str, run: str, action: str = "run.view") -> Run:
    """The run, or what is left of it."""
    rows = Run.objects.select_related(
        "team", "version__spec", "made_by", "parent", "deleted_by", "begun_from__source"
    )
    found: Run = access.find(request.user, action, rows, team__slug=team, key=run)
    return found


def honest(run: Run) -> Run:
    """The run with the state it is in now, also where its runner died."""
    run.state = standing(run.state, run.holder, run.lease_until, clock.now(), run.heard_at)
    return run


@require_safe
def run_list(request: HttpRequest, team: str) -> HttpResponse:
    """The page of a team's runs."""
    found = access.find(request.user, "team.view", Team, slug=team)
    wanted = RunFilter.of(request.GET)
    rows = wanted.apply(Run.objects.filter(team=found), request.user)
    rows = (
        rows.select_related("version__spec", "made_by", "deleted_by").defer("version__text").order_by("-pk")
    )
    page = Paginator(rows, PAGE).get_page(request.GET.get("page"))
    page.object_list = filled(found, page.object_list)
    specs = Spec.objects.filter(team=found, archived_at=None).order_by("name")
    context = {
        "team": found,
        "section": "runs",
        "runs": page,
        "filter": wanted,
        "query": wanted.query,
        "states": words.WORDS | {name: words.state(name) for name in ("unchecked", "own-tests")},
        "specs": specs.values_list("slug", "name"),
        "may_start": access.can(request.user, "run.start", found),
        "may_control": access.can(request.user, "run.control", found),
        "views": found.run_views.all(),
    }
    response = render(request, "runs/_list.html" if request.htmx else "runs/list.html", context)
    if request.htmx:  # the address says what is asked for, and nothing else
        response["HX-Replace-Url"] = f"{request.path}?{wanted.query}" if wanted.on else request.path
    return response


@require_safe
def run_page(request: HttpRequest, team: str, run: str) -> HttpResponse:
    """A run; `?tab=` and the filter of the tab stand in the address, `?seq=` opens a record."""
    found = find_any(request, team, run)
    if found.deleted_at is None:
        return show_run(request, honest(found))
    context = {"team": found.team, "section": "runs", "run": found, "by": deleted.by(found)}
    forks = found.forks.filter(deleted_at=None).order_by("pk").values_list("key", flat=True)
    return render(request, "runs/deleted.html", {**context, "forks": forks[:20]}, status=410)


def show_run(
    request: HttpRequest,
    found: Run,
    status: int = 200,
    typed: str = "",
    edits: Sequence[tuple[str, str]] = (),
    no_fit: Refused | None = None,
) -> HttpResponse:
    """The page; with what was typed and edited when it was not taken."""
    tab = request.GET.get("tab", "")
    tabs = session.TABS if found.agent else run_parts.TABS
    context = around(request, found, tab if tab in tabs else next(iter(tabs)), edits)
    if request.htmx and request.htmx.target == "edits":
        return render(request, "runs/_edits.html", context)
    context |= pane(request, found, context["tab"])
    if context["tab"] == "log" and request.htmx and request.htmx.target == "log":
        return render(request, "runs/_log_rows.html", context)
    if request.htmx and request.htmx.target == "pane":
        return render(request, "runs/_pane.html", context)
    text = spec_text(found)
    of = request.POST.get("of", "")
    asked = next((one for one in context["open_asks"] if one["id"] == of), None)
    late = not asked or asked["given"]  # there is no form that could hold it
    context |= {
        "kept": [(path, text) for path, text in [("", typed), *edits] if late and text.strip()],
        "svg": run_parts.drawn(text) if text else None,
        "live": run_parts.live(found),
        "tasks": run_parts.tasks(found, _names(text)),
        "typed": typed,
        "no_fit": no_fit,
    }
    return render(request, "runs/run.html", context, status=status)


def around(request: HttpRequest, run: Run, tab: str, edits: Sequence[tuple[str, str]] = ()) -> dict[str, Any]:
    """What every tab of a run's page shows around it."""
    head = run_parts.head(run)
    asked = head["asked"]
    return {
        "team": run.team,
        "section": "runs",
        "run": run,
        "tab": tab,
        "tabs": session.TABS if run.agent else run_parts.TABS,
        **head,
        **(answering.asked_for(run, asked, _open(request, run, asked, edits)) if asked else {}),
        "checking": checks.going(run),
        **run_parts.rights(request.user, run),
        "own_id": session.own_id(run),
        "retry": fork_points.points(run) if run.ended else [],
        "usual": usual_time(run.version.spec) if run.version and not run.ended else None,
    }


def _open(
    request: HttpRequest, run: Run, asked: dict[str, Any], edits: Sequence[tuple[str, str]]
) -> list[dict[str, Any]]:
    """The files that are open in the form of a question: as they were typed, or those that `?edit=` names."""
    if edits:
        typed = [(path, text) for path, text in edits if path or text]
        return [{"path": path, "text": text, "rows": answering.rows(text)} for path, text in typed]
    wanted = answering.patch_wanted(run, asked) if "edit" in request.GET else None
    named = [files.path_of(key) for key in request.GET.getlist("edit")] if wanted else []
    found = [answering.opened(run, wanted, path) for path in named if wanted is not None]
    return [one for one in found if one is not None]


def pane(request: HttpRequest, run: Run, tab: str) -> dict[str, Any]:
    """What the chosen tab shows."""
    match tab:
        case "session":
            return session.pane(run, as_number(request.GET.get("before", "")))
        case "records":
            shown = run_parts.records_page(run, RecordFilter.of(request.GET))
            return shown | _record(run, request.GET.get("seq", ""))
        case "log":
            return log.pane(run, *(as_number(request.GET.get(name, "")) for name in ("after", "before")))
        case "metrics":
            return metrics.pane(run, request.GET)
        case "workspace":
            return workspace.pane(run, request.GET.get("file", "")) | branches.offered(request.user, run)
        case "registers":
            registers = (run.summary or {}).get("registers") or {}
            meanings = words.REGISTERS
            return {
                "monitors": history.rows(run),
                "registers": [
                    (name, meanings.get(name, ""), _pretty(value)) for name, value in registers.items()
                ],
            }
        case _:
            found = {"repair": run_parts.repair(run), "may_mend": mending.may(request.user, run)}
            return timeline.pane(run, run_parts.address(run)) | found


@require_safe
def head_part(request: HttpRequest, team: str, run: str) -> HttpResponse:
    """The header and what the run waits for, alone: fetched again when something changed."""
    found = find_run(request, team, run)
    return render(request, "runs/_head.html", around(request, found, "timeline"))


@require_safe
def record_page(request: HttpRequest, team: str, run: str, seq: int) -> HttpResponse:
    """One record: a link to it means this page; within the run's page it is a part."""
    found = find_run(request, team, run)
    context = _record(found, str(seq))
    if "record" not in context:
        raise Http404
    if request.htmx:
        return render(request, "runs/_record.html", {**around(request, found, "records"), **context})
    return render(request, "runs/record.html", {**around(request, found, "records"), **context})


@require_safe
def prompt_part(request: HttpRequest, team: str, run: str, seq: int) -> HttpResponse:
    """The prompt that a permit sent, derived again."""
    found = find_run(request, team, run)
    try:
        pieces, why = record_parts.prompt_at(found, seq), ""
    except (UserError, LookupError) as error:
        pieces, why = [], str(error)
    return render(request, "runs/_prompt.html", {"pieces": pieces, "why": why})


@require_safe
def new(request: HttpRequest, team: str, spec: str) -> HttpResponse:
    """The form that starts a run."""
    found = find_spec(request, team, spec, "run.start")
    return render(request, "runs/new.html", start_form(request, found))


def start_form(request: HttpRequest, spec: Spec, why: Any = None) -> dict[str, Any]:
    """What the form shows that starts a run."""
    given = request.POST if request.method == "POST" else request.GET
    name = given.get("version", "")
    version = named_version(request, spec, name)
    parsed = TeamFiles.of(spec).whole(version.text).parsed
    made = examine(parsed.spec, catalog())
    declared, least = made.inputs, str(made.config.get("SANDBOX", "RESTRICTED"))
    inputs = [
        {
            "name": name,
            "wanted": item.wanted,
            "choices": [str(choice) for choice in item.choices],
            "value": given.get(f"input.{name}", "" if item.default is None else str(item.default)),
            "required": item.required,
        }
        for name, item in declared.items()
    ]
    proposers = [made.proposer, *(task.proposer for task in made.tasks.values())]
    offered = modes.choices(parsed)
    named = ("mode", "backend", "sandbox", "labels", "queue", "prior")
    chosen = {name: given.get(name, "") for name in named}
    if chosen["mode"] not in [one.mode for one in offered if not one.barred]:
        chosen["mode"] = ""
    return {
        "team": spec.team,
        "spec": spec,
        "section": "specs",
        "version": version,
        "versions": spec.versions.values_list("number", "message"),
        "named": name if as_number(name) is None else "",
        "unsaved": unsaved_draft(request.user, spec),
        "version_tags": spec.tags.values_list("name", "version__number"),
        "inputs": inputs,
        "focus": given.get("focus", ""),
        "modes": offered,
        "backends": backends.seen(),
        "usual": usual_time(spec),
        "least": least.lower(),
        "sandboxes": [one for one in SANDBOX_WORDS.items() if RANKS[one[0].upper()] > RANKS.get(least, 1)],
        "measures_here": "CpuProfiler" in version.facts.get("validators", ()),
        "searches": SEARCHES in [one.name for one in proposers if one is not None],
        "chosen": chosen,
        "files": start_files.offered(spec, given),
        "why": why,
    }


@require_safe
def fork_page(request: HttpRequest, team: str, run: str) -> HttpResponse:
    """What a fork at a record takes over and what it would execute. `?at=SEQ` or `?task=NAME`."""
    found = find_run(request, team, run, "run.start")
    at = fork_point(found, request.GET.get("at", ""), request.GET.get("task", ""))
    rows = RunRecord.objects.filter(run=found)
    before = rows.filter(seq__lt=at, authority="proposal").exclude(kind="genesis").order_by("seq")
    approval = before.filter(kind="approval").first()
    copied = before.filter(seq__lt=approval.seq) if approval else before
    later = rows.filter(seq__gte=approval.seq if approval else at, authority="proposal").exclude(task="")
    following = later.exclude(kind="observe").order_by("seq").first()
    context = around(request, found, "records") | {
        "at": at,
        "copied": _steps(copied),
        "copied_count": copied.count(),
        "stopped": approval,
        "entered": list((found.summary or {}).get("nodes") or {}),
        "next": following,
        "modes": modes.choices(parse(spec_text(found))),
    }
    return render(request, "runs/fork.html", context)


def fork_point(run: Run, at: str, task: str) -> int:
    """The record to fork at: the one named, or where the task was entered last. Raises: Http404."""
    seq = as_number(at)
    if seq is not None:
        if 0 < seq <= run.count:
            return seq
        raise Http404
    task = clean(task)
    if not task:
        return fork_points.last_effect(run)
    rows = RunRecord.objects.filter(run=run)
    found = fork_points.entered(rows, task)
    if found is None:
        raise Http404
    return found


def _steps(rows: Any) -> list[tuple[str, str, int]]:
    counts: dict[tuple[str, str], int] = {}
    for task, step in rows.values_list("task", "step"):
        counts[task, step] = counts.get((task, step), 0) + 1
    return [(task, step, count) for (task, step), count in counts.items()]


def _record(run: Run, seq: str) -> dict[str, Any]:
    row = RunRecord.objects.filter(run=run, seq=as_number(seq)).first()
    if row is None:
        return {}
    record = decode(bytes(row.line))
    neighbours = RunRecord.objects.filter(run=run)
    return {
        "record": record,
        "record_said": words.sentence(record),
        "commit": record_parts.is_commit(record),
        "source": source(record),
        "parts": record_parts.parts(run, record, DatabaseLedgers().reader(run.key).blobs),
        "attempts": record_parts.attempts(run, record),
        "asks": record.kind == "permit" and record.body.get("act") in ("ask", "plan"),
        "older": neighbours.filter(seq__lt=row.seq).order_by("-seq").values_list("seq", flat=True).first(),
        "newer": neighbours.filter(seq__gt=row.seq).order_by("seq").values_list("seq", flat=True).first(),
    }


def source(record: Any) -> str:
    """Who proposed it."""
    if record.authority == "commit":
        return "kernel"
    by = record.side.get("by") or record.body.get("by")
    usual = {"observe": "the workspace", "genesis": "the runner", "control": "a person", "plan": "a proposer"}
    if by:
        return str(by)[:80]
    if "status" in record.body:
        return "the validator"
    return usual.get(record.kind, "the tool")


def _names(text: str) -> list[str]:
    return [task.name for task in parse(text).spec.tasks()] if text else []


def _pretty(value: Any) -> str:
    import json

    return json.dumps(value, indent=2, ensure_ascii=False, default=str)
