"""Why an action was denied, in a sentence, with the rule that says so.

Takes a session in which the action is forbidden, or not permitted. The sentence is about what the proof of
`forbidden` rests on, or about what the rule lacks that comes closest to permitting the action; where no words
are known for that, it is the rule itself. Pure: a kernel's denial is a record, and is the same when it is
replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from spak.datalog.errors import PolicyError
from spak.datalog.explain import Proof, prove_row
from spak.datalog.session import Session, atom
from spak.datalog.text.format import format_clause
from spak.datalog.values import Name, decode, encode, from_json
from spak.datalog.why_not import Attempt, Missing, WhyNot
from spak.policy.stated import COLUMNS
from spak.policy.toolfacts import ACTION
from spak.policy.urls import is_bare

Row = tuple[str, tuple[Any, ...]]
"""A predicate with its values; `!` before its name says that there is no such row."""
LONGEST = 400
"""Characters of a rule or a fact in a sentence."""
LAST = ("approved", "broken_patch")
"""Of several rules that forbid, those that read these are told last: what a signature lifts, and a patch that
may not be applied anyway."""
WHAT_IT_IS = ("tool", "act", "validator")
"""Predicates that say what an action is: a rule that wants another one does not speak of it."""
PLACES = {
    "/outside": "outside of the workspace",
    "/refused": "no path of the workspace",
    "/git": "git's own",
    "/root": "the workspace itself",
    "/control": "one that says what is run: change it with write_file or a patch",
    "/hard_link": "a second name of another file",
    "/inside": "in the workspace, and that no rule permits",
}
USES = {"redirects": "redirects its output to"}
"""Uses of a path whose names are no words for people."""

_REACHED = (Name("/loopback"), Name("/private"))
"""Kinds of address that an operator may have reason to permit."""


def why_forbidden(session: Session, proof: Proof) -> tuple[str, str]:
    """What the proof of `forbidden` rests on, and the code of the denial."""
    rows, root = list(_rows(proof)), proof.nodes[-1]
    code = next((str(args[1]) for name, args in rows if name == "patch_trouble"), code_of(session))
    said = _said(rows, _ALWAYS) or (_commit(session, rows) if _has(rows, "makes_commit") else "")
    found = f"{said} ({root['at']})" if said else f"{root['at']} forbids it: {_rule(session, root['at'])}"
    lifted = any(str(part.get("absent", "")).startswith("approved(") for part in root.get("body", ()))
    return f"{found}; a signature lifts that (APPROVALS ask)" if lifted else found, code


def code_of(session: Session) -> str:
    """The code of an action that is forbidden: `mcp.changed` where a server is not as it was approved."""
    other = session.query("mcp_changed") or session.query("mcp_gone")
    return "mcp.changed" if other else "policy.forbidden"


def why_denied(session: Session, found: WhyNot) -> str:
    """What the rule lacks that comes closest to permitting it, of those that `found` tells of."""
    near = next((attempt for attempt in found.attempts if _concerns(session, attempt)), None)
    if near is None:
        return _no_rule(session, found)
    rows: list[Row] = [(f"!{item.pred}", tuple(map(_value, item.args))) for item in near.missing]
    for item in near.against:
        rows += _rows(prove_row(session, (item.pred, len(item.args)), item.args))
    said = _said(rows, _CLOSEST)
    if said:
        return f"{said} ({near.at})"
    lacks = [f"it lacks {item.text}" for item in near.missing]
    lacks += [f"{item.text} is against it" for item in near.against]
    lacks += [f"it wants {text}" for text in near.conditions]
    return f"{near.at} comes closest to permitting it: {', '.join(lacks)[:LONGEST]}"


def _no_rule(session: Session, found: WhyNot) -> str:
    """What is said where no rule speaks of the action."""
    for pred in ("unreadable", "url_trouble", "patch_trouble"):
        for args in session.query(pred):
            return _ALWAYS[pred](*args)
    if ("permitted_place", 2) not in session.policy.decls:
        return "no rule permits it (the shipped law is not loaded)"
    if session.query("unknown_tool"):
        return "the tool is not known to the policy; a rule that names it may permit it"
    signs = any({item.pred for item in attempt.missing} == {"approved"} for attempt in found.attempts)
    return "no rule of the policy permits it" + (" but by a signature (APPROVALS ask)" if signs else "")


def _concerns(session: Session, attempt: Attempt) -> bool:
    """Whether a rule speaks of an action of this kind: it wants no other tool, and the action has some facts
    of each kind that it wants."""
    tools = {encode(tool) for _, tool in session.query("tool", ACTION, None)}

    def could(item: Missing) -> bool:
        if item.pred in WHAT_IT_IS or tools & {*item.args}:
            return False
        if item.pred in COLUMNS:
            return bool(session.matching(item.pred, (None,) * len(item.args)))
        return item.below is None or any(_concerns(session, lower) for lower in item.below.attempts)

    return not attempt.failed and all(map(could, attempt.missing))


def _rows(proof: Proof) -> Iterator[Row]:
    """The rows of a proof, those that it begins with first, and what it says that there is not."""
    for node in proof.nodes:
        for part in node.get("body", ()):
            if "absent" in part:
                try:
                    pred, args = atom(part["absent"])
                except PolicyError:
                    continue
                yield f"!{pred}", args
        yield node["pred"], tuple(decode(from_json(value)) for value in node["args"])


def _value(value: Any) -> Any:
    return None if value is None else decode(value)


def _has(rows: Iterable[Row], pred: str) -> bool:
    return any(name == pred for name, _ in rows)


def _rule(session: Session, at: str) -> str:
    """The clause at a place, on one line without its dot."""
    clauses = (
        clause for clause in session.policy.clauses if f"{clause.place.file}:{clause.place.line}" == at
    )
    return next((format_clause(clause).removesuffix(".")[:LONGEST] for clause in clauses), "")


def _said(rows: list[Row], table: Mapping[str, Callable[..., str]]) -> str:
    """The first sentence of a table that is about one of the rows."""
    for pred, says in table.items():
        for name, args in rows:
            if name == pred and (found := says(*args)):
                return found
    return ""


def _commit(session: Session, rows: list[Row]) -> str:
    """What stands against a commit."""
    for name, args in rows:
        if name == "diagnostic":
            return f"{args[1]}:{args[2]}: {args[4]} [{args[3]}]: fix it before a commit"
        if name == "checks_ran":
            return f"the check {args[0]} did not pass: fix what it found before a commit"
        if name == "checks_ran_on":
            return "the check passes with what the run changed of its tests alone: let a person sign for it"
        if name == "!checked":
            ran = "no check ran since the last change"
            for validator, _ in session.query("checks_ran", None, Name("/success")):
                ran = f"{validator} gave an opinion, which is no check"
            return f"{ran}: let a VALIDATOR judge it before a commit"
    return ""


def _path(action: Any, how: Any, place: Any, path: Any) -> str:
    used = str(how)[1:]
    return f"it {USES.get(used, used)} {path!a}, a path that is {PLACES.get(str(place), str(place)[1:])}"


def _host(host: Any) -> str:
    if is_bare(str(host)):
        law = f'allowed_host("{host}").'
        return f"the host {host} is not allowed; an operator's law names an address or a short name: {law}"
    return f"the host {host} is not allowed; name it with --allow-host, or HOSTS in CONFIG"


def _trouble(action: Any, code: Any, detail: Any) -> str:
    return f"{detail} [{code}]"


_COVERS = {
    "/untested": "no test reaches what depends on it",
    "/unresolved": "what may depend on it could not be followed",
    "/unparsed": "what depends on it is not known, since this does not parse",
}


def _changed(server: Any, tool: Any, field: Any) -> str:
    return f"{server}.{tool}: {field} is not as it was approved; look: spak mcp check {server}"


_ALWAYS: Mapping[str, Callable[..., str]] = {
    "mcp_changed": _changed,
    "mcp_gone": lambda server, tool: f"{server}.{tool} is gone; look: spak mcp check {server}",
    "mcp_listed": lambda server, tool, state, why: (
        f"the server {server} is not there: {why}" if state == Name("/unavailable") else ""
    ),
    "!mcp_flow": lambda source, to: (
        f'what {source} answered may not go to {to}; a law lets it: mcp_flow("{source}", "{to}").'
    ),
    "mcp_lost": lambda server, tool: (
        f"whether the last call of {server}.{tool} was done is not known: look, then sign for the next"
    ),
    "mcp_call": lambda action, server, tool: (
        f'no rule names this server and this tool: mcp_may("{server}", "{tool}").'
    ),
    "unreadable": lambda action, code, message: f"it can not be read: {message} [{code}]",
    "patch_trouble": _trouble,
    "url_trouble": _trouble,
    "over_budget": lambda action: "a budget of the run is used up (BUDGET in CONFIG)",
    "undeclared": lambda action: "the task's TOOLS do not list the tool",
    "loose": lambda action: "no sandbox that is strict enough holds it (SANDBOX in CONFIG)",
    "!allowed_binary": lambda program: f"the law does not list the program {program!a}",
    "!allowed_host": _host,
    "uses_path": lambda *args: _path(*args) if args[2] in (Name("/outside"), Name("/refused")) else "",
    "looks_secret": lambda action, kind, at: f"`args.{at}` holds the value of a secret ({kind})",
    "!secret_may_go": lambda secret, tool, at: (
        f'no rule lets the secret {secret} go there: secret_may_go("{secret}", {tool}, "{at}").'
    ),
    "host_address": lambda action, at, kind: (
        f"the host is at {at}, an address that is {str(kind)[1:]}"
        + (f"; an operator's law reaches it: reachable_kind({kind})." if kind in _REACHED else "")
    ),
    "unresolved": lambda action, host: f"the host {host} has no address",
    "uncovered": lambda file: f"no test reaches what rests on it: {file}",
    "symbol_impact": lambda symbol, changed, cover: (
        f"{_COVERS.get(str(cover), cover)}: {symbol}"
        + (f"; write the tests first: spak ask generate_test {changed}" if str(cover) == "/untested" else "")
    ),
}
"""What is said of rows that a denial rests on, in the order in which they are looked for."""
_CLOSEST: Mapping[str, Callable[..., str]] = {
    **_ALWAYS,
    "uses_path": _path,
    "for_a_person": lambda action, program: f"{program!a} does more than read, and the law does not name it",
    "sets_variable": lambda action, name, value: f"it gives its programs the variable {name}",
    "sends_header": lambda action, header: f"the header {header!a} could carry data out",
    "sends_body": lambda action: "a request with a body or other arguments could carry data out",
    "!asks_url": lambda action, scheme, host, port: (
        "only https at its own port is permitted" if (scheme, port) == ("https", 443) else ""
    ),
    "!reading_method": lambda method: f"the method {method} does more than read" if method else "",
}
"""Besides, what is said of what a rule lacks."""
