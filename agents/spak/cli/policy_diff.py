"""`spak policy diff OLD NEW`: what a change newly permits or denies, judged on the actions that runs took."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spak.cli import common

if TYPE_CHECKING:
    from spak.datalog.session import Policy
    from spak.outer.abstract_actions import Compared
    from spak.outer.permitted import Change, Changes, Side
    from spak.outer.solver import Asked
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
    help="Ask a solver for an action with up to K facts that differs (needs the extra solver).",
)
@click.option(
    "--solve-seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=60,
    show_default=True,
    help="The solver's time limit.",
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
    solve_seconds: float,
    runs_dir: Path | None,
    as_json: bool,
) -> int:
    """Judge every recorded action under OLD and under NEW (two policies or two specs), and print with its
    proof what NEW newly permits or denies. Exit 1 when something is newly permitted."""
    from spak.errors import UsageError
    from spak.outer.permitted import Changes, changes

    if (old.suffix == ".spak") != (new.suffix == ".spak"):
        raise UsageError("usage.arguments", "a policy and a spec", "give two policies or two specs")
    sides = _side(old, level), _side(new, level)
    found = Changes()
    for name, records in _runs(names, runs_dir):
        found.add(changes(name, records, *sides))
    if not found.runs and not abstract and solve is None:
        hint = "name one with --run, start one: spak run, or ask for --abstract or --solve"
        raise UsageError("usage.run", "there are no runs here", hint)
    wide, asked = None, None
    if abstract or solve is not None:
        laws = _compiled(*sides)
        wide = _abstract(*laws, most) if abstract else None
        asked = _asked(*laws, solve, solve_seconds) if solve is not None else None
    if as_json:
        common.emit(
            {
                **({} if wide is None else {"abstract": wide.to_json()}),
                **({} if asked is None else {"solver": asked.answer, "solve": asked.to_json()}),
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
        if asked is not None:
            _print_asked(asked)
    return _exit(found, wide, asked)


def _exit(found: Changes, wide: Compared | None, asked: Asked | None) -> int:
    """1 where something is newly permitted, or where the solver cannot tell; 6 where its time has passed."""
    from spak.outer.solver import Answer

    if found.newly("permitted") or (wide is not None and wide.newly("permitted")):
        return 1
    if asked is None or asked.answer == Answer.NOTHING_NEW:
        return 0
    return 6 if asked.answer == Answer.UNKNOWN else 1


def _compiled(old: Side, new: Side) -> tuple[Policy, Policy]:
    """Each side as one policy, under the law of this folder where the side brings none."""
    from spak import config
    from spak.policy.law import compiled

    law = config.law()
    one, two = (compiled(side.law or law, side.policy, side.axioms) for side in (old, new))
    return one, two


def _abstract(old: Policy, new: Policy, most: int) -> Compared:
    from spak.outer.abstract_actions import compare

    return compare(old, new, most)


def _asked(old: Policy, new: Policy, most: int, seconds: float) -> Asked:
    from spak.outer.solver import ask

    return ask(old, new, most, seconds)


def _print_asked(found: Asked) -> None:
    from spak.outer.solver import Answer

    say = common.say
    facts = f"up to {found.most} of {found.candidates} facts ({found.values} values)"
    if found.answer == Answer.NOT_APPLICABLE:
        say(f"solver: not applicable: {found.why}")
        return
    say(f"solver: {found.acts} acts with {facts}")
    for direction in ("permitted", "denied"):
        for example in found.newly(direction):
            say(f"newly {direction}: " + ", ".join(example.facts))
            sides = ("NEW", "OLD") if direction == "permitted" else ("OLD", "NEW")
            reasons = ((f"{sides[0]} permits:", example.proof), (f"{sides[1]} denies:", example.why_not))
            for title, reason in reasons:
                say(f"    {title}")
                for line in reason.splitlines():
                    say(f"      {line}")
        if direction not in found.finished:
            say(f"newly {direction}: not answered: {found.why}")
        elif found.newly(direction):
            say(f"newly {direction}: no other act with up to {found.most} facts")
        else:
            say(f"newly {direction}: nothing up to {found.most} facts")
    for item in found.left_out:
        say(f"left out: {item}")
    say("Facts are combined freely, also such as no action has at once. More facts are not compared.")


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
    from spak.outer.permitted import Side

    law = config.law()
    if path.suffix == ".spak":
        return _spec(path)
    text = {path.name: common.read_text(path)}
    return Side(str(path), replace(law, team=text) if level == "team" else replace(law, operator=text))


def _spec(path: Path) -> Side:
    from spak import config
    from spak.lang import parse
    from spak.lang.imports import resolve
    from spak.lang.spec_files import folder_reader
    from spak.outer.permitted import Side
    from spak.policy.law import rules_of
    from spak.program import compile as compile_program

    whole = resolve(parse(common.read_input(path), str(path)), folder_reader(path))
    program = compile_program(whole.parsed, config.catalog(), {})
    catalog = config.used(config.catalog(), program).to_json()
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
