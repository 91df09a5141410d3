"""`compile`: what a spec's tasks, values, conditions, rules and inputs become."""

from __future__ import annotations

import pytest

from lang_catalog import CATALOG, SEED_000, SEED_002, unescaped
from spak import program
from spak.errors import SpecError
from spak.lang import parse
from spak.program import (
    All,
    AnyOf,
    Atom,
    Budgets,
    CommandLine,
    Compare,
    Heuristic,
    MetricRule,
    Not,
    Proposing,
    Ref,
    Template,
)


def compiled(text: str, **inputs: object) -> program.Program:
    return program.compile(parse(text), CATALOG, inputs)


def task(text: str) -> program.Task:
    made = compiled(text)
    return made.tasks[made.start]


def shape(found: program.Task) -> list[tuple[str, str, str]]:
    return [(step.id, step.kind, step.name) for step in found.steps]


# ---- the dialects --------------------------------------------------------------------------------------


def test_the_example_of_seed_002():
    made = compiled(SEED_002)
    assert (made.name, made.level, made.start) == ("BuildFeature", 2, "BuildFeature")
    found = made.tasks["BuildFeature"]
    assert shape(found) == [
        ("s1", "tool", "run"),
        ("s2", "ask", "coder"),
        ("s3", "tool", "apply_patch"),
        ("check", "check", ""),
    ]
    assert found.terminal
    assert found.tools == ()
    assert found.steps[0].args == {"cmd": CommandLine(("pytest", "tests/"))}
    assert found.steps[0].on_fail == "continue"
    assert found.steps[1].args == {"prompt": Template(("Fix failing tests:\n", Ref("last_tool_output")))}
    assert found.steps[1].output_var == "fix_patch"
    assert found.steps[2].args == {"patch": Ref("fix_patch")}
    assert found.success == Atom("file_contains", ("result.txt", "PASS"))
    assert [step.line for step in found.steps] == [4, 8, 14, 2]


def test_the_example_of_seed_000_with_its_missing_task():
    text = unescaped(SEED_000).rstrip().removesuffix("}") + 'TASK finalize { GOAL "Report." } }'
    made = compiled(text)
    assert (made.name, made.level, made.start) == ("Cuda_Optimizer", 5, "baseline_profile")
    loop = made.tasks["optimize_loop"]
    assert loop.tools == ("read_ast", "write_file")
    assert shape(loop) == [("plan", "plan", ""), ("validate", "validate", "CudaProfiler")]
    assert loop.edges == {
        "metric_improved": "optimize_loop",
        "plateau": "finalize",
        "fail": "optimize_loop",
        "success": "optimize_loop",
    }
    assert loop.rule == MetricRule("time_ns")
    assert made.tasks["baseline_profile"].edges == {"success": "optimize_loop"}
    assert shape(made.tasks["finalize"]) == [("check", "check", "")]
    assert made.axioms == ("Shared memory banks have 32-bit width.",)
    assert made.heuristics == (Heuristic("If memory bound, try fusing Softmax."),)


def test_several_bare_tasks_run_the_first():
    made = compiled(
        'task b { step s: tool.read_file { path: "x" } } task a { step s: tool.run { cmd: "ls" } }'
    )
    assert (made.start, made.name, made.level, list(made.tasks)) == ("b", "b", 2, ["b", "a"])
    assert compiled('task b { step s: tool.read_file { path: "x" } }').level == 1


def test_a_step_named_like_one_that_the_compiler_adds_keeps_its_name():
    found = task('task a { step check: tool.run { cmd: "ls" } success: file_exists("x") }')
    assert [step.id for step in found.steps] == ["check", "check_"]


def test_same_arguments_same_program():
    assert compiled(SEED_002) == compiled(SEED_002)
    assert (
        compiled(SEED_002).spec_hash == compiled(SEED_002.replace("Feature {", "Feature { # x\n")).spec_hash
    )


# ---- the agent -----------------------------------------------------------------------------------------

