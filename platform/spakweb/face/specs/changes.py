"""Pages and forms that change specs: each checks its form, calls one action, and leads on.

`save` is the one way in for a new version: a form or JSON {text, base_version, message}. It answers 201 with
the version, 200 when the text is the newest one already, 409 with both sides and their merge when someone
saved in between: as JSON for a script, as the merge page for a form.
"""

from __future__ import annotations

import json
import re
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.core.files.uploadedfile import UploadedFile
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.text import slugify
from django.views.decorators.http import require_http_methods, require_POST

from spak.templates import TEMPLATES, text_of
from spakweb.face.specs.views import around, find_spec, find_version
from spakweb.ground import access
from spakweb.ground.errors import Refused
from spakweb.ground.teams.models import Team
from spakweb.ground.text import as_number, clean, json_object, one_line, plural
from spakweb.ground.web.error_pages import wants_json
from spakweb.store.specs.examples import examples
from spakweb.store.specs.models import Spec, SpecVersion, Tag
from spakweb.store.specs.team_files import NAMED, TeamFiles, slug_of
from spakweb.work.hooks import follow
from spakweb.work.specs import actions, badges, show
from spakweb.work.specs.actions import Stale
from spakweb.work.specs.widening import Widens

STARTER = """\
// Each step runs in a sandbox; the task succeeds when the condition at its end holds.
task %s {
  step greet: tool.write_file {
    path: "hello.txt"
    content: "Hello.\\n"
  }

  step look: tool.run {
    cmd: "cat hello.txt"
  }

  success:
    exit_code(look) == 0
}
"""

COMMANDS = re.compile(r"^//   spak .*\n(?://\n)?", re.MULTILINE)
"""Lines of a template's comment for who has it in a terminal."""


def _team(request: HttpRequest, team: str) -> Team:
    return access.find(request.user, "spec.edit", Team, slug=team)


def _to(spec: Spec) -> HttpResponse:
    return redirect("spak-spec-detail", team=spec.team.slug, spec=spec.slug)


@require_http_methods(["GET", "HEAD", "POST"])
def new(request: HttpRequest, team: str) -> HttpResponse:
    """A spec from a name, begun with a template, a small text that runs, or the text that was typed."""
    found = _team(request, team)
    context = _blank(found)
    if request.method == "POST":
        name, template = request.POST.get("name", ""), request.POST.get("template", "")
        try:
            text = request.POST.get("text", "") or _begun(name, template)
            if request.POST.get("double") != name:
                _ask_of_double(found, name)
            made = actions.create_spec(request.user, found, name, text)
        except Refused as why:
            typed = {"name": name, "template": template, "text": request.POST.get("text", "")}
            double = name if why.code == "web.spec_double" else ""
            context |= {"why": why, "double": double, **typed}
            return render(request, "specs/new.html", context, status=why.status)
        _warn_of_double(request, made)
        return redirect("spak-editor", team=found.slug, spec=made.slug)
    return render(request, "specs/new.html", context)


def _ask_of_double(team: Team, name: str) -> None:
    """Raises: Refused `web.spec_double` where the name is taken: nobody means a second one without a word."""
    other = Spec.objects.filter(team=team, slug=slug_of(one_line(name, 80))).first()
    if other is not None:
        hint = "Type another name, or press Create spec once more for a second one of that name."
        raise Refused("web.spec_double", f"Another spec is called {other.name}.", hint, 409)


def _blank(team: Team) -> dict[str, Any]:
    """The page of a new spec before anything is typed."""
    templates = [(template, does) for template, (_, does) in TEMPLATES.items()]
    most_kb = settings.UPLOAD_BYTES // 1024
    return {"team": team, "section": "specs", "most_kb": most_kb, "templates": templates}


def _begun(name: str, template: str) -> str:
    """The text that a spec of that name begins with."""
    word = slugify(name) or "hello"
    word = word if word[0].isalpha() else f"task-{word}"
    if not template:
        return STARTER % "".join(part.capitalize() for part in word.split("-"))
    if template not in TEMPLATES:
        raise Refused("web.request", "There is no such template.", "Choose one of the list.")
    return COMMANDS.sub("", text_of(template, word))


