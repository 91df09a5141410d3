"""`spak approve RUN`: answer an action that waits for approval with a signed yes or no, and go on.

The answer is signed here, with a key of the user (`spak keys`), and verified by the kernel, like one that
came from anywhere else. The lease admits one at a time: of two answers the second finds nothing that waits.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spak.cli import common
from spak.errors import RunError

if TYPE_CHECKING:
    from spak.cli.keys import Key
    from spak.kernel.state import Effect
    from spak.ports import Blobs
    from spak.runner import Run

GOOD_FOR_S = 600
GUARDED_S = 86_400
"""Of a guarded session, whose agent asks again some time later."""
LONGEST_S = 366 * 86_400


@click.command()
@click.argument("run")
@click.option("--deny", is_flag=True, help="Deny instead of approving.")
@click.option(
    "--expires",
    type=click.IntRange(min=1, max=LONGEST_S),
    metavar="S",
    help="Seconds for which the answer is good.  [default: 600; of a guarded session 86400]",
)
@click.option("--key", metavar="NAME", help="The key to sign with; else the first that is an approver's.")
@click.option("--of", "permit", metavar="ID", help="Which one, where a guarded session waits for several.")
@common.timeout_option
@common.runs_option
@common.json_option
def command(
    run: str,
    deny: bool,
    expires: int | None,
    key: str | None,
    permit: str | None,
    timeout: float | None,
    runs_dir: Path | None,
    as_json: bool,
) -> int:
    """Approve (or deny) the action that RUN waits for."""
    from spak.cli import session, show
    from spak.guard import control
    from spak.policy import approval

    root, name = common.find_run(run, runs_dir)
    asked = control.ask(root / name, {"do": "asks"})
    if asked is not None:
        return _guarded(root, name, asked["approvals"], permit, key, deny, expires)
    expires = expires or GOOD_FOR_S
    signer = _signer(root, name, key)
    held = session.reopen(root, name)
    try:
        effect = held.run.state.r6
        if effect is None or effect.act != "approve":
            raise _no_approval(name, held.view().state, held.run.rules.keys)
        body = _signed(held.run, effect, signer, approval.DENY if deny else approval.APPROVE, expires)
        held.run.approve(body)
        return show.advance_and_show(held, as_json, timeout)
    finally:
        held.close()


def _signer(root: Path, name: str, key: str | None) -> Key:
    """The key to sign with. Looked for before the lease is taken, so that a refusal leaves no record."""
    from spak.cli import keys, reading
    from spak.ledger.files import FileLedgers
    from spak.policy import approval

    seen = reading.view_of(root, name, strict=True)
    reader = FileLedgers(root).reader(name)
    try:
        listed = next(iter(reader.read()))[0].body["rules"]["keys"]
    finally:
        reader.close()
    if seen.waiting is None or seen.waiting.get("kind") != "approval":
        raise _no_approval(name, seen.state, listed)
    return keys.chosen(key, approval.publics(listed))


def _guarded(
    root: Path,
    name: str,
    asked: Sequence[Mapping[str, Any]],
    permit: str | None,
    key: str | None,
    deny: bool,
    expires: int | None,
) -> int:
    """Answer one of the actions that a guarded session under way waits for: its guard holds the lease."""
    from spak.cli import keys
    from spak.guard import control
    from spak.ledger.files import FileLedgers
    from spak.policy import approval

    found = [one for one in asked if permit is None or one["of"].startswith(permit)]
    if not found:
        hint = f"spak guard asks {name} lists what it waits for"
        raise RunError("run.no_approval", f"run {name} does not wait for {permit or 'an approval'}", hint)
    if len(found) > 1:
        hint = f"spak guard asks {name} lists them; choose by --of"
        raise RunError("guard.which", f"{len(found)} actions of run {name} wait for an approval", hint)
    reader = FileLedgers(root).reader(name)
    try:
        listed = next(iter(reader.read()))[0].body["rules"]["keys"]
        signer, one = keys.chosen(key, approval.publics(listed)), found[0]
        decision = approval.DENY if deny else approval.APPROVE
        _shown(
            decision, f"{one['act']} {one['tool']} in step {one['step']}", one["args"], reader.blobs, signer
        )
    finally:
        reader.close()
    body = approval.make(
        signer.private,
        action=approval.action_hash(one["tool"], one["args"]),
        of=one["of"],
        run=name,
        step=one["step"],
        expires=time.time_ns() // 1_000_000 + (expires or GUARDED_S) * 1000,
        decision=decision,
    )
    control.ask(root / name, {"do": "approve", "body": body})
    common.say("spak: answered; the agent has it when it calls again")
    return 0


def _no_approval(name: str, state: str, listed: object) -> RunError:
    hints = {
        "waiting": f"it asks a question: spak step {name} --resume --answer-file FILE answers it",
        "paused": f"it waits for nobody: spak resume {name}",
        "running": "it is running: spak show shows what it waits for when it stops",
    }
    hint = hints.get(state, f"it ended: spak show {name} says how")
    if state == "refused" and not listed:
        hint += "; no approver was listed when it began: add one to spak.toml ([[approvals.keys]])"
        hint += " and run it again"
    return RunError("run.no_approval", f"run {name} is {state} and not waiting for an approval", hint)


def _signed(run: Run, effect: Effect, key: Key, decision: str, expires: int) -> dict[str, Any]:
    """The answer's body; what it is about is shown first."""
    from spak.policy import approval

    tool, args = effect.name, effect.args["args"]
    where = f"{effect.args['act']} {tool} in step {effect.task}/{effect.step}"
    _shown(decision, where, args, run.ledger.blobs, key)
    return approval.make(
        key.private,
        action=approval.action_hash(tool, args),
        of=effect.id,
        run=run.state.run,
        step=f"{effect.task}/{effect.step}",
        expires=time.time_ns() // 1_000_000 + expires * 1000,
        decision=decision,
    )


def _shown(decision: str, where: str, args: object, blobs: Blobs, key: Key) -> None:
    """Show all that is signed, before it is."""
    from spak.runner.blobs import expand

    common.say(f"{decision}: {where}")
    common.say(json.dumps(expand(args, blobs), indent=2, ensure_ascii=False))
    common.say(f"signed with the key {key.name}")
