"""Performing effects: what the kernel asked for, done for real, brought back as the body of a proposal.

One function per kind of effect. Everything here is a proposal: a failure of a tool or a launcher, and
whatever a model wrote, is an outcome for the kernel to decide on, never an exception. `side` holds what
decides nothing (ms, sizes). Only what gives no outcome at all is raised, as `llm.*`: no answer came over the
wire, or secrets could not be taken out of a text. Then nothing is recorded and the effect stays pending.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from math import isfinite
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from spak import canon, tokens
from spak.errors import RunError, SpakError, UnavailableError, UserError
from spak.kernel import answer as answers
from spak.kernel.recollect import Size
from spak.kernel.rules import Rules
from spak.kernel.state import Effect
from spak.policy.law import SPEC
from spak.ports import (
    Answer,
    Archive,
    Blobs,
    Call,
    Heard,
    MeasureCall,
    Measurement,
    PlanRequest,
    Priced,
    Prompt,
    Sized,
    Subject,
    ToolResult,
)
from spak.records import Kind
from spak.runner.blobs import expand, keep, shrink
from spak.runner.history import History
from spak.runner.host import Host
from spak.runner.observe import observe, unchanged
from spak.tools import beneath
from spak.workspace import Workspace

MAX_DIAGNOSTICS = 50


class Interrupted(BaseException):
    """Somebody asked the runner to stop in the middle of an effect; the effect stays pending."""


class Proposed(NamedTuple):
    """A proposal in the making."""

    kind: Kind
    body: Mapping[str, Any]
    side: Mapping[str, Any] = MappingProxyType({})


def _changed(effect: Effect) -> Proposed:
    """The world is not what the permission rests on: nothing was done."""
    return Proposed(Kind.ACT, {"of": effect.id, "outcome": "invalid", "code": "policy.changed"})


def prompt_of(effect: Effect, blobs: Blobs, rules: Rules) -> Prompt:
    """The prompt of an ask or a plan, with long values filled in, and what its answer has to fit."""
    items = tuple(
        {"role": item["role"], "name": item["name"], "text": str(expand(item["text"], blobs))}
        for item in effect.items
    )
    plan = effect.act == "plan"
    schema = _form(effect, rules).schema() if plan else None
    kind: Literal["ask", "plan"] = "plan" if plan else "ask"
    steps = rules.program.tasks[effect.task].steps
    role = next((step.name for step in steps if step.id == effect.step), "") or effect.name
    return Prompt(effect.id, items, role, kind, effect.task, schema, effect.prefix)


def no_price(task: str) -> UnavailableError:
    """A budget in money, and a model that nobody knows the price of."""
    return UnavailableError(
        "llm.no_price",
        f"BUDGET has a cost, and the model of TASK {task} has no price",
        "write it into a file of your own, named by [llm] prices (docs/models.md), or leave the cost out",
    )


def _form(effect: Effect, rules: Rules) -> answers.Form:
    return answers.form(rules.program, rules.program.tasks[effect.task], rules.catalog, _verbs(rules))


def _verbs(rules: Rules) -> list[str]:
    """The predicates that the spec's own POLICY declares: where it declares any, atoms use no others."""
    if rules.gate is None:
        return []
    decls = rules.gate.policy.decls.values()
    return sorted({decl.atom.pred for decl in decls if decl.place.file == SPEC})


