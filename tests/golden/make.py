"""Make the golden ledgers of the kernel's semantics at hand: `python tests/golden/make.py`.

Writes `semantics-N/NAME.jsonl`, exports of whole runs, and `semantics-N/expected.json`. It refuses to write
over a folder that is there: decisions that changed are another number (VERSIONING.md), and the ledgers of
the old one stay beside the new ones. Before the first release of 1.0 a folder may be removed by hand instead.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from cli_kit import EXAMPLES, spak  # noqa: E402  the helpers of the tests stand one folder up
from host_kit import TUNING, start  # noqa: E402
from spak.kernel.replay import replay  # noqa: E402
from spak.kernel.rules import SEMANTICS  # noqa: E402
from spak.ledger.chain import is_record_line  # noqa: E402
from spak.ledger.export import export  # noqa: E402
from spak.records import decode  # noqa: E402

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


def main() -> int:
    target = HERE / f"semantics-{SEMANTICS}"
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
        ):
            _own(folder / name, target / f"{name}.jsonl", spec)
        _own(folder / "planned", target / "planned.jsonl", PLANNED, planned)
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
    return 0


def _examples(folder: Path, target: Path) -> None:
    """Runs of the examples as the command makes them."""
    for name, answers in (("hello", ()), ("build_feature", (EXAMPLES / "fix.patch",))):
        spak(folder, "run", str(EXAMPLES / f"{name}.spak"), "--mode", "stepwise", "--seed", "1")
        for answer in answers:
            spak(folder, "step", "--resume", "--answer-file", str(answer))
        spak(folder, "export", "latest", "--output", str(target / f"{name}.jsonl"))


def planned(task: str, count: int) -> str:
    """An answer to the plan of a task: every fourth is none, others are long looks and short writes."""
    if count % 4 == 3:
        return "let me think"
    if task == "see":
        args = {"text": f"id_{count:03} " + f"word{count} " * 120}
        return json.dumps({"control_packet": {"tool_calls": [{"tool": "look", "args": args}]}})
    return json.dumps({"tool": "write", "args": {"path": f"f{count}.txt", "text": f"id_{count:03}"}})


def _own(
    folder: Path, path: Path, spec: str, answers: Callable[[str, int], str] = lambda task, count: "yes"
) -> None:
    """A run on the plain host of the runner's tests; whatever it asks is answered with `yes`, or as given."""
    run = start(folder, spec, path.stem)
    count = 0
    while run.advance("full_auto") == "waiting" and count < 40:
        count += 1
        run.answer(answers(run.state.r0.task, count))
    with path.open("wb") as stream:
        export(run.ledger, stream)
    run.close()


if __name__ == "__main__":
    sys.exit(main())