AGENT = """
AGENT A LEVEL 5 {{
  CONFIG {{ {config} }}
  INPUTS {{ n: int = 512 kind: enum("a", "b") = "a" path: string ratio: float = 0.5 deep: bool = false }}
  SYSTEM_MODEL M {{ HEURISTIC "h" WHEN tool.exit prediction: "p" }}
  START -> a
  TASK a {{ TOOLS [cc] {task} }}
}}
"""


def agent(task: str = "", config: str = "", **inputs: object) -> program.Program:
    return compiled(AGENT.format(config=config, task=task), **{"path": "p.c", **inputs})


def test_config_becomes_fields():
    made = agent(
        config="MEMORY fifo SANDBOX docker MODE SEMI_AUTO AUTO_STEPS 4 BACKEND manual RETRIES 7 "
        "BUDGET { steps: 9, elapsed_s: 1.5, tokens: 5, watchdog: 4, window: 8, rollbacks: 2 }"
    )
    assert (made.memory, made.sandbox, made.mode) == ("FIFO", "DOCKER", "semi_auto")
    assert (made.auto_steps, made.backend) == (4, "manual")
    assert made.budgets == Budgets(9, 1500, 5, 0, 4, 8, 2)
    assert made.tasks["a"].retries == 7
    assert made.heuristics == (Heuristic("h", "tool.exit"),)
    assert made.predictions == ("p",)


def test_defaults():
    made = agent()
    assert made.budgets == Budgets()
    assert (made.memory, made.sandbox, made.mode, made.auto_steps, made.backend) == (
        "FLUSH_ON_TRANSITION",
        "RESTRICTED",
        None,
        0,
        "",
    )
    assert made.tasks["a"].retries == 3
    assert agent("RETRIES 0").tasks["a"].retries == 0


def test_inputs_are_read_defaulted_and_judged():
    made = agent(n="4096", deep="true", ratio=2)
    assert made.inputs == {"n": 4096, "kind": "a", "path": "p.c", "ratio": 2, "deep": True}
    for wrong in ({"n": "many"}, {"n": 1.5}, {"kind": "c"}, {"deep": "yes"}, {"m": 1}, {"path": 5}):
        with pytest.raises(SpecError) as caught:
            agent(**wrong)
        assert caught.value.code == "lang.input"
        assert caught.value.hint
    with pytest.raises(SpecError, match="'path' has no value"):
        compiled(AGENT.format(config="", task=""))


WITH_INPUT = 'AGENT A LEVEL 2 { INPUTS { DECLARED } START -> a TASK a { GOAL "{{input.n}}" TOOLS [run] } }'


@pytest.mark.parametrize(
    ("declared", "given", "wanted"),
    [
        ("n: int = 1", "many", "it wants a whole number of at most 2^53-1, like 12"),
        ("n: int = 1", "9" * 20, "it wants a whole number"),
        ("n: int = 1", "9" * 5000, "it wants a whole number"),
        ("n: int = 1", True, "it wants a whole number"),
        ("n: float = 1", "nan", "it wants a finite number, like 0.5"),
        ("n: float = 1", "inf", "it wants a finite number"),
        ("n: bool = true", "yes", "it wants true or false"),
        ('n: enum("fast", "small") = "fast"', "fats", "did you mean 'fast'? it wants one of fast, small"),
        ("n: enum(1, 2) = 1", "3", "it wants one of 1, 2"),
        ("n: enum(1, 2) = 1", True, "it wants one of 1, 2"),
        ("n: string = 5", "x", None),
        ('n: enum([1]) = "a"', "x", None),
    ],
)
def test_an_input_that_does_not_fit_is_told_exactly(declared, given, wanted):
    text = WITH_INPUT.replace("DECLARED", declared)
    with pytest.raises(SpecError) as caught:
        compiled(text, n=given)
    if wanted is None:
        assert caught.value.diagnostics[0].code == "lang.input_type"
    else:
        assert caught.value.code == "lang.input"
        assert wanted in caught.value.hint


