"""Performing effects: what the kernel asked for, done for real, brought back as the body of a proposal.

One function per kind of effect. Everything here is a proposal: a failure of a tool or a launcher, and
whatever a model wrote, is an outcome for the kernel to decide on, never an exception. `side` holds what
decides nothing (ms, sizes). Only what gives no outcome at all is raised: no answer came over the wire, or
secrets could not be taken out of a text (`llm.*`), the host's disk is full or fails (`workspace.*`), a
sandbox or a tool is gone. Then nothing is recorded, the workspace is as before, and the effect stays
pending.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from spak import canon, tokens
from spak.cancel import Token, check
from spak.costs.prices import no_price
from spak.diagnostics import first
from spak.errors import RunError
from spak.incoming import as_shown
from spak.kernel import packet, permit
from spak.kernel.recollect import Size
from spak.kernel.rules import Rules
from spak.kernel.state import Effect
from spak.ports import (
    Answer,
    Archive,
    Asked,
    Asking,
    Blobs,
    Call,
    Heard,
    MeasureCall,
    PlanRequest,
    Priced,
    Prompt,
    Redacting,
    Searching,
    Sized,
    Subject,
)
from spak.records import Kind
from spak.runner import answer_record, changes, checks_apart, faults, measured, plans
from spak.runner.blobs import expand, form_of, keep, prompt_of, shrink
from spak.runner.history import History
from spak.runner.host import Host
from spak.runner.observe import facts, observe, unchanged
from spak.runner.origins import shown
from spak.runner.repositories import Repositories
from spak.runner.secret_guard import SecretGuard
from spak.runner.views import own_tests
from spak.workspace import Workspace


class Proposed(NamedTuple):
    """A proposal in the making."""

    kind: str
    body: Mapping[str, Any]
    side: Mapping[str, Any] = MappingProxyType({})


def _changed(effect: Effect) -> Proposed:
    """The world is not what the permission rests on: nothing was done."""
    return Proposed(Kind.ACT, {"of": effect.id, "outcome": "invalid", "code": "policy.changed"})


@dataclass(slots=True)
class Performer:
    """Does effects with a host's adapters, in one workspace, keeping long values in the run's blobs."""

    host: Host
    workspace: Workspace
    blobs: Blobs
    rules: Rules
    archive: Archive | None = None
    confirm: Callable[[], None] = lambda: None
    """Called right before a tool that has effects is started. Raises when the run is somebody else's now."""
    cancel: Token = field(default_factory=Token)
    """Whoever sets it stops the run before its next effect; what is under way ends within a second or two,
    raises Cancelled and stays pending."""
    on_text: Callable[[str], None] | None = None
    """Gets a model's text as it comes, without secrets; an empty piece means that it begins again."""
    forbids: Callable[[Effect, Sequence[tuple[str, str]], permit.Asks], str] = lambda *of: ""
    """Why the law forbids what an effect changed, paths with their classes."""
    while_waiting: Callable[[], AbstractContextManager[None]] = nullcontext
    """Entered around each call of a model: a wait, in which this process has its hands free."""
    hearing: Callable[[], AbstractContextManager[Heard | None]] = nullcontext
    """Entered around each call of a tool or a validator: who hears what it puts out while it runs."""
    _secret_guard: SecretGuard | None = None
    _repositories: Repositories | None = None

    @property
    def secret_guard(self) -> SecretGuard:
        """What tools do not see of the workspace, and no record holds."""
        if self._secret_guard is None or self._secret_guard.host is not self.host:
            self._secret_guard = SecretGuard(self.host, self.workspace, self.rules.r3)
        return self._secret_guard

    @property
    def repositories(self) -> Repositories:
        """The scratch repository of jobs, and the one of the run's commits."""
        if self._repositories is None:
            self._repositories = Repositories(self.workspace, self.rules, lambda: self.secret_guard)
        return self._repositories

    @property
    def redactor(self) -> Redacting | None:
        """What takes secrets out of what is recorded or shown: the host's, with the values of files."""
        return self.secret_guard.redactor

    def perform(self, effect: Effect, history: History) -> Proposed | None:
        """The proposal that answers an effect; None when a person will answer it later. Raises: Cancelled."""
        started = time.perf_counter_ns()
        if effect.cls != "effect":  # a step that may write looks when it has begun
            self.secret_guard.look_before(effect)
        match effect.act:
            case "tool":
                done: Proposed | None = faults.done(
                    lambda last: self._tool(effect, history, last), self.cancel
                )
            case "observe":
                questions = effect.args["questions"]
                place, own = self.workspace.directory, self.host.predicates
                seen = self.secret_guard.seen(observe(questions, place, self.blobs, self.cancel, own))
                done = Proposed(Kind.OBSERVE, {"of": effect.id, "facts": seen})
            case "check":
                done = Proposed(
                    Kind.ACT,
                    {
                        "of": effect.id,
                        "facts": self._facts(effect.args["atoms"]),
                    },
                )
            case "validate":
                done = faults.done(lambda last: self._validate(effect, last), self.cancel)
            case "sealed":
                done = self._sealed(effect)
            case "plan" if effect.cls != "ask":
                done = self._plan(effect, history)
            case _:
                done = self._ask(effect, history)
        if done is None:
            return None
        elapsed = (time.perf_counter_ns() - started) // 1_000_000
        return done._replace(side={"ms": elapsed, **done.side})

    def answer(
        self, effect: Effect, text: str, by: str = "", about: Mapping[str, Any] | None = None
    ) -> Proposed:
        """A text answer to an ask or a plan, as the proposal that it becomes; `about` goes beside it."""
        self.secret_guard.look()
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
        return self.secret_guard.clean(value)

    # ---- tools -----------------------------------------------------------------------------------------

    def _tool(self, effect: Effect, history: History, last: bool) -> Proposed:
        if effect.cls != "effect":
            return self._called(effect, history, changes.Reading(), last)
        with self.workspace.transaction(effect.id, self.cancel):
            self.secret_guard.look_begun()
            law = partial(self.forbids, effect) if permit.asks_of_changes(self.rules) else None
            writing = changes.Writing(self.workspace, self.blobs, self.confirm, self.secret_guard, law)
            return self._called(effect, history, writing, last)

    def _called(self, effect: Effect, history: History, step: changes.Step, last: bool) -> Proposed:
        tool, limits, quota = self.host.tool(effect.name), self.host.limits, self.workspace.quota
        with self.workspace.lock(self.cancel) as lock:
            if not self._unchanged(effect):
                return _changed(effect)
            try:
                asked = expand(effect.args, self.blobs)
                measured.must_fit(tool.entry, asked, effect.args)
                args = self.host.secrets.filled(asked, effect.observed, effect.args)
            except RunError as error:
                refused = {"of": effect.id, "outcome": "invalid", "code": error.code, "why": error.message}
                return Proposed(Kind.ACT, refused)
            check(self.cancel)
            starts = tool.entry.sandboxed and self.host.launcher is not None
            with self.hearing() as heard:
                call = step.started(Call(
                    effect.id, effect.name, args, self.workspace.directory,
                    self.secret_guard.launcher(),
                    limits=limits if limits.quota is quota else replace(limits, quota=quota),
                    toolchain=self.host.toolchain, inherit=(lock,),
                    archive=self.archive, observed=effect.observed, heard=heard, reach=self.host.reach,
                    repository=self.repositories.commits(history.committed, self.cancel),
                    shown=shown(effect, history.origins, self.workspace, self.rules), cancel=self.cancel,
                ))  # fmt: skip
                if starts:
                    self.repositories.before_job()
                result = tool.run(call)
                faults.look(self.host.launcher, tool.entry.sandboxed, result, call.workspace, last)
        written = result.output.decode("utf-8", "replace")
        output = self._clean(as_shown(written) if tool.entry.sandboxed else written)
        if starts and (note := self.repositories.after_job()):
            output += note if not output or output.endswith("\n") else f"\n{note}"
        diagnostics = self._clean(
            [*first(result.diagnostics, measured.MAX_DIAGNOSTICS), *self.host.hints(args, result)]
        )
        key = self._clean(dict(result.key))
        side = self._clean(result.side)
        body: dict[str, Any] = {"of": effect.id, "outcome": result.status}
        if result.status == "exited":
            body["exit"] = result.exit
            if effect.watch:
                body["facts"] = self._facts(effect.watch)
            step.take(body)
        body["key"] = canon.content_hash([result.status, result.exit, key])
        if output:
            body["out"] = keep(output, self.blobs)
        if result.anchors:
            body["anchors"] = sorted(map(list, result.anchors.items()))
        if diagnostics:
            body["diagnostics"] = shrink(diagnostics, self.blobs)
        return Proposed(Kind.ACT, body, side)

    def _facts(self, atoms: Sequence[Mapping[str, Any]]) -> list[bool]:
        return facts(atoms, self.workspace.directory, self.blobs, self.secret_guard.hides)

    def _unchanged(self, effect: Effect) -> bool:
        place = self.workspace.directory
        return unchanged(effect.observed, place, self.secret_guard.seen, self.cancel, self.host.predicates)

    # ---- validators ------------------------------------------------------------------------------------

    def _validate(self, effect: Effect, last: bool) -> Proposed:
        validator = self.host.validator(effect.name)
        try:
            options = expand(effect.args, self.blobs)
            measured.must_fit(validator.entry, options, effect.args)
            unfit = measured.lacking(validator.entry, options)
        except RunError as error:
            unfit = measured.failed("an option does not fit", error.message)
        if unfit:
            body, side = measured.recorded(effect.id, unfit, self.blobs, self._clean)
            return Proposed(Kind.ACT, body, side)
        rule = self.rules.program.tasks[effect.task].rule
        origin: dict[str, Any] = {}
        with ExitStack() as held:
            lock = held.enter_context(self.workspace.lock(self.cancel))
            if not self._unchanged(effect):
                return _changed(effect)
            check(self.cancel)
            if self.host.launcher is not None:
                self.repositories.before_job()
            heard = held.enter_context(self.hearing())
            call = MeasureCall(
                id=effect.id,
                validator=effect.name,
                options=options,
                workspace=self.workspace.directory,
                launcher=self.secret_guard.launcher(),
                limits=self.host.limits,
                toolchain=self.host.toolchain,
                seed=effect.seed,
                rivals={name: self._rival(files) for name, files in effect.rivals.items()},
                rule=measured.integers(rule),
                problems=self.rules.problems,
                inherit=(lock,),
                heard=heard,
                cancel=self.cancel,
                ask=lambda items, schema: self._judge(effect, items, schema, origin),
                hides=self.secret_guard.hides,
                changed=self._changed_work,
                original=self.workspace.original,
            )
            measurement = validator.measure(call)
            again = checks_apart.at_beginning(self._subject, effect, call, measurement)
        faults.look_at_measurement(measurement, self.workspace.directory, last)
        measurement = self.secret_guard.recordable(measurement)
        body, side = measured.recorded(effect.id, measurement, self.blobs, self._clean)
        if again is not None:
            root, apart, other = again
            faults.look_at_measurement(other, self.workspace.directory, last)
            other = self.secret_guard.recordable(other)
            kept, _ = measured.recorded(effect.id, other, self.blobs, self._clean)
            body["beginning"] = {"root": root, "status": kept["status"], "checks": kept["checks"]}
            body["beginning"]["apart"] = self._clean(apart[: own_tests.MOST])
        return Proposed(Kind.ACT, body, {**origin, **side})

    def _sealed(self, effect: Effect) -> Proposed:
        measurement = checks_apart.sealed(self._subject, effect, self.cancel)
        body, side = measured.recorded(effect.id, measurement, self.blobs, self._clean)
        return Proposed(Kind.ACT, body, side)

    def _changed_work(self) -> Mapping[str, bytes | None]:
        no_work = checks_apart.no_work(self._subject)
        found = self.workspace.changed_since(self.rules.r3)
        return {path: before for path, before in found.items() if not no_work(path)}

    @property
    def _subject(self) -> checks_apart.Subject:
        return checks_apart.Subject(self.host, self.workspace, self.secret_guard, self.rules.r3)

    def _judge(
        self, effect: Effect, items: Sequence[Asked], schema: Mapping[str, Any], origin: dict[str, Any]
    ) -> str:
        """A model's answer to a validator's question; secrets are removed from both. `origin` says whose.

        Raises: UnavailableError `unavailable.judge`, RunError `llm.*`.
        """
        clean = tuple({**item, "text": self._clean(item["text"])} for item in items)
        prompt = Prompt(effect.id, clean, "judge", "ask", effect.task, schema, step=effect.step)
        answer = self._answered(prompt, None)
        if answer is None:
            raise answer_record.no_judge(effect.name, effect.task)
        origin |= {"by": self._clean(self._name(answer)), **answer_record.about(answer, self.blobs, prompt)}
        return str(self._clean(answer.text))

    def _rival(self, files: Mapping[str, str]) -> Subject:
        return Subject({role: self.blobs.get(digest) for role, digest in files.items()})

    # ---- proposers and models --------------------------------------------------------------------------

    def _plan(self, effect: Effect, history: History) -> Proposed:
        proposer = self.host.proposers[effect.name]
        request = replace(plans.request(effect, self.rules, self.host, history), cancel=self.cancel)
        check(self.cancel)
        if isinstance(proposer, Asking):
            return self._asked(effect, history, proposer, request)
        if isinstance(proposer, Searching):
            return self._searched(effect, history, proposer, request)
        return Proposed(Kind.PLAN, plans.body_of(effect, proposer.propose(request), self.blobs))

    def _searched(
        self, effect: Effect, history: History, proposer: Searching, request: PlanRequest
    ) -> Proposed:
        """A plan from a search in the workspace, which it cannot write; what it asked of a model is kept with
        it. Raises: UserError, Cancelled."""
        asks = plans.Asks(effect, history, self.blobs, self._clean, self._put)
        with ExitStack() as held:
            lock = held.enter_context(self.workspace.lock(self.cancel))
            if self.host.launcher is not None:
                self.repositories.before_job()
            heard = held.enter_context(self.hearing())
            call = MeasureCall(
                effect.id, effect.name, {}, self.workspace.directory, self.secret_guard.launcher(),
                limits=self.host.limits, toolchain=self.host.toolchain, inherit=(lock,), cancel=self.cancel,
                heard=heard, hides=self.secret_guard.hides, original=self.workspace.original,
                ask=None if self.host.backend is None else asks,
            )  # fmt: skip
            found = proposer.search(request, call)
        body = {**plans.searched(effect, found, self.blobs), **asks.kept}
        return Proposed(Kind.PLAN, self._clean(body), asks.side)

    def _asked(self, effect: Effect, history: History, proposer: Asking, request: PlanRequest) -> Proposed:
        """A plan from a model's answer to a proposer's question; both are kept with it.

        Raises: UnavailableError `unavailable.model`, RunError `llm.*`.
        """
        usual = self.prompt(effect)
        request = plans.with_texts(request, effect, usual, self.blobs, self._clean)
        question = proposer.question(request)
        if isinstance(question, packet.Misfit):
            return Proposed(Kind.ACT, plans.unusable(effect, "", question, {}, self.blobs))
        prompt = plans.prompt_for(question, usual, history, self._clean)
        answer = self._put(prompt)
        if answer is None:
            raise answer_record.no_model(effect.name, effect.task)
        text, side = answer
        asked = {"asked": keep(prompt.text, self.blobs)}
        found = proposer.read(request, text)
        if isinstance(found, packet.Misfit):
            return Proposed(
                Kind.ACT, {**plans.unusable(effect, text, found, side, self.blobs), **asked}, side
            )
        body = {**plans.proposed(effect, found, self.blobs), "answer": keep(text, self.blobs), **asked}
        return Proposed(Kind.PLAN, body, side)

    def _put(self, prompt: Prompt) -> tuple[str, dict[str, Any]] | None:
        """A model's answer to a proposer's question, and how it came about; None where a person answers.

        Raises: UnavailableError `llm.no_price`, RunError `llm.*`; Cancelled.
        """
        if self.rules.program.budgets.cost:
            self._bound(prompt)  # a price has to be known before the call
        answer = self._answered(prompt, self._shown())
        if answer is None:
            return None
        self.secret_guard.look()
        by = {"by": self._clean(self._name(answer))}
        return self._clean(answer.text), {**by, **answer_record.about(answer, self.blobs, prompt)}

    def _shown(self) -> Callable[[str], None] | None:
        """Who sees a model's text as it comes, without secrets."""
        if self.on_text is None or self.redactor is None:
            return self.on_text
        return self.redactor.stream(self.on_text)

    def _ask(self, effect: Effect, history: History) -> Proposed | None:
        prompt = replace(self.prompt(effect), given=tuple(history.given))
        answer = self._answered(prompt, self._shown())
        if answer is None:
            return None
        about = answer_record.about(answer, self.blobs, prompt)
        return self.answer(effect, answer.text, self._name(answer), about)

    def _name(self, answer: Answer) -> str:
        backend = self.host.backend
        return answer.model or (backend.entry.name if backend else "")

    def _answered(self, prompt: Prompt, shown: Callable[[str], None] | None) -> Answer | None:
        """The backend's answer, with a cost where money is counted; None when nobody answers now.

        Raises: RunError `llm.*`; Cancelled.
        """
        backend = self.host.backend
        if backend is None:
            return None
        try:
            with self.while_waiting():
                check(self.cancel)
                answer = backend.answer(prompt, shown, self.cancel)
                if shown is not None:
                    shown("\n")  # the last word too
        except RunError as error:
            if error.code == "llm.cancelled":
                check(self.cancel)
            raise
        if answer is not None and answer.cost_nanousd is None and self.rules.program.budgets.cost:
            answer = replace(answer, cost_nanousd=self._bound(prompt))  # no usage: the worst is taken
        return answer

    def _read_plan(self, effect: Effect, text: str, side: Mapping[str, Any]) -> Proposed:
        """A text that should be a plan; what it calls is for the kernel's select to judge."""
        found = plans.read(text, form_of(effect, self.rules))
        body: dict[str, Any]
        if isinstance(found, packet.Misfit):
            return Proposed(Kind.ACT, plans.unusable(effect, text, found, side, self.blobs), side)
        body = {"of": effect.id, "by": "model"}
        body["candidates"] = shrink([plans.called(call) for call in found.calls], self.blobs)
        reasoning = [item.text for item in found.items if isinstance(item, packet.Reasoning)]
        optional = {
            "reasoning": "\n".join(reasoning),
            "surface": found.surface,
            "atoms": list(found.atoms),
            "memory": [dict(item) for item in found.memory],
            "correction": dict(found.correction or {}),
        }
        body |= {name: shrink(value, self.blobs) for name, value in optional.items() if value}
        return Proposed(Kind.PLAN, body, side)
