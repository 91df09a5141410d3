"""Pages that show specs: the list, a spec, its history, a version, two versions compared, the gallery."""

from __future__ import annotations

from typing import Any

from django.core.paginator import Paginator
from django.db.models import Count, Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from spakweb.ground import access
from spakweb.ground.teams.law import law_of
from spakweb.ground.teams.models import Team
from spakweb.ground.text import as_number
from spakweb.store.specs.examples import examples
from spakweb.store.specs.facts import facts_of, findings
from spakweb.store.specs.models import Badge, Spec, SpecVersion
from spakweb.store.specs.team_files import TeamFiles, slug_of
from spakweb.work.hooks import follow
from spakweb.work.specs import show
from spakweb.work.specs.actions import draft_of

PAGE = 50
SORTS = {"name": ("name", "pk"), "changed": ("-head__made_at", "-pk")}


def find_spec(request: HttpRequest, team: str, spec: str, action: str = "spec.view") -> Spec:
    """The spec of an address. Raises: Http404 where the person may not do that with it."""
    rows = Spec.objects.select_related("team", "head", "head__author")
    return access.find(request.user, action, rows, team__slug=team, slug=spec)


def find_version(request: HttpRequest, team: str, spec: str, number: int) -> SpecVersion:
    """The version of an address. Raises: Http404."""
    found = find_spec(request, team, spec)
    try:
        return found.versions.select_related("spec__team", "author", "restored_from").get(number=number)
    except SpecVersion.DoesNotExist as error:
        raise Http404 from error


def named_version(request: HttpRequest, spec: Spec, name: str) -> SpecVersion:
    """The version of that number, or the one that the tag of that name is at; without a name the newest."""
    number = as_number(name)
    if number is None and name:
        found = (
            spec.tags.filter(name=name[:40].replace("\0", ""))
            .values_list("version__number", flat=True)
            .first()
        )
        if found is None:
            raise Http404
        number = found
    return spec.head if number is None else find_version(request, spec.team.slug, spec.slug, number)


def around(request: HttpRequest, spec: Spec, tab: str) -> dict[str, Any]:
    """What the header of a spec's pages shows."""
    return {
        "team": spec.team,
        "spec": spec,
        "section": "specs",
        "tab": tab,
        "tags": spec.tags.select_related("version"),
        "draft": draft_of(request.user, spec).first(),
        "may_edit": access.can(request.user, "spec.edit", spec) and not spec.archived_at,
        "may_tag": access.can(request.user, "spec.tag", spec),
        "may_archive": access.can(request.user, "spec.archive", spec),
    }


@require_safe
def spec_list(request: HttpRequest, team: str) -> HttpResponse:
    """The page of a team's specs."""
    found = access.find(request.user, "team.view", Team, slug=team)
    wanted, sort = request.GET.get("q", "").replace("\0", "")[:100].strip(), request.GET.get("sort", "name")
    archived = request.GET.get("archived") == "1"
    rows = Spec.objects.filter(team=found, archived_at__isnull=not archived)
    if wanted:
        rows = rows.filter(
            Q(name__icontains=wanted) | Q(slug__icontains=wanted) | Q(head__text__icontains=wanted)
        )
    rows = rows.select_related("head", "head__author").defer("head__text").annotate(tag_count=Count("tags"))
    context = {
        "team": found,
        "section": "specs",
        "specs": Paginator(rows.order_by(*SORTS.get(sort, SORTS["name"])), PAGE).get_page(
            request.GET.get("page")
        ),
        "q": wanted,
        "sort": sort if sort in SORTS else "name",
        "archived": archived,
        "archived_count": Spec.objects.filter(team=found, archived_at__isnull=False).count(),
        "may_edit": access.can(request.user, "spec.edit", found),
    }
    return render(request, "specs/_list.html" if request.htmx else "specs/list.html", context)


@require_safe
def gallery(request: HttpRequest, team: str) -> HttpResponse:
    """The examples that ship, each with its picture; copying one makes a spec of the team."""
    found = access.find(request.user, "team.view", Team, slug=team)
    cards, law = [], law_of(found)
    for place, (name, text) in enumerate(examples().items()):
        whole = TeamFiles(found, slug_of(name)).whole(text)
        cards.append(
            {
                "name": name,
                "slug": slug_of(name),
                "facts": facts_of(whole, law),
                "svg": show.graph(whole.parsed.spec, f"x{place}"),
                "intro": show.intro(text),
            }
        )
    may_edit = access.can(request.user, "spec.edit", found)
    context = {"team": found, "section": "specs", "cards": cards, "may_edit": may_edit}
    return render(request, "specs/gallery.html", context)