@pytest.mark.parametrize(
    ("declared", "given", "value"),
    [
        ("n: int = 1", "-7", -7),
        ("n: float = 1", "2e-3", 0.002),
        ("n: bool = true", "False", False),
        ("n: enum(1, 2) = 1", "2", 2),
        ('n: enum("1", "2") = "1"', "2", "2"),
        ("n = 1.5", "2", 2.0),
        ("n: string", "12", "12"),
    ],
)
def test_an_input_is_read_as_its_type(declared, given, value):
    text = WITH_INPUT.replace("DECLARED", declared)
    found = compiled(text, n=given).inputs["n"]
    assert (found, type(found)) == (value, type(value))


def test_inputs_fill_goals_options_and_stay_typed():
    made = agent(
        'GOAL "{{input.kind}} of {{input.n}}" '
        'PROPOSER tuner { tool: cc args: { opt: input.n source: "{{input.n}}" } params_key: "" }'
    )
    assert made.tasks["a"].goal == "a of 512"
    args = {"opt": 512, "source": "512"}
    assert made.tasks["a"].proposing.options == {"tool": "cc", "args": args, "params_key": ""}


def test_proposer_and_space():
    made = agent(
        'SPACE { t: [8, "x", true] u: range(1, 8) v: range(0, 1, 0.5) w: log(1e-4, 1.0) require: ["t > 8"] }',
        config="PROPOSER tuner { strategy: random }",
    )
    assert made.tasks["a"].proposing == Proposing(
        "tuner",
        {"strategy": "random"},
        {
            "t": [8, "x", True],
            "u": {"range": [1, 8, 1]},
            "v": {"range": [0, 1, 0.5]},
            "w": {"log": [1e-4, 1.0]},
            "require": ["t > 8"],
        },
    )
    assert agent("PROPOSER none", config="PROPOSER tuner").tasks["a"].proposing == Proposing()


@pytest.mark.parametrize(
    ("task", "rule"),
    [
        ("", MetricRule("time_ns")),
        ("BUDGET { evaluations: 9 patience: 2 }", MetricRule("time_ns", evaluations=9, patience=2)),
        ("RULE { margin_percent: 0.5 }", MetricRule("time_ns", margin_num=199, margin_den=200)),
        ("RULE { margin_percent: 0 }", MetricRule("time_ns", margin_num=1, margin_den=1)),
        (
            "RULE { metric: hits better: higher evidence: 10 max_pairs: 40 }",
            MetricRule("hits", "higher", evidence=10, max_pairs=40),
        ),
    ],
)
def test_metric_rule(task, rule):
    assert agent("VALIDATOR CpuProfiler { binary: a } " + task).tasks["a"].rule == rule


def test_a_validator_without_a_metric_has_no_rule():
    found = agent('VALIDATOR Command { cmd: "grep {{input.kind}} x" }').tasks["a"]
    assert found.rule is None
    assert found.steps[-1].args == {"cmd": CommandLine(("grep", Ref("input.kind"), "x"))}


# ---- steps ---------------------------------------------------------------------------------------------


def test_command_lines():
    found = task(
        """task a {
          step s1: tool.run { cmd: "ls" output_var: line }
          step s2: tool.run { cmd: line }
          step s3: tool.run { cmd: "{{line}}" }
          step s4: tool.run { cmd: "cat 'a b' x{{line}}y {{ line }}" on_fail: stop }
          step s5: tool.run { cmd: ls }
        }"""
    )
    assert [step.args["cmd"] for step in found.steps] == [
        CommandLine(("ls",)),
        CommandLine(whole=Ref("line")),
        CommandLine(whole=Ref("line")),
        CommandLine(("cat", "a b", Template(("x", Ref("line"), "y")), Ref("line"))),
        CommandLine(("ls",)),
    ]
    assert [step.on_fail for step in found.steps] == ["stop"] * 5


NOTHING = 'task a { step s1: tool.run { cmd: "false" } }'
GOES_ON = 'task a { step s1: tool.run { cmd: "false" on_fail: continue } }'
SUCCESS = 'task a { step s1: tool.run { cmd: "false" } success: exit_code(s1) == 1 }'
VALIDATED = 'AGENT A LEVEL 3 { START -> a TASK a { step s1: tool.run { cmd: "false" } VALIDATOR Linter } }'


