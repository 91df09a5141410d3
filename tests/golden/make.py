"""Make the golden ledgers of the kernel at hand: `python tests/golden/make.py`.

Writes `kernel-N/NAME.jsonl`, exports of whole runs, and `kernel-N/expected.json`. It refuses to write over
a folder that is there: decisions that changed are another number (VERSIONING.md), and the ledgers of the old
one stay beside the new ones. Before the first release of 1.0 a folder may be removed by hand instead.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent))

from cli_kit import EXAMPLES, spak  # noqa: E402  the helpers of the tests stand one folder up
from host_kit import PERMITS, TUNING, Look, Write, catalog, host, start  # noqa: E402
from law_kit import under  # noqa: E402
from spak.kernel.replay import replay  # noqa: E402
from spak.ledger.chain import is_record_line  # noqa: E402
from spak.ledger.export import export  # noqa: E402
from spak.ledger.files import FileLedgers  # noqa: E402
from spak.policy import approval  # noqa: E402
from spak.ports import Call, ToolResult  # noqa: E402
from spak.program.semantics import SEMANTICS  # noqa: E402
from spak.records import decode  # noqa: E402
from spak.runner import Run  # noqa: E402
from spak.runner.genesis import genesis  # noqa: E402
from spak.tools.apply_patch import ApplyPatch  # noqa: E402
from spak.tools.http_request import HttpRequest  # noqa: E402
from spak.workspace import Workspace  # noqa: E402

REPEATING = """
task Repeats {
  step a: tool.write { path: "a.txt" text: "same" }
  step b: tool.write { path: "a.txt" text: "same" }
  step c: tool.write { path: "a.txt" text: "same" }
  step d: tool.write { path: "a.txt" text: "same" }
}
"""
SPENT = """
AGENT Spent LEVEL 2 {
  CONFIG { BUDGET { steps: 2 } }
  START -> t
  TASK t {
    step a: tool.look { text: "1" }
    step b: tool.look { text: "2" }
    step c: tool.look { text: "3" }
  }
}
"""
UNDONE = """
task Undone {
  step q: llm.query { role: "coder" prompt: "A text?" output_var: text }
  step w: tool.write { path: "a.txt" text: text status: "timeout" }
}
"""
COMPARED = """
task Compared {
  step a: tool.look { text: "2 a" }
  evaluation { check lines: tool.look { text: "2 a" } }
  success: lines == 2
}
"""
REMEMBERED = """
task Remembered {
  step a: tool.look { text: "a.txt" }
  step b: tool.write { path: "a.txt" text: "1" }
  step c: tool.look { text: "a.txt" }
  step d: tool.look { text: "a.txt" }
}
"""
REMEMBERED_LAW = (
    PERMITS
    + """
