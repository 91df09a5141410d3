"""`spak demo`: the main job. A LEVEL 5 spec tunes a C softmax-attention kernel on this machine, for real."""

from __future__ import annotations

from pathlib import Path

import click

from spak.cli import common


@click.command()
@click.option(
    "--seed", type=click.IntRange(min=0, max=2**53 - 1), help="Seed of the search; drawn if not given."
)
@common.runs_option
@common.json_option
def command(seed: int | None, runs_dir: Path | None, as_json: bool) -> int:
    """Tune the attention kernel, then verify and replay what was recorded."""
    import resource
    import time

    from spak import data
    from spak.cli import report as reports
    from spak.cli import session
    from spak.cli.progress import progress

    root = common.runs_dir(runs_dir)
    spec = data.path("specs/examples/attention_tuner.spak")
    started = time.monotonic()
    common.say(f"spak demo: {spec.name} compiles, checks and measures kernels in a sandbox on this machine")
    held = session.begin(spec, root, mode="full_auto", seed=seed)
    name = held.run.ledger.run
    common.say(f"run {name}: stop with Ctrl+C, resume with: spak resume {name}\n")
    try:
        with progress(held, enabled=not as_json):
            seen = held.advance()
    finally:
        held.close()
    if not held.run.state.ended:
        return _stopped(seen.to_json(), name, as_json)
    path = reports.write(root, name)
    found = reports.read(root, name)
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
    document = {
        **found.view.to_json(),
        "ledger_ok": found.proof.ledger_ok,
        "replay_equal": found.proof.replay_equal,
        "wall_s": round(time.monotonic() - started, 1),
        "cpu_s": round(cpu_s, 1),
        "winner": found.facts.winner,
        "report": str(path),
    }
    if as_json:
        common.emit(document)
    else:
        _print(found, document)
    ok = found.view.state == "succeeded" and found.proof.ledger_ok and found.proof.replay_equal
    return 0 if ok else (common.EXIT[found.view.state] or 1)


def _stopped(document: dict[str, object], name: str, as_json: bool) -> int:
    if as_json:
        common.emit(document)
    common.say(f"stopped; nothing is lost\nnext: spak resume {name}")
    return 6


def _print(found: object, document: dict[str, object]) -> None:
    from spak.cli.progress import candidate_line
    from spak.cli.report import Read
    from spak.runner.views.report import interval

    assert isinstance(found, Read)
    say, metrics = common.say, found.view.metrics
    say("\ncandidates (ratio to the best of its time in paired runs, which decides; ms of CPU time):")
    for row in found.rows:
        say(candidate_line(row))
    say()
    if "speedup" in metrics:
        spread, before = (metrics.get(name, 0) / 1e4 for name in ("spread_ppm", "baseline_spread_ppm"))
        say(f"baseline      {metrics['baseline_ms']:.3f} ms (median, spread {before:.1f} %; naive C at -O2)")
        say(f"best          {metrics['best_ms']:.3f} ms (median, spread {spread:.1f} %)")
        say(f"speed-up      {metrics['speedup']:.2f}x, ratio of medians, measured again on fresh inputs")
        if "speedup_low" in metrics:
            say(f"interval      {interval(metrics)}")
        if metrics.get("bound_ppm"):
            bound = f"({metrics['bound_ns'] / 1e6:.3f} ms bound)"
            say(f"roofline      {metrics['bound_ppm'] / 1e4:.0f} % of the measured peak {bound}")
    say(f"evaluations   {metrics.get('evaluations', 0)}")
    say(f"cost          {document['cpu_s']} CPU-s, {document['wall_s']} s wall")
    say(f"stopped       {found.facts.stopped or found.view.state}")
    if found.view.refusal:
        say(f"why           {', '.join(found.view.refusal['codes'])}; knob: {found.view.refusal['knob']}")
    say(f"winner        {found.facts.winner}")
    whole = "verified" if found.proof.ledger_ok else "NOT WHOLE"
    say(f"ledger        {whole}, {found.proof.records} records, head {found.proof.head}")
    say(
        f"replay        {'equal' if found.proof.replay_equal else 'DIFFERENT'}, summary {found.proof.summary}"
    )
    say(f"report        {document['report']}")
    say(f"next: open the report, or look at the run: spak show {found.view.run}")
