"""Findings of a spec's recent runs, with the graph of what was observed beside what is declared.

Takes the version that the health page shows first; reads the newest runs of it that ended, at most RUNS of
them and RECORDS records in all, and hands their records to `spak.evolve.analyze`. Nothing is stored.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe
from django.views.decorators.http import require_safe

from spak.errors import UserError
from spak.evolve.analyze import Analysis, Finding, Trace, analyze, read
from spak.lang import parse
from spak.lang.edit import Op, to_json
from spak.lang.graph import graph_of, lay_out, to_svg
from spak.records import decode
from spakweb.face.runs.filters import word
from spakweb.face.specs.views import find_spec
from spakweb.ground.text import as_number
from spakweb.store.runs.models import ENDED, Run, RunRecord, State
from spakweb.store.specs.models import Spec, SpecVersion

RUNS, RECORDS = 50, 20_000
SHOWN = 40
NODES = 300


@dataclass(frozen=True, slots=True)
class Found:
    """What the newest runs of a version show. `left_out` are ended runs that could not be read."""

    version: int
    runs: tuple[str, ...]
    analysis: Analysis | None
    left_out: int = 0


@require_safe
def findings_part(request: HttpRequest, team: str, spec: str) -> HttpResponse:
    """`?version=`: the newest version with ended runs if none is named; a part of the health page."""
    found = find_spec(request, team, spec)
    shown = of_version(found, as_number(word(request.GET.get("version", ""))))
    context: dict[str, Any] = {"team": found.team, "spec": found, "found": shown}
    if shown is not None and shown.analysis is not None:
        context |= {
            "findings": [row(found, item) for item in shown.analysis.findings[:SHOWN]],
            "more": max(len(shown.analysis.findings) - SHOWN, 0),
            "transitions": shown.analysis.transitions,
            "svg": observed(shown),
        }
    return render(request, "runs/_findings.html", context)


def of_version(spec: Spec, number: int | None) -> Found | None:
    """None where no run of it ended."""
    ended = Run.objects.filter(version__spec=spec, state__in=ENDED, count__gt=0, deleted_at=None)
    ended = ended.exclude(state=State.CANCELLED)
    if number is None:
        number = ended.order_by("-version__number").values_list("version__number", flat=True).first()
    rows = list(ended.filter(version__number=number).order_by("-pk").only("key", "count")[:RUNS])
    if number is None or not rows:
        return None
    traces: list[Trace] = []
    records = left_out = 0
    for run in rows:
        records += run.count
        if records > RECORDS and traces:
            break
        trace = _trace(run.pk, run.key, run.count)
        if trace is None:
            left_out += 1
        else:
            traces.append(trace)
    found = analyze(traces) if traces else None
    return Found(number, tuple(trace.run for trace in traces), found, left_out)


@lru_cache(maxsize=64)
def _trace(pk: int, key: str, count: int) -> Trace | None:
    """The trace of an ended run, which does not change any more."""
    lines = RunRecord.objects.filter(run=pk).order_by("seq").values_list("line", flat=True)
    try:
        return read([decode(bytes(line)) for line in lines], key)
    except UserError:
        return None


def row(spec: Spec, item: Finding) -> dict[str, Any]:
    """A finding with links to its records and its edit in words."""

    def at(seq: int) -> str:
        return reverse("spak-run-record", args=[spec.team.slug, item.run, seq])

    return {
        "item": item,
        "name": item.code.replace("_", " "),
        "records": [(seq, at(seq)) for seq in item.records[:5]],
        "more": max(len(item.records) - 5, 0),
        "run": reverse("spak-run", args=[spec.team.slug, item.run]),
        "edit": [as_line(op) for op in item.edit],
        "patches": reverse("spak-patch-list", args=[spec.team.slug, spec.slug]),
    }


def as_line(op: Op) -> str:
    """An edit in one line: `Remove step: task Reads, step two`."""
    given = to_json(op)
    more = (f"{name} {value}" for name, value in given.items() if name != "op" and value not in ("", None))
    return f"{str(given['op']).replace('_', ' ').capitalize()}: {', '.join(more)}"


def observed(found: Found) -> SafeString | None:
    """The declared graph; each edge says how often it was taken in how many visits of its task. Edges that
    were never taken are drawn as removed ones are, those that the spec does not declare as added."""
    text = SpecVersion.objects.filter(runs__key__in=found.runs[:1]).values_list("text", flat=True).first()
    graph = graph_of(parse(text or "").spec)
    if not graph.nodes or len(graph.nodes) > NODES or found.analysis is None:
        return None
    taken = {(one["task"], one["trigger"], one["to"]): one for one in found.analysis.transitions}
    edges = []
    for edge in graph.edges:
        one = taken.get((edge.source, edge.trigger, edge.target))
        count, visits = (one["taken"], one["visits"]) if one else (0, 0)
        label = f"{edge.trigger} {count} of {visits}" if visits else f"{edge.trigger} not visited"
        edges.append(replace(edge, trigger=label, change="" if count or not visits else "removed"))
    # the graph escapes every text in it
    return mark_safe(to_svg(lay_out(replace(graph, edges=tuple(edges))), prefix="o", style=False))
