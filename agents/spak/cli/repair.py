"""`spak repair PATH`: mend a failing test without a model, or say why not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spak.cli import common
from spak.errors import UsageError

if TYPE_CHECKING:
    from spak.cli.session import Session

SPEC = "specs/strategies/repair.spak"


@click.command()
@click.argument("folder", default=".", type=click.Path(path_type=Path))
@click.option("--test", default="", metavar="ID", help="The failing test to mend; else all that fail.")
@click.option("--tests", default=".", metavar="PATH", help="A file or folder of tests; else all.")
@click.option("--apply", "bring", is_flag=True, help="Bring an accepted patch into FOLDER.")
@click.option(
    "--seed", type=click.IntRange(min=0, max=2**53 - 1), default=0, show_default=True,
    help="Draws which tests stay hidden, and the inputs.",
)  # fmt: skip
@common.timeout_option
@common.runs_option
@common.json_option
def command(
    folder: Path,
    test: str,
    tests: str,
    bring: bool,
    seed: int,
    timeout: float | None,
    runs_dir: Path | None,
    as_json: bool,
) -> int:
    """Mend a failing test of the Python project in FOLDER with one edit, found by search and checked.

    It is a run in a copy: the folder changes only with --apply, or later with spak apply."""
    from spak import data
    from spak.cli import session
    from spak.cli.progress import progress

    if not folder.is_dir():
        raise UsageError("usage.workspace", f"{folder} is not a folder", "name the project's folder")
    root = common.runs_dir(runs_dir)
    confirm = test or tests
    held = session.begin(
        data.path(SPEC),
        root,
        mode="full_auto",
        inputs={"test": test, "tests": tests, "confirm": confirm},
        workspace=folder,
        seed=seed,
    )
    name = held.run.ledger.run
    if not as_json:
        common.say(f"run {name}: searching; stop with Ctrl+C, continue with: spak resume {name}")
    try:
        with progress(held, enabled=False):
            seen = held.advance(timeout)
        plan = search_of(held)
    finally:
        held.close()
    document = {**seen.to_json(), "repair": plan}
    accepted = seen.state == "succeeded"
    if bring and accepted:
        from spak.cli.apply import bring_home

        found = bring_home(root, name, ask=False)
        document["applied"] = found.to_json()
    if as_json:
        common.emit(document)
    else:
        _print(document, plan, name, applied=bring and accepted)
    return common.EXIT[seen.state]


def search_of(held: Session) -> dict[str, Any]:
    """What the run's last search ended with, from its ledger; empty where it did not come so far."""
    from spak.records import Kind
    from spak.runner.blobs import expand

    ledger = held.run.ledger
    plans = (record.body for record, _ in ledger.read() if record.kind == Kind.PLAN)
    bodies = [body for body in plans if body.get("by") == "repair"]
    if not bodies:
        return {}
    body: Mapping[str, Any] = expand(bodies[-1], ledger.blobs)
    found = {name: body[name] for name in ("search", "refusal") if name in body}
    for candidate in body["candidates"]:
        found |= {"patch": candidate["args"]["patch"], "checks": candidate["checks"]}
    return found


def _print(document: Mapping[str, Any], plan: Mapping[str, Any], name: str, *, applied: bool) -> None:
    show_search(plan)
    if document["state"] == "succeeded":
        common.say("applied" if applied else f"next: spak apply {name}")
    else:
        common.say(f"{document['state']}; the run: spak show {name}")


def show_search(plan: Mapping[str, Any]) -> None:
    """Print the counts of a search, with its patch and verdicts or its refusal."""
    counts = plan.get("search", {})
    if counts:
        tried, of = counts.get("tried", 0), counts.get("candidates", 0)
        common.say(
            f"{counts['tests']} tests, {counts.get('visible', 0)} seen and {counts.get('hidden', 0)} hidden;"
            f" {tried} of {of} edits tried, {counts.get('passing', 0)} pass"
        )
    if "refusal" in plan:
        _refused(plan["refusal"])
    elif "patch" in plan:
        common.out(_diff(plan["patch"]))
        for check in plan["checks"]:
            common.say(f"  {'ok ' if check['ok'] else 'NO '} {check['name']:15} {check['detail']}")


def _refused(refusal: Mapping[str, Any]) -> None:
    common.say(f"no patch: {refusal['message']} [{refusal['code']}]")
    question = refusal.get("question")
    if question:
        common.say(f"what should {question['call']} give? ({question['path']})")
        for number, answer in enumerate(question["answers"], 1):
            patches = "1 patch" if answer["patches"] == 1 else f"{answer['patches']} patches"
            common.say(f"  {number}. {answer['answer']}   {patches}:")
            common.out("\n".join(f"     {line}" for line in _changes(answer["patch"])))
    elif "patch" in refusal:
        common.out(_diff(refusal["patch"]))
    for line in refusal.get("suspects", ())[:5]:
        common.say(f"  suspected: {line}")
    common.say(f"  {refusal['hint']}")


def _diff(patch: str) -> str:
    return "\n".join(line for line in patch.rstrip("\n").split("\n") if not line.startswith("before-hash "))


def _changes(patch: str) -> list[str]:
    return [line for line in patch.split("\n") if line[:1] in "+-" and not line.startswith(("+++", "---"))]
