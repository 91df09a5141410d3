"""The default proposer: each finding's edit is a candidate, the dearest first. No model is asked."""

from __future__ import annotations

from collections import defaultdict

from spak import canon
from spak.errors import OuterError
from spak.evolve.analyze import Finding, Trace, analyze, prompts_of, read
from spak.evolve.gate.candidate import Candidate
from spak.evolve.propose.training import Training
from spak.lang.edit import to_json

MANY = 5_000


def from_findings(training: Training, base: str) -> list[Candidate]:
    """Candidates for a base from the runs of exactly that text; equal edits are one candidate."""
    digest = canon.digest(base.encode())
    traces: list[Trace] = []
    prompts = {}
    for name in training.names():
        records = training.records(name)
        try:
            trace = read(records, name)
        except OuterError:
            continue
        if trace.spec == digest:
            traces.append(trace)
            if len(records) <= MANY and any(deed.prompt for deed in trace.deeds):
                prompts.update(prompts_of(records))
    if not traces:
        return []
    by_edit: dict[str, list[Finding]] = defaultdict(list)
    for item in analyze(traces, prompts.get).findings:
        if item.edit:
            by_edit[canon.content_hash([to_json(op) for op in item.edit])].append(item)
    ranked = sorted(by_edit.values(), key=lambda found: -sum(item.severity for item in found))
    return [
        Candidate(
            found[0].edit,
            "rules",
            f"{found[0].code}: {found[0].message}" + (f" (and {len(found) - 1} more)" if found[1:] else ""),
            {item.run: item.records for item in found},
        )
        for found in ranked
    ]
