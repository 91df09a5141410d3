"""`spak guard replay RUN --policy F`: what other rules would have done in a session."""

from __future__ import annotations

from pathlib import Path

import click

from spak.cli import common

SHOWN = 5


@click.command("replay")
@click.argument("run")
@click.option(
    "--policy", "policies", multiple=True, required=True, type=click.Path(path_type=Path), metavar="F",
    help="Rules besides the law that the session had; repeat for more.",
)  # fmt: skip
@common.runs_option
@common.json_option
def command(run: str, policies: tuple[Path, ...], runs_dir: Path | None, as_json: bool) -> int:
    """Judge what the session of RUN asked and what it changed under its law with other rules besides, and
    print what they would have denied or permitted. Exit 1 when anything is judged otherwise."""
    from spak.cli.reading import records_of
    from spak.evolve.changes_under import forbidden
    from spak.evolve.permitted import Side, changes, genesis_under
    from spak.files.disk import Disk
    from spak.kernel.rules import Rules
    from spak.policy.law import Law
    from spak.workspace.store import Store

    root, name = common.find_run(run, runs_dir)
    genesis = next(records_of(root, name)).body
    texts = {file.name: common.read_text(file) for file in policies}
    law = Law.from_json(genesis["rules"]["policy"]).joined(texts, "team")
    side = Side("with the rules", law)
    asked = changes(name, records_of(root, name), Side("as it was"), side)
    rules = Rules.of(genesis_under(genesis, side))
    kept, judged = forbidden(name, records_of(root, name), rules, Store(root / name / "store", Disk()))
    if as_json:
        common.emit(
            {
                "run": name, "judged": asked.judged, "transactions": judged,
                "denied": [one.to_json() for one in asked.newly("denied")],
                "permitted": [one.to_json() for one in asked.newly("permitted")],
                "unknown": [one.to_json() for one in asked.unknown],
                "taken_back": [
                    {"record": one.record, "tool": one.tool, "reason": one.reason, "paths": list(one.paths)}
                    for one in kept
                ],
            }
        )  # fmt: skip
    else:
        for change in asked.found:
            common.out(f"{change.seq:>6}  {change.name}: newly {change.newly}  {change.code}".rstrip())
        for one in kept:
            some = ", ".join(one.paths[:SHOWN]) + (" ..." if len(one.paths) > SHOWN else "")
            common.out(f"{one.record:>6}  {one.tool}: would be taken back ({some}): {one.reason}")
        for unknown in asked.unknown:
            common.out(f"{unknown.seq:>6}  {unknown.name}: not judged: {unknown.why}")
        common.say(f"spak: {asked.judged} requests and {judged} transactions judged")
        common.say("next: spak guard --policy F -- AGENT begins a session under these rules")
    return 1 if asked.found or kept else 0
