"""`spak policy eval --events` and `spak policy test`: a policy over what happened, line by line.

Takes a loaded policy and files of events (spak.policy.history.trace); prints each answer with what the past
had to do with it. `test` runs the cases next to a policy, NAME.cases.jsonl for NAME.mg.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from spak.cli import common

if TYPE_CHECKING:
    from spak.datalog import Policy
    from spak.policy.history.trace import Event, Verdict

CASES = ".cases.jsonl"


def evaluate(policy: Policy, events: Path, why: bool, as_json: bool) -> int:
    """Answer each request; 1 when an answer is not the expected one."""
    from spak.policy.history.trace import Trace
    from spak.tools import DECLARED

    found = list(Trace(policy, DECLARED).run(_events(events)))
    wrong = sum(not verdict.expected for verdict in found)
    if as_json:
        common.emit({"policy": policy.hash, "requests": [verdict.to_json() for verdict in found]})
        return 1 if wrong else 0
    for verdict in found:
        common.out(_line(verdict))
        if why:
            common.out(_why(verdict))
    count = f"{len(found)} request{'' if len(found) == 1 else 's'}"
    common.say(count + (f", {wrong} not as expected" if wrong else ""))
    return 1 if wrong else 0


@click.command("test")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--law", "with_law", is_flag=True, help="Also apply the law of new runs here.")
@common.json_option
def test_command(files: tuple[Path, ...], with_law: bool, as_json: bool) -> int:
    """Run the cases next to each of FILES (NAME.cases.jsonl for NAME.mg): 0, or 1 when an answer differs."""
    from spak import config
    from spak.datalog import load
    from spak.errors import UsageError
    from spak.policy.history.trace import Trace
    from spak.tools import DECLARED

    law = config.law() if with_law else None
    tried = []
    for file in files:
        cases = file.with_name(file.name.removesuffix(".mg") + CASES)
        if not cases.is_file():
            raise UsageError("usage.file", f"there are no cases {cases}", "write them: docs/history.md")
        text = common.read_text(file)
        sources = law.with_guards([text]) if law is not None else {}
        found = list(Trace(load({**sources, str(file): text}), DECLARED).run(_events(cases)))
        expecting = [item for item in found if item.event.expect]
        if not expecting:
            raise UsageError(
                "policy.events", f"{cases} expects nothing", 'write "expect": "deny" on a request'
            )
        tried.append((cases, expecting))
    wrong = [(cases, item) for cases, found in tried for item in found if not item.expected]
    if as_json:
        files_ = [
            {
                "cases": str(cases),
                "requests": len(found),
                "wrong": [item.to_json() for item in found if not item.expected],
            }
            for cases, found in tried
        ]
        common.emit({"ok": not wrong, "files": files_})
        return 1 if wrong else 0
    for cases, item in wrong:
        common.out(f"{cases}:{item.event.line}: expected {item.event.expect}: {_line(item)}")
    total = sum(len(found) for _, found in tried)
    names = len({(cases, item.case) for cases, found in tried for item in found})
    common.say(f"{names} case{'' if names == 1 else 's'}, {total} answers, {len(wrong)} wrong")
    return 1 if wrong else 0


def _events(file: Path) -> list[Event]:
    from spak.policy.history.trace import read_events

    return list(read_events(common.read_text(file).split("\n")))


def _line(verdict: Verdict) -> str:
    case = f"{verdict.case}: " if verdict.case else ""
    reason = "" if verdict.decision.decision == "allow" else f": {verdict.decision.reason}"
    return f"{case}line {verdict.event.line} {verdict.event.action}: {verdict.decision.decision}{reason}"


def _why(verdict: Verdict) -> str:
    """The facts of the past that were read, then the proof or what is missing, indented."""
    import json

    lines = [f"  {item.text}" for item in verdict.past]
    found = verdict.decision.proof if verdict.decision.decision == "allow" else verdict.decision.why_not
    return "\n".join([*lines, "  " + json.dumps(found, ensure_ascii=False, sort_keys=True)])
