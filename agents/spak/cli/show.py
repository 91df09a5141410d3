"""`spak show RUN`, and how every verb shows a run: one line of state, then what to do next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spak.cli import common
from spak.errors import UserError

if TYPE_CHECKING:
    from spak.cli.guard_home import Rest
    from spak.cli.session import Session
    from spak.runner import View


EVIDENCE = 4
"""Records that a refusal shows without --json: the last ones."""
_COUNTS = ("input", "output", "cached", "cache_write")
_WORDS = {True: "permitted", False: "denied", "ask": "waits for a signed approval"}


@click.command()
@click.argument("run", default="latest")
@click.option("--prompt", "prompt_seq", type=int, metavar="SEQ", help="The prompt that the permit SEQ sent.")
@click.option(
    "--proof",
    "proof_seq",
    type=int,
    metavar="SEQ",
    help="Why the permit or the derived route SEQ was decided as it was.",
)
@click.option("--costs", is_flag=True, help="Tokens and cost of each answer of a model, by task and in all.")
@common.runs_option
@common.json_option
def command(
    run: str,
    prompt_seq: int | None,
    proof_seq: int | None,
    costs: bool,
    runs_dir: Path | None,
    as_json: bool,
) -> int:
    """State, registers R0-R7, pending question and best metric of RUN; changes nothing."""
    from spak.cli import reading

    root, name = common.find_run(run, runs_dir)
    if prompt_seq is not None:
        text = reading.prompt_at(root, name, prompt_seq)
        common.emit({"run": name, "seq": prompt_seq, "prompt": text}) if as_json else common.out(text)
        return 0
    if proof_seq is not None:
        decision, text = reading.proof_at(root, name, proof_seq)
        if as_json:
            common.emit(decision)
        else:
            code = f" [{decision['code']}]" if decision["code"] else ""
            if "signal" in decision:
                what = f"{decision['signal']}: {decision['by'] or 'no one next_action'}"
            else:
                what = f"{decision['name'] or decision['act']}: {_WORDS[decision['allow']]}"
            common.say(f"record {proof_seq}, step {decision['step']}: {what}{code}")
            common.say(f"  {decision['reason']}")
            common.out(text)
        return 0
    if costs:
        return _costs(reading.calls_of(root, name), reading.view_of(root, name), as_json)
    from spak.cli import guard_home

    seen, home = reading.view_of(root, name), guard_home.rest(root, name)
    if as_json:
        common.emit(
            {**seen.to_json(with_registers=True), **({} if home is None else {"apply": home.to_json()})}
        )
    else:
        _print(seen, with_registers=True, home=home, did=reading.guarded_lines(root, name))
    return 0


def _costs(calls: list[dict[str, Any]], seen: View, as_json: bool) -> int:
    from spak.runner.views.report import plural

    sums = {name: seen.metrics.get(name, 0) for name in ("tokens", "cost_nanousd")}
    tasks = seen.metrics.get("by_task", {})
    if as_json:
        common.emit({"run": seen.run, "calls": calls, "by_task": tasks, **sums})
        return 0
    for call in calls:
        tokens = "  ".join(f"{name} {call[name]}" for name in _COUNTS if name in call)
        tokens = tokens or plural(call["tokens"], "token")
        paid = money(call["cost_nanousd"]) if "cost_nanousd" in call else "no price"
        common.out(f"{call['seq']:6}  {call['task']}/{call['step']}  {call['by']}  {tokens}  {paid}")
    for task, row in tasks.items():
        cost = money(row["cost_nanousd"])
        common.out(f"TASK {task}: {plural(row['calls'], 'answer')}, {plural(row['tokens'], 'token')}, {cost}")
    unknown = sum("cost_nanousd" not in call for call in calls)
    without = f", {unknown} of them without a price" if unknown else ""
    common.out(f"in all: {plural(len(calls), 'answer')}, {_used(seen.metrics)}{without}")
    return 0


def _used(metrics: Mapping[str, Any]) -> str:
    """The tokens and the money that models used, each with what BUDGET allows where it says something."""
    tokens, cost = metrics.get("tokens", 0), money(metrics.get("cost_nanousd", 0))
    most = metrics.get("allowance", {})
    of_tokens = f" of {most['tokens']}" if "tokens" in most else ""
    of_cost = f" of {money(most['cost_nanousd'])}" if "cost_nanousd" in most else ""
    return f"{tokens}{of_tokens} tokens, {cost}{of_cost}"


def money(nano: int) -> str:
    """Nano-dollars as dollars, exactly."""
    text = f"{nano // 10**9}.{nano % 10**9:09}".rstrip("0")
    whole, _, part = text.partition(".")
    return f"${whole}.{part:0<2}"


def advance_and_show(
    held: Session,
    as_json: bool,
    timeout: float | None,
    answer_now: bool = False,
    progressing: bool | None = None,
) -> int:
    """Advance a session to its next stop, show it, give its exit code. Closes the session.

    Progress is shown as `progressing` says; where it says nothing, unless the answer is for a program.
    """
    from spak.cli.progress import progress
    from spak.runner.views.report import plural

    for found in () if as_json else held.recordings:
        common.say(f"recording {found.name}: {plural(found.count, 'answer')}")
    try:
        with progress(held, enabled=not as_json if progressing is None else progressing):
            seen = held.advance(timeout, answer_now)
    except UserError as error:  # no answer came, and nothing of it was recorded: the run can go on
        if error.code.startswith("llm.") or error.code in ("unavailable.judge", "unavailable.model"):
            error.run = held.run.ledger.run
            held.save()
        raise
    finally:
        held.close()
    if not held.in_place:
        return show(seen, as_json)
    from spak.cli import apply

    return apply.at_stop(held.folder, seen, as_json, show)


def show(seen: View, as_json: bool, with_registers: bool = False) -> int:
    """Print a view; returns the exit code of its state, or 0 when only looking."""
    if as_json:
        common.emit(seen.to_json(with_registers))
    else:
        _print(seen, with_registers)
    return 0 if with_registers else common.EXIT[seen.state]


def _print(seen: View, with_registers: bool, home: Rest | None = None, did: Sequence[str] = ()) -> None:
    from spak.runner.views import own_tests, witnessed
    from spak.runner.views.report import plural

    say = common.say
    say(f"run {seen.run}: {seen.word}" + (f" in TASK {seen.task}" if seen.task else ""))
    if seen.by_own_tests:
        say(f"  its check fails without {own_tests.named(seen.by_own_tests)}")
    if seen.witnessed is not None:
        say(f"  witnessed only: {witnessed.sentence(seen.witnessed)}")
    say(f"  records {seen.records}, summary {seen.summary_hash}")
    for name in (
        "baseline_ms",
        "best_ms",
        "speedup",
        "speedup_low",
        "speedup_high",
        "baseline",
        "best",
        "improvement",
        "evaluations",
        "stopped_by",
    ):
        if name in seen.metrics:
            value = seen.metrics[name]
            say(f"  {name}: {value:.3f}" if isinstance(value, float) else f"  {name}: {value}")
    if "calls" in seen.metrics or "allowance" in seen.metrics:
        calls = seen.metrics.get("calls", 0)  # of answers that say what they took: recorded ones may not
        say(f"  models: {plural(calls, 'answer') + ', ' if calls else ''}{_used(seen.metrics)}")
    if seen.recorded is not None:
        count, first = seen.recorded["other_prompts"], seen.recorded["first_record"]
        answers = "1 answer was" if count == 1 else f"{count} answers were"
        say(f"  recording: {answers} recorded for another prompt of the same step, first in record {first}")
    if seen.refusal is not None:
        say(f"  why: {', '.join(seen.refusal['codes'])}")
        if said := seen.refusal["cause"] or seen.refusal["sentence"]:
            say(f"       {said}")
        if seen.refusal["error"]:
            error = seen.refusal["error"]
            say(f"  R4: {error['code']}: expected {error['expected']}, received {error['received']}")
            say(f"      {error['hint']}")
        if seen.refusal["knob"]:
            say(f"  knob: {seen.refusal['knob']}")
        for record in seen.refusal["records"][-EVIDENCE:]:
            say(f"  evidence: record {record['seq']} ({record['kind']}) {record['hash']}")
    for line in did:
        say(f"  {line}")
    if with_registers:
        from spak import canon

        registers = {} if did else seen.registers  # a session has no program of its own: --json has them
        for name, value in registers.items():
            say(f"  {name}: {canon.dumps(value).decode()}")
        for item in seen.monitors:
            say(f"  {_monitor(item)}")
    if seen.waiting is not None and seen.waiting["kind"] == "approval":
        from spak import canon

        say(f"\n--- step {seen.waiting['step']} waits for a signed approval of ---")
        say(f"{seen.waiting['name']} {canon.dumps(seen.waiting['args']).decode()}")
        say("---")
    elif seen.waiting is not None:
        role = f" ({seen.waiting['role']})" if seen.waiting["role"] else ""
        say(f"\n--- question of step {seen.waiting['step']}{role} ---")
        say(str(seen.waiting.get("prompt", "")))
        say("---")
    if with_registers:
        say(f"events: spak export {seen.run} --as events (what was sent and what came, a line each)")
        say(f"ledger: spak export {seen.run} -o {seen.run}.jsonl (lossless: replay and import it anywhere)")
    if home is not None:
        home.say()
    say(f"next: {_next(seen, with_registers, guarded=bool(did) and seen.witnessed is None)}")


def _monitor(item: Mapping[str, Any]) -> str:
    """A fold of the policy in one line: `moved of "B" within 24h: 4000 of 5000, 2 minutes ago, record 12`."""
    if item["others"]:
        return f"{item['fold']}: and of {item['others']} keys that were fed earlier"
    of = f" of {', '.join(item['key'])}" if item["key"] else ""
    within = f" within {item['window']}" if item["window"] else ""
    value = item["value"] if item["value"] is not None else "holds" if item["holds"] else "does not hold"
    most = f" of {item['limit']}" if item["limit"] is not None else ""
    ago = f", {item['age']} ago" if item["age"] else ""
    records = f", records {', '.join(map(str, item['records'][:6]))}" if item["records"] else ""
    return f"{item['fold']}{of}{within}: {value}{most}{ago}{records}"


def _next(seen: View, looked: bool, guarded: bool = False) -> str:
    if seen.waiting is not None and seen.waiting["kind"] == "approval":
        return f"spak approve {seen.run}"
    if seen.state == "waiting":
        return f"spak step {seen.run} --resume --answer-file FILE"
    if seen.state in ("paused", "running"):
        return f"spak guard --resume {seen.run} -- AGENT" if guarded else f"spak resume {seen.run}"
    if seen.state == "succeeded" and seen.applies:
        return f"spak apply {seen.run} --check"
    if seen.state == "succeeded":
        return f"spak replay {seen.run}"
    if looked and seen.refusal is not None and seen.refusal["codes"]:
        return f"spak explain {seen.refusal['codes'][0]}"
    return f"spak show {seen.run}"
