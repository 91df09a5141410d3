"""What the words of the language mean, for whoever hovers or completes: a sentence each, and an example.

Settings have their own table (settings.py), tools and validators the catalog; here is the rest. A test holds
the keywords to the grammar's.
"""

# ruff: noqa: E501  a row of the table reads best as one line

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Word:
    """A word, what it means, how it is used; `insert` is what completion writes, with `${1:places}`."""

    about: str
    example: str = ""
    insert: str = ""


KEYWORDS: Mapping[str, Word] = {
    "AGENT": Word(
        "A graph of tasks with one START. One file is one agent.",
        "AGENT Tuner LEVEL 2 { START -> build TASK build { ... } }",
        'AGENT ${1:Name} LEVEL ${2:2} {\n  START -> ${3:first}\n\n  TASK ${3:first} {\n    GOAL "${4:what it is for}"\n    $0\n  }\n}',
    ),
    "LEVEL": Word(
        "What the agent may do: 1 reads, 2 writes, 3 semi_auto, 4 full_auto, 5 metrics and loops.",
        "AGENT Tuner LEVEL 5 { ... }",
    ),
    "START": Word("The first task of a run.", "START -> build", "START -> ${1:task}"),
    "SYSTEM_MODEL": Word(
        "What is known of the world: axioms, heuristics, predictions.",
        'SYSTEM_MODEL Physics { AXIOM "..." HEURISTIC "..." }',
        "SYSTEM_MODEL ${1:Name} {\n  $0\n}",
    ),
    "AXIOM": Word(
        "What must hold. It goes to every prompt; `spak verify` judges what can be judged.",
        'AXIOM "Tests are not edited."',
        'AXIOM "${1:what must hold}"',
    ),
    "HEURISTIC": Word(
        "Advice that is put into the prompt after a fail, one per fail in order of declaration.",
        'HEURISTIC "Use smaller tiles." WHEN fail',
        'HEURISTIC "${1:advice}"',
    ),
    "PREDICTION": Word(
        "What the author expects to be seen. It goes to every prompt.",
        'PREDICTION "Vector code is four times as fast."',
        'PREDICTION "${1:what will be seen}"',
    ),
    "WHEN": Word(
        "The trigger or the error code at which a HEURISTIC is given; without it, any fail.",
        'HEURISTIC "..." WHEN tool.exit',
        "WHEN ${1:fail}",
    ),
    "CHECK": Word(
        "A measured value of an evaluation; behind an AXIOM, what checks it.",
        'check warnings: tool.run { cmd: "python count.py" }',
        "check ${1:name}: tool.${2:run} { $0 }",
    ),
    "TASK": Word(
        "A node of the graph: its steps or tools, what judges it, and where each trigger leads.",
        'TASK build { GOAL "..." TOOLS [cc] NEXT { success -> report } }',
        "TASK ${1:name} {\n  $0\n}",
    ),
    "STEP": Word(
        "One call of a tool, or one question to a model or a person.",
        'step s1: tool.run { cmd: "pytest" }',
        "step ${1:name}: ${2:tool.run} { $0 }",
    ),
    "NEXT": Word(
        "Where each trigger leads. A task without NEXT ends the run.",
        "NEXT { success -> report, fail -> build }",
        "NEXT {\n  ${1:success} -> ${2:task}\n}",
    ),
    "EVALUATION": Word(
        "Checks after the last step; the value of each is a metric.",
        'evaluation { check warnings: tool.run { cmd: "python count.py" } }',
        "evaluation {\n  check ${1:name}: tool.${2:run} { $0 }\n}",
    ),
    "SUCCESS": Word(
        "The condition that decides the task after its steps.", "success: exit_code(s1) == 0", "success: $0"
    ),
    "INVARIANT": Word(
        "A condition that is asked after every writing step.",
        'invariant: not file_exists("core")',
        "invariant: $0",
    ),
    "AND": Word("Both hold."),
    "OR": Word("One of them holds."),
    "NOT": Word("It does not hold."),
}

TRIGGERS: Mapping[str, str] = {
    "success": "The task is done and what judges it is content.",
    "fail": "What judges the task is not content, or a step failed. The next HEURISTIC is given; it costs a retry.",
    "timeout": "A time limit passed.",
    "metric_improved": "The measurement beats the best so far by the RULE's margin.",
    "plateau": "A metric loop has had enough: its patience or its evaluations are used up.",
}

