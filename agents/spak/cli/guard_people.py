"""`spak guard asks|answer|back RUN`: what a person says to a guarded session while it runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from spak.cli import common
from spak.errors import RunError


@click.command("asks")
@click.argument("run")
@common.runs_option
@common.json_option
def asks_command(run: str, runs_dir: Path | None, as_json: bool) -> int:
    """List what the session of RUN waits for: approvals and questions."""
    from spak.unseen import in_json

    name, found = _asked(run, runs_dir, {"do": "asks"})
    if as_json:
        common.emit(found)
        return 0
    for one in found["approvals"]:
        args = in_json(json.dumps(one["args"], ensure_ascii=False))
        common.out(f"approve  {one['of'][:8]}  {one['tool']} {args}")
    for one in found["questions"]:
        common.out(f"answer   {one['id']}  {in_json(json.dumps(one['text'], ensure_ascii=False))}")
    if found["approvals"]:
        common.say(f"next: spak approve {name} --of {found['approvals'][0]['of'][:8]} (or --deny)")
    elif found["questions"]:
        common.say(f"next: spak guard answer {name} {found['questions'][0]['id']} TEXT")
    else:
        common.say("spak: it waits for nobody")
    return 0


@click.command("answer")
@click.argument("run")
@click.argument("question")
@click.argument("text")
@common.runs_option
def answer_command(run: str, question: str, text: str, runs_dir: Path | None) -> int:
    """Answer a QUESTION of the agent in the session of RUN."""
    _asked(run, runs_dir, {"do": "answer", "question": question, "text": text})
    common.say("spak: answered; the agent has it when it asks again")
    return 0


@click.command("back")
@click.argument("run")
@click.argument("record", type=click.IntRange(min=0))
@common.runs_option
@common.json_option
def back_command(run: str, record: int, runs_dir: Path | None, as_json: bool) -> int:
    """Take the files of the session of RUN back to what they were after RECORD, also in the agent's copy."""
    from spak.door import one_line

    name, found = _asked(run, runs_dir, {"do": "back", "record": record})
    if as_json:
        common.emit(found)
        return 0
    for path in found["paths"]:
        common.out(path)
    common.say(f"spak: {found['changed']} taken back, as a transaction of its own; spak show {name}")
    if (home := found.get("home")) is not None:
        waits = "; not there: " + ", ".join(map(one_line, home["waits"])) if home["waits"] else ""
        error = f"; not all: {home['error']['message']} [{home['error']['code']}]" if "error" in home else ""
        common.say(f"spak: the same in {home['folder']}{waits}{error}")
    return 0


def _asked(selector: str, runs_dir: Path | None, request: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The run's name, and what its session answers. Raises: RunError `guard.not_running`, and its own."""
    from spak.guard import control

    root, name = common.find_run(selector, runs_dir)
    found = control.ask(root / name, request)
    if found is None:
        hint = f"it is over: spak show {name}, spak apply {name}"
        raise RunError("guard.not_running", f"no guarded session of run {name} runs here", hint)
    return name, found
