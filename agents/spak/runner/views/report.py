"""A run's report: one self-contained HTML page, with pictures of its candidates (spak.runner.views.plots).

Takes the View of a run, its table of candidates and what was checked about its ledger; gives text. Every
figure stands in the ledger; nothing here is measured. No script, no font, no file from elsewhere.
"""

# ruff: noqa: E501  markup reads best as one line

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from spak.runner.history import Attempted, best_of
from spak.runner.views.own_tests import named
from spak.runner.views.plots import parallel, plot
from spak.runner.views.quality import Quality
from spak.runner.views.run_json import View

_MARK = {
    "improved": ("●", "improved"),
    "measured": ("○", "measured"),
    "fail": ("×", "failed"),
    "static": ("□", "static"),
    "done": ("✓", "done"),
}

FATES = ("worse by more than a tenth", "not better by the rule", "undecided", "failed")
"""What became of a candidate that did not improve."""

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5b6675; --line: #d5dbe3; --paper: #fff;
  --good: #0b7a4b; --bad: #b3261e; --plain: #35618f; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6eaf0; --soft: #a3adba; --line: #39424e;
  --paper: #14181d; --good: #4cc38a; --bad: #ff8a80; --plain: #8ab8e6; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 0 auto;
  max-width: 60rem; padding: 1.5rem; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1.25rem; margin: 0; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
.figure { font-size: 2.2rem; font-weight: 650; } .soft { color: var(--soft); }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-size: .875rem; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
td.v { white-space: nowrap; } td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
code { font: .85em ui-monospace, monospace; overflow-wrap: anywhere; }
svg { width: 100%; height: auto; } svg text { fill: var(--soft); font-size: 12px; }
.improved { color: var(--good); } .fail { color: var(--bad); } .measured, .static { color: var(--plain); }
"""


@dataclass(frozen=True, slots=True)
class Proof:
    """What was checked after the run: the ledger's chain, and a replay."""

    ledger_ok: bool
    replay_equal: bool
    records: int
    head: str
    summary: str
    unreplayed: str = ""
    """Why it was not replayed; empty where it was."""
    start: int = 0
    """The first record that was verified and replayed; those before it were compared by the one hash that
    the run's last snapshot has of them."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What the report says besides the view and the candidates."""

    title: str
    machine: Mapping[str, str] = field(default_factory=dict)
    stopped: str = ""
    winner: str = ""
    evidence: Mapping[str, Any] = field(default_factory=dict)


def lines(quality: Quality) -> dict[str, str]:
    """The run's quality in words, label by label; what was not measured says so."""
    checked = plural(quality.axioms, "checked axiom")
    asked = plural(quality.permitted + quality.denied, "action")
    return {
        "consistency": _share(
            quality.consistency, f"{quality.held} of {checked} held", "no axiom was checked"
        ),
        "permitted": _share(quality.permission, f"{quality.permitted} of {asked}", "no action was asked for"),
        "self-correction": _share(
            quality.correction, f"{quality.healed} of {plural(quality.failures, 'failure')}", "nothing failed"
        ),
        "perplexity": "not reported"
        if quality.perplexity is None
        else f"{quality.perplexity:.3g} over {plural(quality.scored, 'token')}",
    }


def plural(number: int, word: str) -> str:
    """A number with its noun."""
    return f"{number:,} {word}" + ("" if number == 1 else "s")


def _share(value: float | None, counts: str, otherwise: str) -> str:
    return otherwise if value is None else f"{int(value * 1000) / 10:g} % ({counts})"


