"""`spak repair PATH`: mend a failing test without a model, or say why not."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spak.cli import common
from spak.errors import UsageError, UserError

if TYPE_CHECKING:
    from spak.cli.session import Session
    from spak.ports import Ledger
    from spak.proposers.repair.answers import Question

ASKED = 4
"""The exit of a refusal that asks a question, as that of a run that waits."""
_SAID = ("code", "message", "hint", "question")
SPEC, ANSWERED = "specs/strategies/repair.spak", "specs/strategies/repair_answered.spak"


@click.command()
@click.argument("folder", default=".", type=click.Path(path_type=Path))
@click.option("--test", default="", metavar="ID", help="The failing test to mend; else all that fail.")
@click.option("--tests", default=".", metavar="PATH", help="A file or folder of tests; else all.")
@click.option(
    "--answer", metavar="VALUE", help="What the call of the last question gives; it becomes a test."
)
@click.option("--run", "asking", metavar="RUN", help="With --answer: the run that asked; else the latest.")
@click.option("--apply", "bring", is_flag=True, help="Bring an accepted patch into FOLDER.")
@click.option(
    "--seed", type=click.IntRange(min=0, max=2**53 - 1), default=None, show_default="0",
    help="Draws which tests stay hidden, and the inputs.",
)  # fmt: skip
@common.timeout_option
@common.runs_option
@common.json_option
def command(
    folder: Path,
    test: str,
    tests: str,
    answer: str | None,
    asking: str | None,
    bring: bool,
    seed: int | None,
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
    if asking is not None and answer is None:
        raise UsageError(
            "usage.arguments", "--run goes with --answer", "say what the call gives: --answer VALUE"
        )
    spec, inputs = SPEC, {"test": test, "tests": tests, "confirm": test or tests}
    about: dict[str, str] = {}
    if answer is not None:
        if test or tests != "." or seed is not None:
            hint = "leave out --test, --tests and --seed: they are those of the run that asked"
            raise UsageError("usage.arguments", "--answer goes on with an earlier repair", hint)
        spec, (inputs, seed, about) = ANSWERED, _answered(folder, answer, asking or "latest", runs_dir)
    held = session.begin(
        data.path(spec),
        root,
        mode="full_auto",
        inputs=inputs,
        workspace=folder,
        seed=seed or 0,
    )
    name = held.run.ledger.run
    if not as_json:
        if about:
            common.say(f"the answer as a test: {about['file']}")
            common.out("\n".join(f"+{line}" for line in about["test"].splitlines()))
        common.say(f"run {name}: searching; stop with Ctrl+C, continue with: spak resume {name}")
    try:
        with progress(held, enabled=not as_json and sys.stderr.isatty()):
            seen = held.advance(timeout)
        plan = search_of(held)
    finally:
        held.close()
    document = {**seen.to_json(), "repair": plan, **({"answer": about} if about else {})}
    accepted = seen.state == "succeeded"
    document |= _outcome(plan, document.get("refusal"), accepted=accepted)
    if bring and accepted:
        from spak.cli.apply import bring_home

        found = bring_home(root, name, allowed=(about["file"],) if about else (), ask=False)
        document["applied"] = found.to_json()
    if as_json:
        common.emit(document)
    else:
        _print(document, plan, name, applied=bring and accepted)
    return ASKED if document["outcome"] == "asked" else common.EXIT[seen.state]


def _outcome(plan: Mapping[str, Any], refused: Any, *, accepted: bool) -> dict[str, Any]:
    """What came of it in the words of the command's contract: `outcome`, `patch`, `verdicts`, `refusal` and
    `candidates`. `refused` is what the run has under that name already."""
    refusal = dict(plan.get("refusal", {}))
    question = refusal.get("question")
    outcome = "repaired" if accepted else "asked" if question else "refused"
    evidence = {name: held for name, held in refusal.items() if name not in _SAID}
    why = {"code": refusal["code"], "evidence": evidence, "question": question} if refusal else {}
    return {
        "outcome": outcome,
        "patch": plan.get("patch", "") if accepted else "",
        "verdicts": {check["name"]: check["ok"] for check in plan.get("checks", ())},
        "refusal": {**(refused or {}), **why} or None,
        "candidates": int(plan.get("search", {}).get("candidates", 0)),
    }


def _answered(
    folder: Path, text: str, asking: str, runs_dir: Path | None
) -> tuple[dict[str, str], int, dict[str, str]]:
    """The inputs and the seed of the repair that goes on, and its answer as `--json` has it.

    Raises: UsageError `repair.no_question`, `repair.answer`, `usage.run`; LedgerError."""
    from spak.ledger.files import FileLedgers
    from spak.proposers.repair import answers
    from spak.workspace import Copied

    root, run = common.find_run(asking, runs_dir)
    ledgers = FileLedgers(root)
    reader = ledgers.reader(run)
    try:
        found, rules = search_in(reader), ledgers.genesis(run).body["rules"]
    finally:
        reader.close()
    asked = found.get("refusal", {}).get("question")
    copied = Copied.read(root / run)
    if asked is None or copied is None or Path(copied.source) != folder.resolve():
        hint = "name the run whose refusal asks a question about this folder: --run RUN"
        raise UsageError("repair.no_question", f"{run} asked nothing about {folder}", hint)
    question = answers.question(asked)
    if question is None:
        hint = f"write a test of {asked.get('function')} by hand, and repair again"
        raise UsageError("repair.no_question", f"{run} asked what cannot be answered by a value", hint)
    answer = answers.read(text, question)
    before = rules["inputs"]
    path, old = (before["file"], before["text"]) if before.get("file") else _file(folder, question)
    inputs = answers.following(before, path, old, question, answer)
    added = inputs["text"].removeprefix(old.rstrip("\n")).strip("\n")
    return inputs, int(rules["seed"]), {"of": run, "call": question.call, "file": path, "test": added}


def _file(folder: Path, question: Question) -> tuple[str, str]:
    """The file of answers beside the tests that run the function, and its text: a new one, or one that an
    earlier repair began."""
    from spak.files import beneath
    from spak.proposers.repair import answers

    for number in itertools.count(1):
        path = answers.file_for(question, number)
        if not os.path.lexists(folder / path):
            return path, ""
        try:
            text = beneath.read_beneath(folder, path).decode("utf-8")
        except (UserError, UnicodeDecodeError):
            continue
        if answers.is_ours(text):
            return path, text
    raise AssertionError


def search_of(held: Session, proposer: str = "repair") -> dict[str, Any]:
    """What the run's last search ended with, from its ledger; empty where it did not come so far."""
    return search_in(held.run.ledger, proposer)