Decl looked(Text, N) bound [/string, /number] descr [fold("count"), within("3 steps")].
feed_looked(T) :- event(E), tool(E, /look), argument(E, "text", T).
forbidden(A) :- tool(A, /look), argument(A, "text", T), looked(T, N), 2 <= N.
Decl known(Path) bound [/string] descr [fold("open"), counts("done")].
feed_known(P) :- event(E), tool(E, /look), argument(E, "text", P), result(E, "exit", 0).
close_known(P) :- event(E), tool(E, /write), argument(E, "path", P).
forbidden(A) :- tool(A, /write), argument(A, "path", P), !known(P).
"""
)
"""A law about the past: the fourth step is a third look within three steps."""
PLANNED = """
AGENT Planned LEVEL 5 {
  CONFIG { MODE stepwise BUDGET { steps: 40 tokens: 430 } }
  SYSTEM_MODEL M { AXIOM "Look before you write." HEURISTIC "Answer in JSON." }
  START -> see
  TASK see { GOAL "Find the id." TOOLS [look] RETRIES 5 NEXT { success -> keep fail -> see } }
  TASK keep { GOAL "Write it down." TOOLS [look, write] RETRIES 5 NEXT { success -> see fail -> keep } }
}
"""
"""Plans with a memory: misfits that come back, prompts that are compacted, and in the end refused."""

FOUND = """
AGENT Found LEVEL 2 {
  START -> see
  TASK see { GOAL "Find the id." TOOLS [look] OUTPUT id NEXT { success -> keep } }
  TASK keep {
    GOAL "Write down {{id}}."
    TOOLS [look]
    step ask: llm.query { prompt: "{{goal}} {{last_tool_output}}" output_var: text }
    step write: tool.write { path: "a.txt" text: text }
    step plan: llm.plan { prompt: "Look at it." }
    step tell: llm.query { prompt: "{{last_tool_output}}" }
  }
}
"""
"""What plans did, read by questions and by a GOAL; a fixed step whose tool no plan may choose."""

EXITS = """
AGENT Exits LEVEL 2 {
  CONFIG { BUDGET { steps: 20 } }
  START -> lint
  TASK lint { step l1: tool.run { cmd: "false" } NEXT { success -> done fail -> mended } }
  TASK mended { step m1: tool.run { cmd: "false" on_fail: continue } NEXT { success -> done } }
  TASK done { step d1: tool.run { cmd: "true" } }
}
"""
"""Tools that do not exit with 0: they fail a task that nothing else decides."""
TURNS = """
AGENT Turns LEVEL 5 {
  CONFIG { MODE stepwise BUDGET { steps: 60 } }
  START -> mend
  TASK mend {
    TOOLS [look, write] RETRIES 9
    step first: tool.look { text: "same" }
    step then: llm.plan { }
    NEXT { success -> mend fail -> mend }
  }
}
"""
"""Every try begins with the same step: four do something new, two name other tools, then three are alike."""
POLLED = """
task Polled {
  step w: tool.write { path: "a.txt" text: "a" exit: 1 poll: { every_s: 0 limit: 3 } on_fail: continue }
  step x: tool.write { path: "b.txt" text: "b" exit: 1 poll: { every_s: 0 limit: 2 } }
}
"""
SUMMARIZED = PLANNED.replace("MODE stepwise", "MODE stepwise MEMORY SUMMARIZE").replace("430", "1000")


CHECKS = """
AGENT Checks LEVEL 5 {
  START -> make
  TASK make {
    step l: tool.write { path: "long.txt" text: "LONG" }
    step s: tool.write { path: "short.txt" text: "short" }
    VALIDATOR Timer { file: "long.txt" }
    NEXT { success -> other, fail -> other }
  }
  TASK other { VALIDATOR Timer { file: "short.txt" } NEXT { success -> look, fail -> look } }
  TASK look { step k: tool.look { text: "a check failed on these files" } }
}
""".replace("LONG", "x" * 900)
"""A check that failed is not forgotten when the same validator passes with other options."""

TWO_NAMES = """
AGENT TwoNames LEVEL 5 {
  START -> mend
  TASK mend { GOAL "Write it." TOOLS [look, write] RETRIES 9 NEXT { success -> done fail -> mend } }
  TASK done { step d: tool.look { text: "done" } }
}
"""
"""Plans that name two tools which there are not, in turn."""

EMPTY = """
AGENT Empty LEVEL 2 {
  START -> a
  TASK a { step l: tool.look { text: "1" } NEXT { success -> nothing } }
  TASK nothing { }
}
"""
"""A task that has nothing to do."""

PATCHES = """
AGENT Patches LEVEL 5 {
  START -> mend
  TASK mend {
    RETRIES 9
    step q: llm.query { prompt: "A patch?" output_var: text }
    step p: tool.apply_patch { patch: "{{text}}" }
    NEXT { success -> mend }
  }
}
"""
"""A patch with quoted names and times, one of more than 16 KiB, and what is no patch."""

REQUESTS = """
AGENT Requests LEVEL 2 {
  CONFIG { BUDGET { requests: 2 } }
  START -> a
  TASK a {
    step l: tool.look { text: "1" } step m: tool.look { text: "2" } step n: tool.look { text: "3" }
  }
}
"""
REQUESTS_LAW = PERMITS + "forbidden(A) :- act(A, _), spent(/requests, N), allowance(/requests, M), M <= N.\n"

BARE = """
AGENT Bare LEVEL 2 {
  START -> a
  TASK a { step r: tool.http_request { url: "http://127.0.0.1:8451/x" } }
}
"""
BARE_LAW = (
    PERMITS
    + """reachable_kind(/loopback).
allowed_host("127.0.0.1").
permitted(A) :- tool(A, /http_request), asks_url(A, "http", "127.0.0.1", 8451).
"""
)
"""A request to an address that the operator's law permits."""
RELEASED = """
AGENT Released LEVEL 2 {
  CONFIG { APPROVALS ask }
  START -> a
  TASK a { step r: tool.look { text: "1" } }
}
"""
RELEASED_LAW = (
    PERMITS + (ROOT / "specs/laws/two_persons.mg").read_text(encoding="utf-8") + "release_tool(/look).\n"
)
"""A release that two people sign, one of them twice."""
PEOPLE = {name: bytes([number]) * 32 for number, name in enumerate(("alice", "bob"))}
LONG_TEXTS = """
AGENT LongTexts LEVEL 2 {
  START -> a
  TASK a {
    step q: llm.query { prompt: "A long text?" output_var: text }
    step w: tool.write { path: "a.txt" text: "{{text}}" }
  }
}
"""
"""A long answer that names a secret."""

