"""Our arm: a `.spak` spec, one task a file, run by the real kernel and runner in a real workspace and ledger.

A run that ends before all files are there (the watchdog, three rollbacks, no retries left) is begun again for
the files that are missing, as an operator or a script around `spak run` does; prompts of all tries count.
`Switches` turn one part off at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from bench.spreadsheets.model import Model, Shown
from bench.spreadsheets.sheets import Sheet, plant
from bench.spreadsheets.tools import Breaking, ReadTable
from spak import canon, tokens
from spak.kernel.replay import replay
from spak.kernel.state import State
from spak.lang.catalog import Catalog, NamedEntry
from spak.ledger.files import FileLedgers
from spak.ledger.verify import verify
from spak.policy.law import Law
from spak.ports import Answer, Prompt
from spak.runner import Host, Run
from spak.runner.genesis import constitution, genesis
from spak.workspace import Workspace

TRIES = 4
"""Runs that one pipeline takes at the most."""
LAW = "permitted(Action) :- tool(Action, /read_table), !unpermitted_path(Action).\n"


@dataclass(frozen=True, slots=True)
class Switches:
    """What of the arm is on."""

    pruning: bool = True
    watchdog: bool = True
    rollback: bool = True


def spec(sheets: list[Sheet], switches: Switches) -> str:
    """The agent for these files. Without the watchdog only the number of steps ends a run."""
    tasks = []
    for sheet, following in zip(sheets, [*sheets[1:], None], strict=True):
        here = f"sheet_{sheet.name[:2]}"
        edge = f"success -> sheet_{following.name[:2]}, " if following else "success -> done, "
        tasks.append(f"""
  TASK {here} {{
    GOAL {canon.dumps(sheet.instruction).decode()}
    TOOLS [read_table, write_file]
    step see: llm.plan {{}}
    step make: llm.plan {{}}
    success: file_exists("{sheet.target}")
    NEXT {{ {edge}fail -> {here} }}
  }}""")
    limits = "steps: 360" if switches.watchdog else "steps: 360, watchdog: 0"
    retries = "" if switches.watchdog else "RETRIES 90"
    return f"""AGENT Spreadsheets LEVEL 5 {{
  CONFIG {{ MODE full_auto MEMORY PRUNE_ON_CONFIRM BUDGET {{ {limits} }} {retries} }}
  SYSTEM_MODEL Tables {{ AXIOM "Change nothing but what the goal asks for." }}
  START -> sheet_{sheets[0].name[:2]}
{"".join(tasks)}
  TASK done {{ success: file_exists("{sheets[-1].target}") }}
}}
"""


@dataclass
class Asked:
    """The model as a backend: counts the tokens of what goes in and out."""

    model: Model
    whole: bool
    """Send every text that a prompt has shown again, as a chat history does: the arm without pruning."""
    tokens: int = 0
    calls: int = 0
    entry: ClassVar = NamedEntry("scripted", "a scripted model with faults")
    history: dict[tuple[str, str], Mapping[str, str]] = field(default_factory=dict)

    def check(self) -> None:
        """It is always there."""

    def answer(self, prompt: Prompt, *given: Any) -> Answer:
        """The model's next call in the form that the prompt asks for."""
        items = self._unpruned(prompt) if self.whole else prompt.items
        said = self.model.say([Shown(item["text"], item["name"] == "error") for item in items], idle=True)
        text = f'{{"control_packet": {{"tool_calls": [{said}]}}}}'
        self.calls += 1
        self.tokens += tokens.count(items) + tokens.of_text(text)
        return Answer(text)

    def _unpruned(self, prompt: Prompt) -> list[Mapping[str, str]]:
        texts = [item for item in prompt.items if item["name"].startswith("ref.")]
        self.history.update({(item["name"], item["role"]): item for item in texts})
        others = [item for item in prompt.items if not item["name"].startswith(("ref.", "memory."))]
        fixed = [item for item in others if item["role"] == "system"]
        return [*fixed, *self.history.values(), *(item for item in others if item["role"] != "system")]


@dataclass(slots=True)
class Used:
    """What a pipeline used, and how its runs ended."""

    tokens: int = 0
    calls: int = 0
    ends: list[str] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    """The last state of each run."""


def pipeline(model: Model, sheets: list[Sheet], folder: Path, switches: Switches) -> tuple[Used, Path]:
    """Clean the sheets; gives what it used and the folder with the result."""
    used, place = Used(), folder / "first"
    plant(sheets, place)
    for number in range(1, TRIES + 1):
        missing = [sheet for sheet in sheets if not (place / sheet.target).exists()]
        if not missing:
            break
        model.forget()
        place = _run(model, missing, place, folder / f"{number}", switches, used)
    return used, place


def replayed(used: Used, folder: Path) -> bool:
    """Whether each ledger of a pipeline verifies, and replays to the state that its run ended with."""
    for number, state in enumerate(used.states, start=1):
        reader = FileLedgers(folder / f"{number}").reader("run")
        again = replay(record for record, _ in reader.read())
        whole = verify((line for _, line in reader.read()), exported=False).ok
        reader.close()
        if not whole or again.difference is not None or again.state != state:
            return False
    return True


def _run(
    model: Model,
    sheets: list[Sheet],
    before: Path,
    folder: Path,
    switches: Switches,
    used: Used,
) -> Path:
    tools = {"read_table": ReadTable(), "write_file": Breaking(model.breaks, not switches.rollback)}
    place = Workspace(folder / "run/workspace", folder / "run/store")
    place.copy_in(before)
    asked = Asked(model, not switches.pruning)
    catalog = Catalog({name: tool.entry for name, tool in tools.items()})
    law = Law(constitution(), {"tables.mg": LAW})
    body = genesis(spec(sheets, switches), catalog, {}, place.snapshot(), 1, {"run": "run"}, law=law)
    run = Run.create(FileLedgers(folder), "run", body, Host(tools=tools, backend=asked), place)
    try:
        stop = run.advance("full_auto")
        used.ends.append(", ".join(run.state.r7.codes) or run.state.status if stop == "ended" else stop)
        used.states.append(run.state)
    finally:
        run.close()
    used.tokens += asked.tokens
    used.calls += asked.calls
    return place.directory