@require_safe
def spec_detail(request: HttpRequest, team: str, spec: str) -> HttpResponse:
    """The page of a spec."""
    found = find_spec(request, team, spec)
    whole = TeamFiles.of(found).whole(found.head.text)
    context = (
        around(request, found, "overview")
        | _badge(request, found)
        | {
            "version": found.head,
            "svg": show.graph(whole.parsed.spec),
            "goals": found.head.facts.get("goals", {}),
            "problems": show.problems(findings(whole, law_of(found.team))),
            "recent": found.versions.select_related("author")[:5],
            "version_count": found.versions.count(),
            "can_be_mailed": follow.can_be_mailed(request.user),
            "follows": follow.follows(request.user, found),
        }
    )
    return render(request, "specs/detail.html", context)


@require_safe
def history(request: HttpRequest, team: str, spec: str) -> HttpResponse:
    """The page of a spec's versions."""
    found = find_spec(request, team, spec)
    rows = found.versions.select_related("author", "restored_from").prefetch_related("tags").defer("text")
    context = around(request, found, "history") | {
        "versions": Paginator(rows, PAGE).get_page(request.GET.get("page"))
    }
    return render(request, "specs/_history.html" if request.htmx else "specs/history.html", context)


@require_safe
def version(request: HttpRequest, team: str, spec: str, number: int) -> HttpResponse:
    """The page of one version."""
    found = find_version(request, team, spec, number)
    lines = show.lines_of(found.text)
    whole = TeamFiles.of(found.spec).whole(found.text)
    context = around(request, found.spec, "history") | {
        "version": found,
        "svg": show.graph(whole.parsed.spec),
        "lines": lines[: show.MOST_LINES],
        "more": max(0, len(lines) - show.MOST_LINES),
        "problems": show.problems(findings(whole, law_of(found.spec.team))),
        "own_tags": found.tags.all(),
        "is_head": found.pk == found.spec.head_id,
        "older": found.spec.versions.filter(number__lt=number).first(),
    }
    return render(request, "specs/version.html", context)


@require_safe
def download(request: HttpRequest, team: str, spec: str, number: int) -> HttpResponse:
    """The exact text as a file."""
    found = find_version(request, team, spec, number)
    response = HttpResponse(found.text.encode(), content_type="text/plain; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{found.spec.slug}-v{number}.spak"'
    return response


@require_safe
def compare(request: HttpRequest, team: str, spec: str) -> HttpResponse:
    """Two versions: changes in words, one coloured graph, the texts side by side. ?old=1&new=3; the newest
    two if nothing is told."""
    found = find_spec(request, team, spec)
    numbers = list(found.versions.values_list("number", "message"))
    head = found.head.number
    new = _number(request.GET.get("new"), head)
    old = _number(request.GET.get("old"), max(1, new - 1))
    before, after = (find_version(request, team, spec, number) for number in (old, new))
    team_files = TeamFiles.of(found)
    context = around(request, found, "compare") | {
        "numbers": numbers,
        "before": before,
        "after": after,
        "same": before.content_hash == after.content_hash,
        **show.difference(before.text, after.text, lambda text: team_files.whole(text).parsed),
    }
    return render(request, "specs/compare.html", context)


def _number(text: str | None, default: int) -> int:
    if not text:
        return default
    found = as_number(text)
    if found is None:
        raise Http404
    return found


def _badge(request: HttpRequest, spec: Spec) -> dict[str, Any]:
    """For who may choose it: who sees the spec's badge, and its address."""
    if not access.can(request.user, "team.manage", spec):
        return {}
    found = Badge.objects.filter(spec=spec).first()
    who, path = "off", ""
    if found is not None and found.public:
        who, path = "public", reverse("spak-badge-public", args=[spec.team.slug, spec.slug])
    elif found is not None:
        who, path = "link", reverse("spak-badge", args=[found.key])
    words = {"off": "Nobody", "link": "Whoever has its address", "public": "Everybody"}
    return {
        "badge_who": who,
        "badge_choices": words.items(),
        "badge_url": request.build_absolute_uri(path) if path else "",
    }
