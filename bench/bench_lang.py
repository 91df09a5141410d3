"""The language's speed beside a floor of the same run: Lark on the same grammar and the same text.

`rows()` gives one dict per figure: name, ours, floor, unit, aim. CPU time, best of five.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from spak.lang import check, parse
from spak.lang.catalog import Catalog, ToolEntry, ValidatorEntry
from spak.lang.parser import MAX_BYTES
from spak.lang.parser.generate import GRAMMAR

_AGENT = """
AGENT Tuner LEVEL 5 {{
  CONFIG {{ MODE full_auto, BUDGET {{ steps: 500, elapsed_s: 240 }} }}
  SYSTEM_MODEL Physics {{
    AXIOM "Outputs stay within 1e-4 of the reference."
    HEURISTIC "If bound by memory, use smaller tiles."
  }}
  START -> t0
{tasks}
}}
"""
_TASK = """
  TASK t{n} {{  // measure, change, measure again
    GOAL "Make variant {n} of the kernel faster."
    TOOLS [cc, run]
    VALIDATOR Profiler {{ warmup: 3, binary: "kernel{n}.so" }}
    BUDGET {{ evaluations: 60 }}
    NEXT {{ metric_improved -> t{n}, plateau -> t{next}, fail -> t{n} }}
  }}
  TASK s{n} {{
    step build: tool.run {{ cmd: "gcc -O2 -o out{n} main.c" }}
    step ask: llm.query {{
      role: "coder"
      prompt_template: "Mend the failing test of part {n}: {{{{last_tool_output}}}}"
      output_var: patch{n}
    }}
    step mend: tool.cc {{ source: patch{n} }}
    success: file_contains("result.txt", "PASS") and exit_code(build) == 0
    NEXT {{ success -> s{next} }}
  }}
"""


def text(size: int = MAX_BYTES) -> str:
    """A spec in both dialects of nearly that many bytes."""
    tasks, length, n = [], len(_AGENT), 0
    while length < size - 2000:
        tasks.append(_TASK.format(n=n, next=n + 1))
        length += len(tasks[-1])
        n += 1
    end = f"  TASK t{n} {{ TOOLS [run] NEXT {{ success -> s0 }} }}\n  TASK s{n} {{ TOOLS [run] }}\n"
    return _AGENT.format(tasks="".join(tasks) + end)


def many(tasks: int = 1000) -> str:
    """A spec of that many tasks, each with steps, a variable and edges: as long as a spec may be."""
    body = "".join(
        f"  TASK m{n} {{\n    TOOLS [cc, run]\n"
        f'    step ask: llm.query {{ prompt: "Mend {n}: {{{{last_tool_output}}}}" output_var: p{n} }}\n'
        f"    step cc: tool.cc {{ source: p{n} }}\n"
        f"    NEXT {{ success -> m{n + 1}, fail -> m{n} }}\n  }}\n"
        for n in range(tasks - 1)
    )
    end = f'  TASK m{tasks - 1} {{ GOAL "end" }}\n'
    return _AGENT.format(tasks=body + end).replace("START -> t0", "START -> m0")


def ring(tasks: int = 1700) -> str:
    """Tasks in a circle, each of which reads what the one across sets: the most that scopes can be asked."""
    body = "".join(
        f'TASK r{n} {{ step s: tool.run {{ cmd: "x {{{{v{(n + tasks // 2) % tasks}}}}}" output_var: v{n} }} '
        f"NEXT {{ success -> r{(n + 1) % tasks} }} }}\n"
        for n in range(tasks)
    )
    return f"AGENT Ring LEVEL 5 {{ CONFIG {{ BUDGET {{ steps: 9 }} }} START -> r0\n{body}}}"


def catalog() -> Catalog:
    closed: dict[str, Any] = {"type": "object", "additionalProperties": False}
    string = {"type": "string"}
    run = {**closed, "properties": {"cmd": {"type": "array", "items": string}}, "required": ["cmd"]}
    return Catalog(
        tools={
            "run": ToolEntry("run", 1, "a command", run),
            "cc": ToolEntry("cc", 1, "a compiler", {**closed, "properties": {"source": string}}),
        },
        validators={
            "Profiler": ValidatorEntry(
                "Profiler",
                1,
                "measures",
                {**closed, "properties": {"warmup": {"type": "integer"}, "binary": string}},
                ("success", "fail", "timeout", "metric_improved", "plateau"),
                "time_ns",
            )
        },
    )


def rows() -> list[dict[str, Any]]:
    """Parse against bare Lark (contextual lexer, no positions); the check of a spec of the largest size."""
    from lark import Lark

    source = text()
    megabytes = len(source.encode()) / 1e6
    lark = Lark(GRAMMAR.read_text(), parser="lalr", lexer="contextual")
    parsed = parse(source)
    if parsed.diagnostics:
        raise AssertionError(parsed.diagnostics[0])
    known = catalog()
    errors = [item for item in check(parsed, known) if item.severity == "error"]
    if errors:
        raise AssertionError(errors[0])
    ours = megabytes / _best(lambda: parse(source))
    floor = megabytes / _best(lambda: lark.parse(source))
    both = _best(lambda: check(parse(source), known))
    hashed = _best(lambda: parsed.spec.hash)
    thousand, circle = parse(many()), parse(ring())
    for made in (thousand, circle):
        if any(item.severity == "error" for item in check(made, known)):
            raise AssertionError(check(made, known)[0])
    checked = _best(lambda: check(thousand, known))
    asked = _best(lambda: check(circle, known))
    return [
        {
            "name": "check of 1,000 tasks",
            "ours": round(checked, 3),
            "floor": None,
            "unit": "s",
            "aim": "< 0.3",
        },
        {
            "name": "check of a ring of 1,700 tasks",
            "ours": round(asked, 3),
            "floor": None,
            "unit": "s",
            "aim": "< 0.3",
        },
        {
            "name": "parse",
            "ours": round(ours, 2),
            "floor": round(floor, 2),
            "unit": "MB/s",
            "aim": ">= 0.8 of floor",
        },
        {
            "name": "parse and check 256 KB",
            "ours": round(both, 3),
            "floor": None,
            "unit": "s",
            "aim": "< 0.5",
        },
        {"name": "hash of a 256 KB spec", "ours": round(hashed, 3), "floor": None, "unit": "s", "aim": ""},
    ]


def _best(work: Callable[[], Any], times: int = 5) -> float:
    found = []
    for _ in range(times):
        began = time.process_time()
        work()
        found.append(time.process_time() - began)
    return min(found)


if __name__ == "__main__":
    for row in rows():
        print(row)