def search_in(ledger: Ledger, proposer: str = "repair") -> dict[str, Any]:
    """The same of a ledger."""
    from spak.runner.views import repairs

    return repairs.ended((record for record, _ in ledger.read()), ledger.blobs, proposer)


def _print(document: Mapping[str, Any], plan: Mapping[str, Any], name: str, *, applied: bool) -> None:
    show_search(plan)
    if document["state"] == "succeeded":
        common.say("applied" if applied else f"next: spak apply {name}")
    else:
        common.say(f"{document['state']}; the run: spak show {name}")


def show_search(plan: Mapping[str, Any]) -> None:
    """Print the counts of a search, with its patch and verdicts or its refusal."""
    from spak.runner.views import repairs

    if counts := repairs.counts(plan):
        common.say(counts)
    if model := plan.get("model"):
        who = f"model {model['name']}" if model["name"] else "the model"
        common.say(f"{who}: no patch: {model['message']} [{model['code']}]")
        if "patch" in model:
            common.out("\n".join(repairs.shown(model["patch"])))
    if by := plan.get("by"):
        common.say(f"by: {by}")
    if "refusal" in plan:
        _refused(plan["refusal"])
    elif "patch" in plan:
        common.out("\n".join(repairs.shown(plan["patch"])))
        for check in plan["checks"]:
            common.say(f"  {'ok ' if check['ok'] else 'NO '} {check['name']:15} {check['detail']}")


def _refused(refusal: Mapping[str, Any]) -> None:
    from spak.runner.views import repairs

    common.say(f"no patch: {refusal['message']} [{refusal['code']}]")
    question = refusal.get("question")
    if question:
        common.say(f"what should {question['call']} give? ({question['path']})")
        for number, answer in enumerate(question["answers"], 1):
            patches = "1 patch" if answer["patches"] == 1 else f"{answer['patches']} patches"
            common.say(f"  {number}. {answer['answer']}   {patches}:")
            common.out("\n".join(f"     {line}" for line in repairs.changed(answer["patch"])))
    elif "patch" in refusal:
        common.out("\n".join(repairs.shown(refusal["patch"])))
    for line in refusal.get("suspects", ())[:5]:
        common.say(f"  suspected: {line}")
    for which in (refusal, *refusal.get("losses", ())):
        for row in which.get("which", ()):
            common.say(f"  row: {row}")
    common.say(f"  {refusal['hint']}")