@pytest.mark.parametrize(
    ("text", "expected"),
    [(NOTHING, "stop"), (GOES_ON, "continue"), (SUCCESS, "continue"), (VALIDATED, "continue")],
)
def test_exits_of_tools_decide_where_nothing_else_does(text: str, expected: str) -> None:
    made = program.compile(parse(text), CATALOG)
    assert made.tasks["a"].steps[0].on_fail == expected


def test_values():
    found = task(
        """task a {
          step s1: llm.coder { prompt: "p" output_var: text }
          step s2: llm.plan { role: fixer prompt_template: "{{text}}" }
          step s3: tool.cc { source: "{{text}}" flags: [text, "-D{{text}}", plain, last_tool_output] }
          TOOLS [cc]
        }"""
    )
    assert shape(found) == [("s1", "ask", "coder"), ("s2", "plan", "fixer"), ("s3", "tool", "cc")]
    assert found.steps[1].args == {"prompt": Template((Ref("text"),))}
    assert found.steps[2].args == {
        "source": Template((Ref("text"),)),
        "flags": (Ref("text"), Template(("-D", Ref("text"))), "plain", Ref("last_tool_output")),
    }
    assert found.steps[2].on_fail == "retry"


def test_evaluation_and_conditions():
    found = task(
        """task a {
          step s1: tool.run { cmd: "ls" output_var: out }
          evaluation {
            check speed: tool.run { cmd: "./bench" }
            check taste: llm.query { role: judge prompt: "1 to 10" }
          }
          success: exit_code(s1) == 0 and (speed < 10 or not taste >= metric.speed)
          file_contains("a", "{{out}}")
          invariant: file_exists("a")
        }"""
    )
    assert [(step.id, step.kind, step.output_var or step.metric, step.on_fail) for step in found.steps] == [
        ("s1", "tool", "out", "continue"),
        ("speed", "tool", "metric.speed", "continue"),
        ("taste", "ask", "metric.taste", "continue"),
        ("check", "check", "", "stop"),
    ]
    assert found.success == All(
        (
            All(
                (
                    Compare("==", Ref("exit_code.s1"), 0),
                    AnyOf(
                        (
                            Compare("<", Ref("metric.speed"), 10),
                            Not(Compare(">=", Ref("metric.taste"), Ref("metric.speed"))),
                        )
                    ),
                )
            ),
            Atom("file_contains", ("a", Template((Ref("out"),)))),
        )
    )
    assert found.invariant == Atom("file_exists", ("a",))


# ---- errors --------------------------------------------------------------------------------------------


def test_a_broken_spec_raises_with_every_diagnostic():
    with pytest.raises(SpecError) as caught:
        compiled('task a { step s: tool.runn { cmd: "ls" } step t: tool.run { cmd: "{{x}}" }')
    assert caught.value.code == "lang.invalid"
    assert caught.value.exit_code == 3
    assert [item.code for item in caught.value.diagnostics] == [
        "lang.unknown_tool",
        "lang.unbound_variable",
        "lang.syntax",
    ]


def test_warnings_do_not_stop_it():
    assert agent("NEXT { success -> a }").tasks["a"].edges == {"success": "a"}


def test_a_validator_of_axioms_takes_those_of_the_system_model():
    text = """
    AGENT A LEVEL 2 {
      SYSTEM_MODEL M {
        AXIOM "Short." CHECK max_lines { lines: 3 }
        AXIOM "Kind."
        AXIOM "forbidden(A) :- tool(A, /run)."
      }
      START -> a
      TASK a { TOOLS [run] VALIDATOR Compliance { artifact: "x.md" } NEXT { success -> b } }
      TASK b { TOOLS [run] VALIDATOR Compliance { artifact: "y.md" axioms: [{ text: "own" check: "lint" }] } }
    }
    """
    made = compiled(text)
    taken, own = (made.tasks[name].steps[-1].args["axioms"] for name in "ab")
    assert taken == ({"text": "Short.", "check": "max_lines", "args": {"lines": 3}}, {"text": "Kind."})
    assert own == ({"text": "own", "check": "lint"},)