CHECKS_LAW = PERMITS + "forbidden(Action) :- tool(Action, /look), checks_ran(_, /fail).\n"


class Patch:
    """`apply_patch` as far as a decision about it goes."""

    entry = ApplyPatch.entry

    def run(self, call: Call) -> ToolResult:
        path = call.workspace / "made.txt"
        path.write_text(str(call.args["patch"]), encoding="utf-8")
        return ToolResult("exited", 0, b"patched", 7, key={"size": path.stat().st_size})


class Asked(Look):
    """`http_request` as far as a decision about it goes."""

    entry = HttpRequest.entry

    def run(self, call: Call) -> ToolResult:
        return ToolResult("exited", 0, b"200\n", 4, key={"status": 200})


class Requesting(Look):
    """A tool whose record says that it sent a request."""

    def run(self, call: Call) -> ToolResult:
        return replace(super().run(call), requests=1, request_bytes=100)


def two_names(task: str, count: int) -> str:
    """Three tools that there are not, then one that there is."""
    names = ("launch", "halt", "launch", "look")
    return json.dumps({"tool": names[(count - 1) % len(names)], "args": {"text": f"{count}"}})


def patches(task: str, count: int) -> str:
    """A patch of each kind; nothing but noise in the end."""
    if count == 1:
        return '--- "a/a b.txt"\t2026-01-01\n+++ "b/a b.txt"\t2026-01-01\n@@ -1 +1 @@\n-a\n+b\n'
    if count == 2:
        return "--- a/long.txt\n+++ b/long.txt\n@@ -1 +1,400 @@\n-a\n" + f"+{'x' * 60}\n" * 400
    return "this is no patch"


APART: Mapping[str, tuple[str, str, Callable[[str, int], str]]] = {
    "two_names": (TWO_NAMES, PERMITS, two_names),
    "empty": (EMPTY, PERMITS, lambda task, count: ""),
    "patches": (PATCHES, PERMITS, patches),
    "requests": (REQUESTS, REQUESTS_LAW, lambda task, count: ""),
    "bare": (BARE, BARE_LAW, lambda task, count: ""),
    "long_texts": (LONG_TEXTS, PERMITS, lambda task, count: "x" * 20_000 + " secret://KEY"),
    "released": (RELEASED, RELEASED_LAW, lambda task, count: ""),
}
"""Runs with tools or people of their own, by name: the spec, the law and who answers."""


def apart(name: str, target: Path) -> None:
    """Make one run of APART."""
    spec, law, answers = APART[name]
    tools = {
        "look": Requesting() if name == "requests" else Look(), "write": Write(), "apply_patch": Patch(),
        "http_request": Asked(),
    }  # fmt: skip
    own = {} if name == "bare" else {"apply_patch": ApplyPatch.entry}
    own |= {"http_request": HttpRequest.entry} if name == "bare" else {}
    known = catalog()
    known = replace(known, tools={**known.tools, **own})
    keys = tuple(_key(person) for person in PEOPLE) if name == "released" else ()
    with tempfile.TemporaryDirectory() as made:
        place = Workspace(Path(made) / "workspace", Path(made) / "store")
        body = genesis(spec, known, {}, place.snapshot(), 5, {"run": name}, law=under(law), keys=keys)
        run = Run.create(FileLedgers(Path(made)), name, body, replace(host(), tools=tools), place)
        count = 0
        while run.advance("full_auto") == "waiting" and count < 40:
            count += 1
            if run.state.r6 is not None and run.state.r6.act == "approve":
                run.approve(_signed(run, "alice" if count < 3 else "bob"))
            else:
                run.answer(answers(run.state.r0.task, count))
        with (target / f"{name}.jsonl").open("wb") as stream:
            export(run.ledger, stream)
        run.close()


def _key(person: str) -> dict[str, Any]:
    public = Ed25519PrivateKey.from_private_bytes(PEOPLE[person]).public_key().public_bytes_raw()
    text = approval.encoded(public)
    return {"id": approval.key_id(text), "name": person, "public": text, "roles": [approval.APPROVER]}


