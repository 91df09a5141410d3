"""One part of a test, played against a runtime: the kit is the model, arranges what goes wrong, and looks.

Takes a Part and a Stage, which starts processes of the runtime; gives sentences about what is wrong. What a
runtime says of itself counts only for what nobody else can know (registers, summary, figures): the kit reads
the workspace and the log itself, counts questions and tokens itself, and kills processes itself.
"""

from __future__ import annotations

import json
import os
import random
import re
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from shutil import rmtree
from typing import Any

from spak.compliance import PROTOCOL, cases, tree
from spak.compliance.cases import LIMITS, OVER, Part
from spak.compliance.check import Seen, problems
from spak.compliance.talk import Fault, Runtime
from spak.compliance.trees import plant, wreck
from spak.inputs import read_at_most

MOST_ASKS = 60
"""Questions of a task beyond those that its part has answers for."""
GRACE_S = 15.0
"""How much later than its limit a process may say that a lock is held."""
LONG = " ".join(f"word{number}" for number in range(120))
POLL_S = 0.01
_NUMBER = re.compile(r"\s*[0-9]{1,9}\s*")


@dataclass(slots=True)
class Stage:
    """Where a case is played: folders of its own, and processes of the runtime, which end with it."""

    place: Path
    start: Callable[[], Runtime]
    _runtimes: list[Runtime] = field(default_factory=list)
    _spare: Runtime | None = None
    _folders: int = 0

    def runtime(self) -> Runtime:
        """A new process."""
        made = self.start()
        self._runtimes.append(made)
        return made

    def spare(self) -> Runtime:
        """A process that has done other tasks, or a new one."""
        self._spare = self._spare or self.runtime()
        return self._spare

    def folder(self, files: Mapping[str, str]) -> tuple[Path, Path]:
        """A new folder for the state of a runtime, and one with the files that tasks begin from."""
        self._folders += 1
        state, folder = (self.place / f"{word}{self._folders}" for word in ("state", "folder"))
        state.mkdir()
        folder.mkdir()
        for name, text in files.items():
            (folder / name).write_text(f"{text}\n", encoding="utf-8")
        return state, folder

    def close(self) -> None:
        """End all processes."""
        for runtime in self._runtimes:
            runtime.close()


@dataclass(slots=True)
class Task:
    """One task of a part: the commands about it, and the model that answers it."""

    stage: Stage
    part: Part
    state: Path
    folder: Path
    name: str = "t1"

    def command(self, do: str, **more: Any) -> dict[str, Any]:
        """A command about the task."""
        return {
            "do": do,
            "protocol": PROTOCOL,
            "task": self.name,
            "state": str(self.state),
            "folder": str(self.folder),
            "goal": "Call the tools until the work is done, then call over.",
            "tools": dict(cases.tools()),
            "limits": {**LIMITS, **self.part.limits},
            **({"blind": list(self.part.blind)} if self.part.blind else {}),
            **more,
        }

    def begun(self, runtime: Runtime, seen: Seen) -> None:
        """Wait until the runtime has begun, and keep where it works. Raises: Fault."""
        about = self._member(runtime.receive(), "begun")
        seen.workspace, seen.log = (str(self._below(about.get(name), name)) for name in ("workspace", "log"))
        seen.begun = self.look(seen)

    def in_the_middle(self) -> tuple[Runtime, Seen]:
        """Begin the task in a process of its own, and wait until its first tool has begun. Raises: Fault."""
        runtime, seen = self.stage.runtime(), Seen(self.name)
        runtime.send(self.command("begin"))
        self.begun(runtime, seen)
        if not self.step(runtime, seen):
            raise Fault("ends before it calls a tool")
        _wait(Path(seen.workspace, self.part.seen), runtime)
        return runtime, seen

    def play(self, runtime: Runtime, do: str = "begin", **more: Any) -> Seen:
        """Give the command and answer until the end. Raises: Fault."""
        seen = Seen(self.name)
        runtime.send(self.command(do, **more))
        self.begun(runtime, seen)
        self.finish(runtime, seen)
        return seen

    def finish(self, runtime: Runtime, seen: Seen) -> None:
        """Answer questions until the end. Raises: Fault."""
        while self.step(runtime, seen):
            pass
        seen.tree = self.look(seen)

    def step(self, runtime: Runtime, seen: Seen) -> bool:
        """Answer one question; False at the end. Raises: Fault."""
        message = runtime.receive()
        if "end" in message:
            seen.end = self._member(message, "end")
            return False
        self.answer(runtime, seen, self._member(message, "ask"))
        return True

    def answer(self, runtime: Runtime, seen: Seen, asked: Mapping[str, Any]) -> None:
        """The model's answer to a question. Raises: Fault."""
        prompt, registers = asked.get("prompt"), asked.get("registers")
        if not isinstance(prompt, str) or not isinstance(registers, dict):
            raise Fault("asks without a prompt and registers")
        seen.prompts.append(prompt)
        seen.registers.append(registers)
        if len(seen.prompts) <= MOST_ASKS:
            seen.trees.append(self.look(seen))
        text = self.text(len(seen.prompts))
        usage = {"input": len(prompt.split()), "output": len(text.split())}
        seen.tokens += sum(usage.values())
        runtime.send({"answer": text, "usage": usage})

    def text(self, number: int) -> str:
        """What the model answers to the question of that number, from 1. Raises: Fault."""
        part = self.part
        count = len(part.answers) * part.times
        if number > count + 1 and (not part.again or number > MOST_ASKS):
            raise Fault(f"asks more than {number - 1} times")
        given = part.answers[(number - 1) % len(part.answers)] if number <= count or part.again else OVER
        return given if isinstance(given, str) else _json(given, number)

    def look(self, seen: Seen) -> tree.Tree:
        """The workspace as it is. Raises: Fault."""
        return _tree(Path(seen.workspace))

    def log(self, seen: Seen) -> list[bytes]:
        """The lines of the log as they are on disk."""
        data = read_at_most(Path(seen.log), tree.MOST_BYTES) if Path(seen.log).is_file() else b""
        return (data or b"").splitlines()

    def change(self, work: Callable[[], None]) -> None:
        """Change something in the workspace. Raises: Fault."""
        try:
            work()
        except OSError as error:
            raise Fault(f"has a workspace that cannot be changed: {error}") from error

    def account(self, runtime: Runtime) -> dict[str, Any]:
        """What the runtime says of the task from its log alone. Raises: Fault."""
        runtime.send({"do": "account", "state": str(self.state), "task": self.name})
        return self._member(runtime.receive(), "account")

    def _below(self, path: object, what: str) -> Path:
        """A path of the runtime's, with its links followed. Raises: Fault where it leads out of the test."""
        try:
            place = Path(str(path)).resolve()
        except (ValueError, OSError):  # a NUL, half a character, links in a circle
            place = Path("/")
        if not place.is_relative_to(self.stage.place.resolve()):
            raise Fault(f"names a {what} that is not below that of the test: {_brief(path)}")
        return place

    @staticmethod
    def _member(message: Mapping[str, Any], name: str) -> dict[str, Any]:
        found = message.get(name)
        if not isinstance(found, dict):
            raise Fault(f"sends {_brief(message.get('end', message))} instead of {name}")
        return found


