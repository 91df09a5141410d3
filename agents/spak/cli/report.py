"""`spak report RUN`: a run as one self-contained HTML page, and the facts that `spak demo` prints too."""

from __future__ import annotations

import platform
from dataclasses import dataclass, replace
from pathlib import Path

import click

from spak import canon
from spak.cli import common
from spak.kernel.replay import Replay
from spak.ports import Ledger
from spak.runner import View
from spak.runner.history import Attempted, History, rules_of
from spak.runner.views import own_tests
from spak.runner.views.as_recorded import Reading, program_of
from spak.runner.views.quality import Quality
from spak.runner.views.report import Facts, Proof, lines, report, since_best
from spak.runner.views.tally import Tally

WHOLE = 1_000
"""Records of a run that is verified and replayed from its first record on, also where it has a snapshot."""

STOPPED = {
    "patience": "plateau: no candidate improved on the best for as many evaluations as the rule's patience",
    "evaluations": "plateau: the rule's number of evaluations was used up",
    "space": "plateau: the parameter space was used up",
}


@dataclass(frozen=True, slots=True)
class Read:
    """A run as its ledger tells it."""

    view: View
    rows: tuple[Attempted, ...]
    proof: Proof
    facts: Facts
    quality: Quality


@click.command()
@click.argument("run", default="latest")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="The file; report.html in the run folder if not given.",
)
@common.runs_option
@common.json_option
def command(run: str, output: Path | None, runs_dir: Path | None, as_json: bool) -> int:
    """Write the report of RUN."""
    root, name = common.find_run(run, runs_dir)
    found = read(root, name)
    path = write(root, name, output, found)
    if as_json:
        common.emit({"run": name, "file": str(path), "quality": found.quality.to_json()})
        return 0
    for label, figure in lines(found.quality).items():
        common.say(f"{label:<18}{figure}")
    common.say(f"report: {path}\nnext: open it in a browser")
    return 0


def write(root: Path, run: str, output: Path | None = None, found: Read | None = None) -> Path:
    """Write the page and give its path."""
    found = found or read(root, run)
    path = output or root / run / "report.html"
    path.write_text(report(found.view, found.rows, found.proof, found.facts, found.quality), encoding="utf-8")
    return path


def read(root: Path, run: str) -> Read:
    """Read, verify and replay a run; one that this kernel does not replay is only read. Of a run longer than
    WHOLE the records before its last snapshot are compared by one hash, the others verified and replayed."""
    from spak.cli.reading import why
    from spak.ledger.files import FileLedgers
    from spak.ledger.verify import verify
    from spak.runner import view
    from spak.runner.resume import look

    reader = FileLedgers(root).viewer(run)
    try:
        taken = look(reader) if reader.count > WHOLE else None
        replay, history, tally, start = _all_of(reader) if taken is None else taken[:4]
        replay.finish()
        genesis, _ = next(reader.read())
        head = next(reader.read(start - 1))[0].hash if start else canon.ZERO
        lines = (line for _, line in reader.read(start))
        checked = verify(lines, exported=False, blobs=reader.blobs, start=start, head=head)
        host = genesis.body.get("host") or {}
        program = program_of(genesis.body) if replay.rules is None else replay.rules.program
        cause, _ = why(reader, replay.state)
        seen = view(run, replay.state, reader.head, reader.count, "paused", cause=cause)
        seen = replace(seen, checked=tally.checked, by_own_tests=own_tests.known(tally.apart))
        rows = history.table()
    finally:
        reader.close()
    kept = (root / run / "workspace" / f"best{ending}" for ending in (".c", ".cpp", ".py", ".cu"))
    best = next((file for file in kept if file.is_file()), None)
    stopped = STOPPED.get(replay.state.r7.stopped, "")
    facts = Facts(
        title=run if program is None else program.name,
        machine={"processor": processor(), "system": platform.platform(), **host.get("toolchain", {})},
        stopped="; ".join(filter(None, (stopped, stopped and since_best(rows)))),
        winner=str(best or ""),
        evidence=tally.evidence,
    )
    proof = Proof(
        checked.ok,
        replay.difference is None,
        checked.records,
        checked.head,
        replay.state.summary,
        "" if not isinstance(replay, Reading) or replay.unreplayed is None else replay.unreplayed.message,
        start,
    )
    return Read(seen, tuple(rows), proof, facts, tally.quality)


def _all_of(reader: Ledger) -> tuple[Replay, History, Tally, int]:
    """A run from its first record on."""
    replay, history, tally = Reading(), History(), Tally()
    for record, _ in reader.read():
        replay.feed(record)
        if record.seq == 0:
            program = program_of(record.body) if replay.rules is None else replay.rules.program
            history.rules = {} if program is None else rules_of(program)
        history.feed(record)
        tally.feed(record)
    return replay, history, tally, 0


def processor() -> str:
    """The processor's name as the system gives it."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.machine()
