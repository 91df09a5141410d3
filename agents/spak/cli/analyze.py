"""`spak analyze`: findings in one run, an exported file, or all runs of a folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spak.cli import common
from spak.errors import OuterError, UsageError

if TYPE_CHECKING:
    from spak.evolve.analyze import Analysis, Finding
    from spak.records import Record

MANY = 5_000
"""Records of a run above which its prompts are not made again: that takes a replay."""


@click.command()
@click.argument("what", metavar="[RUN|FILE|DIR]", default="latest")
@click.option(
    "--trace", type=click.Path(path_type=Path), help="A ledger file; the same as giving it as an argument."
)
@click.option("--code", "codes", multiple=True, help="Only findings of this code.")
@common.runs_option
@common.json_option
def command(
    what: str, trace: Path | None, codes: tuple[str, ...], runs_dir: Path | None, as_json: bool
) -> int:
    """Find loops, failing tools, resent tokens and unused parts in recorded runs."""
    from dataclasses import replace

    from spak.evolve.analyze import CODES

    unknown = sorted(set(codes) - set(CODES))
    if unknown:
        raise UsageError(
            "usage.arguments", f"there is no finding {unknown[0]!r}", f"known: {', '.join(CODES)}"
        )
    found = analysis(what if trace is None else str(trace), runs_dir)
    if codes:
        found = replace(found, findings=tuple(item for item in found.findings if item.code in codes))
    if as_json:
        common.emit(found.to_json())
        return 0
    for item in found.findings:
        common.out(line(item))
    from spak.runner.views.report import plural

    common.say(
        f"{plural(len(found.findings), 'finding')} in {plural(found.runs, 'run')}, {found.records:,} records"
    )
    return 0


def line(item: Finding) -> str:
    """A finding for people: what, where, the records, and the edit in words."""
    from spak.lang.edit import to_json

    cost = f"{item.severity:,.0f} tokens" if item.unit == "tokens" else f"{item.severity:,.1f} s"
    numbers = ", ".join(map(str, item.records[:8])) + (", ..." if len(item.records) > 8 else "")
    edits = ""
    for op in item.edit:
        fields = {name: value for name, value in to_json(op).items() if name != "op"}
        edits += f"\n  edit: {to_json(op)['op']} " + " ".join(
            f"{name}={value}" for name, value in fields.items()
        )
    return (
        f"{item.code} [{cost}] TASK {item.task}: {item.message}\n  run {item.run}, records {numbers}{edits}"
    )


def analysis(what: str, runs_dir: Path | None = None) -> Analysis:
    """The findings in a run, a file, or a folder of runs or files. Raises: OuterError `outer.empty`."""
    from spak.evolve import analyze

    traces, prompts = [], {}
    for name, records in ledgers(what, runs_dir):
        try:
            traces.append(analyze.read(records, name))
        except OuterError:
            if not _many(what):
                raise
            common.say(f"spak: {name} holds no action: left out")
            continue
        asks = any(deed.prompt for deed in traces[-1].deeds)
        if asks and len(records) <= MANY:
            prompts.update(analyze.prompts_of(records))
    if not traces:
        raise OuterError(
            "outer.empty", f"{what} holds no run in which anything happened", "run something first"
        )
    return analyze.analyze(traces, prompts.get)


def ledgers(what: str, runs_dir: Path | None = None) -> Iterator[tuple[str, list[Record]]]:
    """The runs that are named, each whole. Raises: UsageError `usage.run`, LedgerError, OuterError."""
    from spak.ledger.files import FileLedgers

    place = Path(what)
    if place.is_file():
        yield place.stem, from_file(place)
        return
    if _many(what):
        root = FileLedgers(place)
        for name in root.runs():
            yield name, [record for record, _ in root.reader(name).read()]
        for path in sorted(place.glob("*.jsonl")):
            yield path.stem, from_file(path)
        return
    folder, name = common.find_run(what, runs_dir)
    yield name, [record for record, _ in FileLedgers(folder).reader(name).read()]


def from_file(path: Path) -> list[Record]:
    """The records of an exported file, or of a trace.jsonl. Raises: LedgerError, UsageError `usage.file`."""
    from spak.inputs import open_input
    from spak.records import HASH_FIELD, decode

    found = []
    try:
        with open_input(path) as file:
            for text in file:
                if text.startswith(b'{"#":"') and len(text) > HASH_FIELD:
                    found.append(decode(text))
                elif not found:
                    raise OuterError("outer.empty", f"{path} holds no record", "name what spak export wrote")
    except OSError as error:
        raise UsageError(
            "usage.file", f"{path}: {error.strerror}", "check the path and its rights"
        ) from error
    if not found:
        raise OuterError("outer.empty", f"{path} holds no record", "name what spak export wrote")
    return found


def _many(what: str) -> bool:
    """Whether a folder of runs is named, and not one run."""
    return Path(what).is_dir() and not (Path(what) / "trace.jsonl").exists()
