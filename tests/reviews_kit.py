"""Patches of a spec for tests of reviews: texts, recorded runs, and checks that were made."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from bench.scripted import exited, ledger
from jobs_kit import do
from run_rows_kit import rows
from spakweb.ground.errors import Refused
from spakweb.store.reviews.models import Patch
from spakweb.store.runs.models import Run
from spakweb.work.reviews import checks

ONE, TWO = 'step one: tool.list_files { path: "." }', 'step two: tool.list_files { path: "." }'
OTHER, LAST = ONE.replace('"."', '"tests"'), TWO.replace('"."', '"docs"')


def refused(code: str) -> Any:
    return pytest.raises(Refused, check=lambda why: why.code == code)


def ran(cast: Any, key: str, first: int = 0) -> None:
    """A recorded run of the spec that succeeded; with `first` the records before it are gone."""
    records = ledger(cast.spec.head.text, lambda effect, count: exited(0, "a"))[first:]
    run = Run.objects.create(
        team=cast.team,
        version=cast.spec.head,
        key=key,
        name="kit",
        state="succeeded",
        ended_at=timezone.now(),
    )
    Run.objects.filter(pk=run.pk).update(count=len(records), head=rows(run, records))


def checked(patch: Patch) -> dict[str, tuple[str, str]]:
    do(checks.CHECK, patch.latest.pk)
    return {one.name: (one.state, one.words) for one in patch.latest.checks.all()}
