"""The gate: whether the policy lets an effect happen. Asked inside `step`, before the effect exists.

Takes what is wanted (an act with its name and arguments), the facts of the run and what was observed; gives a
Judged, or the questions about the world that have to be answered first. Pure, and total: an engine's error, a
limit, an observation that makes no sense and a fault of ours are denials with a code. A decision depends on
the policy and the facts alone, so it is kept (bounded) under the facts; its proof is made when somebody wants
to write or read it. It carries nothing out and looks at nothing. Runs of one process share the gate of their
policy: one thread at a time judges or explains, since kept sessions change with what they are asked.

The policy is the law of those in charge (shipped, the operator's, the team's), the spec's POLICY and those of
its AXIOMs that are rules, as the first record holds them.
Source: DESIGN.md sections 3 and 9, seed 004 part two, section 10.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from spak import canon, exclusive
from spak.datalog import Policy, Session
from spak.datalog.externals import Request
from spak.datalog.unread import reads, renamed, rises, unread
from spak.datalog.values import Fact, Name, Value
from spak.errors import LedgerError, UserError
from spak.kept import by_size
from spak.kernel.observed import Facts, Malformed, Observed, Questions, lists_of_servers
from spak.lang.catalog import Catalog
from spak.policy import approval, denials
from spak.policy.actions import Action
from spak.policy.facts import ACTION, facts, is_built
from spak.policy.held import Held
from spak.policy.history import state as past
from spak.policy.history.deciding import answers, fed, feeding, folds_of
from spak.policy.history.deciding import past as remembered
from spak.policy.history.state import Fed, History
from spak.policy.judge import decide, denied
from spak.policy.law import RESERVED, Law, compiled
from spak.policy.toolfacts import text as text_of

ROUNDS = 4
"""Observations for one permit; who still has questions then is denied."""

NEAR = 16
"""Facts by which two actions may differ for the session of one to become that of the other."""

EVENT: Fact = ("event", (ACTION,))
"""What makes an action an event that folds are fed from."""

KEPT, SHORT = 256, 4096
"""Sessions and proofs that are kept; bytes of an action whose facts are."""

IN_TURN, TRIED = 3, 256
"""People who sign one after another, of whom it is foreseen that all together permit an action; signatures of
a second or third person that are tried for that."""

MISSING = ("missing_path", 2)
"""The predicate of paths that do not exist."""

MOVING = ("spent", 2)
"""The predicate of facts that change with each step."""

NAMES_TELL = frozenset({"tunnel", "http_request"})
"""Tools whose host is looked up only where nothing else forbids the call: a name that is looked up may carry
data to the server of that name."""

ROUTE = "next_action"
"""The predicate that says where a run goes on, where a task's NEXT leaves it to the law."""

STATED = RESERVED | {"allowed_host"}
"""The names of all facts that a runtime states; hosts may be stated by a law as well."""


class ProposedAction(NamedTuple):
    """What is to be permitted."""

    act: Literal["tool", "ask", "plan", "check", "validate"]
    name: str
    args: Mapping[str, Any]
    run: tuple[Fact, ...] = ()
    """Facts of the run around it."""
    moving: tuple[Fact, ...] = ()
    """Those that change with each step: a session is kept without them and told of them."""
    uses: Mapping[str, str] = MappingProxyType({})
    """What the tool's entry says that its arguments are, where its calls are described by that."""
    history: History = History()
    """What folds keep of the run, at the time of this request (spak.policy.history)."""


def uses_of(catalog: Catalog, act: str, name: str) -> Mapping[str, str]:
    """For `ProposedAction.uses`."""
    entry = None if act != "tool" or is_built(name) else catalog.tools.get(name)
    return entry.arguments if entry is not None else {}


class Judged(NamedTuple):
    """A decision, and the facts it was derived from."""

    allow: bool | Literal["ask"]
    code: str = ""
    reason: str = ""
    facts: tuple[Fact, ...] = ()
    moving: tuple[Fact, ...] = ()
    seen: Facts = MappingProxyType({})
    """What was observed, for the answers of external predicates that it rests on."""
    history: History = History()
    """The past that it was derived from."""
    fed: Fed = ()
    """What the request feeds folds."""
    key: Any = None
    """What the gate keeps the session under that it was derived in."""
    goal: str = ""
    """ROUTE where no action was judged: what follows for `next_action`."""


class About(NamedTuple):
    """The facts about an action, and the same without the values that decide nothing."""

    facts: tuple[Fact, ...]
    shape: tuple[Fact, ...]


