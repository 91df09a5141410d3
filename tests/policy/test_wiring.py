"""What laws read and what the runtime states fit together, in both directions, for every law that ships."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from cli_kit import ROOT, spak
from gate_kit import workspace, world
from kernel_kit import program, rules, tool
from spak.datalog import Fact, Policy, load
from spak.datalog.syntax import Const, Literal_
from spak.datalog.values import Name, decode
from spak.diagnostics import SEVERITIES
from spak.kernel.answer import _results
from spak.kernel.gate import MISSING, ProposedAction, approval_facts, facts_of
from spak.kernel.observed import Observed
from spak.kernel.situation import BUDGETS, situation
from spak.policy.actions import Action, World
from spak.policy.facts import facts, is_built
from spak.policy.law import Law, compiled
from spak.policy.stated import COLUMNS, OF_ACT, OF_ALL, OF_ENTRY, OF_OTHER, OF_RUN, STATED, never_rows
from spak.policy.urls import REACHES, kind_of
from spak.program import Task
from spak.runner.genesis import all_shipped, constitution, of_servers
from spak.strategies import Selector
from spak.strategies.situation import situations
from spak.tools import DECLARED

pytestmark = pytest.mark.findings("S5.5")

SETTINGS = {
    "checks_before_commit": 'must_pass("Tests").',
    "money_per_day": "money_per_day(/micro_dollars, 1000).",
    "two_persons": "release_tool(/git_push).",
}
"""What an operator adds to a law that has no effect by itself."""
LAWS = sorted((ROOT / "specs/laws").glob("*.mg"))
GUARDS = "guard(/flow). guard(/refactor). guard(/symbols). guard(/evidence)."


def never(policy: Policy, *files: str) -> list[str]:
    found = list(never_rows(policy, files or {clause.place.file for clause in policy.clauses}))
    assert all(item.severity == "warning" and item.hint for item in found)
    return [f"{item.place.file}:{item.place.line}: {item.message}; {item.hint}" for item in found]


# ---- what laws read is stated -----------------------------------------------------------------------------


def test_every_rule_of_the_constitution_and_its_guards_can_hold() -> None:
    assert never(compiled(of_servers(Law(all_shipped(), {"ask.mg": GUARDS})), "", {})) == []


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.stem)
def test_every_rule_of_a_law_that_ships_can_hold(law: Path) -> None:
    own = {law.name: law.read_text(), "set.mg": GUARDS + SETTINGS.get(law.stem, "")}
    assert never(compiled(Law(constitution(), own), "", {})) == []


def own(text: str) -> list[str]:
    return never(compiled(Law(constitution(), {"own.mg": text}), "", {}), "operator/own.mg")


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ('permitted(A) :- tool(A, /cc), argument(A, "path", "a").', "no argument is ever stated of cc"),
        ('permitted(A) :- tool(A, /grep), argument(A, "path", "a").', "no argument is ever stated of grep"),
        ('permitted(A) :- act(A, /ask), uses_path(A, _, _, "x").', "no uses_path is ever stated of ask"),
        ('forbidden(A) :- tool(A, /deploy), runs_code(A).', "no runs_code is ever stated of deploy"),
        ('forbidden(A) :- uses_path(A, /edit, _, "x").', "column 2 of uses_path is never /edit"),
        ("forbidden(A) :- uses_path(A, _, /workspace, _).", "column 3 of uses_path is never /workspace"),
        ("forbidden(A) :- tool(A, _), !sandboxed(A, /no).", "column 2 of sandboxed is never /no"),
        ("forbidden(A) :- tool(A, _), checks_ran(_, /failed).", "column 2 of checks_ran is never /failed"),
        ("forbidden(A) :- tool(A, _), spent(/money, _).", "column 1 of spent is never /money"),
        ('forbidden(A) :- tool(A, /readfile), uses_path(A, _, _, "x").', "did you mean /read_file?"),
        ("forbidden(A) :- tool(A, /Run).", "no tool is called Run"),
        ("forbidden(A) :- act(A, /ask), tool(A, /cc).", "no action is ask and cc"),
        ("Decl seen(A) bound [/name].\nforbidden(A) :- tool(A, _), seen(A).", "nothing states or derives"),
        (
            'Decl ok(E) bound [/name] descr [fold("open")].\n'
            'feed_ok(E) :- event(E), result(E, "status", "ok").\n'
            "close_ok(E) :- event(E), tool(E, /x).\nforbidden(A) :- tool(A, /y), ok(A).",
            'column 2 of result is never "status"',
        ),
    ],
)  # fmt: skip
def test_a_rule_that_waits_in_vain_is_told(rule: str, message: str) -> None:
    (found,) = own(rule)
    assert message in found


@pytest.mark.parametrize(
    "rule",
    [
        'permitted(A) :- tool(A, /deploy), argument(A, "target", "staging").',
        'forbidden(A) :- uses_path(A, /edits, _, "x").',
        "forbidden(A) :- tool(A, /run2). forbidden(A) :- tool(A, /fetch_file).",
        "forbidden(A) :- act(A, /tool), tool(A, /cc).",
        'forbidden(A) :- tool(A, T), argument(A, "x", _), named(T).\nDecl named(T).\nnamed(/read_file).',
        'forbidden(A) :- tool(A, /git_push), argument(A, "branch", "main").',
        'Decl mine(A) descr [open("team")] bound [/name].\nforbidden(A) :- tool(A, _), mine(A).',
        "Decl lifted(A) bound [/name].\nforbidden(A) :- tool(A, /x), !lifted(A).",
        "Decl one(T). Decl two(T).\none(/x).\nboth(T) :- one(T).\nboth(T) :- two(T).\n"
        "forbidden(A) :- tool(A, T), both(T).",
    ],
)
def test_a_rule_that_may_hold_is_not(rule: str) -> None:
    assert own(rule) == []


def test_a_policy_that_permits_and_forbids_nothing_has_names_of_its_own() -> None:
    assert never(load({"a.mg": "Decl takes(Who, What).\ngrade(W) :- takes(W, /math)."})) == []


def test_check_commands_tell_it(tmp_path: Path) -> None:
    rule = 'forbidden(A) :- tool(A, /read_file), argument(A, "path", "a.txt").'
    (tmp_path / "own.mg").write_text(rule)
    for level in ("operator", "team", "spec"):
        code, found = spak(tmp_path, "policy", "check", "own.mg", "--as", level, "--json")
        assert (code, [item["code"] for item in found["diagnostics"]]) == (0, ["policy.never"]), level
        assert "uses_path" in found["diagnostics"][0]["hint"]
    (tmp_path / "a.spak").write_text(
        f'AGENT A LEVEL 2 {{ POLICY """{rule}""" START -> t '
        'TASK t { step l: tool.list_files { path: "." } } }'
    )
    code, found = spak(tmp_path, "check", "a.spak", "--json")
    (shown,) = found["files"]
    assert (code, [item["code"] for item in shown["diagnostics"]]) == (0, ["policy.never"])


# ---- what is stated fits the tables -----------------------------------------------------------------------


def fits(found: Iterable[Fact]) -> set[str]:
    """The predicates of facts, each of which has the columns and values of its table."""
    names = set()
    for name, args in found:
        if name in COLUMNS:
            assert len(args) == len(COLUMNS[name]), name
            for value, column in zip(args, COLUMNS[name], strict=True):
                assert column is None or value in column, (name, value)
        names.add(name)
    return names


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("small__say", {"text": "x"}),
    ("launch", {"x": 1, "long": "y" * 900, "key": "secret://K", "value": "AKIA" + "Q" * 16}),
    ("grep", {"pattern": "x", "path": "src"}),
    ("recall", {"record": 3}),
    ("python_repl", {"code": "1"}),
    ("apply_patch", {"patch": "no patch"}),
    ("shell", {"command": "cat a.txt | head", "working_dir": "src", "env": {"A": "1"}}),
    ("shell", {"command": "("}),
    (
        "http_request",
        {"url": "https://a.example/?q=AKIAIOSFODNN7EXAMPLE", "headers": {"X": "y"}, "body": "b"},
    ),
    ("git_push", {"url": "https://a.example/x.git", "branch": "main"}),
    ("git_commit", {"message": "x"}),
    ("cc", {"source": "a.c"}),
    ("instantiate", {"template": "a", "path": "b"}),
]


SERVED = {
    "secret://": "text",
    "mcp://small/say": "pin=p",
    "mcp://small": "stdio=i",
    "mcp://?read_only": "text",
    "https://a.example:443": "host=1",
}
"""What the entry of a tool of an MCP server says of its calls."""


def of_calls(folder: Path) -> dict[str, set[str]]:
    """What is stated of calls of each tool, the labelled ones of the gate included."""
    eyes = world(workspace(folder))
    found: dict[str, set[str]] = {}
    for addresses in (("1.1.1.1", "10.0.0.1", "127.0.0.1", "fe80::1", "224.0.0.1", "0.0.0.0"), ()):
        open_ = World(eyes.look, eyes.spread, eyes.read, eyes.hosts, lambda host, found=addresses: found,
                      declared={**DECLARED, "small__say": SERVED})  # fmt: skip
        for name, args in CALLS:
            found.setdefault(name, set()).update(fits(facts(Action(name, args), open_)))
    for file in sorted((Path(__file__).parent / "cases").glob("*.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            case = json.loads(line)
            found.setdefault(case["tool"], set()).update(
                fits(facts(Action(case["tool"], case["args"]), eyes))
            )
    return found


def of_runs() -> set[str]:
    """What kernel and runner state besides."""
    made = rules(program(Task("t", steps=(tool("s"),))))
    found: set[str] = set()
    for act in ("tool", "ask", "plan", "check", "validate"):
        proposed = ProposedAction(act, "look", {"text": "x"})  # type: ignore[arg-type]
        found |= fits(facts_of(proposed, Observed({})))
    answered = {"exit": 0, "outcome": "exited", "signal": "success", "key": "k", "out": "x"}
    results = _results(answered, {"ms": 1})
    assert {args[1] for _, args in results} == COLUMNS["result"][1]
    found |= fits(results) | {MISSING[0]}
    assert COLUMNS["spent"][0] == COLUMNS["allowance"][0] == frozenset(BUDGETS)
    assert COLUMNS["diagnostic"][0] == {Name(f"/{word}") for word in SEVERITIES}

    return (
        found
        | fits(approval_facts("alice", True))
        | fits(situation(made, _state(), made.program.tasks["t"], "look"))
    )


def _state() -> Any:
    from spak.kernel.state import State

    return State()


def test_all_that_is_stated_is_in_the_tables_and_the_tables_hold_no_more(tmp_path: Path) -> None:
    calls = of_calls(tmp_path)
    stated = set().union(*calls.values())
    policy = compiled(of_servers(Law(constitution())), "", {})
    world_answers = {name for name, _ in policy.externals}
    kept = {
        "changed",
        "in_task",
        "at_level",
        "declared_tool",
        "spent",
        "allowance",
        "diagnostic",
        "checks_ran",
        "checks_ran_on",
        "sealed_checks",
        "ended",
        "last_action",
        "retry_count",
        "sandboxed",
        "event",
    }
    assert set(COLUMNS) == (stated | of_runs() | world_answers | kept) & set(COLUMNS)
    assert stated - set(COLUMNS) == {"allowed_host"}, "hosts are a table of laws too"
    for name, seen in calls.items():
        table = STATED.get(f"/{name}", OF_ENTRY if name in DECLARED else OF_OTHER)
        assert seen - {"allowed_host"} <= table | OF_ALL | set(OF_ACT), name


def test_every_tool_that_ships_is_in_the_table_or_described_by_its_entry() -> None:
    for name in DECLARED:
        assert STATED.get(f"/{name}") == OF_ENTRY if not is_built(name) else f"/{name}" in STATED, name


def test_kinds_of_addresses_are_those_that_are_told() -> None:
    told = {
        kind_of(text) for text in ("1.1.1.1", "10.0.0.1", "127.0.0.1", "fe80::1", "224.0.0.1", "0.0.0.0", "x")
    }
    assert COLUMNS["host_address"][2] == {Name(f"/{kind}") for kind in told}
    assert {*REACHES} - {"metadata"} <= told


def test_what_is_stated_is_read_by_a_law_that_ships_or_documented_for_laws() -> None:
    texts = [
        path.read_text() for path in (*LAWS, *(ROOT / "specs/policy").glob("*.mg"), ROOT / "docs/gate.md")
    ]
    texts.append((ROOT / "specs/policy/guards/mcp.mg").read_text())
    texts.append((ROOT / "docs/history.md").read_text())
    assert [name for name in COLUMNS if not any(f"{name}(" in text for text in texts)] == []
    declared = compiled(of_servers(Law(all_shipped(), {"ask.mg": GUARDS})), "", {}).decls
    assert [
        (name, len(columns)) for name, columns in COLUMNS.items() if (name, len(columns)) not in declared
    ] == []
    assert OF_RUN - {"held", "as_strict"} <= set(COLUMNS)


# ---- the choice of a strategy -----------------------------------------------------------------------------


def test_what_the_law_of_strategies_reads_is_stated_and_what_is_stated_is_read() -> None:
    """Predicates with their columns, and each value that a rule names."""
    selector = Selector()
    stated: dict[tuple[str, int], list[set[Any]]] = {}
    facts_ = [fact for one in situations(selector.verbs.items(), {100}) for fact in one.facts()]
    for one in selector.strategies.values():
        facts_ += [("serves", (Name(f"/{one.name}"), *map(Name, pair))) for pair in _slashed(one.serves)]
    for name, args in facts_:
        columns = stated.setdefault((name, len(args)), [set() for _ in args])
        for column, value in zip(columns, args, strict=True):
            column.add(value)
    made = {clause.head.key for clause in selector.policy.clauses}
    atoms = [
        part.atom for clause in selector.policy.clauses for part in clause.body if isinstance(part, Literal_)
    ]
    assert {atom.key for atom in atoms} - made == set(stated)
    assert not made & set(stated)
    for atom in atoms:
        for arg, column in zip(atom.args, stated.get(atom.key, ()), strict=False):
            assert not isinstance(arg, Const) or decode(arg.value) in column, atom


def _slashed(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(f"/{verb}", f"/{kind}") for verb, kind in pairs]


def test_each_move_of_a_strategy_is_one_that_a_shipped_table_derives() -> None:
    """What NEXT BY names in a spec of specs/strategies is derived by its law, and no other move is."""
    derived = {
        str(decode(clause.head.args[0].value))
        for clause in load({"tdd.mg": all_shipped()["guard_tdd.mg"], **constitution()}).clauses
        if clause.head.pred == "next_action" and isinstance(clause.head.args[0], Const)
    }
    text = (ROOT / "specs/strategies/tdd_repair.spak").read_text(encoding="utf-8")
    assert set(re.findall(r"(/\w+) ->", text)) == derived
