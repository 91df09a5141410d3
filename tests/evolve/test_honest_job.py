"""The loop's proposals on a faulty model's runs: no edit takes out a heuristic that helps.

The whole job, with its campaigns, is in `make bench ARGS=outer`.
"""

from __future__ import annotations

from bench.heuristics_job import PAST, USEFUL, USELESS, base, played
from spak.evolve.propose import Training, from_findings


def test_findings_propose_to_drop_useless_heuristics_alone() -> None:
    text = base()
    made = from_findings(Training.of([(f"r{n}", played(text, n)) for n in range(PAST)], {}), text)
    dropped = {item for candidate in made for item in (*USELESS, *USEFUL) if item not in candidate.text(text)}
    assert dropped
    assert dropped <= set(USELESS)
