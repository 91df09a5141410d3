"""Beginning a run of a case, for experiments and campaigns alike: its inputs, files, seed and recording."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.db import transaction

from spak.outer.experiments.model import seed_of
from spakweb.errors import Refused
from spakweb.runs import actions as runs
from spakweb.runs.models import Run
from spakweb.specs.models import SpecVersion
from spakweb.suites.models import Case, CaseRun


def begin(
    user: Any,
    case: Case,
    version: SpecVersion,
    k: int,
    labels: Sequence[str],
    *,
    backend: str = "",
    text: str = "",
) -> Run:
    """The k-th run of a case, queued. A backend that is named takes the place of the case's recording.

    Raises: what `runs.actions.start` raises.
    """
    with transaction.atomic():
        run = runs.start(
            user, version.spec, version=version, inputs=case.inputs, mode="full_auto", backend=backend,
            labels=labels, files=case.files, bare=case.files is None, text=text,
            seed=seed_of(case.content_hash, case.seed, k),
            recording=case.pack if case.recorded and not backend else "",
        )  # fmt: skip
        if case.checked:
            CaseRun.objects.create(run=run, case=case)
    return run


def require_vetted(cases: Iterable[Case]) -> None:
    """Raises: Refused `web.case_checks` where the checks of a case were not tried yet, or show nothing."""
    for case in cases:
        vetting = getattr(case, "vetting", None)
        if case.checked and vetting is None:
            hint = "Wait some seconds; a worker does it."
            raise Refused("web.case_checks", f"The checks of {case.name} are not tried yet.", hint, 409)
        if vetting is not None and vetting.trouble:
            hint = "Fix the case and import the suite again."
            raise Refused("web.case_checks", f"Case {case.name}: {vetting.trouble}.", hint, 409)
