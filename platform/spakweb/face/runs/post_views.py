"""What people do to runs from pages: start, answer, approve, pause, cancel, fork, check; files in and out.

Each takes a form, asks `runs.actions`, and goes back to the page of the run. A person whose page is old is
told so; nothing is done twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from spak.errors import UserError
from spakweb.face.runs import candidates, checks, log, run_parts, start_files, workspace
from spakweb.face.runs.filters import RunFilter, clean, word
from spakweb.face.runs.views import find_run, fork_point, honest, show_run, start_form
from spakweb.face.specs.views import find_spec, named_version
from spakweb.ground import access
from spakweb.ground.errors import Refused
from spakweb.ground.teams.models import Team
from spakweb.ground.text import plural
from spakweb.store.ledger import export
from spakweb.store.runs.models import Run
from spakweb.store.specs import reach
from spakweb.work.runs import actions, answering, guarded, start_inputs
from spakweb.work.sources import mending

MOST_AT_ONCE = 200
EDITS = 50
"""Files that one answer edits."""


@require_POST
def start(request: HttpRequest, team: str, spec: str) -> HttpResponse:
    """A run of a version with inputs; back to the form, as it was, when they do not fit."""
    found = find_spec(request, team, spec, "run.start")
    given = request.POST
    version = named_version(request, found, given.get("version", ""))
    try:
        files = start_files.chosen(request, found)
        run = actions.start(
            request.user, found, version=version,
            inputs=start_inputs.checked(version, _inputs(given)),
            mode=given.get("mode", ""), backend=given.get("backend", ""),
            labels=given.get("labels", "").split(","), queue=_queue(given.get("queue", "")),
            sandbox=given.get("sandbox", ""), prior=given.get("prior", ""), **files,
        )  # fmt: skip
        if "files" in files and given.get("keep"):
            actions.keep_files(request.user, found, files["files"])
    except Refused as why:
        return render(request, "runs/new.html", start_form(request, found, why), status=why.status)
    return redirect(run_parts.address(run))


def _inputs(given: QueryDict) -> dict[str, str]:
    """What the form says of inputs, by name."""
    prefix = "input."
    return {name.removeprefix(prefix): str(given[name]) for name in given if name.startswith(prefix)}


def _queue(name: str) -> str:
    wanted = name.strip() or "default"
    if not all(letter.isascii() and (letter.isalnum() or letter in "._-") for letter in wanted):
        raise Refused("web.run_queue", "The name of a queue has letters, digits, dots and dashes.", "gpu")
    return wanted[:60]


@require_POST
def answer(request: HttpRequest, team: str, run: str) -> HttpResponse:
    """An answer of a person, or a call of the backend, for the question that the page showed."""
    found = find_run(request, team, run)
    given = request.POST
    of, text = given.get("of", ""), given.get("text", "").replace("\r\n", "\n")
    edits = list(zip(given.getlist("edit.path"), given.getlist("edit.text"), strict=False))[:EDITS]
    try:
        if given.get("call"):
            actions.ask(request.user, found, "call", of, given.get("backend", ""))
        else:
            access.require(request.user, "run.answer", found)
            skip = "skip" in given
            answer_ = "" if skip else _answer(found, of, text, edits, anyway="anyway" in given)
            actions.ask(request.user, found, "answer", of, text=answer_)
    except Refused as why:
        return _refused_page(request, found, why, text, edits)
    done = "You skipped the step: its answer is empty." if "skip" in given else "Answer submitted."
    done = "Its guard hands the answer on." if found.agent else done
    messages.success(request, "A worker will call the backend." if given.get("call") else done)
    return redirect(run_parts.address(found))


def _answer(run: Run, of: str, text: str, edits: list[tuple[str, str]], *, anyway: bool) -> str:
    """The text to hand in: what was typed, or the patch that the edits make, when it fits the files.

    Raises: Refused `web.answer_empty`, `web.answer_edit`, `web.answer_patch`.
    """
    asked = (run.summary or {}).get("waiting") if run.state == "waiting" else None
    wanted = answering.patch_wanted(run, asked) if asked and asked.get("id") == of else None
    if wanted is None or (not edits and not text.strip()):
        if not text.strip():
            raise Refused("web.answer_empty", "The answer is empty.", "Type it, or call the backend.")
        return text
    edited = [(path.strip(), content) for path, content in edits if path.strip()]
    if not text.strip():
        text = answering.made(run, edited)
    elif answering.changed(run, edited):
        raise Refused(
            "web.answer_edit",
            "You have edited files and pasted a patch.",
            "Clear one of them: only one can be submitted.",
        )
    if not anyway:
        answering.require_fit(run, wanted, text)
    return text


def _refused_page(
    request: HttpRequest, found: Run, why: Refused, typed: str = "", edits: Sequence[tuple[str, str]] = ()
) -> HttpResponse:
    """The page of the run as it is now, with why nothing was done and what was typed."""
    now = honest(Run.objects.select_related("team").get(pk=found.pk))
    if isinstance(why, answering.NoFit):
        return show_run(request, now, why.status, typed, edits, why)
    messages.error(request, f"{why.message} {why.hint}".strip())
    return show_run(request, now, why.status, typed, edits)


@require_POST
def take_back(request: HttpRequest, team: str, run: str) -> HttpResponse:
    """Ask the guard of a session to take its copy back to before a transaction."""
    found = find_run(request, team, run)
    try:
        guarded.take_back(request.user, found, request.POST.get("seq", ""))
    except Refused as why:
        return _refused_page(request, found, why)
    messages.success(request, "Its guard takes the changes back as soon as it hears of it.")
    return redirect(run_parts.address(found))


@require_POST
def make_spec(request: HttpRequest, team: str, run: str) -> HttpResponse:
    """A guarded session as the draft of a spec, in the editor."""
    found = find_run(request, team, run)
    try:
        spec = guarded.make_spec(request.user, found)
    except Refused as why:
        return _refused_page(request, found, why)
    messages.success(request, "This is what the session did, as steps. Edit it before you run it.")
    return redirect("spak-editor", team=team, spec=spec.slug)


@require_POST
def decide(request: HttpRequest, team: str, run: str) -> HttpResponse:
    """Approve or deny the action that the run waits for; the platform signs, and names the person."""
    found = find_run(request, team, run)
    kind = "approve" if request.POST.get("decision") == "approve" else "deny"
    try:
        actions.ask(request.user, found, kind, request.POST.get("of", ""))
    except Refused as why:
        return _refused_page(request, found, why)
    approved = "Approved." if found.agent else "Approved. The run continues."
    messages.success(request, approved if kind == "approve" else "Denied. The action does not run.")
    return redirect(run_parts.address(found))


@require_POST
def control(request: HttpRequest, team: str, run: str) -> HttpResponse:
    """Pause, resume, cancel, or extend a budget."""
    found = find_run(request, team, run)
    match request.POST.get("do", ""):
        case "resume":
            actions.resume(request.user, found)
        case "pause" | "cancel" as word:
            actions.request_control(request.user, found, word)
            if not found.ended:
                messages.success(request, f"Asked to {word}: what is under way is broken off.")
        case "extend":
            by = request.POST.get("by", "")
            number = int(by) if by.isascii() and by.isdigit() and len(by) < 16 else 0
            actions.extend(request.user, found, request.POST.get("budget", ""), number)
            messages.success(request, "Asked for more. The run's budgets show it once it was granted.")
        case _:
            raise Refused("web.run_control", "There is no such act.", "One of pause, resume, cancel, extend.")
    return redirect(run_parts.address(found))


@require_POST
def fork(request: HttpRequest, team: str, run: str) -> HttpResponse:
    """A new run that takes over what came before a record."""
    found = find_run(request, team, run, "run.start")
    at = fork_point(found, request.POST.get("at", ""), request.POST.get("task", ""))
    made = actions.fork(request.user, found, at, request.POST.get("mode", ""))
    return redirect(run_parts.address(made))


@require_POST
def mend(request: HttpRequest, team: str, run: str) -> HttpResponse:
    """The run that goes on with a repair, with a person's answer to its question as one more test."""
    found = find_run(request, team, run, "run.start")
    try:
        made = mending.answered(request.user, found, request.POST.get("answer", ""))
    except Refused as why:
        return _refused_page(request, found, why)
    return redirect(run_parts.address(made))


