"""The test kit for one's own tools, validators, backends and predicates: what ships passes it, what breaks a
promise does not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spak import schema_parts as parts
from spak import testing
from spak.datalog.values import Name
from spak.lang.catalog import NamedEntry, ToolEntry, ValidatorEntry
from spak.llm import BACKENDS
from spak.ports import Answer, Measurement, PredicateEntry, ToolResult
from spak.tools import TOOLS, results
from spak.tools.observe.predicates import PREDICATES
from spak.validators import VALIDATORS

PATCH = "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"
FILES = {"a.py": "x = 1\n", "k.c": "int f(void) { return 1; }\n", "k.cu": "\n", "t.txt": "x = {{x}}\n"}
ARGS: dict[str, dict[str, Any]] = {
    "apply_patch": {"patch": PATCH},
    "cc": {"source": "k.c"},
    "code_map": {},
    "find_symbol": {"symbol": "x"},
    "git_commit": {"message": "Add a"},
    "git_push": {"url": "https://git.example.org/a.git", "branch": "main"},
    "contained": {"root": "r", "changes": 1, "paths": ["a.py"]},
    "grep": {"pattern": "x"},
    "http_request": {"url": "https://api.example.org/"},
    "impact": {"symbol": "a.py"},
    "ask_person": {"question": "Which?"},
    "instantiate": {"template": "t.txt", "path": "b.txt", "params": {"x": 1}},
    "list_files": {},
    "model_request": {"provider": "anthropic", "path": "/v1/messages", "request": "{}"},
    "witnessed": {"agent": "claude", "event": "done", "id": "1", "tool": "Bash"},
    "nsight": {"cmd": ["./a"]},
    "nvcc": {"source": "k.cu"},
    "python_repl": {"code": "print(1)"},
    "read_ast": {"path": "a.py"},
    "read_file": {"path": "a.py"},
    "recall": {"ref": 1},
    "references": {"symbol": "x"},
    "run": {"cmd": ["true"]},
    "search_code": {"pattern": "x = $A"},
    "tunnel": {"host": "api.example.org", "port": 443},
    "tunnel_closed": {"host": "api.example.org", "port": 443, "sent": 1, "received": 2, "why": "closed"},
    "write_file": {"path": "b.py", "content": "y = 1\n"},
}
OPTIONS: dict[str, dict[str, Any]] = {
    "Command": {"cmd": ["true"]},
    "Compliance": {"artifact": "a.py", "axioms": [{"text": "It is short."}]},
    "CpuProfiler": {"source": "k.c"},
    "Judge": {"artifact": "a.py", "rubric": "It is short."},
    "Linter": {"tool": "ruff"},
    "Metric": {"source": "a.py", "cmd": ["true"], "metric": "ratio"},
}


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_every_tool_that_ships_keeps_the_contract(name: str) -> None:
    assert testing.tool(TOOLS[name], ARGS[name], FILES) == []


@pytest.mark.parametrize("name", sorted(VALIDATORS))
def test_every_validator_that_ships_keeps_the_contract(name: str) -> None:
    assert testing.validator(VALIDATORS[name](), OPTIONS.get(name, {}), FILES) == []


@pytest.mark.parametrize("name", sorted(BACKENDS))
def test_every_backend_that_ships_keeps_the_contract(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert testing.backend(BACKENDS[name]()) == []


@pytest.mark.parametrize("name", sorted(PREDICATES))
def test_every_predicate_that_ships_keeps_the_contract(name: str, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import b\n\ndef f():\n    b.g()\n")
    (tmp_path / "b.py").write_text("def g(): ...\n")
    asked: Any = {
        "entropy": [("secret", None)],
        "test_coverage": [("a.py",), (None,)],
        "dependency_link": [
            (one, two, three) for one in (None, "a.py") for two in (None, "b.py") for three in (None, "b")
        ],
        "symbol_graph": [("py:a.py#f", *[None] * 4), (None, None, None, "b.py", None)],
        "symbol_link": [
            ("py:a.py#f", None, None),
            (None, "py:b.py#g", None),
            ("py:a.py#f", "py:b.py#g", None),
        ],
        "symbol_impact": [(None, "b.py", None), (None, "b.py", Name("/untested"))],
    }
    assert testing.predicate(PREDICATES[name], asked[name], tmp_path) == []


ENTRY = ToolEntry("move", 1, "Moves.", parts.members(["to"], to=parts.text("Who.", 9)), effect="pure")


class Move:
    """A tool that does what a test says."""

    def __init__(self, entry: Any = ENTRY, does: Any = lambda call: results.done("moved")) -> None:
        self.entry = entry
        self.run = does


def _writes(call: Any) -> ToolResult:
    (call.workspace / "new").write_text("1")
    return results.done("")


def _raises(call: Any) -> ToolResult:
    raise KeyError("to")


def _counts(seen: list[int]) -> Any:
    return lambda call: seen.append(1) or results.done(str(len(seen)))


@pytest.mark.parametrize(
    ("made", "word"),
    [
        (Move(), ""),
        (object(), "does not implement spak.ports.Tool"),
        (Move(replace(ENTRY, name="Move it")), "is not a valid name"),
        (Move(replace(ENTRY, schema={"type": "object"})), "unknown members"),
        (Move(replace(ENTRY, schema={"type": "text"})), "text"),
        (Move(does=_writes), "changed the workspace"),
        (Move(does=_raises), "raised KeyError"),
        (Move(does=_counts([])), "something else"),
        (Move(does=lambda call: ToolResult("done")), "is not a status"),
        (Move(does=lambda call: ToolResult("exited", key={"a": object()})), "cannot be recorded"),
        (Move(does=lambda call: ToolResult("exited", diagnostics=({"code": "a"},))), "severity"),
        (Move(does=lambda call: "moved"), "no ToolResult"),
    ],
)
def test_what_breaks_the_contract_of_tools(made: Any, word: str) -> None:
    found = testing.tool(made, {"to": "alice"})
    assert (word in " ".join(found)) if word else found == []


def test_an_example_has_to_fit() -> None:
    assert "does not fit the schema" in testing.tool(Move(), {"too": "alice"})[0]


class Polite:
    """A validator that gives what a test says."""

    entry = ValidatorEntry("Polite", 1, "Looks.", parts.members([]))

    def __init__(self, gives: Any) -> None:
        self.gives = gives

    def measure(self, call: Any) -> Any:
        return self.gives


@pytest.mark.parametrize(
    ("gives", "word"),
    [
        (Measurement("checked", ({"name": "a", "ok": True, "code": ""},)), ""),
        (Measurement("checked", ({"name": "a", "ok": 1, "code": ""},)), "true or false"),
        (Measurement("checked", ({"name": "a", "ok": False, "code": ""},)), "has a code"),
        (Measurement("good"), "is not a status"),  # type: ignore[arg-type]
        (True, "no Measurement"),
    ],
)
def test_what_breaks_the_contract_of_validators(gives: Any, word: str) -> None:
    found = testing.validator(Polite(gives), {})
    assert (word in " ".join(found)) if word else found == []


class Parrot:
    """A backend that does what a test says."""

    entry = NamedEntry("parrot", "Says it again.")

    def __init__(self, answer: Any, pieces: tuple[str, ...] = ()) -> None:
        self.given, self.pieces = answer, pieces

    def check(self) -> None:
        return None

    def answer(self, prompt: Any, on_text: Any = None, cancel: Any = None) -> Any:
        for piece in self.pieces if on_text else ():
            on_text(piece)
        return self.given


@pytest.mark.parametrize(
    ("made", "word"),
    [
        (Parrot(Answer("hello"), ("hel", "", "hel", "lo")), ""),
        (Parrot(None), ""),
        (Parrot(Answer("hello"), ("hel",)), "pieces"),
        (Parrot("hello"), "neither"),
        (Parrot(Answer("hello", {"input": -1})), "usage"),
    ],
)
def test_what_breaks_the_contract_of_backends(made: Any, word: str) -> None:
    found = testing.backend(made)
    assert (word in " ".join(found)) if word else found == []


class Rows:
    """A predicate that gives one row list after the other."""

    def __init__(self, *given: Any, modes: tuple[str, ...] = ("+-",)) -> None:
        self.entry = PredicateEntry("rows", 1, "Rows.", ("X", "Y"), modes)
        self.given = list(given)

    def rows(self, args: Any, look: Any) -> Any:
        return self.given.pop(0) if len(self.given) > 1 else self.given[0]


@pytest.mark.parametrize(
    ("made", "word"),
    [
        (Rows([("a", 1)]), ""),
        (Rows([("a", 1)], [("a", 2)]), "other rows"),
        (Rows([("a",)]), "world.failed"),
        (Rows([("a", 1)], modes=("+-", "--")), "no question has the mode --"),
    ],
)
def test_what_breaks_the_contract_of_predicates(made: Any, word: str) -> None:
    found = testing.predicate(made, [("a", None)])
    assert (word in " ".join(found)) if word else found == []
