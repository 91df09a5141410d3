"""Patches of a spec for tests of reviews: texts, recorded runs, and checks that were made."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from bench.scripted import exited, ledger
from run_rows_kit import rows
from spakweb.errors import Refused
from spakweb.reviews import checks
from spakweb.reviews.models import Patch
from spakweb.runs.models import Run

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
    checks.check(patch.latest.pk)
    return {one.name: (one.state, one.words) for one in patch.latest.checks.all()}