VARIABLES: Mapping[str, str] = {
    "last_tool_output": "What the last tool wrote.",
    "goal": "The task's GOAL.",
    "error": "Register R4: the last failure, as the proposer sees it.",
    "axiom": "An AXIOM by its number, from 1.",
    "heuristic": "A HEURISTIC by its number, from 1.",
    "prediction": "A PREDICTION by its number, from 1.",
    "input": "An input of INPUTS.",
    "best": "The best candidate of the metric loop so far.",
    "baseline": "The first measured candidate of the metric loop.",
    "runner_up": "The best candidate before the present one.",
    "metric": "The value of a check, or of the last measurement.",
    "exit_code": "The exit code of a tool step.",
}
"""By the part before the first dot."""

FUNCTIONS: Mapping[str, Word] = {
    "file_exists": Word(
        "True when the workspace has the file.", 'file_exists("result.txt")', 'file_exists("${1:path}")'
    ),
    "file_contains": Word(
        "True when the file has the text in it.",
        'file_contains("result.txt", "PASS")',
        'file_contains("${1:path}", "${2:text}")',
    ),
    "exit_code": Word(
        "The exit code of a tool step of this task; compare it.", "exit_code(s1) == 0", "exit_code(${1:step})"
    ),
    "metric": Word(
        "The value of a check or of the last measurement; compare it.",
        "metric(warnings) < 3",
        "metric(${1:name})",
    ),
}

STEPS: Mapping[str, Word] = {
    "llm.query": Word(
        "Asks a model or a person; the answer is the step's value.",
        'step ask: llm.query { prompt: "..." output_var: answer }',
    ),
    "llm.plan": Word(
        "Asks for tool calls out of the task's TOOLS; the kernel selects one.",
        'step draft: llm.plan { role: "coder" }',
    ),
}

FIELDS: Mapping[str, Word] = {
    "output_var": Word("The variable that gets the step's output.", "output_var: fix_patch"),
    "on_fail": Word(
        "What a non-zero exit means: stop ends the task, retry goes back to who proposed it, continue goes on.",
        "on_fail: continue",
    ),
    "poll": Word(
        "Does the step again until it ends with exit 0, `every_s` seconds apart, at most `limit` times.",
        "poll: { every_s: 5 limit: 12 }",
    ),
    "role": Word("The role that the model is asked in.", 'role: "coder"'),
    "prompt": Word(
        "The text of the question; `{{variables}}` are filled in.", 'prompt: "Fix it: {{last_tool_output}}"'
    ),
    "prompt_template": Word(
        "The text of the question; `{{variables}}` are filled in.", 'prompt_template: """..."""'
    ),
}

ON_FAIL: Mapping[str, str] = {
    "stop": "End the task with `fail`.",
    "retry": "Go back to the task's proposer with the error; else stop.",
    "continue": "Continue as if nothing had happened.",
}

CHOICES: Mapping[str, str] = {
    "FIFO": "Memory drops its oldest entries first.",
    "SUMMARIZE": "Memory sums its old entries up.",
    "FLUSH_ON_TRANSITION": "Memory is emptied at every transition.",
    "RESTRICTED": "At least the restricted launcher (bubblewrap).",
    "DOCKER": "At least a hardened container.",
    "GVISOR": "At least a container with a kernel of its own.",
    "stepwise": "Stop at every question.",
    "semi_auto": "Stop after AUTO_STEPS questions.",
    "full_auto": "Continue to the end.",
    "lower": "Smaller values are better.",
    "higher": "Larger values are better.",
}

TYPES: Mapping[str, str] = {
    "int": "A whole number.",
    "float": "A number.",
    "string": "A text.",
    "bool": "true or false.",
    "enum": 'One of some values: enum("a", "b").',
}

PARAMETERS: Mapping[str, Word] = {
    "range": Word(
        "Whole numbers from first to last, by step.", "unroll: range(1, 8, 1)", "range(${1:1}, ${2:8})"
    ),
    "log": Word(
        "Numbers from first to last, evenly on a logarithmic scale.",
        "rate: log(1e-4, 1)",
        "log(${1:1e-4}, ${2:1})",
    ),
    "require": Word(
        "Conditions that every point of the space must meet.",
        'require: ["tile * unroll <= 128"]',
        'require: ["$1"]',
    ),
}