@require_POST
def bring(request: HttpRequest, team: str) -> HttpResponse:
    """Uploaded .spak files, each a spec of its own: all of them or none."""
    found = _team(request, team)
    files = request.FILES.getlist("file")
    try:
        if not files:
            raise Refused("web.no_file", "No file was chosen.", "Choose one or more .spak files.")
        texts = [(_name(file), _read(file)) for file in files]
        texts.sort(key=lambda item: NAMED.search(item[1]) is not None)  # what others import comes before them
        with transaction.atomic():
            made = [actions.create_spec(request.user, found, name, text, "Imported") for name, text in texts]
    except Refused as why:
        return render(request, "specs/new.html", _blank(found) | {"why": why}, status=why.status)
    messages.success(request, f"Imported: {', '.join(map(_said, made))}.")
    for one in made:
        _warn_of_double(request, one)
    return _to(made[0]) if len(made) == 1 else redirect("spak-spec-list", team=found.slug)


def _said(spec: Spec) -> str:
    """The name of an imported spec, with its errors."""
    assert spec.head is not None
    errors = spec.head.facts.get("errors")
    return f"{spec.name} ({plural(errors, 'error')})" if errors else spec.name


def _warn_of_double(request: HttpRequest, spec: Spec) -> None:
    """Say that another spec has the name already: its address, which IMPORT and the API take, differs."""
    if spec.slug != slug_of(spec.name):
        words = f"Another spec is called {spec.name}. This one is {spec.slug} in addresses and for IMPORT."
        messages.warning(request, words)


def _name(file: UploadedFile) -> str:
    name = (file.name or "").replace("\0", "")
    if not name.endswith(".spak"):
        raise Refused(
            "web.file_kind", f"{name[:60]!r} is no .spak file.", "Rename it, if it holds a spec.", 415
        )
    return name.removesuffix(".spak")


def _read(file: UploadedFile) -> str:
    if (file.size or 0) > settings.UPLOAD_BYTES:
        most = settings.UPLOAD_BYTES // 1024
        raise Refused(
            "web.text_size", f"{file.name} is larger than {most} KB.", "Take out what does not belong.", 413
        )
    return clean(file.read(), settings.UPLOAD_BYTES)


@require_POST
def copy(request: HttpRequest, team: str, name: str) -> HttpResponse:
    """An example of the gallery as a spec of the team."""
    found = _team(request, team)
    texts = {slugify(stem.replace("_", "-")): (stem, text) for stem, text in examples().items()}
    if name not in texts:
        raise Http404
    stem, text = texts[name]
    made = actions.create_spec(request.user, found, stem, text, "Copied from the gallery")
    messages.success(request, f"{made.name} is yours now.")
    return _to(made)


@require_POST
def save(request: HttpRequest, team: str, spec: str) -> HttpResponse:
    """Save a version, from the editor or from a file."""
    found = find_spec(request, team, spec, "spec.edit")
    given = given_by(request)
    text, number = given.get("text"), _whole(given.get("base_version"))
    file = request.FILES.get("file")
    if file:
        _name(file)
        text = _read(file)
    if not isinstance(text, str):
        raise Refused("web.no_text", "There is no text to save.", "Send `text` and `base_version`.")
    typed, message = not file and given.get("typed") != "0", str(given.get("message") or "")
    typed = typed and not actions.draft_moved(request.user, found, text, given.get("seen"))
    confirmed = str(given.get("confirmed") or "")
    try:
        saved = actions.save_version(
            request.user, found, text, number, message, typed=typed, confirmed=confirmed
        )
    except Widens as why:
        if wants_json(request):
            raise
        fields = {"base_version": number, "message": message, "typed": "1" if typed else "0"}
        return _ask(request, found, why, clean(text), fields)
    if wants_json(request):
        return _saved_json(found, saved)
    if isinstance(saved, Stale):
        context = around(request, found, "merge") | {
            "stale": saved,
            "message_text": message,
            "typed": typed,
            "theirs": show.table(saved.base.text if saved.base else "", saved.head.text),
            "mine": show.table(saved.base.text if saved.base else "", saved.mine),
        }
        return render(request, "specs/merge.html", context, status=409)
    same = saved.pk == found.head_id
    messages.success(
        request, "Nothing changed, so nothing was saved." if same else f"Saved as version {saved.number}."
    )
    return _to(found)