def report(
    view: View, rows: Sequence[Attempted], proof: Proof, facts: Facts, quality: Quality | None = None
) -> str:
    """The page. Text from specs, tools and models is escaped: it stays text."""
    parts = [
        "<!doctype html>",
        f'<html lang="en"><head><meta charset="utf-8"><title>{escape(facts.title)}: {escape(view.run)}</title>',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<style>{_STYLE}</style></head><body>",
        f"<h1>{escape(facts.title)}</h1><p class=soft>run {escape(view.run)}, {escape(view.word)}</p>",
        *([f"<p>Its check fails without {escape(named(view.by_own_tests))}.</p>"] * bool(view.by_own_tests)),
        _headline(view),
        *(["<h2>The metric over the candidates</h2>", plot(rows, baseline(view.metrics))] if rows else []),
        *(
            ["<h2>The parameters side by side</h2>", space]
            if (space := parallel(rows, best_of(rows)))
            else []
        ),
        "<h2>Why it stopped, and what proves it</h2>",
        _list(_proofs(view, proof, facts)),
        *(["<h2>Quality</h2>", _list(lines(quality))] if quality else []),
        *(["<h2>Candidates</h2>", _table(rows)] if rows else []),
        "<h2>Machine</h2>",
        _list(facts.machine),
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


def baseline(metrics: Mapping[str, Any]) -> float | None:
    """The value that a run began with, in the unit that its candidates are shown in."""
    found = metrics.get("baseline_ms", metrics.get("baseline"))
    return found if isinstance(found, int | float) else None


def interval(metrics: Mapping[str, Any]) -> str:
    """The interval of the speed-up and how often it was taken, as words; empty where there is none."""
    if "speedup_low" not in metrics:
        return ""
    rounds = metrics.get("rounds", 1)
    again = f", the quietest of {rounds} rounds" if isinstance(rounds, int) and rounds > 1 else ""
    return f"{metrics['speedup_low']:.1f} to {metrics['speedup_high']:.1f}{again}"


def since_best(rows: Sequence[Attempted]) -> str:
    """What became of the candidates after the best one: why a search ended on a plateau."""
    last = max((index for index, row in enumerate(rows) if row.outcome == "improved"), default=-1)
    after = rows[last + 1 :]
    if not after:
        return ""
    counts = Counter(_fate(row) for row in after)
    parts = [f"{counts[fate]} {fate}" for fate in FATES if counts[fate]]
    close = min((row.ratio for row in after if row.ratio is not None), default=None)
    nearest = "" if close is None else f"; the closest took {close:.3f} of its time or value"
    return f"{plural(len(after), 'candidate')} since the best: {', '.join(parts)}{nearest}"


def _fate(row: Attempted) -> str:
    if row.ratio is None:
        return FATES[3]
    if row.pairs == 1:
        return FATES[0]
    return FATES[1] if 3 ** (row.pairs - row.wins) >= 20 * 2**row.pairs else FATES[2]


def _headline(view: View) -> str:
    metrics = view.metrics
    if "improvement" in metrics:
        return (
            f'<p><span class="figure">{metrics["improvement"]:.2f}×</span> <span class="soft">'
            f"baseline {metrics['baseline']:.3f}, best {metrics['best']:.3f}, "
            f"{metrics.get('evaluations', 0)} evaluations</span></p>"
        )
    if "speedup" not in metrics:
        return ""
    of_baseline, of_best = (_percent(metrics.get(name)) for name in ("baseline_spread_ppm", "spread_ppm"))
    return (
        f'<p><span class="figure">{metrics["speedup"]:.1f}×</span> <span class="soft">'
        f"baseline {metrics['baseline_ms']:.3f} ms{of_baseline and f' (spread {of_baseline})'}, "
        f"best {metrics['best_ms']:.3f} ms{of_best and f' (spread {of_best})'}, "
        f"ratio of medians{(known := interval(metrics)) and f' ({known})'}, "
        f"{metrics.get('evaluations', 0)} evaluations</span></p>"
    )


def _verified(proof: Proof) -> str:
    if not proof.ledger_ok:
        return "NOT whole"
    return f"verified, its first {proof.start:,} by one hash" if proof.start else "verified"


def _replay(proof: Proof, run: str) -> str:
    if proof.unreplayed:
        return proof.unreplayed
    if proof.start and proof.start >= proof.records:
        return f"none: its last snapshot is of its end (of all: spak replay {run})"
    since = f" from record {proof.start} on (of all: spak replay {run})" if proof.start else ""
    return ("equal" if proof.replay_equal else "DIFFERENT") + since


def _proofs(view: View, proof: Proof, facts: Facts) -> dict[str, str]:
    found = {
        "stopped": facts.stopped,
        "winner": facts.winner,
        "ledger": f"{proof.records} records, {_verified(proof)}, head {proof.head}",
        "replay": f"{_replay(proof, view.run)}, summary {proof.summary}",
    }
    bound, reached = facts.evidence.get("bound_ns"), facts.evidence.get("bound_ppm")
    if isinstance(bound, int) and isinstance(reached, int):
        found["roofline"] = (
            f"{bound / 1e6:.3f} ms at the measured peak of {facts.evidence.get('flops_peak', 0) / 1e9:.0f} GFLOP/s; "
            f"the best reaches {reached / 1e4:.0f} % of it"
        )
    if view.refusal is not None:
        found["why"] = ", ".join(view.refusal["codes"])
        found["cause"] = str(view.refusal["cause"])
        found["knob"] = str(view.refusal["knob"])
    return {name: value for name, value in found.items() if value}


def _list(pairs: Mapping[str, str]) -> str:
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(str(value))}</dd>" for name, value in pairs.items())
    return f"<dl>{rows}</dl>"


def _table(rows: Sequence[Attempted]) -> str:
    head = "<tr><th class=n>#<th>verdict<th class=n>of best<th class=n>pairs won<th class=n>metric<th class=n>spread<th>parameters</tr>"
    body = []
    for index, row in enumerate(rows, start=1):
        glyph, word = _MARK.get(row.outcome, ("?", row.outcome))
        verdict = f"{glyph} {word}" + (f": {row.code}" if row.outcome == "fail" and row.code else "")
        shown = ", ".join(f"{name}={value}" for name, value in row.params.items()) or row.tool
        body.append(
            f'<tr><td class=n>{index}<td class="v {escape(row.outcome)}">{escape(verdict)}'
            f"<td class=n>{'' if row.ratio is None else f'{row.ratio:.3f}'}"
            f"<td class=n>{f'{row.wins} of {row.pairs}' if row.pairs else ''}"
            f"<td class=n>{_value(row)}<td class=n>{_percent(row.spread_ppm)}<td><code>{escape(shown)}</code></tr>"
        )
    return f'<div class="scroll" tabindex="0"><table>{head}{"".join(body)}</table></div>'


def _value(row: Attempted) -> str:
    return "" if row.shown is None else f"{row.shown:.3f} {escape(row.unit)}".rstrip()


def _percent(ppm: int | None) -> str:
    return "" if ppm is None else f"{ppm / 1e4:.1f} %"
