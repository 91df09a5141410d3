"""The text that a run runs: what its first record holds, before that the text of its version."""

from __future__ import annotations

from spak.records import decode
from spakweb.runs.models import Run, RunRecord
from spakweb.specs.team_files import TeamFiles


def spec_text(run: Run) -> str:
    """Its imports are put in. Empty where neither is there."""
    first = RunRecord.objects.filter(run=run, seq=0).first()
    if first is not None:
        found = (decode(bytes(first.line)).body.get("rules") or {}).get("spec")
        if isinstance(found, str):
            return found
    return TeamFiles.of(run.version.spec).whole(run.version.text).parsed.text if run.version else ""
