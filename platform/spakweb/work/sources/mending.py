"""Mending a failing test: the shipped strategy (docs/repair.md) as a spec of the team, and the next run of a
repair whose question a person answered.

Takes a person and a source, or a run and a text; gives a spec whose newest version has the strategy's text,
and makes one where the team has none, or the run that goes on.
"""

from __future__ import annotations

from itertools import count
from typing import Any

from django.conf import settings
from django.db import transaction

from spak import data
from spak.errors import UserError
from spak.proposers.repair import answers
from spak.runner.views import repairs
from spakweb.ground import access
from spakweb.ground.errors import Refused
from spakweb.ground.teams.models import Team
from spakweb.ground.text import clean, digest
from spakweb.store.ledger.store import DatabaseLedgers
from spakweb.store.runs.models import Run
from spakweb.store.sources.models import RunSource, Source
from spakweb.store.specs.models import Spec
from spakweb.work.runs import files
from spakweb.work.runs.actions import start
from spakweb.work.sources import actions as sources
from spakweb.work.specs.actions import create_spec

STRATEGY, NAME = "specs/strategies/repair.spak", "repair"
ANSWERED, ANSWERED_NAME = "specs/strategies/repair_answered.spak", "repair answered"


def may(user: Any, of: Source | Run) -> bool:
    """Whether the person may make the spec and start runs of it."""
    return all(access.can_each(user, of.team, "spec.edit", "run.start"))


def spec_for(user: Any, source: Source) -> Spec:
    """The team's spec that mends tests of a source. Raises: PermissionDenied, Http404."""
    return _spec(user, source.team, STRATEGY, NAME, f"To mend tests of {source.name}")


def answered(user: Any, run: Run, text: str) -> Run:
    """The run that goes on with a repair whose refusal asked a question: the same files and seed, and the
    answer as one more test.

    Raises: Refused `repair.no_question`, `repair.answer`, `git.*`; PermissionDenied, Http404.
    """
    access.require(user, "run.start", run.team)
    ledger = DatabaseLedgers().reader(run.key)
    records = [record for record, _ in ledger.read()]
    try:
        asked = answers.question(repairs.ended(records, ledger.blobs)["refusal"]["question"])
    except (AttributeError, KeyError, TypeError):
        asked = None
    begun = RunSource.objects.filter(run=run).first()
    if asked is None or (begun is None and run.files is None):
        hint = "Write the test by hand, and repair again."
        raise Refused("repair.no_question", "This run asked nothing that a value answers.", hint, 422)
    try:
        answer = answers.read(text, asked)
        taken = {one.path for one in files.files_of(run)}
    except UserError as error:
        raise Refused.of(error, 422) from error
    rules = records[0].body["rules"]
    path = next(one for one in (answers.file_for(asked, number) for number in count(1)) if one not in taken)
    inputs = answers.following(rules["inputs"], path, "", asked, answer)
    spec = _spec(user, run.team, ANSWERED, ANSWERED_NAME, f"To go on with {run.key}")
    return start(
        user, spec, inputs=inputs, seed=int(rules["seed"]), backend=run.backend, sandbox=run.sandbox,
        labels=run.labels, files=run.files,
        begun_from=begun and sources.begin(user, spec, begun.name, begun.ref, begun.commit),
    )  # fmt: skip


def _spec(user: Any, team: Team, strategy: str, name: str, message: str) -> Spec:
    """The team's oldest spec of the strategy's text that is not archived, or a new one. Idempotent.

    Raises: PermissionDenied, Http404.
    """
    access.require(user, "spec.edit", team)
    access.require(user, "run.start", team)
    text = clean(data.path(strategy).read_bytes(), settings.UPLOAD_BYTES)
    with transaction.atomic():
        Team.objects.select_for_update(no_key=True).get(pk=team.pk)  # two clicks make one spec
        specs = Spec.objects.filter(team=team, archived_at=None, head__content_hash=digest(text))
        return specs.order_by("pk").first() or create_spec(user, team, name, text, message)
