"""Permit: entering a step, asking the gate, looking at the world for it, waiting for an approval.

Every effect of a run but these two (observe, approve) is made here, by `permit`, after the policy permitted
it. The gate (gate.py) decides, this says what becomes of its decision. Takes a Turn; gives the Move that a
denial or an argument that does not fit leads to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from spak import canon
from spak.datalog.externals import Request
from spak.datalog.session import Session
from spak.datalog.values import Fact, Name, Value
from spak.errors import UserError
from spak.kernel import budget, context, fit, heuristics, recollect, render
from spak.kernel.budget import extend
from spak.kernel.gate import EVENT, Judged, ProposedAction, approval_facts, facts_of, uses_of
from spak.kernel.memory import Memory, length
from spak.kernel.observed import Facts, Malformed, Observed, merged
from spak.kernel.rules import MAX_FILLED, UNKNOWN_SIZE, Filling, Rules, every_ref, refs
from spak.kernel.situation import moving, situation
from spak.kernel.state import PUT_OFF, Counter, Effect, EffectClass, LastTool, State
from spak.kernel.turn import EnterStep, Misfit, Move, Turn
from spak.lang.catalog import ToolEntry
from spak.policy import approval
from spak.policy.facts import ACTION, is_reference
from spak.policy.history import state as past
from spak.policy.history.deciding import answers
from spak.policy.judge import decide, permissible
from spak.policy.toolfacts import text
from spak.program import Step, Task, Template
from spak.records import Kind

Asked = Literal["tool", "ask", "plan", "check", "validate"]

Asks = Callable[[Request], list[tuple[Value, ...]]]
"""Answers what a law asks of the world."""

SIGNED = "signed"
"""Of what a permit rests on, besides what was seen: who signed, and whether as an admin."""
CHANGED = ("changed", 3)
"""The predicate of what a call has changed."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is known when an action is judged: what was observed for it, and what became of an approval."""

    seen: Facts
    rounds: int = 0
    """Observations so far."""
    signed: tuple[str, bool] | None = None
    """Who approved, and whether as an admin."""
    rejected: approval.Rejected | None = None


NOTHING = Known({})


def enter_task(turn: Turn, name: str) -> Move:
    """Go to a task's first step, with the task's retries and its GOAL as variables are now."""
    task = turn.rules.program.tasks[name]
    turn.executive(depth=turn.state.r7.depth + 1)
    if name != turn.state.r0.task:
        turn.executive(retries=task.retries, turns=0, stale=0)
        turn.recollect(recollect.moved)
    if not task.steps:
        turn.go_to(name, "")
        turn.refuse("run.empty_task", f"a step, a GOAL or a VALIDATOR in TASK {name}")
        return None
    if isinstance(task.goal, Template):
        if _too_long(turn, every_ref(task.goal)):
            return None
        try:
            turn.executive(goal=render.render(task.goal, turn.rules, turn.state))
        except render.Unbound as error:
            turn.go_to(name, "")
            turn.refuse("run.unbound_variable", f"bind {error} before TASK {name}, whose GOAL reads it")
            return None
    return EnterStep(task, task.steps[0])


def enter_step(turn: Turn, task: Task, step: Step) -> Move:
    """Budgets, heuristics, arguments, then the permit and its effect; or an end."""
    turn.go_to(task.name, step.id)
    extend.by_law(turn)
    spent = budget.exhausted(turn.rules, turn.state)
    if spent:
        turn.refuse(*spent)
        return None
    filling = turn.rules.filling(task, step)
    if _too_long(turn, filling.paths):
        return None
    try:
        match step.kind:
            case "tool":
                args = turn.arguments(step) if filling.args is None else filling.args
                if filling.fixed:
                    filling.args = args
                return enter_tool(turn, task, step, step.name, args, NOTHING)
            case "plan" | "ask":
                heuristics.inject(turn)
                ask(turn, task, step, NOTHING)
            case "check":
                atoms = render.questions(task.success, turn.rules, turn.state)
                permit(turn, NOTHING, step, "check", "check", {"atoms": list(atoms)}, "pure")
            case "validate":
                validate(turn, step, turn.arguments(step), NOTHING)
    except render.Unbound as error:
        turn.refuse("run.unbound_variable", f"bind {error} before step {step.id} of TASK {task.name}")
    except render.BadCommand as error:
        found = fit.r4("shell.not_one_command", "one command", "", str(error))
        return Misfit(task, step, step.name, [found])
    return None


