"""The card of a first visit to the demo: four things to try, each with its one link, ticked when done.

It goes when it is put away (a cookie) or when all four are done. Nothing depends on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse

from spakweb.ground import access
from spakweb.ground.teams.models import Team
from spakweb.store.runs.models import ENDED, Command, Run, State
from spakweb.store.specs.models import Spec

COOKIE = "spak_first"
TUNER, BROKEN, ASKING = "attention_tuner", "first_draft", "build_feature"


@dataclass(frozen=True, slots=True)
class Try:
    """Something to try on the first page."""

    icon: str
    title: str
    text: str
    url: str
    done: bool


def card(request: HttpRequest, team: Team) -> list[Try]:
    """Empty when there is nothing to show: no demo, put away, all done, or the person may start nothing."""
    if not settings.DEMO or request.COOKIES.get(COOKIE) or not access.can(request.user, "run.start", team):
        return []
    specs = {spec.name: spec for spec in Spec.objects.filter(team=team, archived_at=None)}
    if not {TUNER, BROKEN, ASKING} <= specs.keys():
        return []
    runs = Run.objects.filter(team=team, deleted_at=None).order_by("-pk")
    tries = [
        _watch(specs[TUNER], runs),
        _mend(specs[BROKEN]),
        _answer(specs[ASKING], runs),
        _fork(team, runs),
    ]
    return [] if all(one.done for one in tries) else tries


def _watch(spec: Spec, runs: Any) -> Try:
    run = runs.filter(version__spec=spec).first()
    url = _run("spak-run", run) if run else _spec("spak-run-new", spec)
    return Try(
        "run", "Watch a run", f"Run {spec.name}: its graph updates live as it measures.", url, bool(run)
    )


def _mend(spec: Spec) -> Try:
    text = f"{spec.name} refers to a task that does not exist. The editor offers to create it."
    mended = bool(spec.head) and not spec.head.facts.get("errors")
    return Try("edit", "Fix a broken spec", text, _spec("spak-editor", spec), mended)


def _answer(spec: Spec, runs: Any) -> Try:
    waits = runs.filter(state=State.WAITING).first()
    done = Command.objects.filter(run__in=runs, kind="answer", outcome="").exists()
    url = _run("spak-run", waits) if waits else f"{_spec('spak-run-new', spec)}?mode=stepwise"
    text = "A run is waiting for you." if waits else f"Run {spec.name} step by step and answer as its model."
    return Try("user", "Answer a step", text, url, done)


def _fork(team: Team, runs: Any) -> Try:
    ended = runs.filter(state__in=ENDED, count__gt=0).first()
    url = _run("spak-run-fork", ended) if ended else reverse("spak-run-list", kwargs={"team": team.slug})
    text = (
        "Keep its steps up to a record and continue from there."
        if ended
        else "Available once a run has ended."
    )
    return Try("fork", "Fork a finished run", text, url, runs.exclude(parent=None).exists())


def _run(view: str, run: Run) -> str:
    return reverse(view, kwargs={"team": run.team.slug, "run": run.key})


def _spec(view: str, spec: Spec) -> str:
    return reverse(view, kwargs={"team": spec.team.slug, "spec": spec.slug})