class Gate:
    """One policy, its recent sessions and proofs."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self._lock = exclusive.lock()
        """Held from the choice of a session to the last question that is asked of it."""
        self.folds = folds_of(policy)
        self._feeding = feeding(policy)
        self.reads = frozenset(reads(policy, ("permitted", "forbidden")))
        """Predicates that a decision can depend on; facts of others need not be stated."""
        self.routing = frozenset(reads(policy, (ROUTE,)))
        """The same of a move that the law derives."""
        self._unread = unread(policy, [("permitted", 1), ("forbidden", 1)], STATED)
        """Columns of facts whose values decide nothing: actions that differ there alone share a session."""
        self._rising = not self.folds and rises(policy, MOVING, 1)
        """Whether the law only asks if more than something is spent."""
        self._steady = MOVING not in reads(policy, ("permitted",))
        self._sessions: OrderedDict[Any, Held] = OrderedDict()
        self._newest: tuple[Any, Held] | None = None
        """The key and the session of the last decision: mostly those of the next one as well."""
        self._proofs: OrderedDict[Any, bytes] = OrderedDict()
        self._briefs: OrderedDict[bytes, About] = OrderedDict()

    @property
    def hash(self) -> str:
        """The policy's hash."""
        return self.policy.hash

    def judge(
        self,
        proposed: ProposedAction,
        observed: Facts,
        rounds: int = 0,
        worded: bool = True,
        quiet: bool = True,
    ) -> Judged | Questions:
        """The decision, or what has to be observed for it. `rounds` were observed already; a denial has a
        reason if it is `worded`, which takes longer. `quiet`: see NAMES_TELL."""
        try:
            seen = Observed(observed)
            if seen.trouble:
                why = f": {seen.why}" if seen.why else ""
                return Judged(False, seen.trouble, f"the world could not be looked at{why}")
            with self._lock:
                about = self._facts_of(proposed, seen, observed)
                known = (*proposed.run, *about.facts)
                questions = seen.questions()
                if quiet and "hosts" in questions and proposed.name in NAMES_TELL:
                    refused = self._without_addresses(known, proposed, seen, observed, worded)
                    if refused is not None:
                        return refused
                if not questions:
                    key = proposed.run, about.shape, _rows(observed)
                    found = self._decide(known, key, proposed, seen, worded)
                    if isinstance(found, Judged):
                        return found
                    questions = found
            if rounds >= ROUNDS:
                return Judged(False, "policy.rounds", "it asks for ever more about the world", known)
            return questions
        except Malformed:
            return Judged(False, "policy.observation", "an observation of the world makes no sense")
        except UserError as error:
            return Judged(False, error.code, error.message)
        except Exception as error:
            return Judged(False, "policy.bug", f"the judgement itself failed: {type(error).__name__}")

    def rejudge(
        self, proposed: ProposedAction, known: tuple[Fact, ...], observed: Facts
    ) -> Judged | Questions:
        """The decision under facts that an earlier judgement was derived from (spak.evolve.permitted).

        Facts of `proposed` are not looked at. Questions where this policy asks what was not observed then.
        """
        relevant = tuple(fact for fact in known if (fact[0], len(fact[1])) in self.reads)
        if not observed and not relevant:
            return Judged(False, "policy.denied", "nothing is known of it")
        with self._lock:
            try:
                key = (), self._shape(relevant), _rows(observed)
                return self._decide(relevant, key, proposed, Observed(observed), worded=False)
            except UserError as error:
                return Judged(False, error.code, error.message)

    def approvable(
        self, proposed: ProposedAction, observed: Facts, keys: Sequence[Mapping[str, Any]]
    ) -> bool:
        """Whether signed approvals by holders of the keys would permit it: one, or where the law remembers
        signed attempts that it denied, those of several people one after another."""
        signers = [
            approval_facts(key["name"], approval.ADMIN in (key.get("roles") or ()))
            for key in keys
            if isinstance(key, Mapping) and isinstance(key.get("name"), str)
        ]
        pasts = deque([(proposed.history, 1)])
        tried = 0
        while pasts:
            history, turn = pasts.popleft()
            for signed in signers:
                attempt = proposed._replace(run=(*proposed.run, *signed), history=history)
                found = self.judge(attempt, observed, worded=False)
                tried += turn > 1
                if not isinstance(found, Judged):  # looked up once somebody has signed
                    return {*found} == {"hosts"} if proposed.name in NAMES_TELL else lists_of_servers(found)
                if tried > TRIED:
                    return False
                if found.allow:
                    return True
                if turn < IN_TURN:
                    after = self.after_denial(found, history)
                    if after.tables != history.tables:
                        pasts.append((past.begin(after, after.now), turn + 1))
        return False

    def after_denial(self, judged: Judged, history: History, record: int = 0) -> History:
        """The past once a request that was denied is remembered."""
        fed = past.requested(self.folds, history, "", judged.fed, allow=False, record=record)
        return fed[0]

    def explanation(self, judged: Judged) -> bytes:
        """The proof of a decision, or what was missing for it, as canonical JSON."""
        moving = () if judged.allow is True and self._steady else judged.moving
        with self._lock:
            if self.folds:  # what the past says is in it, and hardly ever the same again
                return canon.dumps(self._explain(judged))
            key = (judged.allow, judged.code, judged.facts, moving, _rows(judged.seen), judged.goal)
            found = self._proofs.get(key)
            if found is None:
                found = canon.dumps(self._explain(judged))
                _keep(self._proofs, key, found)
            return found

    def feeds(self, proposed: ProposedAction, observed: Facts, results: Iterable[Fact]) -> Fed:
        """What the answer to a permitted action feeds folds. Raises: PolicyError, PolicyLimit, Malformed."""
        if self._feeding is None:
            return ()
        known = facts_of(proposed, Observed(observed))
        return fed(self.folds, self._feeding.session([EVENT, *known, *results]))

    def _facts_of(self, proposed: ProposedAction, seen: Observed, observed: Facts) -> About:
        """The facts about the action; those of a short one that is fully observed are kept."""
        uses = (dict(proposed.uses),) if proposed.uses else ()
        key = canon.dumps([proposed.act, proposed.name, proposed.args, observed, *uses])
        found = self._briefs.pop(key, None)
        if found is None:
            facts = (*facts_of(proposed, seen), *self._missing(observed))
            found = About(facts, self._shape(facts))
            if len(key) > SHORT or seen.questions():
                return found
        _keep(self._briefs, key, found)
        return found

    def _missing(self, observed: Facts) -> Iterable[Fact]:
        """The paths that were looked at and not there, where the policy asks."""
        if MISSING in self.reads:
            for _, _, path, kind, *_ in observed.get("paths", ()):
                if kind == "missing":
                    yield "missing_path", (ACTION, text_of(path))

    def _decide(
        self, known: tuple[Fact, ...], key: Any, proposed: ProposedAction, seen: Observed, worded: bool
    ) -> Judged | Questions:
        moving = proposed.moving
        if self.folds:
            known = (*known, EVENT)
            moving = (*moving, *past.rows(self.folds, proposed.history))
        held = self._held(key, known, moving)
        session = held.session
        same = held.allowed_at == session.version and not self.folds
        if not same and not seen.answer(session, self._past(proposed.history)):
            return seen.questions()
        held.past = proposed.history
        if self._newest is None or self._newest[1] is not held:
            _keep(self._sessions, key, held)
            self._newest = key, held
        rows = fed(self.folds, session) if self.folds else ()
        judged = Judged(same, "", "", known, moving, seen.facts, proposed.history, rows, key)
        if same:
            return judged
        if session.holds("forbidden", ACTION):
            code = denials.code_of(session)
        elif session.holds("permitted", ACTION):
            held.allowed_at = session.version
            return judged._replace(allow=True)
        else:
            code = "policy.denied"
        if not worded:
            broken = [str(args[1]) for name, args in known if name == "patch_trouble"]
            return judged._replace(code=broken[0] if broken and code == "policy.forbidden" else code)
        held.become(known, moving)  # the reason names values
        found = decide(self.policy, [*known, *moving], False, session)
        if found.code.startswith("patch."):
            code = found.code
        return judged._replace(code=code, reason=found.reason)

    def _without_addresses(
        self, known: tuple[Fact, ...], proposed: ProposedAction, seen: Observed, observed: Facts, worded: bool
    ) -> Judged | None:
        """The denial of what is forbidden wherever its host is; None where the address decides."""
        known = tuple(fact for fact in known if fact[0] != "unresolved")
        found = self._decide(known, (proposed.run, known, _rows(observed)), proposed, seen, worded)
        return found if isinstance(found, Judged) and found.code == "policy.forbidden" else None

    def _shape(self, facts: tuple[Fact, ...]) -> tuple[Fact, ...]:
        """The facts without the values that decide nothing: what sessions are kept under."""
        alike = self._unread and all(fact[0] in STATED for fact in facts)
        return renamed(facts, self._unread) if alike else facts

    def _held(self, key: Any, known: tuple[Fact, ...], moving: tuple[Fact, ...]) -> Held:
        """A session of these facts, without answers about the past; or of those of another action that differ
        in values that decide nothing."""
        if self._newest is not None and self._newest[0] == key:
            held = self._newest[1]
        else:
            found = self._sessions.pop(key, None) or self._near(known, moving)
            self._newest = None
            if found is None:
                return Held(self.policy.session((*known, *moving)), known, moving, self._rising)
            held = found
        if self.folds:
            held.past = None
            held.session.forget({fold.key for fold in self.folds.values()})
        held.spend(moving, bool(self.folds))
        return held

    def _past(self, history: History) -> Callable[[Request], list[tuple[Value, ...]] | None] | None:
        """Who answers questions about folds."""
        return partial(answers, self.folds, history) if self.folds else None

    def _near(self, known: tuple[Fact, ...], moving: tuple[Fact, ...]) -> Held | None:
        """The session of the last decision, told what is different now; None when little is the same.

        Sessions that were told answers of external predicates stay as they are.
        """
        last = next(reversed(self._sessions), None)
        if last is None:
            return None
        held = self._sessions[last]
        if any(request.pred not in self.folds for request, _ in held.session.answers()):
            return None
        less, more = held.change(known, moving)
        if len(less) + len(more) > NEAR:
            return None
        del self._sessions[last]
        held.become(known, moving)
        return held

    def text(self, judged: Judged) -> str:
        """The explanation for people: the proof as a tree, or what is missing, rule by rule."""
        from spak.datalog.explain import prove
        from spak.datalog.why_not import why_not

        if not judged.facts:
            return judged.reason
        if judged.goal:
            return "\n".join(proof.text() for proof in self._routes(judged)) or f"no {ROUTE} follows"
        with self._lock:
            session = self._session(judged)
            if judged.allow is True:
                return prove(session, "permitted", ACTION).text()
            if session.holds("forbidden", ACTION):
                return prove(session, "forbidden", ACTION).text()
            return why_not(session, "permitted", ACTION).text()

    def _session(self, judged: Judged) -> Session:
        held = self._sessions.get(judged.key)
        if held is not None and (not self.folds or held.past is judged.history):
            same = held.known == judged.facts and (not self.folds or held.moving == judged.moving)
            if same or not (self.folds or held.session.answers()):
                held.become(judged.facts, judged.moving)
                return held.session
        session = self.policy.session((*judged.facts, *judged.moving))
        Observed(judged.seen).answer(session, self._past(judged.history))
        return session

    def _routes(self, judged: Judged) -> list[Any]:
        """A proof for each move that follows."""
        from spak.datalog.explain import prove

        session = self.policy.session(judged.facts)
        while asked := session.requests():
            for request in asked:
                session.supply(request, ())
        return [prove(session, ROUTE, action) for (action,) in sorted(session.query(ROUTE, None), key=str)]

    def _explain(self, judged: Judged) -> dict[str, Any]:
        if judged.goal:
            proofs = [proof.to_json() for proof in self._routes(judged)]
            said = {"decision": "route", "reason": f"{len(proofs) or 'no'} {ROUTE}"}
            return said | ({"proof": proofs[0]} if len(proofs) == 1 else {"proofs": proofs})
        if judged.facts:
            known = [*judged.facts, *judged.moving]
            session = self._session(judged)
            found = decide(self.policy, known, True, session)
            if found.decision == ("allow" if judged.allow is True else "deny"):
                recalled = [item.to_json() for item in remembered(self.folds, judged.history, session)]
                return found.to_json() | ({"past": recalled} if recalled else {})
        return denied(judged.code, judged.reason).to_json()


