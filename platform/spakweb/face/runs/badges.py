"""The badge of a spec: a small SVG that says how its last run ended, for READMEs.

Nobody need be signed in; a badge that is off, or was never there, is a 404 like any other. It holds no script
and no link, its texts are escaped, and it may be kept for a minute. With `?tag=` the runs of that
version alone.
"""

from __future__ import annotations

import hashlib
from html import escape

from django.contrib.auth.decorators import login_not_required
from django.core.cache import cache
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotModified
from django.shortcuts import get_object_or_404
from django.utils.http import parse_etags
from django.views.decorators.http import require_safe

from spakweb.store.runs.models import ENDED, Run
from spakweb.store.specs.models import Badge

KEPT_S = 60
COLOURS = {"succeeded": "#1a7f37", "failed": "#b42318", "refused": "#8a4b00"}
GREY = "#57606a"
NO_RUNS = "no runs"
LONGEST = 40
SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="{all}" height="20" role="img" '
    'aria-label="{name}: {state}">'
    "<title>{name}: {state}</title>"
    '<rect width="{left}" height="20" fill="#24292f"/>'
    '<rect x="{left}" width="{right}" height="20" fill="{colour}"/>'
    '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">'
    '<text x="6" y="14" textLength="{one}">{name}</text>'
    '<text x="{at}" y="14" textLength="{two}">{state}</text></g></svg>'
)


@login_not_required
@require_safe
def by_link(request: HttpRequest, secret: str) -> HttpResponse:
    """The badge of whoever has the address."""
    if not secret.isprintable():  # PostgreSQL asks for nothing with a zero byte
        raise Http404
    return _shown(request, get_object_or_404(_badges(), key=secret, public=False))


@login_not_required
@require_safe
def public(request: HttpRequest, team: str, spec: str) -> HttpResponse:
    """The badge that everybody may see."""
    return _shown(request, get_object_or_404(_badges(), spec__team__slug=team, spec__slug=spec, public=True))


def _badges() -> QuerySet[Badge]:
    return Badge.objects.select_related("spec")


def _shown(request: HttpRequest, badge: Badge) -> HttpResponse:
    tag = request.GET.get("tag", "")
    named = f"badge:{badge.key}:{hashlib.sha256(tag.encode('utf-8', 'replace')).hexdigest()}"
    text = cache.get(named)
    if text is None:
        text = _drawn(badge, tag)
        cache.set(named, text, KEPT_S)
    etag = f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'
    same = {one.removeprefix("W/") for one in parse_etags(request.headers.get("If-None-Match", ""))}
    response = (
        HttpResponseNotModified() if etag in same or "*" in same
        else HttpResponse(text, content_type="image/svg+xml")
    )  # fmt: skip
    response["ETag"] = etag
    response["Cache-Control"] = f"{'public' if badge.public else 'private'}, max-age={KEPT_S}"
    response["Content-Security-Policy"] = "default-src 'none'; sandbox"
    return response


def _drawn(badge: Badge, tag: str) -> str:
    rows = Run.objects.filter(version__spec=badge.spec_id, state__in=sorted(ENDED), deleted_at=None, trial="")
    name = badge.spec.name
    if tag:
        found = badge.spec.tags.filter(name=tag).first() if tag.isprintable() else None
        if found is None:
            raise Http404
        rows, name = rows.filter(version=found.version_id), f"{name} {tag}"
    state = rows.order_by("-pk").values_list("state", flat=True).first() or NO_RUNS
    return svg(name, state)


def svg(name: str, state: str) -> str:
    """The image. Widths are of the letters' usual ones; the texts are fitted into them."""
    shown = name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"
    one, two = (max(7 * len(text), 7) for text in (shown, state))
    left, right = one + 12, two + 12
    return SVG.format(
        all=left + right, left=left, right=right, one=one, two=two, at=left + 6, name=escape(shown),
        state=escape(state), colour=COLOURS.get(state, GREY),
    )  # fmt: skip
