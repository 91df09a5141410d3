"""The policy engine beside mangle-py and clingo in the same run.

A decision is what a run pays for: facts of a request asserted, `permitted` asked, the facts retracted, with
rules and world loaded. The floors evaluate the same program from scratch, as they have to. CPU time of the
process that does it; rows are compared with the floor's where both evaluate the very same program.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from spak import data
from spak.datalog import Fact, Name, Session, load
from spak.datalog.explain import prove
from spak.datalog.proof_checker import accepts
from spak.datalog.why_not import why_not

_FLOOR = """
import json, sys, time
kind, program, times = json.load(sys.stdin)
def by_mangle():
    import mangle
    return len(mangle.Program(program).query(QUERY))
def by_clingo():
    import clingo
    control = clingo.Control(["--warn=none"])
    control.add("base", [], program)
    control.ground([("base", [])])
    found = []
    control.solve(on_model=lambda model: found.extend(
        item for item in model.symbols(atoms=True) if item.name == QUERY))
    return len(found)
QUERY = sys.argv[1]
run = by_mangle if kind == "mangle" else by_clingo
run()
best = []
for _ in range(times):
    before = time.process_time()
    rows = run()
    best.append(time.process_time() - before)
print(json.dumps([min(best), rows]))
"""


def rows() -> list[dict[str, Any]]:
    return [*_small(), *_large(), *_impact(), *_chain(), *_loading()]


def constitution(count: int) -> str:
    """A policy of so many rules: default deny, forbidden wins, strings, negation."""
    lines = [
        "Decl action(A).",
        "Decl binary(A, B).",
        "Decl argument(A, V).",
        "Decl path(A, P).",
        "Decl tool_ok(B).",
        "Decl inside(P).",
        "permitted(A) :- action(A), safe(A), !forbidden(A).",
        "safe(A) :- binary(A, B), tool_ok(B).",
        "forbidden(A) :- path(A, P), !inside(P).",
    ]
    for at in range(count - 3):
        head = "forbidden(A)" if at % 3 else "suspect(A)"
        test = f':string:contains(V, "--flag{at}")' if at % 4 else f'V = "-x{at}"'
        lines.append(f"{head} :- binary(A, /bin/b{at}), argument(A, V), {test}.")
    lines.append("forbidden(A) :- suspect(A), path(A, _).")
    return "\n".join(lines)


def world(count: int) -> list[Fact]:
    """So many facts that stand between requests."""
    facts: list[Fact] = []
    for at in range(count):
        match at % 5:
            case 0:
                facts.append(("tool_ok", (Name(f"/bin/b{at}"),)))
            case 1:
                facts.append(("inside", (f"src/f{at}.py",)))
            case 2:
                facts.append(("action", (Name(f"/old/{at}"),)))
            case 3:
                facts.append(("binary", (Name(f"/old/{at - 1}"), Name(f"/bin/b{at}"))))
            case _:
                facts.append(("argument", (Name(f"/old/{at - 2}"), f"--flag{at}")))
    return facts


def request(at: int) -> list[Fact]:
    action = Name(f"/new/{at}")
    return [
        ("action", (action,)),
        ("binary", (action, Name("/bin/b5"))),
        ("path", (action, "src/f1.py")),
        *(("argument", (action, f"--flag{value}")) for value in (at + 1000, at + 2000)),
    ]


def _decisions(session: Session, count: int) -> list[float]:
    """Milliseconds of CPU for each decision; the first few only warm up."""
    found = []
    for at in range(count + 20):
        facts = request(at)
        before = time.process_time_ns()
        session.assert_facts(facts)
        allowed = session.holds("permitted", facts[0][1][0])
        session.retract_facts(facts)
        found.append((time.process_time_ns() - before) / 1e6)
        assert allowed
    return sorted(found[20:])


def _small() -> list[dict[str, Any]]:
    text = constitution(30)
    session = load({"c.mg": text}).session(world(200))
    spent = _decisions(session, 500)
    whole = _text(text, [*world(200), *request(0)])
    session.assert_facts(request(0))
    ours = len(session.query("permitted"))
    floor = _floor("mangle", whole, "permitted", ours)
    asp = _floor("clingo", _asp_decision(world(200)), "permitted", None)
    proof = prove(session, "permitted", Name("/new/0"))
    facts = [*world(200), *request(0)]
    assert accepts(session.policy, facts, proof)
    return [
        _row(
            "decision, 30 rules and 200 facts, p50, beside mangle-py",
            spent[250],
            floor,
            "ms",
            "<= 0.1 of floor",
        ),
        _row("the same, p95, beside clingo", spent[475], asp, "ms", ""),
        _row(
            "proof of a decision", _best(lambda: prove(session, "permitted", Name("/new/0"))), None, "ms", ""
        ),
        _row(
            "why-not of a decision", _best(lambda: why_not(session, "permitted", Name("/no"))), None, "ms", ""
        ),
        _row(
            "all from scratch, 30 rules and 200 facts",
            _best(lambda: session.policy.session(facts)),
            floor,
            "ms",
            "",
        ),
    ]


def _large() -> list[dict[str, Any]]:
    session = load({"c.mg": constitution(1000)}).session(world(10_000))
    spent = _decisions(session, 300)
    return [
        _row("decision, 1,000 rules and 10,000 facts, p50", spent[150], None, "ms", ""),
        _row("decision, 1,000 rules and 10,000 facts, p95", spent[285], None, "ms", "< 5"),
    ]


_IMPACT = """Decl link(X, Y).
Decl modified(X).
impacted(X) :- link(X, Y), modified(Y).
impacted(X) :- link(X, Y), impacted(Y).
"""


def _impact() -> list[dict[str, Any]]:
    draw = random.Random(7)
    links = sorted({(at, draw.randrange(10_000)) for at in range(10_000) for _ in range(3)})
    facts: list[Fact] = [("link", link) for link in links] + [("modified", (1,))]
    policy = load({"i.mg": _IMPACT})
    spent = _best(lambda: policy.session(facts), 3)
    ours = len(policy.session(facts).query("impacted"))
    asp = " ".join(f"link({one},{two})." for one, two in links) + " modified(1)."
    asp += " impacted(X) :- link(X,Y), modified(Y). impacted(X) :- link(X,Y), impacted(Y)."
    return [
        _row(
            "impact on 10,000 nodes of degree 3, beside clingo",
            spent,
            _floor("clingo", asp, "impacted", ours, 2),
            "ms",
            "< 1000",
        )
    ]


def _chain() -> list[dict[str, Any]]:
    links: list[Fact] = [("link", (at, at + 1)) for at in range(300)]
    declared = "Decl link(X, Y).\n"
    found = []
    for name, rules, asp in (
        ("right", "p(X, Y) :- link(X, Y).\np(X, Z) :- link(X, Y), p(Y, Z).\n", True),
        ("left", "p(X, Y) :- link(X, Y).\np(X, Z) :- p(X, Y), link(Y, Z).\n", True),
        ("nonlinear, made linear", "p(X, Y) :- link(X, Y).\np(X, Z) :- p(X, Y), p(Y, Z).\n", False),
    ):
        policy = load({"c.mg": declared + rules})
        floor = None
        if asp:
            text = rules + "".join(f"link({at},{at + 1}). " for at in range(300))
            floor = _floor("clingo", text, "p", 45_150, 1)
        assert len(policy.session(links).query("p")) == 45_150
        spent = _best(lambda policy=policy: policy.session(links), 2)
        aim = "" if asp else "< 500"
        found.append(_row(f"300-node chain, all pairs, {name}", spent, floor, "ms", aim))
    facts: list[Fact] = [*links, ("modified", (300,))]
    policy = load({"c.mg": _IMPACT})
    text = _IMPACT + "".join(f"link({at}, {at + 1}).\n" for at in range(300)) + "modified(300).\n"
    floor = _floor("mangle", text, "impacted", 300, 1)
    spent = _best(lambda: policy.session(facts), 3)
    found.append(_row("300-node chain, impact, beside mangle-py", spent, floor, "ms", ""))
    return found


def _loading() -> list[dict[str, Any]]:
    text = constitution(100)
    shipped = {path.name: path.read_text() for path in sorted(data.path("specs/policy").glob("*.mg"))}
    policy = load(shipped)
    return [
        _row(
            "loading the shipped constitution, parsed", _best(lambda: load(shipped), 3), None, "ms", "< 100"
        ),
        _row(
            "loading 100 rules, parsed and checked",
            _best(lambda: load({"c.mg": text}), 3),
            None,
            "ms",
            "< 100",
        ),
        _row("a session of the shipped constitution", _best(lambda: policy.session(), 3), None, "ms", ""),
    ]


def _row(name: str, ours: float, floor: float | None, unit: str, aim: str) -> dict[str, Any]:
    return {"name": name, "ours": ours, "floor": floor, "unit": unit, "aim": aim}


def _best(call: Callable[[], object], times: int = 5) -> float:
    """Milliseconds of CPU, the best of several."""
    best = float("inf")
    for _ in range(times):
        before = time.process_time()
        call()
        best = min(best, time.process_time() - before)
    return best * 1000


def _text(rules: str, facts: list[Fact]) -> str:
    """One file with rules and facts, as mangle-py wants it."""
    lines = [f"{pred}({', '.join(_shown(value) for value in args)})." for pred, args in facts]
    return rules + "\n" + "\n".join(lines) + "\n"


def _shown(value: Any) -> str:
    return str(value) if isinstance(value, Name | int) else json.dumps(value)


def _asp_decision(facts: list[Fact]) -> str:
    """The same shape for clingo, its string tests left out: it has none."""
    lines = [
        "permitted(A) :- action(A), safe(A), not forbidden(A).",
        "safe(A) :- binary(A, B), tool_ok(B).",
        "forbidden(A) :- path(A, P), not inside(P).",
        "forbidden(A) :- suspect(A), path(A, _).",
    ]
    lines += [
        f'{"forbidden" if at % 3 else "suspect"}(A) :- binary(A, "/bin/b{at}"), argument(A, "-x{at}").'
        for at in range(27)
    ]
    for pred, args in [*facts, *request(0)]:
        lines.append(f"{pred}({', '.join(json.dumps(str(value)) for value in args)}).")
    return "\n".join(lines)


def _floor(kind: str, program: str, query: str, expected: int | None, times: int = 5) -> float | None:
    """Milliseconds of CPU of the other engine in a process of its own; None when it is not installed."""
    module = "mangle" if kind == "mangle" else "clingo"
    there = subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True, check=False)
    if there.returncode != 0:
        return None
    done = subprocess.run(
        [sys.executable, "-c", _FLOOR, query],
        input=json.dumps([kind, program, times]),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    spent, found = json.loads(done.stdout)
    assert expected is None or found == expected, (kind, found, expected)
    return float(spent) * 1000