def _tree(place: Path) -> tree.Tree:
    """What is in a folder of the test. Raises: Fault."""
    try:
        return tree.read(place)
    except (tree.TooLarge, OSError) as error:
        raise Fault(f"has a folder that cannot be read: {error}") from error


def play(part: Part, stage: Stage) -> list[str]:
    """What is wrong with a runtime, by one part of a test."""
    try:
        return PLAYS[part.kind](part, stage)
    except Fault as fault:
        stage._spare = None
        return [str(fault)]


def _task(part: Part, stage: Stage) -> list[str]:
    seen = Task(stage, part, *stage.folder(part.files)).play(stage.spare())
    return problems(seen, part.expect)


def _killed(part: Part, stage: Stage) -> list[str]:
    """The runtime is killed while its tool is in the middle; another process says what was under way, or goes
    on."""
    task = Task(stage, part, *stage.folder(part.files))
    runtime, seen = task.in_the_middle()
    lines = task.log(seen)
    runtime.kill()
    other = stage.runtime()
    if "pending" in part.expect:
        return _pending(part, _object(task.account(other).get("pending")), lines)
    tools = {
        name: {**about, "argv": part.argv_again.get(name, about["argv"])}
        for name, about in cases.tools().items()
    }
    other.send(task.command("resume", tools=tools))
    again = Seen(task.name)
    task.begun(other, again)
    if again.workspace != seen.workspace:
        return ["goes on in another workspace"]
    task.finish(other, again)
    return problems(again, part.expect)


def _pending(part: Part, pending: Mapping[str, Any], lines: Sequence[bytes]) -> list[str]:
    if any(pending.get(name) != value for name, value in part.expect["pending"].items()):
        return [f"another process does not find the transaction that was under way: {_brief(pending)}"]
    line = pending.get("line")
    if type(line) is not int or not 0 <= line < len(lines) or part.logged.encode() not in lines[line]:
        return ["the log on disk did not have the transaction when its tool began"]
    return []


def _at_once(part: Part, stage: Stage) -> list[str]:
    """Several tasks, each in a process of its own, from one folder."""
    state, folder = stage.folder(part.files)
    before = tree.read(folder)
    tasks = [Task(stage, part, state, folder, f"t{number}") for number in range(1, part.tasks + 1)]
    runtimes = [stage.runtime() for _ in tasks]
    with ThreadPoolExecutor(len(tasks)) as pool:
        found = list(pool.map(lambda task, runtime: task.play(runtime), tasks, runtimes))
    wrong = [f"{seen.task}: {problem}" for seen in found for problem in problems(seen, part.expect)]
    if len({seen.workspace for seen in found}) < len(found):
        wrong.append("two tasks share a workspace")
    if changed := tree.difference(before, _tree(folder)):
        wrong.append(f"the folder that they began from is another one: {changed}")
    places = {seen.workspace: tree.texts(seen.tree) for seen in found}
    numbers = [text for files in places.values() for text in files.values() if _NUMBER.fullmatch(text)]
    total = sum(map(int, numbers))
    if total != part.expect["sum"]:
        wrong.append(f"the numbers add up to {total} instead of {part.expect['sum']}")
    return wrong


