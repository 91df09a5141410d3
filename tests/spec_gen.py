"""Random specs: texts that parse, in both dialects, with odd names, comments, commas and layout.

`specs()` is a Hypothesis strategy of texts; `spec_text(draw, noise)` makes one from a `random.Random`. They
are right by the grammar, not by the checker: targets and tools may be unknown.
"""

from __future__ import annotations

import random

from hypothesis import strategies as st

from spak.lang import ast
from spak.lang.edit import find, ops

NAMES = (
    "a",
    "b1",
    "tune",
    "x-y",
    "finalize",
    "s",
    "Long_Name_9",
    "next",
    "step",
    "check",
    "when",
    "and",
    "true",
)
KEYS = ("cmd", "path", "k", "next", "task", "or", "agent", "none")
TRIGGERS = ("success", "fail", "timeout", "plateau", "metric_improved", "task")
TEXTS = ('"x"', '""', '"a // b # c"', '"{{axiom.1}} \\" \\n"', '"é\\u{e9}"', '"' + "long " * 12 + '"')
LONG_TEXTS = ('"""one line"""', '"""\n  two\n    lines\n  """', '"""\n\tx // y\n\n# z"""')
COMMENTS = ("// note", "# other", "//", "// {[(\"' \\", "#!  blanks  ")
TIGHT = frozenset("{}[](),:")


