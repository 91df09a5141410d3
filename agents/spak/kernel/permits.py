"""Permits: entering a step, asking the gate, looking at the world for it, waiting for an approval.

Every effect of a run but these two (observe, approve) is made here, by `permit`, after the policy permitted
it. The gate (gate.py) decides, this says what becomes of its decision.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from spak import canon
from spak.kernel import context, fit, render
from spak.kernel.gate import Judged, Wish, approval_facts, uses_of
from spak.kernel.memory import Memory, recollect
from spak.kernel.observed import Malformed, merged
from spak.kernel.rules import refs
from spak.kernel.situation import moving, situation
from spak.kernel.state import Counter, Effect, EffectClass, LastTool, change
from spak.kernel.turn import Turn
from spak.policy import approval
from spak.policy.judge import permissible
from spak.program import Step, Task, Template
from spak.records import Kind


class Permits(Turn):
    """What a turn asks for."""

    def begin(self, genesis: Mapping[str, Any]) -> None:
        rules = self.rules
        host = genesis.get("host")
        run = host.get("run") if isinstance(host, Mapping) else ""
        self.state = change(
            self.state, status="running", run=run if isinstance(run, str) else "", r3=rules.r3
        )
        self.executive(summary=rules.opening)
        self.enter_task(rules.program.start)

    def enter_task(self, name: str) -> None:
        task = self.rules.program.tasks[name]
        self.executive(depth=self.state.r7.depth + 1)
        if name != self.state.r0.task:
            self.executive(retries=task.retries, turns=0, stale=0)
            self.recollect(recollect.moved)
        if not task.steps:
            self.place(name, "")
            self.refuse("run.empty_task", f"a step, a GOAL or a VALIDATOR in TASK {name}")
            return
        try:
            self.fill_goal(task)
        except render.Unbound as error:
            self.place(name, "")
            self.refuse("run.unbound_variable", f"bind {error} before TASK {name}, whose GOAL reads it")
            return
        self.enter_step(task, task.steps[0])

    def fill_goal(self, task: Task) -> None:
        """A GOAL that reads variables has their values of now, for as long as the run is in the task.

        Raises: render.Unbound.
        """
        if isinstance(task.goal, Template):
            self.executive(goal=render.render(task.goal, self.rules, self.state))

    def enter_step(self, task: Task, step: Step) -> None:
        """Budgets, heuristics, arguments, then the permit and its effect; or an end."""
        self.place(task.name, step.id)
        self.seen, self.rounds, self.signed, self.rejected = {}, 0, None, None
        spent = self.exhausted()
        if spent:
            self.refuse(*spent)
            return
        try:
            match step.kind:
                case "tool":
                    self.enter_tool(task, step, step.name, self.arguments(step))
                case "plan" | "ask":
                    self.inject(task)
                    self.ask(task, step)
                case "check":
                    atoms = render.questions(task.success, self.rules, self.state)
                    self.permit(step, "check", "check", {"atoms": list(atoms)}, "pure")
                case "validate":
                    self.validate(task, step, self.arguments(step))
        except render.Unbound as error:
            self.refuse("run.unbound_variable", f"bind {error} before step {step.id} of TASK {task.name}")
        except render.BadCommand as error:
            self.violate(
                task, step, step.name, [fit.r4("shell.not_one_command", "one command", "", str(error))]
            )

    def permit(
        self,
        step: Step,
        act: Literal["tool", "ask", "plan", "check", "validate"],
        name: str,
        args: Mapping[str, Any],
        cls: EffectClass,
        recorded: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> bool:
        """Commit what the policy decides and, where it permits, ask for the effect.

        The permit's content is the effect's id. False when there is no effect: denied, or the world has to be
        observed first.
        """
        written = args if recorded is None else recorded
        judged = self.decision(act, name, args)
        if judged is not None and not isinstance(judged, Judged):
            self.observe(step, act, name, args, judged)
            return False
        state = self.state
        self.state = change(state, r0=Counter(state.r0.task, step.id, state.r0.attempt + 1))
        body: dict[str, Any] = {"act": act, "allow": True, "args": written}
        if name != act:
            body["name"] = name
        if judged is not None:
            self.judged.append((len(self.commits), judged))
            if judged.allow is not True:
                asked = self.commit(Kind.PERMIT, {**body, "allow": judged.allow, "code": judged.code})
                if judged.allow == "ask":
                    self.wait(asked, act, name, args)
                else:
                    self.denied(step, act, name, args, judged)
                return False
        content = self.commit(Kind.PERMIT, body)
        self.want(
            Effect(content, act, name, cls, *self.here(), args, self.state.r3, observed=self.seen, **more)
        )
        return True

    def decision(self, act: Any, name: str, args: Mapping[str, Any]) -> Judged | Mapping[str, Any] | None:
        """What the gate says: a decision, or questions about the world; None where there is no gate."""
        gate = self.rules.gate
        if gate is None:
            return None
        run = situation(self.rules, self.state, self.task, name if act == "tool" else "")
        spent = moving(self.rules, self.state)
        wish = Wish(act, name, args, run, spent, self.rules.decides, uses_of(self.rules.catalog, act, name))
        signed = approval_facts(*self.signed) if self.signed else ()
        asked = wish._replace(run=(*run, *signed)) if signed else wish
        found = gate.judge(asked, self.seen, self.rounds)
        if isinstance(found, Judged) and not found.allow and self.rules.program.approvals == "ask":
            if self.rejected is not None and self.rejected.code == "policy.approval_denied":
                return found._replace(code=self.rejected.code, reason=self.rejected.message)
            if gate.approvable(wish, self.seen, self.rules.keys):
                code = found.code if self.rejected is None else self.rejected.code
                return found._replace(allow="ask", code=code)
        return found

    def denied(self, step: Step, act: str, name: str, args: Mapping[str, Any], judged: Judged) -> None:
        """Whoever proposed it gets the reason and may propose again; what the spec says itself is refused."""
        task = self.task
        if act == "tool" and self.comes_of_an_answer(task, step):
            expected = (
                "a patch that can be read" if judged.code.startswith("patch.") else "what the policy permits"
            )
            told = fit.r4(judged.code, expected, name, judged.reason)
            self.violate(task, step, name, [fit.with_payload(self.rules, told, args)])
            return
        who = "law of the operator or the team" if self.rules.decides.closed_law else "POLICY"
        knob = f"a {who} that permits it: {judged.reason}"
        if self.rules.decides.causes and not (judged.code == "policy.denied" and permissible(judged.facts)):
            knob = ""
        self.refuse(judged.code, knob, {"name": name, "reason": judged.reason})

    def comes_of_an_answer(self, task: Task, step: Step) -> bool:
        """Whether a question at or before this step gave what the step is to do."""
        index = next(i for i, item in enumerate(task.steps) if item.id == step.id)
        asked = any(item.kind in ("ask", "plan") for item in task.steps[: index + 1])
        return asked and (step.kind in ("ask", "plan") or bool(refs(step.args)))

    def observe(
        self, step: Step, act: str, name: str, args: Mapping[str, Any], questions: Mapping[str, Any]
    ) -> None:
        """Ask the runner to look. Not a decision: there is no commit, and the id says what is asked."""
        state = self.state
        place = Counter(state.r0.task, step.id, state.r0.attempt)
        wanted: dict[str, Any] = {"act": act, "args": args, "questions": questions}
        if self.signed:
            wanted["signed"] = self.signed
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
            turn=self.rounds + 1,
            observed=self.seen,
        )
        self.state = change(state, r0=place)
        self.want(effect)

    def observed(self, task: Task, step: Step, pending: Effect, body: Mapping[str, Any]) -> None:
        """Go on with what was to be permitted, now that the world was looked at."""
        self.rounds = pending.turn
        self.signed = pending.args.get("signed")
        try:
            self.seen = merged(pending.observed, body.get("facts"))
        except Malformed:
            self.seen = {"paths": [None]}  # the gate denies what makes no sense
        self.again(task, step, pending)

    def wait(self, asked: str, act: str, name: str, args: Mapping[str, Any]) -> None:
        """Wait for a signed approval of the action that the permit names."""
        wanted = {"act": act, "args": args}
        self.want(
            Effect(asked, "approve", name, "ask", *self.here(), wanted, self.state.r3, observed=self.seen)
        )

    def approved(self, task: Task, step: Step, pending: Effect, body: Mapping[str, Any]) -> None:
        """Judge the waiting action again: with the approval as a fact, or with why it is none."""
        found = approval.verify(
            body,
            keys=self.rules.keys,
            action=approval.action_hash(pending.name, pending.args["args"]),
            of=pending.id,
            run=self.state.run,
            step=f"{pending.task}/{pending.step}",
            at=self.at,
        )
        if isinstance(found, approval.Approved):
            self.signed = found.signer, found.overrides
        else:
            self.rejected = found
        self.seen = pending.observed
        self.again(task, step, pending)

    def again(self, task: Task, step: Step, pending: Effect) -> None:
        """Ask for the permit that an observation or an approval was wanted for."""
        self.state = change(self.state, r6=None)
        args = pending.args["args"]
        match pending.args["act"]:
            case "tool":
                self.enter_tool(task, step, pending.name, args)
            case "validate":
                self.validate(task, step, args)
            case "check":
                self.permit(step, "check", "check", args, "pure")
            case _:
                self.ask(task, step)

    def enter_tool(self, task: Task, step: Step, name: str, args: Mapping[str, Any]) -> None:
        """The built-in rule, that a plan's tool must be in TOOLS; then the schema, before the tool."""
        entry = self.rules.catalog.tool(name)
        if entry is None:
            self.deny(step, name, args, "policy.unknown_tool", f"install or correct the tool {name}")
            return
        bound = step.kind == "plan" if self.rules.decides.step_tools else bool(task.tools)
        if bound and not fit.listed(self.rules, task, name):
            self.deny(step, name, args, "policy.not_in_tools", f"TOOLS [{name}] in TASK {task.name}")
            return
        found = fit.misfits(self.rules, entry, args)
        self.state = change(self.state, r5=LastTool(entry.name, str(entry.version)))
        if found:
            self.violate(task, step, entry.name, found)
            return
        watched = render.questions(task.invariant, self.rules, self.state)
        wait = step.poll.every_ms if step.poll is not None and self.state.r7.polls else 0
        due = self.at + wait if wait else 0
        self.permit(step, "tool", entry.name, args, entry.effect, watch=watched, due=due)

    def deny(self, step: Step, name: str, args: Mapping[str, Any], code: str, knob: str) -> None:
        self.commit(Kind.PERMIT, {"act": "tool", "allow": False, "args": args, "code": code, "name": name})
        self.refuse(code, knob)

    def ask(self, task: Task, step: Step) -> None:
        r7 = self.state.r7
        name = task.proposing.name if step.kind == "plan" else ""
        if self.rules.gate is None or name:  # a generator reads no prompt
            built = context.Built(context.items(self.rules, self.state, task, step), 0)
        else:
            built = context.build(self.rules, self.state, task, step, r7.memory)
        prompt = canon.content_hash(built.items)
        shown: dict[str, Any] = {"items": built.items, "prefix": built.prefix}
        if step.kind == "ask":
            self.permit(step, "ask", step.name, {"prompt": prompt}, "ask", **shown)
            return
        args = {"prompt": prompt, "turn": r7.turns}
        asked = self.permit(
            step,
            "plan",
            name or "model",
            args,
            "costly" if name else "ask",
            turn=r7.turns,
            seed=self.rules.draw("plan", task.name),
            **shown,
        )
        if asked:
            self.executive(turns=r7.turns + 1)
            if not self.rules.decides.memory_by_policy:
                self.recollect(recollect.sent)

    def counted(self, task: Task, step: Step, pending: Effect, body: Mapping[str, Any]) -> None:
        """Send the prompt that was counted, make its memory smaller and ask again, or refuse.

        The window and the most that the call can cost are those of the model that was to be asked: facts of
        the outside, as the count is. Source: seed 001 (R2).
        """
        program, r7 = self.rules.program, self.state.r7
        held = r7.memory if step.kind == "plan" else Memory()
        size = recollect.Size.of(body, self.state.r2, program.budgets.tokens)
        verdict = context.verdict(size.tokens, size.room, held)
        bound = fit.count(body, "cost")
        dear = self.unaffordable(bound) if bound and verdict == "send" else None
        verdict = "refuse" if dear else verdict
        self.commit(Kind.CONTEXT, {"act": verdict, "prompt": pending.args["prompt"], "tokens": size.tokens})
        if verdict == "send":
            self.state = change(self.state, r6=pending._replace(counted=True))
            return
        self.state = change(self.state, r6=None)
        if verdict == "refuse":
            self.refuse(*(dear or size.knob(program.budgets.tokens)))
            return
        smaller = recollect.smaller(held, self.rules, size, pending.items)
        assert smaller is not None
        self.executive(memory=smaller, turns=r7.turns - 1)
        self.ask(task, step)

    def validate(self, task: Task, step: Step, args: Mapping[str, Any]) -> None:
        entry = self.rules.catalog.validators[step.name]
        r7 = self.state.r7
        rivals = {
            name: dict(mark.files)
            for name, mark in (("incumbent", r7.best), ("baseline", r7.baseline), ("runner_up", r7.runner_up))
            if mark is not None
        }
        if args.get("role") == "final":
            rivals.pop("incumbent", None)
            if r7.best == r7.baseline:
                rivals.pop("baseline", None)
        seed = self.rules.draw("validate", self.state.r0.attempt)
        self.permit(step, "validate", entry.name, args, entry.effect, rivals=rivals, seed=seed)

    def inject(self, task: Task) -> None:
        """The next heuristic in order, one per consecutive fail. Source: seed 000 section 3.2."""
        r7 = self.state.r7
        if not r7.due:
            return
        for index, heuristic in enumerate(self.rules.program.heuristics):
            if index not in r7.fired and (not heuristic.when or heuristic.when in r7.due):
                self.commit(Kind.INJECT, {"heuristic": index + 1, "on": list(r7.due)})
                self.executive(fired=(*r7.fired, index))
                break
        self.executive(due=())