def approval_facts(signer: str, overrides: bool) -> tuple[Fact, ...]:
    """What an approval states about the action that it was given for."""
    signed: Fact = ("signed_approval", (ACTION, signer))
    return (signed, ("admin_override", (ACTION, signer))) if overrides else (signed,)


def gate_of(policy: Any) -> Gate:
    """The gate of `genesis.rules.policy`.

    Raises: what `law.compiled` raises; LedgerError `ledger.genesis`.
    """
    if not isinstance(policy, Mapping):
        raise LedgerError("ledger.genesis", "its rules hold no policy")
    return _gate(canon.dumps(policy))


@by_size(1 << 20)
def _gate(text: bytes) -> Gate:
    policy = canon.loads(text)
    made = Gate(compiled(Law.from_json(policy), policy["spec"], policy["axioms"]))
    if made.hash != policy["hash"]:
        raise LedgerError("ledger.genesis", "its policy has not the hash that it names")
    return made


def facts_of(proposed: ProposedAction, seen: Observed) -> Iterable[Fact]:
    """What the policy is told about a proposed action."""
    found: list[Fact] = [("act", (ACTION, Name("/" + proposed.act)))]
    if proposed.act == "tool":
        world = seen.world({proposed.name: proposed.uses})
        return [*found, *facts(Action(proposed.name, proposed.args), world)]
    if proposed.act == "validate":
        found.append(("validator", (ACTION, proposed.name)))
        if "cmd" in proposed.args:
            started = facts(Action("run", {"cmd": proposed.args["cmd"]}), seen.world())
            found += [fact for fact in started if fact[0] != "tool"]
    return found


def _rows(seen: Facts) -> bytes:
    return canon.dumps(seen["rows"]) if "rows" in seen else b""


def _keep(store: OrderedDict[Any, Any], key: Any, value: Any) -> None:
    store[key] = value
    if len(store) > KEPT:
        store.popitem(last=False)