@dataclass(slots=True)
class Performer:
    """Does effects with a host's adapters, in one workspace, keeping long values in the run's blobs."""

    host: Host
    workspace: Workspace
    blobs: Blobs
    rules: Rules
    archive: Archive | None = None
    stopping: bool = False
    on_text: Callable[[str], None] | None = None
    """Gets a model's text as it comes, without secrets; an empty piece means that it begins again."""
    away: Callable[[], AbstractContextManager[None]] = nullcontext
    """Entered around each call of a model: a wait, in which this process has its hands free."""
    hearing: Callable[[], AbstractContextManager[Heard | None]] = nullcontext
    """Entered around each call of a tool or a validator: who hears what it puts out while it runs."""
    _outside: bool = False

    def interrupt(self) -> None:
        """Stop as soon as may be: now, when an adapter is at work; else before the next one is called.

        Called from a signal handler: it may raise Interrupted, but never in the middle of a write.
        """
        self.stopping = True
        if self._outside:
            raise Interrupted

    def is_set(self) -> bool:
        """Whether a call of a model is to end (spak.ports.Cancel)."""
        return self.stopping

    @contextmanager
    def _calling(self) -> Iterator[None]:
        """Around each call of an adapter: the only place where an interruption is let through."""
        if self.stopping:
            raise Interrupted
        self._outside = True
        try:
            yield
        finally:
            self._outside = False

    def perform(self, effect: Effect, history: History) -> Proposed | None:
        """The proposal that answers an effect; None when a person will answer it later."""
        started = time.perf_counter_ns()
        match effect.act:
            case "tool":
                done: Proposed | None = self._tool(effect)
            case "observe":
                seen = observe(effect.args["questions"], self.workspace.directory)
                done = Proposed(Kind.OBSERVE, {"of": effect.id, "facts": seen})
            case "check":
                done = Proposed(Kind.ACT, {"of": effect.id, "facts": self._facts(effect.args["atoms"])})
            case "validate":
                done = self._validate(effect)
            case "plan" if effect.cls != "ask":
                done = self._plan(effect, history)
            case _:
                done = self._ask(effect)
        if done is None:
            return None
        elapsed = (time.perf_counter_ns() - started) // 1_000_000
        return done._replace(side={"ms": elapsed, **done.side})

    def answer(
        self, effect: Effect, text: str, by: str = "", about: Mapping[str, Any] | None = None
    ) -> Proposed:
        """A text answer to an ask or a plan, as the proposal that it becomes; `about` goes beside it."""
        text = self._clean(text)
        side = {**({"by": self._clean(by)} if by else {}), **(about or {})}
        if effect.act == "plan":
            return self._read_plan(effect, text, side)
        return Proposed(
            Kind.ACT, {"of": effect.id, "outcome": "answered", "out": keep(text, self.blobs)}, side
        )

    def prompt(self, effect: Effect) -> Prompt:
        """The prompt of an ask or a plan, exactly as a backend gets it."""
        return prompt_of(effect, self.blobs, self.rules)

    def measured(self, effect: Effect, asking: bool) -> Proposed | None:
        """The tokens of a question's prompt, where there is something to decide on them: a BUDGET of tokens,
        or a model's window that it does not fit; `asking` when a backend is about to be asked."""
        backend = self.host.backend
        if effect.counted or effect.cls != "ask" or effect.act not in ("ask", "plan"):
            return None
        prompt = self.prompt(effect)
        window = backend.window(prompt) if asking and isinstance(backend, Sized) else 0
        budgets = self.rules.program.budgets
        if not (window or budgets.tokens or budgets.cost):
            return None
        count = tokens.count(prompt.items)
        body: dict[str, Any] = {"of": effect.id, "tokens": count, "tokenizer": tokens.tokenizer()}
        if window:
            body["window"] = window
        if budgets.cost and asking and (most := self._bound(prompt)):
            body["cost"] = most
        room = Size.of(body, 0, 0).room
        decided = budgets.tokens or budgets.cost or (room is not None and count > room)
        return Proposed(Kind.OBSERVE, body) if decided else None

    def _bound(self, prompt: Prompt) -> int:
        """The most nano-dollars that a call can cost: a quarter more tokens than we count, schema and all.

        Raises: UnavailableError `llm.no_price`.
        """
        backend = self.host.backend
        schema = {"role": "system", "name": "schema", "text": canon.dumps(prompt.schema or {}).decode()}
        count = tokens.count((*prompt.items, schema)) * 5 // 4
        most = backend.bound(prompt, count) if isinstance(backend, Priced) else None
        if most is None:
            raise no_price(prompt.task)
        return most

    def _clean(self, value: Any) -> Any:
        """A text or a JSON value without secrets. Raises: RunError `llm.redaction`."""
        redactor = self.host.redactor
        if redactor is None:
            return value
        return redactor.text(value) if isinstance(value, str) else redactor.value(value)

    # ---- tools -----------------------------------------------------------------------------------------

    def _tool(self, effect: Effect) -> Proposed:
        tool = self.host.tools[effect.name]
        writes = effect.cls == "effect"
        if writes:
            self.workspace.begin(effect.id)
        with self.workspace.lock() as lock:
            if not unchanged(effect.observed, self.workspace.directory):
                if writes:
                    self.workspace.rollback()
                return _changed(effect)
            try:
                args = self.host.secrets.filled(expand(effect.args, self.blobs), effect.observed)
            except RunError as error:
                if writes:
                    self.workspace.rollback()
                return Proposed(
                    Kind.ACT,
                    {"of": effect.id, "outcome": "invalid", "code": error.code},
                    {"why": error.message},
                )
            try:
                with self._calling(), self.hearing() as heard:
                    call = Call(
                        effect.id, effect.name, args, self.workspace.directory, self.host.launcher,
                        limits=self.host.limits, toolchain=self.host.toolchain, inherit=(lock,),
                        archive=self.archive, observed=effect.observed, heard=heard,
                    )  # fmt: skip
                    result = tool.run(call)
                    if tool.entry.sandboxed and result.status in ("launcher", "crash"):
                        self._must_work()
            except BaseException:
                if writes:
                    self.workspace.rollback()
                raise
        try:
            output = self._clean(result.output.decode("utf-8", "replace"))
            diagnostics = self._clean(list(result.diagnostics[:MAX_DIAGNOSTICS]))
            key = self._clean(dict(result.key))
        except SpakError:
            if writes:
                self.workspace.rollback()
            raise
        return self._tool_result(effect, result, writes, output, diagnostics, key)

    def _must_work(self) -> None:
        """A sandbox that is gone is no outcome of a tool: nothing is recorded, and the effect stays pending.

        Raises: UnavailableError `unavailable.sandbox`.
        """
        launcher = self.host.launcher
        if launcher is not None and (why := launcher.probe()):
            raise UnavailableError(
                "unavailable.sandbox", f"the launcher {launcher.entry.name} does not work any more: {why}"
            )

    def _tool_result(
        self,
        effect: Effect,
        result: ToolResult,
        writes: bool,
        output: str,
        diagnostics: Sequence[Any],
        key: Mapping[str, Any],
    ) -> Proposed:
        """The proposal; `output`, `diagnostics` and `key` are the result's, without secrets."""
        body: dict[str, Any] = {"of": effect.id, "outcome": result.status}
        if result.status == "exited":
            body["exit"] = result.exit
            if effect.watch:
                body["facts"] = self._facts(effect.watch)
            if writes:
                self._commit(body)
        elif writes:
            self.workspace.rollback()
        body["key"] = canon.content_hash([result.status, result.exit, key])
        if output:
            body["out"] = keep(output, self.blobs)
        if diagnostics:
            body["diagnostics"] = shrink(diagnostics, self.blobs)
        side: dict[str, Any] = {"ms": result.wall_ms, "cpu_ms": result.cpu_ms}
        if result.truncated:
            side |= {"size": result.size, "sha256": result.sha256}
        return Proposed(Kind.ACT, body, side)

    def _commit(self, body: dict[str, Any]) -> None:
        """Take what a tool left into the workspace's root; what can not be taken is undone and said."""
        try:
            body["r3"] = self.workspace.commit()
        except UserError as error:
            self.workspace.rollback()
            body |= {"outcome": "limit", "code": error.code}
            del body["exit"]
            return
        if self.workspace.travels:
            self.workspace.push(body["r3"], self.blobs)

    def _facts(self, atoms: Sequence[Mapping[str, Any]]) -> list[bool]:
        """The answers to file conditions, in order. A file that cannot be read contains nothing."""
        return [
            self._fact(atom["function"], [str(item) for item in expand(atom["args"], self.blobs)])
            for atom in atoms
        ]

    def _fact(self, function: str, args: Sequence[str]) -> bool:
        content = beneath.content(self.workspace.directory, args[0]) if args else None
        if function == "file_exists" or content is None:
            return content is not None
        return len(args) > 1 and args[1].encode() in content

    # ---- validators ------------------------------------------------------------------------------------

    def _validate(self, effect: Effect) -> Proposed:
        validator = self.host.validators[effect.name]
        rule = self.rules.program.tasks[effect.task].rule
        with self.workspace.lock() as lock, self._calling(), self.hearing() as heard:
            if not unchanged(effect.observed, self.workspace.directory):
                return _changed(effect)
            measurement = validator.measure(
                MeasureCall(
                    id=effect.id,
                    validator=effect.name,
                    options=expand(effect.args, self.blobs),
                    workspace=self.workspace.directory,
                    launcher=self.host.launcher,
                    limits=self.host.limits,
                    toolchain=self.host.toolchain,
                    seed=effect.seed,
                    rivals={name: self._subject(files) for name, files in effect.rivals.items()},
                    rule={}
                    if rule is None
                    else {
                        "margin_num": rule.margin_num,
                        "margin_den": rule.margin_den,
                        "evidence": rule.evidence,
                        "max_pairs": rule.max_pairs,
                    },
                    inherit=(lock,),
                    heard=heard,
                )
            )
        return self._measurement(effect, measurement)

    def _subject(self, files: Mapping[str, str]) -> Subject:
        return Subject({role: self.blobs.get(digest) for role, digest in files.items()})

    def _measurement(self, effect: Effect, seen: Measurement) -> Proposed:
        checks = [{name: value for name, value in check.items() if name != "detail"} for check in seen.checks]
        body: dict[str, Any] = {
            "of": effect.id,
            "outcome": "exited",
            "status": seen.status,
            "checks": checks,
            "key": canon.content_hash(
                [seen.status, [[check.get("ok"), check.get("code")] for check in checks]]
            ),
        }
        optional = {
            "metrics": dict(seen.metrics),
            "pairs": [dict(pair) for pair in seen.pairs],
            "samples": {name: list(values) for name, values in seen.samples.items()},
            "subject": {role: {"$blob": self.blobs.put(data)} for role, data in seen.subject.files.items()},
            "diagnostics": shrink(self._clean(list(seen.diagnostics[:MAX_DIAGNOSTICS])), self.blobs),
            "evidence": shrink(self._clean(dict(seen.evidence)), self.blobs),
        }
        body |= {name: value for name, value in optional.items() if value}
        details = {check["name"]: check["detail"] for check in seen.checks if check.get("detail")}
        side: dict[str, Any] = {"ms": seen.wall_ms, "cpu_ms": seen.cpu_ms}
        if details:
            side["details"] = shrink(self._clean(details), self.blobs)
        return Proposed(Kind.ACT, body, side)

    # ---- proposers and models --------------------------------------------------------------------------

    def _plan(self, effect: Effect, history: History) -> Proposed:
        proposer = self.host.proposers[effect.name]
        task = self.rules.program.tasks[effect.task]
        request = PlanRequest(
            id=effect.id,
            task=effect.task,
            step=effect.step,
            turn=effect.turn,
            seed=effect.seed,
            options=task.proposing.options,
            space=task.proposing.space,
            tools={name: self.host.tools[name].entry for name in task.tools if name in self.host.tools},
            history=history.of(effect.task),
        )
        with self._calling():
            candidates = proposer.propose(request)
        listed = []
        for candidate in candidates:
            item: dict[str, Any] = {"tool": candidate.tool, "args": dict(candidate.args)}
            if candidate.score:
                item["score"] = candidate.score
            if candidate.params and candidate.args.get("params") != candidate.params:
                item["params"] = dict(candidate.params)
            listed.append(item)
        return Proposed(
            Kind.PLAN, {"of": effect.id, "by": effect.name, "candidates": shrink(listed, self.blobs)}
        )

    def _ask(self, effect: Effect) -> Proposed | None:
        backend = self.host.backend
        if backend is None:
            return None
        shown = self.on_text
        if shown is not None and self.host.redactor is not None:
            shown = self.host.redactor.stream(shown)
        try:
            with self.away(), self._calling():
                answer = backend.answer(self.prompt(effect), shown, self)
                if shown is not None:
                    shown("\n")  # the last word too
        except RunError as error:
            if error.code == "llm.cancelled" and self.stopping:
                raise Interrupted from None
            raise
        if answer is None:
            return None
        if answer.cost_nanousd is None and self.rules.program.budgets.cost:  # no usage: the worst is taken
            answer = replace(answer, cost_nanousd=self._bound(self.prompt(effect)))
        about = self._about(answer)
        if not answer.told:  # or a BUDGET of tokens would have no end here
            about["tokens"] = tokens.count(self.prompt(effect).items) + tokens.of_text(answer.text)
        return self.answer(effect, answer.text, answer.model or backend.entry.name, about)

    def _about(self, answer: Answer) -> dict[str, Any]:
        """How an answer came about: usage, parameters, latency, cost. It decides nothing but budgets."""
        usage = answer.usage
        known: dict[str, Any] = {
            "tokens": answer.tokens,
            "usage": dict(usage),
            "params": dict(answer.params),
            "finish": answer.finish,
            "latency_ms": answer.latency_ms,
            "tries": answer.tries if answer.tries > 1 else 0,
        }
        found = {name: value for name, value in known.items() if value}
        if answer.cost_nanousd is not None:
            found["cost_nanousd"] = answer.cost_nanousd
        if answer.logprobs and all(map(isfinite, answer.logprobs)):
            found["logprobs"] = {"$blob": self.blobs.put(canon.dumps(list(answer.logprobs)))}
        elif answer.model:
            found["logprobs"] = "not available"
        return found

    def _read_plan(self, effect: Effect, text: str, side: Mapping[str, Any]) -> Proposed:
        """A text that should be a plan; what it calls is for the kernel's select to judge."""
        found = answers.parse(text, _form(effect, self.rules), calls=False)
        body: dict[str, Any]
        if isinstance(found, answers.Misfit):
            found = answers.CUT if side.get("finish") == "length" else found
            tried = keep(text[: answers.LIMIT], self.blobs)
            body = {"of": effect.id, "outcome": "malformed", "out": tried, **found.to_json()}
            return Proposed(Kind.ACT, body, side)
        body = {"of": effect.id, "by": "model"}
        body["candidates"] = shrink([_candidate(call) for call in found.calls], self.blobs)
        reasoning = [item.text for item in found.items if isinstance(item, answers.Reasoning)]
        said = {
            "reasoning": "\n".join(reasoning),
            "surface": found.surface,
            "atoms": list(found.atoms),
            "memory": [dict(item) for item in found.memory],
            "correction": dict(found.correction or {}),
        }
        body |= {name: shrink(value, self.blobs) for name, value in said.items() if value}
        return Proposed(Kind.PLAN, body, side)


def _candidate(call: answers.ToolCall) -> dict[str, Any]:
    made: dict[str, Any] = {"tool": call.tool, "args": dict(call.args)}
    return {**made, "score": call.score} if call.score else made