def _signed(run: Run, person: str) -> dict[str, Any]:
    effect = run.state.r6
    assert effect is not None
    return approval.make(
        PEOPLE[person], action=approval.action_hash(effect.name, effect.args["args"]), of=effect.id,
        run=run.state.run, step=f"{effect.task}/{effect.step}", expires=2**52,
    )  # fmt: skip


def main() -> int:
    target = HERE / f"kernel-{SEMANTICS}"
    if any(target.glob("*.jsonl")):
        print(f"{target} is there already: read the first lines of {Path(__file__).name}", file=sys.stderr)
        return 1
    target.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        _examples(folder, target)
        for name, spec in (
            ("tuning", TUNING),
            ("watchdog", REPEATING),
            ("budget", SPENT),
            ("undone", UNDONE),
            ("polled", POLLED),
            ("compared", COMPARED),
        ):
            _own(folder / name, target / f"{name}.jsonl", spec)
        _own(folder / "planned", target / "planned.jsonl", PLANNED, planned)
        _own(folder / "found", target / "found.jsonl", FOUND, finding)
        _own(folder / "turns", target / "turns.jsonl", TURNS, turns)
        _own(folder / "summarized", target / "summarized.jsonl", SUMMARIZED, planned)
        _own(folder / "checks", target / "checks.jsonl", CHECKS, law=CHECKS_LAW)
        _own(folder / "remembered", target / "remembered.jsonl", REMEMBERED, law=REMEMBERED_LAW)
    for name in APART:
        apart(name, target)
    expect(target)
    return 0


def expect(target: Path) -> None:
    """Write what the ledgers of a folder replay to."""
    expected = {}
    for path in sorted(target.glob("*.jsonl")):
        lines = path.read_bytes().splitlines(keepends=True)
        found = replay(decode(line) for line in lines if is_record_line(line))
        r7 = found.state.r7
        expected[path.stem] = {
            "records": found.records,
            "state": found.state.status,
            "codes": list(r7.codes),
            "summary": found.state.summary,
        }
    (target / "expected.json").write_text(json.dumps(expected, indent=2) + "\n", encoding="utf-8")


def _examples(folder: Path, target: Path) -> None:
    """Runs of the examples as the command makes them."""
    for name, answers in (("hello", ()), ("build_feature", (EXAMPLES / "fix.patch",))):
        spak(folder, "run", str(EXAMPLES / f"{name}.spak"), "--mode", "stepwise", "--seed", "1")
        for answer in answers:
            spak(folder, "step", "--resume", "--answer-file", str(answer))
        spak(folder, "export", "latest", "--output", str(target / f"{name}.jsonl"))
    (folder / "exits.spak").write_text(EXITS, encoding="utf-8")
    spak(folder, "run", "exits.spak", "--seed", "1")
    spak(folder, "export", "latest", "--output", str(target / "exits.jsonl"))


def planned(task: str, count: int) -> str:
    """An answer to the plan of a task: every fourth is none, others are long looks and short writes."""
    if count % 4 == 3:
        return "let me think"
    if task == "see":
        args = {"text": f"id_{count:03} " + f"word{count} " * 120}
        return json.dumps({"control_packet": {"tool_calls": [{"tool": "look", "args": args}]}})
    return json.dumps({"tool": "write", "args": {"path": f"f{count}.txt", "text": f"id_{count:03}"}})


def finding(task: str, count: int) -> str:
    """Answers to plans and questions in turn; the first answer to the second plan is not in its TOOLS."""
    called = {1: "look", 3: "write", 4: "look"}
    return json.dumps({"tool": called[count], "args": {"text": "id_7"}}) if count in called else "id_7"


def turns(task: str, count: int) -> str:
    """An answer to the plan of TURNS."""
    if count in (5, 6):
        return json.dumps({"tool": "launch" if count == 5 else "halt", "args": {"text": "x"}})
    args = {"path": "a.txt", "text": f"{count if count < 5 else 'same'}"}
    return json.dumps({"tool": "write", "args": args})


def _own(
    folder: Path,
    path: Path,
    spec: str,
    answers: Callable[[str, int], str] = lambda task, count: "yes",
    law: str = PERMITS,
) -> None:
    """A run on the plain host of the runner's tests; whatever it asks is answered with `yes`, or as given."""
    run = start(folder, spec, path.stem, law=law)
    count = 0
    while run.advance("full_auto") == "waiting" and count < 40:
        count += 1
        run.answer(answers(run.state.r0.task, count))
    with path.open("wb") as stream:
        export(run.ledger, stream)
    run.close()


if __name__ == "__main__":
    sys.exit(main())