class Maker:
    """Tokens of one spec, by chance."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.out: list[str] = []

    def put(self, *words: str) -> None:
        self.out += words

    def some(self, most: int) -> range:
        return range(self.draw.randint(0, most))

    def comma(self) -> None:
        if self.draw.random() < 0.4:
            self.put(",")

    def word(self, *words: str) -> None:
        word = self.draw.choice(words)
        self.put(self.draw.choice((word, word.lower())))

    def name(self) -> None:
        self.put(self.draw.choice(NAMES))

    def text(self) -> None:
        self.put(self.draw.choice(TEXTS if self.draw.random() < 0.8 else LONG_TEXTS))

    def mark(self) -> None:
        if (mark := self.draw.choice((":", ":", "=", ""))) != "":
            self.put(mark)

    def value(self, depth: int = 0) -> None:
        kind = self.draw.randrange(9 if depth < 3 else 5)
        if kind < 2:
            self.text()
        elif kind == 2:
            self.put(self.draw.choice(("1", "-3", "0.5", "1e-4", "1_000")))
        elif kind < 5:
            self.put(self.draw.choice(("fix_patch", "true", "none", "best.source", "FIFO")))
        elif kind == 5:
            self.listed("[", "]", depth)
        elif kind == 6:
            self.map(depth)
        elif kind == 7:
            self.put(self.draw.choice(("CpuProfiler", "tuner")))
            self.map(depth)
        else:
            self.put(self.draw.choice(("range", "enum")))
            self.listed("(", ")", depth)

    def listed(self, first: str, last: str, depth: int) -> None:
        self.put(first)
        count = self.draw.randint(0, 4)
        for index in range(count):
            self.value(depth + 1)
            if index < count - 1 or self.draw.random() < 0.3:
                self.put(",")
        self.put(last)

    def map(self, depth: int = 0) -> None:
        self.put("{")
        for _ in self.some(4):
            if self.draw.random() < 0.1:
                self.put('"quoted key"', ":")
            else:
                self.put(self.draw.choice(KEYS))
                self.mark()
            self.value(depth + 1)
            self.comma()
        self.put("}")

    def entry(self, *keys: str) -> None:
        self.word(*keys)
        self.mark()
        self.value()

    # ---- bodies

    def condition(self, depth: int = 0) -> None:
        if depth > 2:
            self.operand()
            return
        kind = self.draw.randrange(6)
        if kind == 0:
            self.put("not")
            self.condition(depth + 1)
        elif kind == 1:
            self.put("(")
            self.condition(depth + 1)
            self.put(")")
        elif kind == 2:
            self.condition(depth + 1)
            self.put(self.draw.choice(("and", "or", "AND")))
            self.condition(depth + 1)
        elif kind == 3:
            self.operand()
            self.put(self.draw.choice(("==", "<", ">=")))
            self.operand()
        else:
            self.call()

    def call(self) -> None:
        self.put(self.draw.choice(("file_exists", "exit_code", "metric")))
        self.listed("(", ")", 3)

    def operand(self) -> None:
        if self.draw.random() < 0.5:
            self.call()
        else:
            self.put(self.draw.choice(("1", "speed", '"t"')))

    def step(self, word: str) -> None:
        self.word(word)
        self.name()
        self.put(":", self.draw.choice(("tool.run", "tool.cc", "llm.query")))
        if self.draw.random() < 0.9:
            self.map()

    def task_item(self, index: int) -> None:
        kind = self.draw.randrange(8)
        if kind < 3:
            self.step("STEP")
        elif kind == 3:
            self.put("NEXT", "{")
            for _ in self.some(4):
                self.put(self.draw.choice(TRIGGERS), "->")
                self.name()
                self.comma()
            self.put("}")
        elif kind == 4:
            self.word("SUCCESS", "INVARIANT")
            self.put(":")
            self.condition()
            if self.draw.random() < 0.3:
                self.call()
        elif kind == 5:
            self.put("evaluation", "{")
            for _ in self.some(3):
                self.step("CHECK")
                self.comma()
            self.put("}")
        else:
            self.entry("GOAL", "TOOLS", "VALIDATOR", "RULE", "RETRIES", "colour")

    def task(self, name: str) -> None:
        self.word("TASK")
        self.put(name, "{")
        for index in self.some(6):
            self.task_item(index)
            self.comma()
        self.put("}")

    def model(self) -> None:
        self.word("SYSTEM_MODEL")
        if self.draw.random() < 0.8:
            self.name()
        self.put("{")
        for _ in self.some(4):
            kind = self.draw.choice(("AXIOM", "HEURISTIC", "PREDICTION"))
            self.word(kind)
            if self.draw.random() < 0.3:
                self.put(":")
            self.text()
            if kind == "AXIOM" and self.draw.random() < 0.3:
                self.put("CHECK", "lint")
                if self.draw.random() < 0.5:
                    self.map()
            if kind == "HEURISTIC" and self.draw.random() < 0.5:
                self.put("WHEN", self.draw.choice(TRIGGERS))
            self.comma()
        self.put("}")

    def file(self) -> list[str]:
        names = self.draw.sample(NAMES, self.draw.randint(0, 4))
        if self.draw.random() < 0.6:
            self.word("AGENT")
            self.name()
            if self.draw.random() < 0.8:
                self.put("LEVEL", str(self.draw.randint(1, 5)))
            self.put("{")
            if names:
                self.put("START")
                if (mark := self.draw.choice(("->", "->", ":", ""))) != "":
                    self.put(mark)
                self.put(names[0])
                self.comma()
            self.body(names)
            self.put("}")
        else:
            self.body(names)
        return self.out

    def body(self, names: list[str]) -> None:
        for _ in self.some(2):
            self.entry("CONFIG", "INPUTS", "POLICY", "metadata")
            self.comma()
        if self.draw.random() < 0.5:
            self.model()
            self.comma()
        for name in names:
            self.task(name)
            self.comma()


def spec_text(draw: random.Random, noise: float = 0.3, newline: str = "\n") -> str:
    """One spec; `noise` is how often the layout is odd."""
    words = Maker(draw).file()
    out = [comment(draw, newline) if draw.random() < noise else ""]
    last = "{"
    for word in words:
        if draw.random() < noise:
            out.append(joint(draw, newline))
        elif not (last in TIGHT or word in TIGHT) or draw.random() < 0.7:
            out.append(" ")
        out.append(word.replace("\n", newline))
        last = word
    return "".join(out) + draw.choice(("", newline, newline * 3, " // end"))


def joint(draw: random.Random, newline: str) -> str:
    """What stands between two tokens: blanks, line breaks, comments."""
    return draw.choice(
        (
            " ",
            newline,
            newline,
            newline * 2,
            "\t",
            "  " + newline + "    ",
            " " + comment(draw, newline),
            newline * 3 + "  " + comment(draw, newline) + newline,
        )
    )


def comment(draw: random.Random, newline: str) -> str:
    return draw.choice(COMMENTS) + newline


def specs(newline: str = "\n") -> st.SearchStrategy[str]:
    """Texts of specs that parse."""
    return st.builds(
        spec_text, st.randoms(use_true_random=False), st.sampled_from((0.0, 0.1, 0.4)), st.just(newline)
    )


def some_op(draw: random.Random, spec: ast.Spec) -> ops.Op:
    """An operation by chance, mostly on what is there; it may still be refused."""
    tasks = list(spec.tasks())
    names = [task.name for task in tasks] or ["nobody"]
    task = draw.choice(tasks) if tasks else None
    name = task.name if task is not None else "nobody"
    edges = [edge.trigger for *_, edge in find.edges(task)] if task is not None else []
    steps = [step.name for step in find.steps(task)] if task is not None else []
    checks = [check.name for *_, check in find.checks(task)] if task is not None else []
    trigger = draw.choice([*edges, "late"])
    step = draw.choice([*steps, *checks, "nothing"])
    fresh = f"new{draw.randrange(3)}"
    value = draw.choice(
        ("x", "two\nlines\n", 'q " \\ {{goal}}', 3, -0.5, True, None, ["a", 1], {"k": {"$name": "v"}})
    )
    kind = draw.choice(("axiom", "heuristic", "prediction"))
    when = draw.choice(("", "fail")) if kind == "heuristic" else ""
    return draw.choice(
        (
            ops.AddTask(fresh, after=draw.choice((None, "", *names))),
            ops.AddTask(fresh, source=f"task {fresh} {{\n  // in\n  step s: tool.run {{ cmd: 1 }}\n}}"),
            ops.CreateMissingTask(draw.choice(NAMES)),
            ops.RemoveTask(name),
            ops.RemoveTask(name, edges=True),
            ops.RenameTask(name, fresh),
            ops.AddEdge(name, draw.choice((fresh, "late")), draw.choice(names), draw.choice((None, 0, 1))),
            ops.RetargetEdge(name, trigger, draw.choice(names)),
            ops.RenameTrigger(name, trigger, fresh),
            ops.RemoveEdge(name, trigger),
            ops.SetStart(name),
            ops.ClearStart(),
            ops.SetLevel(draw.randint(0, 5)),
            ops.Set("GOAL", draw.choice(("x", "a\n\n  b\n")), name),
            ops.Set("TOOLS", ["cc", "run"], name),
            ops.Set("VALIDATOR", {"name": "CpuProfiler", "options": {"a": value}}, name),
            ops.Set("VALIDATOR.warmup", value, name),
            ops.Set(draw.choice(("RULE.patience", "BUDGET.evaluations", "RETRIES")), 3, name),
            ops.Set("SPACE.tile", [1, 2], name),
            ops.Set(draw.choice(("CONFIG.MEMORY", "MEMORY")), "FIFO"),
            ops.Set(draw.choice(("BUDGET.steps", "CONFIG.BUDGET.tokens")), 7),
            ops.Set("INPUTS.n", {"type": "int", "default": 5}),
            ops.Set("POLICY", "rules.mg"),
            ops.Clear(draw.choice(("GOAL", "VALIDATOR", "RULE", "RULE.patience", "VALIDATOR.k")), name),
            ops.Clear(draw.choice(("CONFIG", "INPUTS", "CONFIG.BUDGET.steps"))),
            ops.SetCondition(
                name, draw.choice(("success", "invariant")), draw.choice(("", "a() and b == 1"))
            ),
            ops.AddModelItem(kind, draw.choice(("x", "a\nb")), when, draw.choice((None, 1, 2))),
            ops.EditModelItem(kind, draw.randint(1, 2), "y", when if kind == "heuristic" else None),
            ops.RemoveModelItem(kind, draw.randint(1, 2)),
            ops.AddStep(name, fresh, "tool.run", {"cmd": value}, after=draw.choice((None, "", *steps))),
            ops.AddStep(name, fresh, "tool.run", {}, evaluation=True),
            ops.AddStep(name, fresh, source=f"step {fresh}: tool.run {{\n  cmd: 1 // c\n}}"),
            ops.RemoveStep(name, step),
            ops.MoveStep(name, step, draw.choice((None, "", *steps))),
            ops.RenameStep(name, step, fresh),
            ops.SetKind(name, step, "tool.cc"),
            ops.SetField(name, step, draw.choice((*KEYS, "output_var")), value),
            ops.ClearField(name, step, draw.choice(KEYS)),
            ops.Rewrite(f'task {name} {{\n  GOAL "new"\n}}', name),
        )
    )


def damaged(draw: random.Random, text: str) -> str:
    """The text with a few pieces cut, doubled, moved or replaced."""
    for _ in range(draw.randint(1, 3)):
        at, other = draw.randrange(len(text) + 1), draw.randrange(len(text) + 1)
        end = min(len(text), at + draw.choice((0, 1, 3, 20)))
        new = draw.choice(
            ("", "{", "}", '"', '"""', ",", "->", "//", "\0", "é", "\ud800", text[other : other + 9])
        )
        text = text[:at] + new + text[end:]
    return text
