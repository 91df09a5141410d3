"""The text that a run runs: what its first record holds, before that its own or that of its version."""

from __future__ import annotations

from spak.records import decode
from spakweb.store.runs.models import Run, RunRecord, RunText
from spakweb.store.specs.team_files import TeamFiles


def spec_text(run: Run) -> str:
    """Its imports are put in. Empty where neither is there."""
    first = RunRecord.objects.filter(run=run, seq=0).first()
    if first is not None:
        found = (decode(bytes(first.line)).body.get("rules") or {}).get("spec")
        if isinstance(found, str):
            return found
    own = RunText.objects.select_related("spec__team").filter(run=run).first()
    if own is not None and own.text:
        return TeamFiles.of(own.spec).whole(own.text).parsed.text
    return TeamFiles.of(run.version.spec).whole(run.version.text).parsed.text if run.version else ""
