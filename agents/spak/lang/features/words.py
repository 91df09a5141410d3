"""What the words of the language mean, for whoever hovers or completes: a sentence each, and an example.

Settings have their own table (settings.py), tools and validators the catalog; here is the rest. A test holds
the keywords to the grammar's.
"""

# ruff: noqa: E501  a row of the table reads best as one line

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


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
    "budget_low": "Most of BUDGET's tokens are used up (`low_percent`). It is given once, in place of the verdict.",
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
    "PRUNE_ON_CONFIRM": "A text becomes a reference once a prompt has shown it and the answer was carried out.",
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