@require_POST
def check(request: HttpRequest, team: str, run: str) -> HttpResponse:
    """Verify the chain and replay the run; the page keeps the result until a record comes. What takes longer
    than an answer may goes on behind it, and says how far it is."""
    found = find_run(request, team, run)
    export.begun(found)
    checking = checks.begin(found, request.POST.get("same", ""))
    result = checking.wait()
    if request.htmx:
        context = {"checked": result, "checking": checking, "run": found, "team": found.team}
        return render(request, "runs/_checked.html", context)
    return redirect(f"{run_parts.address(found)}#checked")


@require_POST
def delete(request: HttpRequest, team: str, run: str) -> HttpResponse:
    """Delete a run for good; the dialog has said what goes."""
    found = find_run(request, team, run)
    actions.delete(request.user, found)
    messages.success(request, f"Run {found.key} is deleted. What it held is removed within minutes.")
    return redirect(run_parts.address(found))


@require_POST
def labels(request: HttpRequest, team: str, run: str) -> HttpResponse:
    """Change a run's labels."""
    found = find_run(request, team, run)
    actions.label(request.user, found, request.POST.get("labels", "").split(","))
    return redirect(run_parts.address(found))


@require_POST
def bulk(request: HttpRequest, team: str) -> HttpResponse:
    """Cancel the chosen runs, or go on to compare two of them."""
    found = access.find(request.user, "team.view", Team, slug=team)
    keys = [clean(key) for key in request.POST.getlist("run")[:MOST_AT_ONCE]]
    do = request.POST.get("do", "")
    if do == "compare":
        if len(keys) != 2:
            raise Refused("web.run_compare", "Two runs can be compared.", "Tick two of the list.")
        response = redirect("spak-run-compare", team=found.slug)
        response["Location"] += f"?{urlencode({'one': keys[1], 'two': keys[0]})}"
        return response
    access.require(request.user, "run.control", found)
    if do != "cancel":
        raise Refused("web.run_control", "There is no such act.", "One of cancel, compare.")
    chosen = [run for run in Run.objects.filter(team=found, key__in=keys, only_shown="") if not run.ended]
    for run in chosen:
        actions.request_control(request.user, run, "cancel")
    messages.success(request, f"Asked {len(chosen)} run{'' if len(chosen) == 1 else 's'} to cancel.")
    return _list(found, RunFilter.of(QueryDict(request.POST.get("query", "")[:2000])).query)