def _ask(request: HttpRequest, spec: Spec, why: Widens, text: str, fields: dict[str, Any]) -> HttpResponse:
    """The page that shows what widens. Who may saves from it, by the form that was sent and its `fields`;
    everybody may propose the text as a patch."""
    context = around(request, spec, "widens") | {
        "why": why,
        "text": text,
        "fields": fields,
        "found": why.found,
        **show.difference(spec.head.text, text, lambda one: TeamFiles.of(spec).whole(one).parsed),
    }
    return render(request, "specs/widens.html", context, status=why.status)


def _saved_json(spec: Spec, saved: SpecVersion | Stale) -> JsonResponse:
    if isinstance(saved, Stale):
        return JsonResponse(saved.to_json(), status=409)
    url = reverse("spak-version-detail", args=[spec.team.slug, spec.slug, saved.number])
    same = saved.pk == spec.head_id
    answer = {"version": saved.number, "hash": saved.content_hash, "unchanged": same, "url": url}
    return JsonResponse(answer, status=200 if same else 201)


def given_by(request: HttpRequest) -> dict[str, Any]:
    """What the form or the JSON body says."""
    if request.content_type != "application/json":
        return request.POST.dict()
    return json_object(request.body, "web.json", json.loads)  # half a character is cleaned, and not refused


def _whole(value: Any) -> int:
    """The number of a version; 0, which never is one, for what is no number."""
    return as_number(str(value)) or 0


@require_POST
def archive(request: HttpRequest, team: str, spec: str) -> HttpResponse:
    """Archive a spec, or take it back."""
    found = find_spec(request, team, spec)
    archived = request.POST.get("archived") != "0"
    actions.archive(request.user, found, archived)
    messages.success(request, f"{found.name} is {'archived' if archived else 'back in the list'}.")
    return redirect("spak-spec-list", team=team) if archived else _to(found)


@require_POST
def badge(request: HttpRequest, team: str, spec: str) -> HttpResponse:
    """Choose who sees the spec's badge."""
    found = find_spec(request, team, spec)
    badges.choose(request.user, found, request.POST.get("who", ""))
    return _to(found)


@require_POST
def follow_spec(request: HttpRequest, team: str, spec: str) -> HttpResponse:
    """Begin or end mail to the person about the spec's runs."""
    found = find_spec(request, team, spec)
    follow.follow(request.user, found, request.POST.get("on") == "1")
    return _to(found)


@require_POST
def drop_draft(request: HttpRequest, team: str, spec: str) -> HttpResponse:
    """Discard the person's draft."""
    found = find_spec(request, team, spec)
    if actions.drop_draft(request.user, found):
        messages.success(request, f"Your draft of {found.name} is gone.")
    return _to(found)


@require_POST
def restore(request: HttpRequest, team: str, spec: str, number: int) -> HttpResponse:
    """Save an older version's text as the newest one."""
    found = find_version(request, team, spec, number)
    try:
        saved = actions.restore(request.user, found, request.POST.get("confirmed", ""))
    except Widens as why:
        if wants_json(request):
            raise
        return _ask(request, found.spec, why, found.text, {"message": f"Restore version {number}"})
    same = saved.pk == found.spec.head_id
    messages.success(
        request,
        f"Version {number} has the newest text already."
        if same
        else f"Version {number} is restored as version {saved.number}.",
    )
    return _to(found.spec)


@require_POST
def tag(request: HttpRequest, team: str, spec: str, number: int) -> HttpResponse:
    """Name a version."""
    found = find_version(request, team, spec, number)
    made = actions.set_tag(request.user, found, request.POST.get("name", ""))
    messages.success(request, f"{made.name} names version {number}.")
    return redirect("spak-version-detail", team=team, spec=spec, number=number)


@require_POST
def untag(request: HttpRequest, team: str, spec: str, name: str) -> HttpResponse:
    """Remove a version's name."""
    found = find_spec(request, team, spec)
    gone = access.find(request.user, "spec.tag", Tag.objects.select_related("version"), spec=found, name=name)
    actions.remove_tag(request.user, gone)
    messages.success(request, f"The tag {name} is gone.")
    return _to(found)
