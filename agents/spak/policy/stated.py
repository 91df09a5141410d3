"""What the runtime states about an action and a run: each predicate, its columns, and of which acts.

Tables for those who reason about laws without a run: what a law may not state itself (spak.policy.law), what
abstract actions are made of (spak.evolve.abstract_actions), what a rule waits for in vain (`never_rows`), and
which secrets it hands to programs (`secrets_to_programs`). `of_runs` mends the hints of others by them.
The facts are made in spak.policy.facts, spak.policy.toolfacts and the kernel; tests hold these tables to it.
Takes a policy; gives findings.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from spak.datalog.plan import Key
from spak.datalog.session import Policy
from spak.datalog.syntax import Atom, Clause, Const, Finding, Literal_, Term, Var
from spak.datalog.values import Name, decode, encode, show

Column = frozenset[Any] | None
"""The values of a column where they are known; None for any."""


def _names(words: str) -> Column:
    return frozenset(Name(f"/{word}") for word in words.split())


ACTS = ("ask", "plan", "check", "validate")
"""What a run does besides calling tools."""
_BUDGETS = _names("steps tokens elapsed_ms requests request_bytes cost")
_SIGNALS = _names("success fail timeout plateau metric_improved")
COLUMNS: Mapping[str, tuple[Column, ...]] = {
    "act": (None, _names("tool " + " ".join(ACTS))),
    "admin_override": (None, None),
    "allowance": (_BUDGETS, None),
    "argument": (None, None, None),
    "asks_method": (None, None),
    "asks_url": (None, None, None, None),
    "at_level": (None,),
    "changed": (None, None, _names("ordinary checks runs secret odd ignored")),
    "checks_ran": (None, _SIGNALS),
    "checks_ran_on": (None, _names("beginning own sealed"), _SIGNALS),
    "cut_argument": (None, None),
    "declared_tool": (None,),
    "declares_use": (None, _names("reads edits writes deletes")),
    "dependency_link": (None, None, None),
    "diagnostic": (_names("error warning info panic"), None, None, None, None),
    "ended": (None, _SIGNALS),
    "entropy": (None, None),
    "event": (None,),
    "host_address": (
        None, None, _names("public private loopback link_local multicast unspecified malformed"),
    ),
    "in_task": (None,),
    "last_action": (None,),
    "looks_secret": (None, frozenset({"cloud_key", "access_token", "private_key"}), None),
    "mcp_hint": (None, _names("read_only destructive idempotent open_world")),
    "mcp_listed": (None, None, _names("listed changed new gone unavailable"), None),
    "mcp_server": (None, _names("stdio http"), None),
    "mcp_tool": (None, None, None, None),
    "missing_path": (None, None),
    "names_path": (None, None),
    "names_secret": (None, None, None),
    "only_reads": (None, None),
    "patch_trouble": (None, None, None),
    "result": (None, frozenset({"exit", "outcome", "signal", "key", "out", "ms", "tokens", "cost"}), None),
    "retry_count": (None,),
    "runs_code": (None,),
    "runs_program": (None, None, None),
    "runs_words": (None, None, None),
    "sandboxed": (None, _names("none restricted docker gpu gvisor")),
    "sealed_checks": (None,),
    "sends_body": (None,),
    "sends_header": (None, None),
    "sets_variable": (None, None, None),
    "signed_approval": (None, None),
    "spent": (_BUDGETS, None),
    "symbol_graph": (
        None, _names("module function class interface variable constant"),
        _names("public protected private"), None, None,
    ),
    "symbol_impact": (None, None, _names("tested untested unresolved unparsed")),
    "symbol_link": (None, None, _names("scope import self super type")),
    "takes": (None, _names("requests request_bytes"), None),
    "test_coverage": (None,),
    "tool": (None, None),
    "unknown_tool": (None,),
    "unreadable": (None, None, None),
    "unresolved": (None, None),
    "url_trouble": (None, None, None),
    "uses_path": (
        None,
        _names("reads walks edits writes redirects deletes tracks"),
        _names("inside control root git secret hard_link outside refused"),
        None,
    ),
    "validator": (None, None),
}  # fmt: skip
"""Every predicate whose rows the runtime states or the world answers."""
OF_ACT = ("tool", "act", "event", "result", "unknown_tool")
"""Predicates that an act has by itself."""
OF_RUN = frozenset(
    """
    in_task at_level declared_tool diagnostic checks_ran checks_ran_on spent allowance held as_strict
    sealed_checks dependency_link test_coverage symbol_graph symbol_link symbol_impact entropy ended
    last_action retry_count mcp_tool mcp_server mcp_hint mcp_listed
    """.split()  # noqa: SIM905
)
"""Predicates that speak of the run: their first column is no action."""
OF_ALL = OF_RUN | {"changed", "signed_approval", "admin_override", "sandboxed", "takes", "unreadable"}
_SECRETS = frozenset({"names_secret", "looks_secret"})
_LINES = _SECRETS | {
    "runs_program", "runs_words", "names_path", "sets_variable", "uses_path", "missing_path",
}  # fmt: skip
_FILES = _SECRETS | {"uses_path", "missing_path"}
_URLS = frozenset(
    "asks_url asks_method url_trouble sends_body host_address unresolved".split()  # noqa: SIM905
)
OF_ENTRY = _FILES | {"declares_use"}
"""Of a tool that is described by what its entry declares of each argument."""
OF_OTHER = OF_ENTRY | _URLS | {"argument", "cut_argument"}
"""Of a tool that is not in STATED: its entry may say what its arguments are or which hosts it sends to, or
nothing is known of it."""
STATED: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("/run", "/nsight"), _LINES),
    "/shell": _LINES | {"only_reads"},
    **dict.fromkeys(
        (
            "/read_file",
            "/read_ast",
            "/list_files",
            "/write_file",
            "/delete_file",
            "/instantiate",
            "/cc",
            "/nvcc",
            "/git_commit",
        ),
        _FILES,
    ),
    "/validate": _LINES | {"validator"},
    "/git_push": _FILES | _URLS | {"argument"},
    "/python_repl": _SECRETS | {"runs_code"},
    "/apply_patch": _FILES | {"patch_trouble"},
    "/http_request": _SECRETS | _URLS | {"sends_header"},
    "/tunnel": _SECRETS | _URLS - {"asks_method"},
    **dict.fromkeys(
        (
            "/grep",
            "/find_symbol",
            "/references",
            "/impact",
            "/code_map",
            "/search_code",
            "/model_request",
            "/witnessed",
            "/ask_person",
            "/tunnel_closed",
        ),
        OF_ENTRY,
    ),
    **dict.fromkeys(("/recall", "/contained"), _SECRETS | {"argument", "cut_argument"}),
}
"""What can be stated of each act besides."""


def of_runs(findings: Iterable[Any]) -> list[Any]:
    """The findings; where a rule waits for what a run states, a declaration would hide that the law is not
    there, so the hint says how the text is checked under it."""
    hint = "a run states it: `spak policy check --as operator` checks the text under the law"
    return [
        replace(one, hint=hint, fix="")
        if one.code == "policy.undeclared" and one.fix.removeprefix("Decl ").partition("(")[0] in COLUMNS
        else one
        for one in findings
    ]


def never_rows(policy: Policy, files: Collection[str]) -> Iterator[Finding]:
    """What rules of these files wait for in vain: a value that a column never has, facts that are not stated
    of the tool or act that the rule names, tables that nobody fills where no rule of that head does without.
    Nothing for a policy that permits and forbids nothing: its names are its own."""
    if not {("permitted", 1), ("forbidden", 1)} & {clause.head.key for clause in policy.clauses}:
        return
    made = {clause.head.key for clause in policy.clauses} | {*policy.externals, *policy.folds}
    empty = {key for key in policy.predicates - made - _KEYS if not _is_open(policy, key)}
    without = {clause.head.key for clause in policy.clauses if not any(True for _ in _reads(clause, empty))}
    for clause in policy.clauses:
        if clause.place.file not in files:
            continue
        found = [_unstated(atom, clause) for atom in _atoms(clause) if atom.key in _KEYS - made]
        found += [_no_act(atom, clause) for atom in _reads(clause, _ACT_KEYS - made)]
        if clause.head.key not in without - {("permitted", 1), ("forbidden", 1)}:
            found += [_empty(atom) for atom in _reads(clause, empty)]
        for message, hint in dict.fromkeys(filter(None, found)):
            yield Finding("policy.never", "warning", message, clause.place, hint)


def secrets_to_programs(policy: Policy, files: Collection[str]) -> Iterator[Finding]:
    """Rows of these files that hand a secret to a program: its output may hold it in any form."""
    runs = {str(name) for (name,) in _rows_of(policy, "command_tool", 1)}
    runs |= {str(name) for name, _ in _rows_of(policy, "least_sandbox", 2)}
    for clause in policy.clauses:
        if clause.place.file not in files or clause.head.key != ("secret_may_go", 3):
            continue
        tool = clause.head.args[1]
        if not isinstance(tool, Const) or str(decode(tool.value)) in runs:
            named = show(tool.value) if isinstance(tool, Const) else "any tool"
            message = f"{named} may hand the secret to a program, whose output may hold it in any form"
            hint = "give it to http_request or git_push, or accept that"
            yield Finding("policy.secret_to_program", "warning", message, clause.place, hint)


def _rows_of(policy: Policy, pred: str, columns: int) -> Iterator[tuple[Any, ...]]:
    """What a table states by facts."""
    for clause in policy.clauses:
        if clause.head.key == (pred, columns) and not clause.body:
            yield tuple(decode(arg.value) for arg in clause.head.args if isinstance(arg, Const))


def _atoms(clause: Clause) -> list[Atom]:
    return [part.atom for part in clause.body if isinstance(part, Literal_)]


def _reads(clause: Clause, keys: Collection[Key]) -> Iterator[Atom]:
    """What a rule reads of these predicates, and cannot do without."""
    for part in clause.body:
        if isinstance(part, Literal_) and not part.negated and part.atom.key in keys:
            yield part.atom


def _is_open(policy: Policy, key: Key) -> bool:
    """Whether a table is left to those who come later."""
    decl = policy.decls.get(key)
    return decl is not None and any(word.pred == "open" for word in decl.descr)


def _unstated(atom: Atom, clause: Clause) -> tuple[str, str] | None:
    """Why facts of the runtime never fit, and what does."""
    for place, (arg, column) in enumerate(zip(atom.args, COLUMNS[atom.pred], strict=True), 1):
        if column is not None and isinstance(arg, Const) and decode(arg.value) not in column:
            known = ", ".join(sorted(show(encode(value)) for value in column))
            return f"column {place} of {atom.pred} is never {show(arg.value)}", f"it is one of {known}"
    if atom.pred in OF_ALL or atom.pred in OF_ACT:
        return None
    for tool in _acts(clause, atom.args[0]):
        stated = STATED.get(tool, frozenset() if tool[1:] in ACTS else OF_OTHER)
        if atom.pred not in stated:
            known = ", ".join(sorted(stated)) or "nothing of its own"
            return f"no {atom.pred} is ever stated of {tool[1:]}", f"what is stated of it: {known}"
    return None


def _no_act(atom: Atom, clause: Clause) -> tuple[str, str] | None:
    """Why no action is the one that a rule wants: two at once, or a name that is nearly a tool's."""
    wanted = sorted({*_acts(clause, atom.args[0])})
    if len(wanted) > 1:
        return f"no action is {wanted[0][1:]} and {wanted[1][1:]}", "write a rule for each"
    if not wanted or atom.pred != "tool" or wanted[0] in STATED:
        return None
    meant = get_close_matches(wanted[0].lower(), STATED, 1, _NEARLY)
    return (f"no tool is called {wanted[0][1:]}", f"did you mean {meant[0]}?") if meant else None


def _acts(clause: Clause, action: Term) -> list[str]:
    """The tools and acts that a rule wants of an action."""
    atoms = [part.atom for part in clause.body if isinstance(part, Literal_) and not part.negated]
    wanted = [atom.args[1] for atom in atoms if atom.pred in ("tool", "act") and atom.args[:1] == (action,)]
    named = [str(arg.value) for arg in wanted if isinstance(arg, Const) and isinstance(action, Var)]
    return [name for name in named if name != "/tool"]


def _empty(atom: Atom) -> tuple[str, str]:
    """Why a table has no rows."""
    columns = COLUMNS.get(atom.pred)
    if columns is not None:
        return f"{atom.pred} has {len(columns)} columns", "docs/gate.md lists what the runtime states"
    return f"nothing states or derives {atom.pred}, which the rule waits for", f"add rows of {atom.pred}"


_NEARLY = 0.9
"""How much of its letters a name has in common with that of a tool, for a slip of the pen."""
_ACT_KEYS = frozenset({("tool", 2), ("act", 2)})
_KEYS = frozenset((pred, len(columns)) for pred, columns in COLUMNS.items())
