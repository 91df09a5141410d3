"""Long texts and texts put together with them: judged by what is in them, bounded, and never filled.

A secret, a path, a host, a command and a patch go nowhere by such a text that they may not go when the spec
says them itself. The property test tries ways, lengths and splits at random; `make fuzz` tries many more.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from host_kit import Timer
from law_kit import under
from spak import canon
from spak.errors import RunError, SpecError
from spak.kernel.replay import replay
from spak.kernel.rules import INLINE, MAX_FILLED
from spak.lang import parse
from spak.lang.catalog import Catalog, ToolEntry
from spak.lang.check import check
from spak.ledger.memory import MemoryBlobs, MemoryLedgers
from spak.policy.facts import read_text
from spak.ports import Call, ToolResult
from spak.proposers.tuner import Tuner
from spak.runner import Host, Run, blobs, observe
from spak.runner.genesis import genesis
from spak.runner.secrets import Secrets
from spak.secrets.secret import Secret
from spak.tools.apply_patch import ApplyPatch
from spak.tools.git_commit import GitCommit
from spak.tools.http_request import HttpRequest
from spak.tools.run import Run as RunTool
from spak.tools.write_file import WriteFile
from spak.workspace import Workspace

VALUE = "hunter2-and-more"
TOKEN = "ghp_" + "a1B2" * 9
LAW = """
permitted(Action) :- tool(Action, /say).
permitted(Action) :- tool(Action, /wide).
permitted(Action) :- tool(Action, /note), !named(Action).
named(Action) :- argument(Action, "text", T), :string:contains(T, "forbidden").
named(Action) :- cut_argument(Action, _).
Decl named(Action) bound [/name].
allowed_host("docs.python.org").
permitted(Action) :- sends_body(Action), tool(Action, /http_request).
"""
MAY = LAW + 'secret_may_go("KEY", /write_file, "content").'


class Say:
    """A tool that says the n-th text of the test: what is in no spec."""

    entry = ToolEntry("say", 1, "says", {"type": "object"}, "pure", writes=False, sandboxed=False)

    def __init__(self, texts: list[str]) -> None:
        self._texts = texts

    def run(self, call: Call) -> ToolResult:
        text = self._texts[int(call.args["n"])].encode()
        return ToolResult("exited", 0, text, len(text), key={"n": call.args["n"]})


class Recorder:
    """A tool as the kernel knows it, that keeps what it was called with and does nothing."""

    def __init__(self, entry: ToolEntry, calls: list[Any]) -> None:
        self.entry = entry
        self._calls = calls

    def run(self, call: Call) -> ToolResult:
        self._calls.append([self.entry.name, dict(call.args)])
        return ToolResult("exited", 0, b"done", 4, key={"n": len(self._calls)})


NOTE = ToolEntry("note", 1, "notes", {"type": "object"}, "pure")
MOST = {"type": "string", "maxLength": 40_000, "pattern": "^x*$"}
WIDE = ToolEntry("wide", 1, "takes", {"type": "object", "properties": {"text": MOST}}, "pure")
TOOLS = (WriteFile.entry, HttpRequest.entry, ApplyPatch.entry, GitCommit.entry, RunTool.entry, NOTE, WIDE)


class Tried:
    """A run of a spec on recording tools; `texts` are what `say` says, `answers` what a person answers."""

    def __init__(
        self, spec: str, texts: list[str] | None = None, answers: dict[str, str] | None = None, law: str = LAW
    ) -> None:
        self.calls: list[Any] = []
        says = Say(texts or [])
        tools = {"say": says} | {entry.name: Recorder(entry, self.calls) for entry in TOOLS}
        known = Catalog(
            tools={name: tool.entry for name, tool in tools.items()}, validators={"Timer": Timer.entry}
        )
        with tempfile.TemporaryDirectory() as made:
            place = Workspace(Path(made) / "workspace", Path(made) / "store")
            body = genesis(spec, known, {}, place.snapshot(), 5, {"run": "r"}, law=under(law))
            secrets = Secrets({"KEY": Secret(VALUE)})
            made_of = Host(tools=tools, validators={"Timer": Timer()}, secrets=secrets)
            run = Run.create(MemoryLedgers(), "r", body, made_of, place)
            given = answers or {}
            while (
                run.advance("full_auto") == "waiting"
            ):  # what is denied is asked for again, as often as it may
                run.answer(given.get(run.state.r0.step, given.get("", "yes")))
            self.records = [record for record, _ in run.ledger.read()]
            self.codes, self.error = run.state.r7.codes, run.state.r4
            run.close()
        assert replay(iter(self.records)).difference is None

    @property
    def code(self) -> str:
        """Why it ended, `called` where a tool was called."""
        return "called" if self.calls else self.codes[0]


def said(value: str, args: str = 'path: "copy" content: ', tool: str = "write_file") -> str:
    return f"""
    AGENT Says LEVEL 2 {{
      START -> a
      TASK a {{
        step s: tool.say {{ n: 0 output_var: one }}
        step t: tool.say {{ n: 1 output_var: two }}
        step w: tool.{tool} {{ {args}{value} }}
      }}
    }}
    """


@pytest.mark.findings("A1")
@pytest.mark.parametrize("length", [0, INLINE - 12, INLINE - 11, 100_000])
@pytest.mark.parametrize("value", ['"{{one}}"', "one", '"so: {{one}}, {{two}}"', '"{{two}}{{one}}"'])
def test_a_secret_in_what_a_tool_said_is_judged_whatever_its_length(length: int, value: str) -> None:
    texts = ["x" * length + " secret://KEY", "y" * INLINE + "secret://"]
    assert Tried(said(value), texts).code == "policy.forbidden"
    assert Tried(said(value), [texts[0].replace(" secret://KEY", ""), "y"]).code == "called"


@pytest.mark.findings("A1")
def test_a_secret_that_only_the_whole_text_names_is_judged() -> None:
    texts = ["y" * INLINE + "secret://", "KEY" + "x" * INLINE]
    assert Tried(said('"{{one}}{{two}}"'), texts).code == "policy.forbidden"
    assert Tried(said('"{{one}}KEY"'), texts).code == "policy.forbidden"


@pytest.mark.findings("A1")
def test_where_a_secret_may_go_it_is_filled_into_short_texts_alone() -> None:
    short = Tried(said('"{{one}}"'), ["secret://KEY", ""], law=MAY)
    assert short.calls == [["write_file", {"path": "copy", "content": VALUE}]]
    long = Tried(said('"{{one}}"'), ["x" * INLINE + " secret://KEY", ""], law=MAY)
    assert long.calls == [] and long.error is not None and long.error["code"] == "secret.long_text"


@pytest.mark.findings("A1")
def test_a_model_s_long_answer_is_judged_by_what_is_in_it() -> None:
    spec = """
    AGENT Plans LEVEL 5 {
      CONFIG { MODE stepwise BUDGET { steps: 9 } }
      START -> a
      TASK a { GOAL "Write it." TOOLS [write_file] RETRIES 0 }
    }
    """
    for content in ("secret://KEY", "x" * 30_000 + " secret://KEY", "x" * 30_000 + f" {TOKEN}"):
        call = {"tool": "write_file", "args": {"path": "n.txt", "content": content}}
        tried = Tried(spec, answers={"": canon.dumps(call).decode()})
        assert tried.calls == [] and "policy.forbidden" in str(tried.records[-1].body) + str(tried.error)


@pytest.mark.findings("A1")
def test_the_value_of_a_key_in_a_long_text_is_judged() -> None:
    assert Tried(said('"{{one}}"'), [TOKEN, ""]).code == "policy.forbidden"
    assert Tried(said('"{{one}}"'), ["x" * INLINE + f" {TOKEN}", ""]).code == "policy.forbidden"


@pytest.mark.findings("A1")
def test_a_law_about_an_argument_is_told_that_it_is_long() -> None:
    for text in ("forbidden", "x" * 500 + "forbidden", "x" * INLINE + "forbidden"):
        assert Tried(said('"{{one}}"', "text: ", "note"), [text, ""]).code.startswith("policy."), len(text)
    assert Tried(said('"{{one}}"', "text: ", "note"), ["fine", ""]).code == "called"


@pytest.mark.findings("A1")
def test_the_bytes_of_a_long_body_count_against_a_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observe, "resolve", lambda host, cancel: ("93.184.216.34",))
    law = LAW + "forbidden(A) :- takes(A, /request_bytes, N), 10000 < N.\n"
    for size, code in ((100, "called"), (12_000, "policy.forbidden"), (40_000, "policy.forbidden")):
        args = 'url: "https://docs.python.org/3/" method: "POST" body: '
        assert Tried(said("one", args, "http_request"), ["x" * size, ""], law=law).code == code


@pytest.mark.findings("A1")
@pytest.mark.parametrize("key", ["$blob", "$text", "$other"])
@pytest.mark.parametrize(
    "spec",
    [
        'task T { step a: tool.note { text: { "KEY": ["secret://", "KEY"] } } }',
        'task T { step a: tool.note { text: [{ x: { "KEY": "H" } }] } }',
        'task T { step a: tool.note { "KEY": "H" } }',
        'AGENT A LEVEL 5 { START -> t TASK t { VALIDATOR Timer { file: { "KEY": "H", size: 10 } } } }',
        'AGENT A LEVEL 5 { START -> t TASK t { PROPOSER tuner { x: { "KEY": "H" } } TOOLS [note] } }',
    ],
)
def test_a_spec_does_not_write_the_kernel_s_references(key: str, spec: str) -> None:
    known = Catalog({"note": NOTE}, {"Timer": Timer.entry}, {"tuner": Tuner.entry})
    found = [
        item for item in check(parse(spec.replace('"KEY"', f'"{key}"')), known) if item.severity == "error"
    ]
    assert "lang.reference" in [item.code for item in found]
    with pytest.raises(SpecError):
        Tried(spec.replace('"KEY"', f'"{key}"'))


# ---- sizes


@pytest.mark.findings("A7")
def test_what_is_used_fits_the_schema() -> None:
    for text, count, code in (
        ("x" * 20_000, 2, "called"),
        ("x" * 20_000, 3, "schema.max_length"),
        ("x" * 20_000 + "y", 1, "schema.pattern"),
    ):
        tried = Tried(said('"' + "{{one}}" * count + '"', "text: ", "wide"), [text, ""])
        assert (tried.error or {"code": tried.code})["code"] == code
        assert [call[1]["text"] for call in tried.calls] == ([text * count] if code == "called" else [])


@pytest.mark.findings("A7")
def test_what_a_step_fills_in_is_bounded() -> None:
    size = 1_000_000
    fits, many = MAX_FILLED // size, MAX_FILLED // size + 1
    texts = ["x" * size, ""]
    lists = "[" + ", ".join(["one"] * many) + "]"
    for value in (f'"{"{{one}}" * many}"', lists):
        assert Tried(said(value, "text: ", "note"), texts).code == "run.text_too_long"
    ask = "AGENT A LEVEL 2 { START -> a TASK a { step s: tool.say { n: 0 output_var: one } MORE } }"
    prompt = f'step q: llm.query {{ prompt: "{"{{one}}" * many}" }}'
    assert Tried(ask.replace("MORE", prompt), texts).code == "run.text_too_long"
    goal = ask.replace(
        "MORE }", f'NEXT {{ success -> b }} }} TASK b {{ GOAL "{"{{one}}" * many}" TOOLS [note] }}'
    )
    assert Tried(goal, texts).code == "run.text_too_long"
    success = ask.replace("MORE", f'success: file_contains("a", "{"{{one}}" * many}")')
    assert Tried(success, texts).code == "run.text_too_long"
    assert fits * size <= MAX_FILLED < many * size


@pytest.mark.findings("A7")
def test_no_value_is_expanded_beyond_all_bounds() -> None:
    kept = MemoryBlobs({})
    long = {"$blob": kept.put(b"x" * (1 << 20)), "size": 1}
    assert len(blobs.expand({"$text": [long] * 32}, kept)) == 32 << 20
    with pytest.raises(RunError) as caught:
        blobs.expand([{"$text": [long] * 20}, {"a": [long] * 13}], kept)
    assert caught.value.code == "run.text_too_long"
    seen = observe.observe({"texts": [{"$text": [long] * 33}]}, Path("/"), kept)
    assert seen == {"trouble": ["world.too_large"]}
    atom = {"function": "file_contains", "args": ["a", {"$text": [long] * 33}]}
    assert observe.facts([atom], Path("/"), kept) == [False]


# ---- the property

PAYLOADS: Mapping[str, tuple[str, list[str]]] = {
    "write_file content": ('path: "a.txt" content: ', ["secret://KEY", TOKEN, "fine"]),
    "write_file path": (
        'content: "a" path: ',
        ["a.txt", ".env", "../x", "/etc/passwd", ".git/config", "x/../../y", "secret://KEY", ".ssh/id_rsa"],
    ),
    "http_request url": (
        "url: ",
        [
            "https://docs.python.org/3/",
            "https://evil.example/",
            "http://docs.python.org/",
            "https://docs.python.org/?k=secret://KEY",
            "https://docs.python.org@evil.example/",
        ],
    ),
    "http_request body": (
        'url: "https://docs.python.org/3/" method: "POST" body: ',
        ["secret://KEY", TOKEN, "fine"],
    ),
    "http_request headers": (
        'url: "https://docs.python.org/3/" headers: { Accept: ',
        ["text/html", "secret://KEY", "x-secret://KEY", TOKEN],
    ),
    "git_commit message": ("message: ", ["secret://KEY", TOKEN, "fine"]),
    "apply_patch patch": (
        "patch: ",
        [
            f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-a\n+{text}\n"
            for path in ("a.txt", ".env", "../x", ".git/config")
            for text in ("b", "secret://KEY")
        ],
    ),
    "run cmd": ("cmd: [", ["ls", "rm", "/bin/sh", "secret://KEY", "../../bin/x"]),
    "note text": ("text: ", ["forbidden", "fine", "secret://KEY"]),
}
EXAMPLES = int(os.environ.get("SPAK_FUZZ_EXAMPLES", "60"))
WAYS = ("literal", "tool", "last", "answer")
LENGTHS = st.one_of(
    st.integers(0, 40),
    st.integers(INLINE - 40, INLINE + 40),
    st.integers(65_500, 65_560),  # a commit's message ends there
    st.sampled_from([300, 390, 400, 410, 4_090, 30_000]),
)


@st.composite
def cases(draw: Any) -> tuple[str, str, list[tuple[str, str]], bool]:
    """The tool, the text before its argument, the pieces of the text with their ways, and whether a single
    one is given as a variable and not within a text."""
    name = draw(st.sampled_from(sorted(PAYLOADS)))
    before, texts = PAYLOADS[name]
    text = draw(st.sampled_from(texts))
    pad = draw(st.sampled_from(["", "x", " "]))
    text = pad * draw(LENGTHS) + text if draw(st.booleans()) else text + pad * draw(LENGTHS)
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=3)))
    ends = [0, *cuts, len(text)]
    pieces = [text[one:other] for one, other in pairwise(ends)]
    ways = draw(st.lists(st.sampled_from(WAYS), min_size=len(pieces), max_size=len(pieces)))
    return name.split()[0], before, list(zip(ways, pieces, strict=True)), draw(st.booleans())


def spec_of(
    tool: str, before: str, parts: list[tuple[str, str]], bare: bool
) -> tuple[str, list[str], dict[str, str]]:
    """A spec that gives the tool the parts joined; what its tool says, and what a person answers."""
    steps, holes, texts = [], [], []
    answers: dict[str, str] = {}
    for at, (way, text) in enumerate(parts):
        if way == "literal":
            holes.append(canon.dumps(text).decode()[1:-1])
        elif way == "answer":
            steps.append(f'step s{at}: llm.query {{ prompt: "?" output_var: v{at} }}')
            holes.append(f"{{{{v{at}}}}}")
            answers[f"s{at}"] = text
        else:
            last = way == "last" and not any(other in ("tool", "last") for other, _ in parts[at + 1 :])
            out = "" if last else f" output_var: v{at}"
            steps.append(f"step s{at}: tool.say {{ n: {len(texts)}{out} }}")
            holes.append("{{last_tool_output}}" if last else f"{{{{v{at}}}}}")
            texts.append(text)
    value = '"' + "".join(holes) + '"'
    if bare and len(parts) == 1 and parts[0][0] != "literal":
        value = holes[0].strip("{}")
    closing = " }" if before.endswith("{ Accept: ") else "]" if before.endswith("[") else ""
    spec = f"""
    AGENT Fuzzed LEVEL 2 {{
      START -> a
      TASK a {{ {" ".join(steps)} step w: tool.{tool} {{ {before}{value}{closing} }} }}
    }}
    """
    return spec, texts, answers


@pytest.mark.findings("A1")
@pytest.mark.fuzz
@settings(max_examples=EXAMPLES, deadline=None, derandomize="SPAK_FUZZ_EXAMPLES" not in os.environ)
@given(cases())
def test_nothing_goes_by_pieces_that_may_not_go_in_one(case: Any) -> None:
    tool, before, parts, bare = case
    whole = "".join(text for _, text in parts)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(observe, "resolve", lambda host, cancel: ("93.184.216.34",))
        direct, _ = called(spec_of(tool, before, [("literal", whole)], False)[0])
        calls, refers = called(*spec_of(tool, before, parts, bare))
    assert calls == direct or (refers and not calls), (calls, direct)


def called(spec: str, *more: Any) -> tuple[list[Any], bool]:
    """What the tool was called with, nothing where that is no spec; and whether the run knew a text by a
    reference, as it does where one is long."""
    try:
        tried = Tried(spec, *more, law=MAY)
    except SpecError:
        return [], False
    return tried.calls, any("$blob" in str(record.body) for record in tried.records)


@pytest.mark.findings("A1")
def test_what_a_law_is_told_of_a_long_text() -> None:
    seen = read_text(f"a secret://ONE secret://ONE {TOKEN} 'secret://TWO'")
    assert (seen.names, seen.secret) == (("ONE", "TWO"), "access_token")