OPTIONS: Mapping[str, Mapping[str, str]] = {
    "Command": {
        "cmd": "One simple command; text is parsed, never given to a shell.",
        "expect_exit": "The exit code that passes; signal n counts as 128 + n.",
        "contains": "Each text must be in standard output or standard error.",
    },
    "PyTest": {
        "paths": "Files, folders or test ids in the workspace.",
        "keyword": "Only tests that match, as pytest -k.",
        "marker": "Only tests with the marker, as pytest -m.",
        "args": "Further options of pytest, such as -x or --maxfail=1.",
        "plugins": "Installed plug-ins to load; no other is.",
        "conftest": "false leaves every conftest.py out.",
        "min_tests": "How many tests must have passed; skipped ones do not count.",
    },
    "Linter": {
        "tool": "The linter to run.",
        "paths": "Files and folders; ruff reads .py and .pyi, gcc .c.",
        "select": "Rules of ruff (F, E501), or further warnings of gcc (-Wshadow).",
        "max_warnings": "More warnings than this fail.",
        "ignore_noqa": "Comments that silence a finding do not count (ruff).",
    },
    "Compliance": {
        "artifact": "The file to check, relative to the workspace.",
        "axioms": "The axioms to check it against; without them, those of the SYSTEM_MODEL.",
    },
    "Judge": {
        "artifact": "The file to assess, relative to the workspace.",
        "rubric": "What it has to meet.",
    },
    "CpuProfiler": {
        "problem": "What is computed: a problem that ships, or the file of one, from the spec's folder.",
        "binary": "The compiled shared object.",
        "source": "The source that is shown with the measurement.",
        "role": "baseline is what the others are compared with; final is measured again on fresh inputs.",
        "n": "The size that is timed.",
        "wall_s": "The time limit of the whole measurement, in seconds.",
    },
    "CudaProfiler": {
        "problem": "Inputs, reference and tolerance; needed on a device.",
        "source": "The CUDA source file.",
        "role": "baseline is what the others are compared with; final is measured again on fresh inputs.",
        "arch": "Architectures to compile for; a device's own is added.",
        "n": "The size that is timed.",
        "block": "Threads of a block, in up to three dimensions.",
        "rows_per_block": "The grid has n / rows_per_block blocks, rounded up.",
        "dynamic_shared_bytes": "Bytes of dynamic shared memory.",
        "flags": "Options of nvcc, such as --use_fast_math.",
        "device": "auto uses a device if there is one and a problem is named; static only compiles.",
    },
    "Metric": {
        "cmd": "The command that measures: it reads one JSON line and prints one.",
        "source": "The file that is measured.",
        "metric": "Which of the printed metrics decides, or cpu_ms or wall_ms of the command.",
        "unit": "How people read the metric: s, %.",
        "scale": "Values are compared as integers of 1/scale units.",
        "constraints": "Bounds that every run of the candidate must keep: at_least, at_most.",
        "fixed": "Files that must be the same for a candidate and its rivals.",
        "samples": "Runs a side in a pair; 1 is enough for a metric without noise.",
        "role": "baseline is what the others are compared with; final is measured again on fresh inputs.",
        "wall_s": "Seconds for the whole measurement.",
    },
    "tuner": {
        "tool": "The tool that each candidate calls.",
        "strategy": "How the next point is chosen.",
        "args": "Arguments of every call.",
        "params_key": "The argument that holds the point; empty: each parameter is an argument of its own.",
        "batch": "Candidates for each plan; the kernel selects the one with the highest score.",
        "better": "Whether a lower or a higher metric is better.",
        "starts": "Random points before the strategy begins.",
        "patience": "Points without progress before climb starts again elsewhere.",
    },
    "evolve": {
        "path": "The file that candidates are written to.",
        "better": "Whether a lower or a higher metric is better.",
        "islands": "Islands of the archive; tries come to them in turn.",
        "population": "Candidates that an island keeps.",
        "migrate": "Tries after which each island gets the best of the one before it.",
        "crossover": "In how many of 100 questions a second parent is shown.",
        "failures": "Failures that a question shows.",
        "tokens": "The longest answer in tokens; 0 is the backend's own limit.",
        "block": "Characters of a block.",
    },
    "cc": {"lang": "The language of the source.", "compiler": "gcc or clang."},
    "http_request": {"method": "The method of the request."},
    "": {"timeout_s": "Seconds; only ever shortens the run's own limit."},
}
"""What an option of a validator or proposer, or an argument of a tool, is for where its schema does not say."""


def option(entry: str, key: str, schema: Mapping[str, Any]) -> str:
    """What a member of an entry's schema is for; empty where nobody says."""
    description = schema.get("description") or OPTIONS.get(entry, {}).get(key) or OPTIONS[""].get(key, "")
    return str(description)
