"""A small catalog for the tests of the language, and the examples of seeds 000 (2.2) and 002 (2.2).

The first stands here as the seed has it, Markdown escapes included; `unescaped` undoes them.
"""

from __future__ import annotations

import re

from spak.lang.catalog import Catalog, NamedEntry, ToolEntry, ValidatorEntry

TEXT = {"type": "string"}
LIST = {"type": "array", "items": TEXT}
ARGV = {"type": "array", "items": TEXT, "minItems": 1}


def _schema(required: list[str], **properties: object) -> dict[str, object]:
    closed = {"type": "object", "additionalProperties": False}
    return {**closed, "properties": properties, "required": required}


def _named(*entries: ToolEntry) -> dict[str, ToolEntry]:
    return {entry.name: entry for entry in entries}


CATALOG = Catalog(
    tools=_named(
        ToolEntry("run", 1, "one command", _schema(["cmd"], cmd=ARGV), on_fail="continue"),
        ToolEntry(
            "cc",
            1,
            "the C compiler",
            _schema(["source"], source=TEXT, flags=LIST, opt={"type": "integer"}),
            on_fail="retry",
            aliases=("nvcc",),
        ),
        ToolEntry("apply_patch", 1, "a patch", _schema(["patch"], patch=TEXT)),
        ToolEntry(
            "write_file",
            1,
            "a file",
            _schema(["path", "text"], path=TEXT, text=TEXT),
            aliases=("write_cuda",),
        ),
        ToolEntry("read_file", 1, "reads", _schema(["path"], path=TEXT), "pure", writes=False),
        ToolEntry(
            "read_ast", 1, "reads", _schema(["path"], path=TEXT), "pure", writes=False, aliases=("nsight",)
        ),
        ToolEntry("python_repl", 1, "python", _schema(["code"], code=TEXT)),
    ),
    validators={
        entry.name: entry
        for entry in (
            *(
                ValidatorEntry(
                    name,
                    1,
                    "measures",
                    _schema(["binary"], binary=TEXT, warmup={"type": "integer", "minimum": 0}),
                    ("success", "fail", "timeout", "metric_improved", "plateau"),
                    "time_ns",
                )
                for name in ("CpuProfiler", "CudaProfiler")
            ),
            ValidatorEntry("PyTest", 1, "tests", _schema([], paths=LIST)),
            ValidatorEntry("Linter", 1, "lints", _schema([], tool={"enum": ["ruff", "gcc"]})),
            ValidatorEntry("Command", 1, "one command", _schema(["cmd"], cmd={"type": ["string", "array"]})),
            ValidatorEntry(
                "Compliance",
                1,
                "axioms",
                _schema(["artifact"], artifact=TEXT, axioms={"type": "array"}),
                axioms="axioms",
            ),
        )
    },
    proposers={
        "tuner": NamedEntry(
            "tuner",
            "searches",
            _schema([], strategy={"enum": ["random", "climb", "tpe"]}, tool=TEXT, params_key=TEXT, args={}),
        )
    },
    backends={"manual": NamedEntry("manual", "a person"), "recorded": NamedEntry("recorded", "a table")},
    launchers={"restricted": NamedEntry("restricted", "bubblewrap", rank=1)},
    checks={
        "lint": NamedEntry("lint", "anything goes", {"type": "object"}),
        "json_valid": NamedEntry("json_valid", "JSON", _schema([])),
        "not_contains": NamedEntry("not_contains", "without a text", _schema(["text"], text=TEXT)),
        "max_lines": NamedEntry(
            "max_lines", "short", _schema(["lines"], lines={"type": "integer", "minimum": 1})
        ),
    },
)

SEED_000 = r"""
AGENT Cuda\_Optimizer LEVEL 5 {

  CONFIG { MEMORY FLUSH\_ON\_TRANSITION, SANDBOX RESTRICTED }

  SYSTEM\_MODEL GPU\_Physics {

    AXIOM "Shared memory banks have 32-bit width."

    HEURISTIC "If memory bound, try fusing Softmax."

  }

  START \-\> baseline\_profile

  TASK baseline\_profile {

    GOAL "Compile and measure naive implementation."

    TOOLS \[nvcc, nsight\]

    VALIDATOR CudaProfiler

    NEXT { success \-\> optimize\_loop }

  }

  TASK optimize\_loop {

    GOAL "Refactor kernel for online-softmax."

    TOOLS \[read\_ast, write\_cuda\]

    VALIDATOR CudaProfiler

    NEXT {

       metric\_improved \-\> optimize\_loop,

       plateau \-\> finalize,

       fail \-\> optimize\_loop // Triggers Heuristic automatically

    }

  }

}
"""

SEED_002 = r"""
task BuildFeature {

  step s1: tool.run {
    cmd: "pytest tests/"
  }

  step s2: llm.query {
    role: "coder"
    prompt_template: "Fix failing tests:\n{{last_tool_output}}"
    output_var: fix_patch
  }

  step s3: tool.apply_patch {
    patch: fix_patch
  }

  success:
    file_contains("result.txt", "PASS")
}
"""


def unescaped(text: str) -> str:
    """Undo the Markdown escapes."""
    return re.sub(r"\\([_\-\[\]>*#])", r"\1", text)
