"""`spak policy diff OLD NEW`: what a change newly permits or denies, judged on the actions that runs took."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spak.cli import common

if TYPE_CHECKING:
    from spak.datalog.session import Policy
    from spak.evolve.abstract_actions import Compared
    from spak.evolve.permitted import Change, Changes, Side
    from spak.records import Record

SHOWN = 20


@click.command("diff")
@click.argument("old", type=click.Path(path_type=Path))
@click.argument("new", type=click.Path(path_type=Path))
@click.option(
    "--run", "names", multiple=True, metavar="RUN", help="A run or an exported file; default: all runs here."
)
@click.option(
    "--as",
    "level",
    type=click.Choice(("team", "operator")),
    default="operator",
    show_default=True,
    help="Whose text OLD and NEW are, where they are policies.",
)
@click.option("--abstract", is_flag=True, help="Also actions of up to two facts that no run took.")
@click.option(
    "--most", type=click.IntRange(min=1), default=300_000, show_default=True, help="Abstract actions at most."
)
@click.option(
    "--solve",
    type=click.IntRange(0, 12),
    metavar="K",
    help="Always answered not_applicable: no solver is asked any more. --abstract judges up to two facts.",
)
@common.runs_option
@common.json_option
def command(
    old: Path,
    new: Path,
    names: tuple[str, ...],
    level: str,
    abstract: bool,
    most: int,
    solve: int | None,
    runs_dir: Path | None,
    as_json: bool,
) -> int:
    """Judge every recorded action under OLD and under NEW (two policies or two specs), and print with its
    proof what NEW newly permits or denies. Exit 1 when something is newly permitted."""
    from spak.errors import LedgerError, UsageError
    from spak.evolve.permitted import Changes, changes

    if (old.suffix == ".spak") != (new.suffix == ".spak"):
        raise UsageError("usage.arguments", "a policy and a spec", "give two policies or two specs")
    sides = _side(old, level), _side(new, level)
    found = Changes()
    for name, records in _runs(names, runs_dir):
        try:
            found.add(changes(name, records, *sides))
        except LedgerError as error:
            if names or error.code != "ledger.semantics":
                raise
            common.say(f"run {name} is left out: {error.message}")
    if not found.runs and not abstract and solve is None:
        hint = "name one with --run, start one: spak run, or ask for --abstract"
        raise UsageError("usage.run", "there are no runs here", hint)
    wide = _abstract(*_compiled(*sides), most) if abstract else None
    if as_json:
        common.emit(
            {
                **({} if wide is None else {"abstract": wide.to_json()}),
                **({} if solve is None else {"solver": "not_applicable"}),
                "runs": found.runs,
                "judged": found.judged,
                "newly_permitted": [change.to_json() for change in found.newly("permitted")],
                "newly_denied": [change.to_json() for change in found.newly("denied")],
                "unknown": [item.to_json() for item in found.unknown],
            }
        )
    else:
        _print(found)
        if wide is not None:
            _print_abstract(wide)
        if solve is not None:
            common.say("solver: not applicable: none is asked any more; --abstract judges up to two facts")
    widened = found.newly("permitted") or (wide is not None and wide.newly("permitted"))
    return 1 if widened or solve is not None else 0


def _compiled(old: Side, new: Side) -> tuple[Policy, Policy]:
    """Each side as one policy, under the law of this folder where the side brings none."""
    from spak import config
    from spak.policy.law import compiled

    law = config.law()
    one, two = (compiled(side.law or law, side.policy, side.axioms) for side in (old, new))
    return one, two


def _abstract(old: Policy, new: Policy, most: int) -> Compared:
    from spak.evolve.abstract_actions import compare

    return compare(old, new, most)


def _print_abstract(found: Compared) -> None:
    say = common.say
    say(f"{found.judged} abstract actions of up to two of {found.facts} facts judged under both")
    for direction in ("permitted", "denied"):
        changed = found.newly(direction)
        say(f"newly {direction}: {len(changed)}")
        for item in changed[:SHOWN]:
            say("  " + ", ".join(item.facts))
            for line in item.proof.splitlines():
                say(f"      {line}")
        if len(changed) > SHOWN:
            say(f"  ... and {len(changed) - SHOWN} more: --json has all")
    if found.unlisted:
        say(f"not listed: {found.unlisted} more that differ")
    if found.left_out:
        say(f"not judged: {found.left_out} beyond --most {found.judged}")
    say("Actions of three facts and more are not compared.")


def _side(path: Path, level: str) -> Side:
    from dataclasses import replace

    from spak import config
    from spak.evolve.permitted import Side

    law = config.law()
    if path.suffix == ".spak":
        return _spec(path)
    text = {path.name: common.read_text(path)}
    return Side(str(path), replace(law, team=text) if level == "team" else replace(law, operator=text))


def _spec(path: Path) -> Side:
    from spak import config
    from spak.evolve.permitted import Side
    from spak.lang import parse
    from spak.lang.imports import resolve
    from spak.lang.spec_files import folder_reader
    from spak.policy.law import rules_of
    from spak.program import compile as compile_program

    whole = resolve(parse(common.read_input(path), str(path)), folder_reader(path))
    program = compile_program(whole.parsed, common.catalog(), {})
    catalog = config.used(common.catalog(), program).to_json()
    return Side(str(path), None, whole.parsed.text, whole.policy, rules_of(program.axioms), catalog)


def _runs(names: tuple[str, ...], runs_dir: Path | None) -> Iterator[tuple[str, Iterator[Record]]]:
    """The records of each run, by its name."""
    from spak.cli import ledger_input
    from spak.ledger.files import FileLedgers

    root = common.runs_dir(runs_dir)
    if not names and root.is_dir():
        names = tuple(FileLedgers(root).runs())
    for name in names:
        yield name, ledger_input.records(name, runs_dir)


def _print(found: Changes) -> None:
    say = common.say
    runs = f"{found.runs} run{'' if found.runs == 1 else 's'}"
    say(f"{found.judged} recorded action{'' if found.judged == 1 else 's'} of {runs} judged under both")
    for title, changed in (
        ("newly permitted", found.newly("permitted")),
        ("newly denied", found.newly("denied")),
    ):
        say(f"{title}: {len(changed)}")
        for change in changed[:SHOWN]:
            _one(change)
        if len(changed) > SHOWN:
            say(f"  ... and {len(changed) - SHOWN} more: --json has all")
    if found.unknown:
        say(f"not judged: {len(found.unknown)}")
        for item in found.unknown[:SHOWN]:
            say(f"  {item.run} record {item.seq}, {item.name}: {item.why}")
    say("Actions that no run took are not among these.")


def _one(change: Change) -> None:
    from spak import canon

    args = canon.dumps(dict(change.args)).decode()
    args = args if len(args) <= 200 else f"{args[:199]}…"
    common.say(f"  {change.run} record {change.seq}, TASK {change.task}: {change.name} {args}")
    for line in change.proof.splitlines():
        common.say(f"      {line}")