def _held(part: Part, stage: Stage) -> list[str]:
    """A second process wants a task while the first one is in the middle of a tool."""
    task = Task(stage, part, *stage.folder(part.files))
    runtime, seen = task.in_the_middle()
    held = task.look(seen)
    other = stage.runtime()
    other.wait_s = part.limits["lock_s"] + GRACE_S
    other.send(task.command("resume"))
    message = other.receive()
    end, wanted = _object(message.get("end")), part.expect["other"]
    if any(end.get(name) != value for name, value in wanted.items()):
        return [f"the second process gets {_brief(message)} instead of {_brief(wanted)}"]
    if not isinstance(end.get("message"), str) or not end["message"].strip():
        return ["the second process is not told in a sentence why"]
    if changed := tree.difference(held, task.look(seen)):
        return [f"the second process changes the workspace: {changed}"]
    task.change(lambda: Path(seen.workspace, "go").touch())
    task.finish(runtime, seen)
    return problems(seen, part.expect)


def _twice(part: Part, stage: Stage) -> list[str]:
    """The same task twice, another one once, and an account from the log alone."""
    first, same, other = (Task(stage, part, *stage.folder(part.files)) for _ in range(3))
    assert part.another is not None
    other.part = replace(part, answers=(*part.answers[:-1], part.another))
    seen = [task.play(stage.runtime()) for task in (first, same, other)]
    wrong = [problem for one in seen[:2] for problem in problems(one, part.expect)]
    hashes = [one.end.get("summary") for one in seen]
    if not all(isinstance(one, str) and one for one in hashes):
        return [*wrong, "there is no summary"]
    if hashes[0] != hashes[1]:
        wrong.append("the same run twice has two summaries")
    if hashes[0] == hashes[2]:
        wrong.append("a run with another answer has the same summary")
    counted = {"asks": len(seen[0].prompts), "calls": part.expect["calls"], "tokens": seen[0].tokens}
    if seen[0].end.get("figures") != counted:
        wrong.append(
            f"the figures are {_brief(seen[0].end.get('figures'))}, and the kit counted {_brief(counted)}"
        )
    first.change(lambda: rmtree(seen[0].workspace))
    account = first.account(stage.runtime())
    if account.get("summary") != hashes[0] or account.get("figures") != counted:
        wrong.append("the log alone gives another summary or other figures")
    return wrong


def _trees(part: Part, stage: Stage) -> list[str]:
    """A step that is kept and one that dies, in folders made at random."""
    for number in range(part.trees):
        draw = random.Random(f"{part.random}/{number}")
        state, folder = stage.folder({})
        plant(folder, draw)
        calls = [{"tool": "script", "args": {"text": text}} for text in wreck(folder, draw)]
        one = replace(part, answers=calls)
        seen = Task(stage, one, state, folder).play(stage.spare())
        wrong = problems(seen, part.expect)
        if not wrong and len(seen.trees) != len(calls) + 1:
            wrong = [f"asks {len(seen.trees)} times instead of {len(calls) + 1}"]
        if not wrong and not tree.difference(seen.trees[0], seen.trees[1]):
            wrong = ["the step that is to be kept has changed nothing"]
        if not wrong and (changed := tree.difference(seen.trees[1], seen.trees[2])):
            wrong = [f"after the rollback {changed}"]
        if wrong:
            return [f"{wrong[0]} (folder {number} of random {part.random})"]
    return []


PLAYS: Mapping[str, Callable[[Part, Stage], list[str]]] = {
    "task": _task,
    "killed": _killed,
    "at_once": _at_once,
    "held": _held,
    "twice": _twice,
    "trees": _trees,
}


def _wait(path: Path, runtime: Runtime) -> None:
    """Until a tool has made a file. Raises: Fault."""
    ends = time.monotonic() + runtime.wait_s
    while not os.path.lexists(path):
        if time.monotonic() > ends:
            raise Fault(f"starts no tool within {runtime.wait_s:g} seconds")
        time.sleep(POLL_S)


def _json(call: Mapping[str, Any], number: int) -> str:
    args = {
        name: value.replace("{n}", str(number)).replace("{long}", LONG) if isinstance(value, str) else value
        for name, value in call["args"].items()
    }
    return json.dumps({**call, "args": args})


def _object(value: object) -> Mapping[str, Any]:
    """What a runtime sent where it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def _brief(value: object) -> str:
    return ascii(value)[:160]