def _too_long(turn: Turn, paths: Iterable[str]) -> bool:
    """Whether what is to be filled in comes to more than a step may use; then the run is refused."""
    rules, state, size = turn.rules, turn.state, 0
    for path in paths:
        try:
            found = render.lookup(path, rules, state)
        except render.Unbound:
            continue  # whoever fills it in says so
        size += length({"size": UNKNOWN_SIZE, **found} if is_reference(found) else found)
    if size > MAX_FILLED:
        knob = f"long variables read less often: at most {MAX_FILLED >> 20} MiB together in a step"
        turn.refuse("run.text_too_long", knob)
    return size > MAX_FILLED


def enter_tool(
    turn: Turn, task: Task, step: Step, name: str, args: Mapping[str, Any], known: Known = NOTHING
) -> Move:
    """The built-in rule, that a plan's tool must be in TOOLS; then the schema, before the tool."""
    entry = turn.rules.catalog.tool(name)
    if entry is None:
        _deny(turn, name, args, "policy.unknown_tool", f"install or correct the tool {name}")
        return None
    if step.kind == "plan" and not fit.in_tools(turn.rules, task, name):
        _deny(turn, name, args, "policy.not_in_tools", f"TOOLS [{name}] in TASK {task.name}")
        return None
    found = _misfits(turn.rules.filling(task, step), entry, args)
    turn.set(r5=LastTool(entry.name, str(entry.version)))
    if found:
        return Misfit(task, step, entry.name, found)
    watched = render.questions(task.invariant, turn.rules, turn.state)
    wait = step.poll.every_ms if step.poll is not None and turn.state.r7.polls else 0
    due = turn.at + wait if wait else 0
    return permit(turn, known, step, "tool", entry.name, args, entry.effect, watch=watched, due=due)


