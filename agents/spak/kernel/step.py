"""`step(rules, state, proposal) -> (state, commits, effects)`: the kernel's one function.

Pure and total: no clock, no randomness, no outside; a proposal that nobody awaits, or that is malformed,
never raises. Live run and replay feed the same function. The order is seed 000's cognitive loop:

    inject    a heuristic after a fail, before a proposer or a model is asked
    plan      candidates are asked for; `select` takes one
    permit    the policy's decision (spak.kernel.gate), before the effect exists; what it has to know of
              the world is observed first
    act       the runner does it and brings back a proposal
    observe   the task's validator measures
    refine    the signal is derived and routed along the task's edges

At most one effect is pending at a time (R6). A proposal is awaited when its `of` names that effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from spak import canon
from spak.kernel import derive, fit, outcomes, render, watch
from spak.kernel.memory import recollect
from spak.kernel.permits import Permits
from spak.kernel.rules import Rules
from spak.kernel.situation import diagnostics
from spak.kernel.state import Effect, State, Watchdog, change
from spak.kernel.turn import Stepped
from spak.program import Poll, Step, Task
from spak.records import Authority, Kind, Record

COMMITS = "git_commit"
"""The tool whose diagnostics are about the commit and not about the files."""

ANSWERS = ""
"""What invalid answers are counted under up to semantics 2, where a tool has its name."""

UNREADABLE = "answer"
"""What answers are counted under that nobody could read, since semantics 3."""

POLL_LIMIT = "run.poll_limit"

UNATTENDED = 8
"""Misfits in a row, in whatever tasks, with no effect between them: nothing is left that could mend them."""


def step(rules: Rules, state: State, proposal: Record) -> Stepped:
    """The next state, the commits that led to it, and what to do now (at most one effect)."""
    turn = _Turn(rules, state, proposal.at)
    body = proposal.body
    if not isinstance(body, Mapping) or proposal.authority != Authority.PROPOSAL:
        return turn.done()
    if state.status == "new":
        if proposal.kind == Kind.GENESIS:
            turn.begin(body)
        return turn.done()
    if state.ended:
        return turn.done()
    if proposal.kind == Kind.CONTROL:
        if body.get("cancel") is True:
            turn.end("cancelled", "run.cancelled")
        return turn.done()
    if expects(state, proposal):
        turn.spend(proposal.side)
        turn.answer(proposal.kind, body)
    return turn.done()


def expects(state: State, proposal: Record) -> bool:
    """Whether a proposal answers the pending effect, in the kind that such an effect is answered with."""
    pending = state.r6
    if pending is None or not isinstance(proposal.body, Mapping) or proposal.body.get("of") != pending.id:
        return False
    if proposal.kind == Kind.PLAN:
        return pending.act == "plan"
    if proposal.kind == Kind.OBSERVE and pending.act in ("ask", "plan"):
        return pending.cls == "ask" and not pending.counted
    if pending.act == "observe":
        return proposal.kind == Kind.OBSERVE
    if pending.act == "approve":
        return proposal.kind == Kind.APPROVAL
    return proposal.kind == Kind.ACT


class _Turn(Permits):
    """What an answer leads to."""

    def answer(self, kind: str, body: Mapping[str, Any]) -> None:
        pending = self.state.r6
        assert pending is not None
        task = self.task
        step = next(item for item in task.steps if item.id == pending.step)
        if pending.act == "observe":
            self.observed(task, step, pending, body)
            return
        if pending.act == "approve":
            self.approved(task, step, pending, body)
            return
        if kind == Kind.OBSERVE:
            self.counted(task, step, pending, body)
            return
        if pending.act == "plan" and self.rules.decides.memory_by_policy:
            self.recollect(recollect.sent)
        dog = self.state.r1
        self.state = change(self.state, r1=Watchdog(dog.elapsed_ms, dog.steps + 1, dog.window))
        if kind == Kind.PLAN:
            self.planned(task, step, body)
        elif pending.act == "tool":
            self.acted(task, step, pending, body)
        elif pending.act == "validate":
            self.measured(task, step, pending, body)
        elif pending.act == "check":
            self.checked(task, step, body)
        else:
            self.answered(task, step, pending, body)

    def planned(self, task: Task, step: Step, body: Mapping[str, Any]) -> None:
        """Select: the valid candidate with the highest score, the lowest index among equals."""
        candidates = body.get("candidates")
        listed = candidates if isinstance(candidates, list) else []
        if not listed:
            self.no_candidates(task)
            return
        judged = [fit.misfit(self.rules, task, candidate) for candidate in listed]
        valid = [index for index, found in enumerate(judged) if not found]
        rejected = [found[0]["code"] for found in judged if found]
        select: dict[str, Any] = {"n": len(listed)}
        if rejected:
            select["rejected"] = rejected
        if not valid:
            self.commit(Kind.SELECT, {**select, "i": -1})
            tool = listed[0].get("tool") if isinstance(listed[0], Mapping) else None
            self.violate(task, step, tool if isinstance(tool, str) else "", judged[0])
            return
        index = max(valid, key=lambda i: (fit.score(listed[i]), -i))
        chosen = listed[index]
        args = dict(chosen.get("args", {}))
        self.commit(Kind.SELECT, {**select, "i": index, "choice": canon.content_hash([chosen["tool"], args])})
        params = args.get("params")
        self.executive(params=params if isinstance(params, Mapping) else {})
        self.enter_tool(task, step, chosen["tool"], args)

    def no_candidates(self, task: Task) -> None:
        """Nothing proposed: a metric loop has searched its space; anything else cannot go on."""
        if task.rule is not None and "plateau" in task.edges:
            self.executive(stopped="space")
            self.finish_task("plateau", "run.no_candidates")
        else:
            self.refuse("run.no_candidates", f"a PROPOSER or a model that answers TASK {task.name}")

    def answered(self, task: Task, step: Step, pending: Effect, body: Mapping[str, Any]) -> None:
        """An answer to `llm.query`, or to a plan that nobody could read as a plan."""
        if body.get("outcome") != "answered" or pending.act == "plan":
            name = UNREADABLE if self.rules.decides.rollbacks_by_tool else pending.name
            self.violate(task, step, name, [fit.unanswered(self.rules, body)])
            return
        self.recollect(recollect.answered, pending, body)
        value = body.get("out", "")
        self.keep_output(step, value)
        self.state = change(self.state, r4=None)
        route = {"signal": "success"}
        watching = self.rules.decides.turns_repeat
        if watching and self.ended_by_watchdog(pending, route, canon.content_hash(value), quiet=True):
            return
        self.route_on(task, step, route)

    def acted(self, task: Task, step: Step, pending: Effect, body: Mapping[str, Any]) -> None:
        outcome = body.get("outcome")
        exit_code = body.get("exit", 0)
        if outcome != "exited" or type(exit_code) is not int:
            known, code = outcomes.rolled_back(self.rules, body)
            self.roll_back(task, step, pending, known, code, body.get("why"))
            return
        writes = pending.cls == "effect"
        root = body.get("r3") if writes else None
        route: dict[str, Any] = {"signal": "success" if exit_code == 0 else "fail"}
        if writes:
            route["txn"] = "commit"
        facts = body.get("facts")
        invariant = task.invariant
        kept = invariant is None or render.holds(invariant, fit.booleans(facts), self.rules, self.state)
        if kept is not True:
            self.broken_invariant(task, step, kept, writes)
            return
        if isinstance(root, str):
            route["r3"] = root
            staged = self.rules.decides.checks_hold_files and body.get("only_git") is True
            if root != self.state.r3 and not staged:
                self.executive(diagnostics=(), checks=())
            self.state = change(self.state, r3=root)
        if pending.name != COMMITS or not self.rules.decides.checks_hold_files:
            self.keep_diagnostics(body)
        key = body.get("key")
        route["key"] = key if isinstance(key, str) else ""
        if step.kind == "tool" or step.output_var or self.rules.decides.plan_output:
            self.keep_output(step, body.get("out", ""))
        self.recollect(recollect.acted, pending, body)
        if f"exit_code.{step.id}" in self.rules.wanted:
            self.bind(f"exit_code.{step.id}", exit_code)
        if self.state.r7.rollbacks[1]:
            self.executive(rollbacks=("", 0))
        if step.poll is not None and exit_code != 0 and self.polled(task, step, step.poll, route):
            return
        if self.watched(pending, route):
            return
        if self.state.r7.polls:
            self.executive(polls=0)
        if exit_code == 0:
            self.state = change(self.state, r4=None)
            self.route_on(task, step, route)
            return
        error = fit.exit_r4(
            exit_code, f"{pending.name} in step {step.id}", body, self.rules.decides.r4_payload
        )
        if step.poll is not None:
            error = {**error, "code": POLL_LIMIT, "expected": f"exit 0 within {step.poll.limit} polls"}
        self.state = change(self.state, r4=error)
        self.failed_tool(task, step, route, POLL_LIMIT if step.poll is not None else "tool.exit")

    def polled(self, task: Task, step: Step, poll: Poll, route: Mapping[str, Any]) -> bool:
        """Do a step again that did not end with exit 0; False when its polls are used up.

        The runner waits before it does the next one: `step` only says when that one is due.
        """
        polls = self.state.r7.polls + 1
        if polls >= poll.limit:
            return False
        self.executive(polls=polls)
        self.state = change(self.state, r4=None)
        self.commit(Kind.ROUTE, {**route, "poll": polls, "to": step.id})
        self.enter_step(task, step)
        return True

    def broken_invariant(
        self, task: Task, step: Step, found: render.NotANumber | Literal[False], writes: bool
    ) -> None:
        """End the run with its last tool undone; an invariant that has no answer does not hold."""
        route: dict[str, Any] = {"signal": "fail", "code": "run.invariant"}
        if isinstance(found, render.NotANumber):
            error = fit.not_a_number(found)
            self.state = change(self.state, r4=error)
            route |= {"code": error["code"], "r4": error}
        if writes:
            route["txn"] = "rollback"
        self.commit(Kind.ROUTE, route)
        self.end("failed", route["code"], f"mend step {step.id} or the invariant of TASK {task.name}")

    def handling(self, task: Task, step: Step) -> str:
        """What a non-zero exit means: as the step says; a plan that says nothing leaves it to its tool.

        Where nothing else decides a task, whoever planned a tool that failed has to plan again.
        """
        decides = self.rules.decides.exits_decide
        if step.kind != "plan" or (step.on_fail and decides):
            return step.on_fail
        entry = self.rules.catalog.tool(self.state.r5.name)
        handling = entry.on_fail if entry is not None else "stop"
        return "retry" if handling == "continue" and decides and not task.judged else handling

    def failed_tool(self, task: Task, step: Step, route: Mapping[str, Any], code: str) -> None:
        """A tool that ended with a non-zero exit: go on, go back to who proposed it, or end the task."""
        handling = self.handling(task, step)
        if handling == "continue":
            self.route_on(task, step, route)
        elif handling == "retry" and "fail" not in task.edges and self.back(task, step, route, code):
            return
        else:
            self.finish_task("fail", code, route)

    def roll_back(
        self, task: Task, step: Step, pending: Effect, outcome: str, code: str, why: object = None
    ) -> None:
        """An effect that was undone: R4 to the proposer, three in a row on one tool end the run."""
        route = {"signal": "timeout" if outcome == "timeout" else "fail", "code": code}
        if pending.cls == "effect":
            route["txn"] = "rollback"
        if self.state.r7.polls:
            self.executive(polls=0)
        hint = f"{pending.name} in step {step.id}: see the record"
        error = outcomes.rollback_r4(outcome, code, hint, why)
        self.undo(task, step, pending.name, error, route)

    def violate(self, task: Task, step: Step, tool: str, errors: list[Mapping[str, Any]]) -> None:
        """What does not fit never reaches the tool; who proposed it gets the reason.

        Each counts for the tool that was named; an answer that names none has a count of its own.
        """
        route = {"signal": "fail", "code": errors[0]["code"], "r4": errors[0]}
        if self.rules.decides.rollbacks_by_tool:
            entry = self.rules.catalog.tool(tool)
            name = (entry.name if entry is not None else tool[: fit.NAMED]) or UNREADABLE
            self.undo(task, step, name, errors[0], route)
            return
        answered = self.rules.gate is not None and self.comes_of_an_answer(task, step)
        self.undo(task, step, ANSWERS if answered else tool, errors[0], route, tool)

    def undo(
        self,
        task: Task,
        step: Step,
        tool: str,
        error: Mapping[str, Any],
        route: Mapping[str, Any],
        shown: str = "",
    ) -> None:
        name, count = self.state.r7.rollbacks
        count = count + 1 if name == tool else 1
        self.executive(rollbacks=(tool, count))
        self.state = change(self.state, r4=error)
        self.undone += 1
        if count >= self.rules.program.budgets.rollbacks or self.undone > UNATTENDED:
            self.commit(Kind.ROUTE, route)
            times = max(count, self.undone)
            told = f"{shown or tool or step.id} failed, {times} in a row: see R4"
            self.fail("run.rollbacks", {"name": tool, "times": times}, told)
            return
        if route["signal"] == "timeout" and "timeout" in task.edges:
            self.finish_task("timeout", error["code"], route)
        elif not self.back(task, step, route, error["code"]):
            self.finish_task(route["signal"], error["code"], route)

    def back(self, task: Task, step: Step, route: Mapping[str, Any], code: str) -> bool:
        """Go back to the nearest proposer at or before a step, at the price of a retry; False if none is."""
        index = next(i for i, item in enumerate(task.steps) if item.id == step.id)
        source = next(
            (item for item in reversed(task.steps[: index + 1]) if item.kind in ("ask", "plan")), None
        )
        if source is None:
            return False
        if self.state.r7.retries <= 0:
            self.commit(Kind.ROUTE, route)
            self.refuse("budget.retries", f"RETRIES {task.retries + 3} in TASK {task.name}")
            return True
        r7 = self.state.r7
        self.executive(retries=r7.retries - 1, fails=r7.fails + 1, due=("fail", code))
        self.commit(Kind.ROUTE, {**route, "to": source.id})
        self.enter_step(task, source)
        return True

    def checked(self, task: Task, step: Step, body: Mapping[str, Any]) -> None:
        good = task.success is None or render.holds(
            task.success, fit.booleans(body.get("facts")), self.rules, self.state
        )
        if isinstance(good, render.NotANumber):
            error = fit.not_a_number(good)
            self.state = change(self.state, r4=error)
            route = {"signal": "fail", "code": error["code"], "r4": error}
            self.finish_task("fail", error["code"], route)
        elif good:
            self.route_on(task, step, {"signal": "success"})
        else:
            self.finish_task("fail", "run.success_unmet", {"signal": "fail", "code": "run.success_unmet"})

    def measured(self, task: Task, step: Step, pending: Effect, body: Mapping[str, Any]) -> None:
        outcome = body.get("outcome")
        if outcome == "timeout":
            body = {"status": "timeout"}
        found = derive.derive(task, step.name, pending.args, body, self.state.r7)
        self.executive_is(found.executive)
        key = body.get("key")
        route: dict[str, Any] = {"signal": found.signal, "key": key if isinstance(key, str) else ""}
        if found.code:
            route["code"] = found.code
        if found.improved:
            assert found.executive.best is not None
            route["best"] = found.executive.best.value
        if found.void:
            self.undo_measurement(task, step, route)
            return
        self.keep_diagnostics(body)
        self.keep_check(step.name, pending.args, found)
        if self.state.r7.rollbacks[1]:
            self.executive(rollbacks=("", 0))
        if self.watched(pending, route):
            return
        if found.signal == "fail":
            apart = self.rules.decides.r4_payload
            self.state = change(self.state, r4=fit.failed_check(found.code, step.name, body, apart))
        else:
            self.state = change(self.state, r4=None)
        self.finish_task(found.signal, found.code, route)

    def reads(self, pred: str, arity: int) -> bool:
        """Whether the policy reads a predicate; what it does not read, the state does not hold."""
        gate = self.rules.gate
        return gate is not None and (pred, arity) in gate.reads

    def keep_diagnostics(self, body: Mapping[str, Any]) -> None:
        if "diagnostics" in body and self.reads("diagnostic", 5):
            self.executive(diagnostics=diagnostics(body["diagnostics"]))

    def keep_check(self, validator: str, options: Mapping[str, Any], found: derive.Derived) -> None:
        """What the check found in the present files; the same check, taken again, replaces it."""
        if not self.reads("checks_ran", 2):
            return
        known = self.state.r7.checks
        checks = outcomes.with_check(self.rules, known, validator, options, found.signal, found.code)
        self.executive(checks=checks)

    def undo_measurement(self, task: Task, step: Step, route: Mapping[str, Any]) -> None:
        """A void measurement is taken again; three in a row end the run."""
        name, count = self.state.r7.rollbacks
        count = count + 1 if name == step.name else 1
        self.executive(rollbacks=(step.name, count))
        if count >= self.rules.program.budgets.rollbacks:
            self.commit(Kind.ROUTE, route)
            self.end("failed", "validator.void", "a quieter machine, or mend what the measurement says")
            return
        self.commit(Kind.ROUTE, {**route, "to": step.id})
        self.enter_step(task, step)

    def executive_is(self, executive: Any) -> None:
        self.state = change(
            self.state, r7=change(executive, summary=self.state.r7.summary, last=self.state.r7.last)
        )

    def watched(self, pending: Effect, route: Mapping[str, Any]) -> bool:
        """End the run that a committed result of a tool or a validator makes a loop."""
        entry = self.rules.catalog.tools.get(pending.name) if pending.act == "tool" else None
        quiet = entry is not None and entry.idempotent
        if quiet and not self.rules.decides.turns_repeat:
            return False
        return self.ended_by_watchdog(pending, route, route["key"], quiet)

    def ended_by_watchdog(self, pending: Effect, route: Mapping[str, Any], key: str, quiet: bool) -> bool:
        """Take one more result into R1; end the run whose last turn was taken too often (kernel/watch.py)."""
        budgets, state = self.rules.program.budgets, self.state
        limit, size = budgets.watchdog, budgets.window
        action = canon.content_hash([pending.name, pending.args])
        mark = watch.mark(pending.task, action, key, state.r3, quiet)
        whole = self.rules.decides.turns_repeat
        window = watch.observe(state.r1.window, mark, watch.kept(size, limit) if whole else size)
        self.state = change(state, r1=state.r1._replace(window=window))
        if whole:
            found = watch.loop(window, size, limit) if limit else None
        else:
            count = window.count(mark)
            found = watch.Turn(1, count) if limit and count >= limit else None
        if found is None:
            return False
        self.commit(Kind.ROUTE, route)
        cause = {"name": pending.name or pending.act, "turn": found.length, "times": found.times}
        self.fail("run.watchdog_loop", cause, f"BUDGET {{ watchdog: {limit + 1} }}")
        return True

    def keep_output(self, step: Step, value: Any) -> None:
        kept = value if isinstance(value, str) or render.is_reference(value) else ""
        if "last_tool_output" in self.rules.wanted and step.kind != "ask":
            self.bind("last_tool_output", kept)
        for name in (step.output_var, step.metric):
            if name:
                self.bind(name, kept)

    # ---- routes ----------------------------------------------------------------------------------------

    def route_on(self, task: Task, step: Step, route: Mapping[str, Any]) -> None:
        """To the next step of the task, or, after its last one, along its edge for `success`."""
        index = next(i for i, item in enumerate(task.steps) if item.id == step.id)
        if index + 1 < len(task.steps):
            following = task.steps[index + 1]
            self.commit(Kind.ROUTE, {**route, "to": following.id})
            self.enter_step(task, following)
        else:
            self.finish_task("success", "", route)

    def finish_task(self, signal: str, code: str, route: Mapping[str, Any] | None = None) -> None:
        """Refine: the signal goes along the task's edge, or the run ends. Source: seed 000 section 3.2."""
        task = self.task
        failing = signal in ("fail", "timeout")
        target = task.edges.get(signal)
        body = {**(route or {}), "signal": signal}
        if target is not None:
            body["to"] = f"{target}/"
        if code:
            body.setdefault("code", code)
        self.commit(Kind.ROUTE, body)
        r7 = self.state.r7
        if failing:
            self.executive(fails=r7.fails + 1, due=(signal, code))
        elif r7.fails or r7.fired or r7.due:
            self.executive(fails=0, fired=(), due=())
        if target is not None:
            if failing and r7.retries <= 0:
                self.refuse("budget.retries", f"RETRIES {task.retries + 3} in TASK {task.name}")
                return
            if failing:
                self.executive(retries=r7.retries - 1)
            self.enter_task(target)
        elif task.terminal and not failing:
            self.end("succeeded")
        elif signal == "fail" or task.terminal:
            step = next((item for item in task.steps if item.id == self.state.r0.step), None)
            cause = {"times": step.poll.limit} if code == POLL_LIMIT and step and step.poll else {}
            knob = f"NEXT {{ {signal} -> ... }} in TASK {task.name}"
            self.end("failed", code or "run.no_route", knob, cause)
        else:
            self.refuse("run.unhandled_trigger", f"NEXT {{ {signal} -> ... }} in TASK {task.name}")