@require_POST
def keep_view(request: HttpRequest, team: str) -> HttpResponse:
    """Keep a filter under a name for the team; the same name again changes it, an empty filter drops it."""
    found = access.find(request.user, "team.view", Team, slug=team)
    name = word(request.POST.get("name", ""))[:40].strip()
    query = RunFilter.of(QueryDict(request.POST.get("query", "")[:2000])).query
    if done := actions.keep_view(request.user, found, name, query):
        messages.success(request, f"{done} the view {name}{' for the whole team' if query else ''}.")
    return _list(found, query)


def _list(team: Team, query: str) -> HttpResponse:
    """To the list as it is filtered."""
    response = redirect("spak-run-list", team=team.slug)
    response["Location"] += f"?{query}" if query else ""
    return response


@require_POST
def bring(request: HttpRequest, team: str) -> HttpResponse:
    """A run from an exported file."""
    found = access.find(request.user, "run.start", Team, slug=team)
    file = request.FILES.get("file")
    if file is None:
        raise Refused("web.run_import", "No file came with the form.", "Choose a .jsonl that spak exported.")
    run = export.bring(request.user, found, file.file, file.size or 0)
    messages.success(request, f"Imported {plural(run.count, 'record')}.")
    return redirect(run_parts.address(run))


def _whole_run(request: HttpRequest, team: str, run: str) -> Run:
    """The run, for what quotes the text that it runs. Raises: Http404, Refused `web.token_imports`."""
    found = find_run(request, team, run)
    reach.require_shown(request.user, found)
    return found


@access.by_token
@require_safe
def download(request: HttpRequest, team: str, run: str) -> Any:
    """The run's ledger as JSON lines; with `?as=pack` its statement too; with `?as=events` or `?as=steps` a
    form for reading."""
    found, shape = _whole_run(request, team, run), request.GET.get("as", "")
    if shape == "pack":
        return export.as_pack(found)
    if shape and shape not in export.SHAPES:
        forms = " or ".join(f"?as={name}" for name in ("pack", *export.SHAPES))
        raise Refused("web.filter", "A run is not exported in that form.", f"{forms}, or nothing", 400)
    return export.as_shape(found, shape) if shape else export.as_jsonl(found)


@access.by_token
@require_safe
def log_text(request: HttpRequest, team: str, run: str) -> Any:
    """The run's log as text."""
    return log.as_text(_whole_run(request, team, run))


@access.by_token
@require_safe
def report(request: HttpRequest, team: str, run: str) -> HttpResponse:
    """The run's report as a page of its own."""
    return export.as_report(_whole_run(request, team, run))


@access.by_token
@require_safe
def candidate(request: HttpRequest, team: str, run: str, seq: int) -> Any:
    """A candidate with its evidence as a zip, by the record of its measurement."""
    return candidates.as_zip(_whole_run(request, team, run), seq)


@access.by_token
@require_safe
def artifact(request: HttpRequest, team: str, run: str, name: str) -> Any:
    """A file of the run as an attachment; with `?show=1` a picture that a page may show."""
    found = find_run(request, team, run)
    try:
        if name.startswith("blob/"):
            return export.artifact(found, name)
        return workspace.as_file(found, name, shown="show" in request.GET)
    except (KeyError, UserError, OSError, ValueError) as error:
        raise Http404 from error