def _misfits(filling: Filling, entry: ToolEntry, args: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """What in the arguments does not fit the tool; looked for once where they are the same each time."""
    if args is not filling.args:
        return fit.misfits(entry, args)
    if filling.misfits is None:
        filling.misfits = fit.misfits(entry, args)
    return filling.misfits


def ask(turn: Turn, task: Task, step: Step, known: Known = NOTHING) -> None:
    """Put a question or a plan to whoever answers it. Raises: render.Unbound."""
    r7 = turn.state.r7
    name = task.proposing.name if step.kind == "plan" else ""
    built = context.build(turn.rules, turn.state, task, step, r7.memory)
    prompt = canon.content_hash(built.items)
    shown: dict[str, Any] = {"items": built.items, "prefix": built.prefix}
    if step.kind == "ask":
        permit(turn, known, step, "ask", step.name, {"prompt": prompt}, "ask", **shown)
        return
    permit(
        turn,
        known,
        step,
        "plan",
        name or "model",
        {"prompt": prompt, "turn": r7.turns},
        "costly" if name else "ask",
        turn=r7.turns,
        seed=turn.rules.draw("plan", task.name),
        rivals={"baseline": dict(r7.baseline.files)} if name and r7.baseline is not None else {},
        **shown,
    )
    pending = turn.state.r6
    if pending is not None and pending.act == "plan":  # permitted
        turn.executive(turns=r7.turns + 1)


def validate(turn: Turn, step: Step, args: Mapping[str, Any], known: Known = NOTHING) -> None:
    """Ask for a measurement against the candidates worth remembering."""
    entry = turn.rules.catalog.validators[step.name]
    r7 = turn.state.r7
    rivals = {
        name: dict(mark.files)
        for name, mark in (("incumbent", r7.best), ("baseline", r7.baseline), ("runner_up", r7.runner_up))
        if mark is not None
    }
    if args.get("role") == "final":
        rivals.pop("incumbent", None)
        if r7.best == r7.baseline:
            rivals.pop("baseline", None)
    seed = turn.rules.draw("validate", turn.state.r0.attempt)
    permit(turn, known, step, "validate", entry.name, args, entry.effect, rivals=rivals, seed=seed)


def permit(
    turn: Turn,
    known: Known,
    /,
    step: Step,
    act: Asked,
    name: str,
    args: Mapping[str, Any],
    cls: EffectClass,
    **more: Any,
) -> Move:
    """Commit what the policy decides and, where it permits, ask for the effect.

    The permit's content is the effect's id. There is no effect yet where it is denied, where an approval is
    waited for and where the world has to be observed first.
    """
    judged = _decision(turn, known, act, name, args)
    if not isinstance(judged, Judged):
        _observe(turn, known, step, act, name, args, judged)
        return None
    state = turn.state
    turn.set(r0=Counter(state.r0.task, step.id, state.r0.attempt + 1))
    body: dict[str, Any] = {"act": act, "allow": True, "args": args}
    if name != act:
        body["name"] = name
    judged = _remember(turn, judged, signed=known.signed is not None)
    turn.judged.append((len(turn.commits), judged))
    if judged.allow is True:
        content, root = turn.commit(Kind.PERMIT, body), turn.state.r3
        seen = {**known.seen, SIGNED: list(known.signed)} if known.signed else known.seen
        turn.request(Effect(content, act, name, cls, *turn.place, args, root, observed=seen, **more))
        return None
    asked = turn.commit(Kind.PERMIT, {**body, "allow": judged.allow, "code": judged.code})
    if judged.allow != "ask":
        return _denied(turn, step, act, name, args, judged)
    wanted, root = {"act": act, "args": args}, turn.state.r3
    turn.request(Effect(asked, "approve", name, "ask", *turn.place, wanted, root, observed=known.seen))
    return None


def _decision(
    turn: Turn, known: Known, act: Asked, name: str, args: Mapping[str, Any]
) -> Judged | Mapping[str, Any]:
    """What the gate says: a decision, or questions about the world."""
    rules, gate = turn.rules, turn.rules.gate
    proposed = _proposed(turn, act, name, args)
    run = proposed.run
    signed = approval_facts(*known.signed) if known.signed else ()
    asked = proposed._replace(run=(*run, *signed)) if signed else proposed
    found = gate.judge(asked, known.seen, known.rounds)
    if isinstance(found, Judged) and not found.allow and rules.program.approvals == "ask":
        rejected = known.rejected
        if rejected is not None and rejected.code in ("policy.approval_denied", "policy.approval_later"):
            return found._replace(code=rejected.code, reason=rejected.message)
        if known.signed:  # it is remembered, and the next one signs after it
            after = gate.after_denial(found, proposed.history)
            proposed = proposed._replace(history=past.begin(after, turn.at))
        if gate.approvable(proposed, known.seen, rules.keys):
            code = found.code if rejected is None else rejected.code
            return found._replace(allow="ask", code=code)
    return found


def _proposed(turn: Turn, act: Any, name: str, args: Mapping[str, Any]) -> ProposedAction:
    """What the gate is asked, with the facts of the run around it."""
    proposed = around(turn.rules, turn.state, turn.task, act, name, args)
    if turn.rules.gate.folds:
        proposed = proposed._replace(history=past.begin(turn.state.r7.history, turn.at))
    return proposed


def around(
    rules: Rules, state: State, task: Task, act: Any, name: str, args: Mapping[str, Any]
) -> ProposedAction:
    """The same, without what happened before."""
    run = situation(rules, state, task, name if act == "tool" else "")
    uses = uses_of(rules.catalog, act, name)
    return ProposedAction(act, name, args, run, moving(rules, state), uses)


def asks_of_changes(rules: Rules) -> bool:
    """Whether the law reads what calls have changed."""
    return CHANGED in rules.gate.reads


def forbids(
    rules: Rules, state: State, effect: Effect, changes: Iterable[tuple[str, str]], world: Asks | None = None
) -> str:
    """Why the law forbids the changes; empty where it does not. It knows what the permit rested on; a
    signature counts where the law forbids the call itself without one, since nobody has signed for changes.
    `world` answers what the law asks besides."""
    gate, task = rules.gate, rules.program.tasks[effect.task]
    proposed = around(rules, state, task, effect.act, effect.name, effect.args)
    rows = [("changed", (ACTION, text(path), Name(f"/{kind}"))) for path, kind in changes]
    history = state.r7.history
    try:
        seen = Observed(effect.observed)
        found = [*proposed.run, *proposed.moving, *facts_of(proposed, seen)]
        if gate.folds:
            found += (EVENT, *past.rows(gate.folds, history))

        def known(request: Request) -> list[tuple[Value, ...]] | None:
            given = answers(gate.folds, history, request) if gate.folds else None
            looked = given is not None or canon.dumps(request.to_json()) in seen.rows
            return given if looked or world is None else world(request)

        def judged(more: Iterable[Fact]) -> Session | None:
            session = gate.policy.session([*found, *more])
            return session if seen.answer(session, known) else None

        if signed := effect.observed.get(SIGNED):
            unsigned = judged(())
            if unsigned is None or unsigned.holds("forbidden", ACTION):
                found += approval_facts(*signed)
        session = judged(rows)
        if session is None:
            return "the law asks of the changes what nobody looked at"
        found += rows
        return decide(gate.policy, found, False, session).reason if session.holds("forbidden", ACTION) else ""
    except UserError as error:
        return f"{error.message} [{error.code}]"


def _remember(turn: Turn, judged: Judged, *, signed: bool) -> Judged:
    """Keep a decided request in the history; a denial where folds have no room for what it feeds. One that
    waits for a signature is decided with it; once somebody has signed and it waits again, it was denied."""
    gate, waits = turn.rules.gate, judged.allow == "ask"
    if not gate.folds or (waits and not signed):
        return judged
    history, trouble = past.requested(
        gate.folds,
        past.begin(turn.state.r7.history, turn.at),
        str(turn.state.r0.attempt),
        judged.fed,
        allow=judged.allow is True,
        record=turn.next_record,
    )
    turn.executive(history=history)
    return judged._replace(allow=False, code="policy.limit", reason=trouble) if trouble else judged


def _denied(turn: Turn, step: Step, act: Asked, name: str, args: Mapping[str, Any], judged: Judged) -> Move:
    """Whoever proposed it gets the reason and may propose again; what the spec says itself is refused."""
    task = turn.task
    if act == "tool" and comes_of_an_answer(task, step):
        patch = judged.code.startswith("patch.")
        expected = "a patch that can be read" if patch else "what the policy permits"
        error = fit.r4(judged.code, expected, name, judged.reason)
        return Misfit(task, step, name, [fit.with_payload(error, args)])
    helps = judged.code == "policy.denied" and permissible(judged.facts)
    knob = f"a law of the operator or the team that permits it: {judged.reason}" if helps else ""
    turn.refuse(judged.code, knob, {"name": name, "reason": judged.reason})
    return None


def comes_of_an_answer(task: Task, step: Step) -> bool:
    """Whether a question at or before this step gave what the step is to do."""
    return task.asker(step) is not None and (step.kind in ("ask", "plan") or bool(refs(step.args)))


def _observe(
    turn: Turn,
    known: Known,
    step: Step,
    act: Asked,
    name: str,
    args: Mapping[str, Any],
    questions: Mapping[str, Any],
) -> None:
    """Ask the runner to look. Not a decision: there is no commit, and the id says what is asked."""
    state = turn.state
    place = Counter(state.r0.task, step.id, state.r0.attempt)
    wanted: dict[str, Any] = {"act": act, "args": args, "questions": questions}
    if known.signed:
        wanted["signed"] = known.signed
    effect = Effect(
        id=canon.content_hash([place.attempt + 1, name, args, questions]),
        act="observe",
        name=name,
        cls="pure",
        task=place.task,
        step=place.step,
        attempt=place.attempt,
        args=wanted,
        root=state.r3,
        turn=known.rounds + 1,
        observed=known.seen,
    )
    turn.set(r0=place)
    turn.request(effect)


def observed(turn: Turn, task: Task, step: Step, pending: Effect, body: Mapping[str, Any]) -> Move:
    """Go on with what was to be permitted, now that the world was looked at."""
    try:
        seen = merged(pending.observed, body.get("facts"))
    except Malformed:
        seen = {"paths": [None]}  # the gate denies what makes no sense
    return _resume(turn, task, step, pending, Known(seen, pending.turn, pending.args.get("signed")))


def approved(turn: Turn, task: Task, step: Step, pending: Effect, body: Mapping[str, Any]) -> Move:
    """Judge the waiting action again: with the approval as a fact, or with why it is none."""
    action, asked = approval.action_hash(pending.name, pending.args["args"]), turn.state.r7.put_off
    found = approval.verify(
        body,
        keys=turn.rules.keys,
        action=action,
        of=pending.id,
        run=turn.state.run,
        step=f"{pending.task}/{pending.step}",
        at=turn.at,
        earlier=[permit for permit, about in asked if about == action],
    )
    known = Known(pending.observed)
    if isinstance(found, approval.Approved) or found.code == "policy.approval_denied":
        turn.executive(put_off=tuple(one for one in asked if one[1] != action))  # an answer counts once
    elif found.code == "policy.approval_later":
        turn.executive(put_off=(*asked, (pending.id, action))[-PUT_OFF:])
    if isinstance(found, approval.Approved):
        known = replace(known, signed=(found.signer, found.overrides))
    else:
        known = replace(known, rejected=found)
    return _resume(turn, task, step, pending, known)


def _resume(turn: Turn, task: Task, step: Step, pending: Effect, known: Known) -> Move:
    """Ask again for the permit that an observation or an approval was needed for."""
    turn.set(r6=None)
    args = pending.args["args"]
    match pending.args["act"]:
        case "tool":
            return enter_tool(turn, task, step, pending.name, args, known)
        case "validate":
            validate(turn, step, args, known)
        case "check":
            permit(turn, known, step, "check", "check", args, "pure")
        case _:
            ask(turn, task, step, known)
    return None


def counted(turn: Turn, task: Task, step: Step, pending: Effect, body: Mapping[str, Any]) -> None:
    """Send the prompt that was counted, make its memory smaller and ask again, or refuse.

    The window and the most that the call can cost are those of the model that was to be asked: facts of
    the outside, as the count is. Source: seed 001 (R2).
    """
    budgets, r7 = budget.allowed(turn.rules, turn.state), turn.state.r7
    held = r7.memory if step.kind == "plan" else Memory()
    size = recollect.Size.of(body, turn.state.r2, budgets.tokens)
    verdict = context.verdict(size.tokens, size.room, held)
    bound = fit.count(body, "cost")
    dear = budget.unaffordable(turn.rules, turn.state, bound) if bound and verdict == "send" else None
    verdict = "refuse" if dear else verdict
    turn.commit(Kind.CONTEXT, {"act": verdict, "prompt": pending.args["prompt"], "tokens": size.tokens})
    if verdict == "send":
        turn.set(r6=pending._replace(counted=True))
        return
    turn.set(r6=None)
    if verdict == "refuse":
        turn.refuse(*(dear or size.knob(budgets.tokens)))
        return
    smaller = recollect.smaller(held, turn.rules, size, pending.items)
    assert smaller is not None
    turn.executive(memory=smaller, turns=r7.turns - 1)
    ask(turn, task, step)


def _deny(turn: Turn, name: str, args: Mapping[str, Any], code: str, knob: str) -> None:
    turn.commit(Kind.PERMIT, {"act": "tool", "allow": False, "args": args, "code": code, "name": name})
    turn.refuse(code, knob)
